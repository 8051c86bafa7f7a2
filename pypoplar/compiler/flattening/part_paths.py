"""The ways that control can go through the parts of a program, by the rows of its rule: only those that the program tells of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from attrs import frozen

from pypoplar.executable.verify.program_claims import KINDS, ROW
from pypoplar.interface.opcodes import Opcode, Operand, ProgramRow, RepeatOperand
from pypoplar.program.base import Calling, Contents, InTurn, Nothing, OneOf, Rounds, Vertices

GOES_TO: Mapping[int, Operand] = {
    int(operation): operand
    for operation, kinds in KINDS.items()
    for operand, kind in kinds.items()
    if kind == ROW and operation != Opcode.CALL
}
"""Operations that go on elsewhere in their program, with the operand that says at which row."""


@frozen(eq=False)
class PartRows:
    """The rows of a part: from the first to the one behind the last."""

    begin: int
    end: int


def forbidden_path(contents: Contents, parts: Sequence[PartRows], begin: int, rows: Sequence[Sequence[int]]) -> list[int] | None:
    """The parts, in order, on some way from row `begin` to the end of `rows` that `contents` does not allow; None if there is none.

    Parts without rows do nothing: it does not matter how often control goes through them.
    """
    order = _Order(contents, [number for number, part in enumerate(parts) if part.begin == part.end])
    begins = {part.begin: number for number, part in enumerate(parts) if part.begin < part.end}
    seen: set[tuple[int, int]] = set()
    pending: list[tuple[int, int, list[int]]] = [(begin, order.start(), [])]
    while pending:
        place, state, passed = pending.pop()
        if (place, state) in seen:
            continue
        seen.add((place, state))
        if place in begins:
            number = begins[place]
            passed = [*passed, number]
            after = order.after(state, number)
            if after is None:
                return passed
            pending.append((parts[number].end, after, passed))
        elif place < len(rows):
            pending += [(following, state, passed) for following in _following(place, rows[place])]
        elif not order.may_end(state):
            return passed
    return None


def allowed(contents: Contents) -> str:
    """Which parts run, in words."""
    match contents:
        case InTurn():
            return "each, in order,"
        case OneOf(_, always):
            return "one" if always else "one or none"
        case Rounds():
            return "the head, and the body and the head again as often as wanted,"
        case Nothing() | Vertices() | Calling():
            return "none"
        case _:
            assert_never(contents)


def _following(place: int, row: Sequence[int]) -> list[int]:
    """The rows that may come behind a row."""
    operation = int(row[ProgramRow.OPERATION])
    if operation not in GOES_TO:
        return [place + 1]
    target = row[GOES_TO[operation]]
    if operation == Opcode.JUMP:
        return [target]
    if operation == Opcode.REPEAT:
        return [place + 1] if row[RepeatOperand.TIMES] else [target]
    return [place + 1, target]


@frozen(eq=False)
class _Order:
    """In which order control may go through parts, some of which do nothing, as states of an automaton."""

    contents: Contents
    idle: Sequence[int]  # parts that do nothing

    def start(self) -> int:
        match self.contents:
            case Rounds(head):
                return 0 if head is not None and 0 not in self.idle else 1
            case _:
                return 0

    def after(self, state: int, part: int) -> int | None:
        """The state behind a part, None if it may not come here."""
        match contents := self.contents:
            case InTurn():
                return state + 1 if self._in_turn(contents)[state : state + 1] == [part] else None
            case OneOf():
                return 1 if state == 0 else None
            case Rounds(head, body):
                first = 0 if head is not None else None
                again = None if body is None else 0 if head is None else 1
                if part == first:
                    return 1 if state == 0 or again is None or again in self.idle else None
                return self.start() if state == 1 else None
            case Nothing() | Vertices() | Calling():
                return None
            case _:
                assert_never(contents)

    def may_end(self, state: int) -> bool:
        match contents := self.contents:
            case InTurn():
                return state == len(self._in_turn(contents))
            case OneOf(_, always):
                return state == 1 or not always or bool(self.idle)
            case Rounds():
                return state == 1
            case Nothing() | Vertices() | Calling():
                return True
            case _:
                assert_never(contents)

    def _in_turn(self, contents: InTurn) -> list[int]:
        return [number for number in range(len(contents.parts)) if number not in self.idle]
