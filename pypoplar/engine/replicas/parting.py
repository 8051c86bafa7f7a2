"""Where replicas parted that should have met: the errors that name the replicas, the branch and the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.branch_log import BranchTaken, decisions
from pypoplar.errors import ApplicationRuntimeError
from pypoplar.executable.executable import Executable
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import Opcode, ProgramRow, UnlessEqualOperand


@frozen
class Parting:
    """Two decisions of a row that differ: where one replica goes one way, and another the other."""

    row: int
    value: int
    other: int


def parted(executable: Executable, came: Sequence[int], logs: Sequence[Int64s]) -> ApplicationRuntimeError:
    """The error where replicas have come to different meetings.

    `came` is the service to which each came, or NOTHING where it ended; `logs` are those of what they decided by since they met.
    """
    first = 0
    other = next(number for number, service in enumerate(came) if service != came[first])
    lines = [f"replica {first} has come to {place(executable, came[first])}, replica {other} to {place(executable, came[other])}"]
    parting = find_parting(executable, logs[first], logs[other])
    if parting is None:
        lines.append("  where they went different ways is not known: they have decided too often since they last met")
    else:
        texts = dict(executable.replication.branches) if executable.replication is not None else {}
        branch = texts.get(parting.row, f"row {parting.row} of the program")
        lines.append(f"  they went different ways at {branch}:")
        lines.append(f"  the value is {parting.value} on replica {first}, and {parting.other} on replica {other}")
    return ApplicationRuntimeError("\n".join(lines))


def find_parting(executable: Executable, one: Int64s, other: Int64s) -> Parting | None:
    """The first decision of two replicas that differs; None where they log nothing different."""
    ours, theirs = _ways(executable, one), _ways(executable, other)
    mine, yours = next(ours, None), next(theirs, None)
    while mine is not None and yours is not None:
        if mine.row != yours.row:
            return None
        if mine.way != yours.way:
            return Parting(mine.row, mine.value, yours.value)
        times = min(mine.times, yours.times)
        mine, yours = (way.later(times) if way.times > times else next(ways, None) for way, ways in ((mine, ours), (yours, theirs)))
    return None


def unequal(service: Mapping[str, Any], values: Sequence[int]) -> ApplicationRuntimeError:
    """The error where a value is not equal on all replicas, which a program claims."""
    other = next(number for number, value in enumerate(values) if value != values[0])
    return ApplicationRuntimeError(
        f"{service['name']} is not equal across replicas, as AssumeEqualAcrossReplicas says: it is {values[0]} on replica 0, and "
        f"{values[other]} on replica {other} [{service['location']}]"
    )


def place(executable: Executable, service: int) -> str:
    """Where a replica stands that waits for others, in words."""
    if service == NOTHING:
        return "the end of the program"
    met = executable.services[service]
    what = "the exchange" if "receivers" in met else "AssumeEqualAcrossReplicas of"
    return f"{what} {met['name']} [{met['location']}]"


@frozen
class _Way:
    """A decision, with which way it goes."""

    row: int
    value: int
    times: int
    way: bool

    def later(self, times: int) -> _Way:
        return _Way(self.row, self.value, self.times - times, self.way)


def _ways(executable: Executable, log: Int64s) -> Iterator[_Way]:
    for decision in decisions(log):
        yield _Way(decision.row, decision.value, decision.times, _way(executable, decision))


def _way(executable: Executable, decision: BranchTaken) -> bool:
    row = executable.program[decision.row]
    if row[ProgramRow.OPERATION] == Opcode.UNLESS_EQUAL:
        return bool(decision.value == row[UnlessEqualOperand.VALUE])
    return decision.value != 0
