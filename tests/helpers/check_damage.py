"""For each check of the verifier, executables that it alone refuses."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from damage import Damage, Damages
from damage_by_rule import by_rule
from damage_of_computes import OF_COMPUTES
from damage_of_host import OF_THE_HOST
from damage_of_memory import OF_MEMORY
from damage_of_moves import OF_MOVES
from damage_of_program import OF_THE_PROGRAM
from damage_of_replicas import OF_REPLICAS
from damage_of_touches import OF_TOUCHES
from executable_checks import Watch, verified
from executable_programs import PROGRAMS

DAMAGE: Damages = {**OF_MEMORY, **OF_THE_HOST, **OF_REPLICAS, **OF_MOVES, **OF_COMPUTES, **OF_TOUCHES, **OF_THE_PROGRAM}
"""What needs more than one number beyond a bound, such as others that have to fit."""


@functools.cache
def watches() -> dict[str, Watch]:
    """What the verifier does with each program as it is compiled."""
    return {program: verified(make(), notes=True) for program, make in PROGRAMS.items()}


def damage_of(check: str) -> Iterator[Damage]:
    """What may be refused by a check alone, to be tried in this order."""
    if check in DAMAGE:
        yield from DAMAGE[check]
        return
    for program, watch in watches().items():
        if check in watch.sites:
            yield from by_rule(check, program, watch.bounds.get(check))
