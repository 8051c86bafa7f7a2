"""A line of operations as liveness goes through it: runs of positions, and what branches, goes round or calls."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TypeAlias, assert_never

from attrs import frozen

from pypoplar.compiler.control.operation_tree import Choice, Group, Invoke, Line, Loop, Moment, Perform


@frozen(eq=False)
class PositionRange:
    """Positions one after another, without a branch."""

    begin: int
    end: int


Piece: TypeAlias = PositionRange | Loop | Choice | Invoke


def pieces(line: Line) -> list[Piece]:
    """What control goes through, in order; groups are dissolved. The position of a loop, choice or call is in the run before it."""
    cut: list[Piece] = []
    begin = end = 0  # of the run that is open; none if they are the same

    def close() -> None:
        if begin < end:
            cut.append(PositionRange(begin, end))

    for position, branching in _flat(line):
        if position != end:
            close()
            begin = position
        end = position + 1
        if branching is not None:
            close()
            begin = end
            cut.append(branching)
    close()
    return cut


def _flat(line: Line) -> Iterable[tuple[int, Loop | Choice | Invoke | None]]:
    """The positions of a line and of the groups in it, with the operations that are no run."""
    unfinished = [iter(line.operations)]
    while unfinished:
        for operation in unfinished[-1]:
            match operation:
                case Perform() | Moment():
                    yield operation.position, None
                case Loop() | Choice() | Invoke():
                    yield operation.position, operation
                case Group():
                    if operation.position >= 0:
                        yield operation.position, None
                    unfinished.append(chain.from_iterable(part.operations for part in operation.parts))
                    break
                case _:
                    assert_never(operation)
        else:
            unfinished.pop()
