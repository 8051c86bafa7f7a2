"""Programs one after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import GrowingProgram, InTurn, Part, Program
from pypoplar.tracebacks import public


@public
class Sequence(GrowingProgram):
    """Programs one after another: ``Sequence([a, b])``, ``Sequence([a, b], "name")``, ``Sequence()`` and then `add`.

    Parameters
    ----------
    programs:
        Programs, or lists of them; a string at the end is the name.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If one is no program.
    """

    def __init__(self, *programs: Program | Iterable[Program] | str, name: str = "") -> None:
        given: list[Any] = list(programs)
        if given and isinstance(given[-1], str):
            name = given.pop()
        super().__init__(name)
        self.programs: list[Program] = []
        for argument in given:
            ordered(argument, "the programs of a Sequence", "Sequence([a, b])")
            for program in [argument] if isinstance(argument, Program) or not isinstance(argument, Iterable) else argument:
                self.add(program)

    def add(self, program: Program) -> None:
        """Append a program, as it is now: what is added to that later is not part of this.

        Parameters
        ----------
        program:
            Any program.

        Raises
        ------
        PoplarTypeError
            If it is none.
        ControlProgramError
            If it is this sequence, or holds it.
        """
        self.programs.append(self._part(program, "Sequence"))

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> InTurn:
        return InTurn(tuple(map(Part, self.programs)))

    def taken(self) -> Self:
        kept = super().taken()
        kept.programs = list(self.programs)
        return kept

    def __len__(self) -> int:
        return len(self.programs)

    def __bool__(self) -> bool:
        return True


def check_sequence(program: Any, what: str) -> Sequence:
    """The argument, which is a Sequence; `what` adds to it."""
    if not isinstance(program, Sequence):
        raise PoplarTypeError(f"{what} takes the Sequence that it adds to, got {program!r}")
    return program
