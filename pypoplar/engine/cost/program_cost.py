"""Walks a control program once and prices it: what loops do is multiplied, what functions do is found once.

A piece of the program is a range of rows that is entered at its first and left at its last; what it contains is told by its jumps:

    REPEAT  body REPEAT_END                                  a loop of so many rounds
    BRANCH  then JUMP  otherwise                             a choice; the comparisons of a Switch are choices in each other
    BRANCH  then                                             a choice without an otherwise
    head BRANCH body JUMP-back                               a loop while a value is not 0
    head BRANCH JUMP-out body JUMP-back                      a loop while a value is 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NoReturn, Protocol

from attrs import define, field, frozen

from pypoplar.compiler.control.stackless import Calls, answer
from pypoplar.engine.cost.compute_prices import ComputePrices
from pypoplar.engine.cost.spent import Spent, SpentParts
from pypoplar.engine.cost.tile_clocks import clocks_of
from pypoplar.errors import ApplicationRuntimeError, ControlProgramError
from pypoplar.executable.cost_facts import COMPUTED, ROUNDS, SHARE, UNKNOWN, VALUE, Decision
from pypoplar.executable.executable import Executable
from pypoplar.executable.ipu_rows import end_of
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    STEPS,
    BranchOperand,
    CallOperand,
    ComputeOperand,
    JumpOperand,
    Opcode,
    ProgramRow,
    RepeatOperand,
    ServiceOperand,
    UnlessEqualOperand,
)
from pypoplar.interface.service_kinds import MEETINGS, ServiceKind

NEEDS_DATA = {
    ServiceKind.PRINT: "PrintTensor prints a tensor",
    ServiceKind.PRINTS: "a vertex prints",
    ServiceKind.HOST_FUNCTION: "a host function is called",
    ServiceKind.ERROR: "ErrorProgram tells of a tensor",
}
"""Services that give the host data, or take them from it."""

COSTS_NOTHING = {ServiceKind.CALLBACK, ServiceKind.UNDEFINED, ServiceKind.SEED, ServiceKind.REMOTE_READ, ServiceKind.REMOTE_WRITE}
"""Services whose data nothing depends on here: what moves is priced by the rows beside them."""

GATHERING = {Opcode.STAMP, Opcode.ELAPSED, Opcode.CLOCK, Opcode.BRANCH, Opcode.UNLESS_EQUAL}
"""Operations that are no steps, and at which all tiles wait for the one that has come farthest."""

PASSED = {Opcode.FLOATING_POINT, Opcode.CALLBACK}


@frozen(eq=False)
class _WhileLoop:
    """A loop whose end data decide: `leaves` is the row that does, in [begin, end), between `head` and `body`."""

    begin: int
    leaves: int
    body: int
    end: int


class ControlValues(Protocol):
    """Computes values that decide: see `CostFacts.control`."""

    def restart(self) -> None:
        """As a program has them that has just been loaded."""

    def run(self, operation: int) -> None:
        """Do an operation that computes some of them."""

    def value(self, number: int) -> int:
        """One of them, as it is now."""


@define(eq=False)
class ProgramCost:
    """Prices the programs of an executable."""

    executable: Executable
    prices: ComputePrices
    control: ControlValues | None
    decisions: dict[int, Decision] = field(init=False)  # by row
    _rows: list[list[int]] = field(init=False)
    _loops: dict[int, list[_WhileLoop]] = field(init=False)  # by first row, the outermost last
    _computing: dict[int, list[int]] = field(init=False)  # by row, operations of the control
    _moving: list[int] = field(init=False)  # [rows + 1]: how many rows before each compute what decides, or are decided by it
    _functions: dict[int, Spent] = field(factory=dict)  # by first row, where tiles have no clocks of their own
    _beginning: Any = field(init=False)  # `TileClocks`, or `IpuClocks` of several, as a program finds them
    _clocks: Any = field(init=False)
    _events: int = 0  # that are kept

    def __attrs_post_init__(self) -> None:
        assert self.executable.cost is not None
        self.decisions = {decision.row: decision for decision in self.executable.cost.decisions}
        self._rows = self.executable.program.tolist()
        self._loops = _while_loops(self._rows)
        self._computing = {}
        for row, operation in self.executable.cost.computing.tolist():
            self._computing.setdefault(row, []).append(operation)
        self._moving = self._count_moving()
        self._beginning = clocks_of(self.executable)

    def of(self, entry: int, events: int) -> Spent:
        """What the program from a row on costs, with its first `events` executions of steps."""
        self._clocks = self._beginning.copy()
        self._functions.clear()
        self._events = events
        return answer(self._until(entry, Opcode.END))

    def computes(self) -> bool:
        """Whether what a program costs depends on what was run before."""
        return self._moving[-1] > 0

    def _parts(self) -> SpentParts:
        """What collects what a piece costs."""
        parts: SpentParts = self._clocks.parts(self._events)
        return parts

    def _count_moving(self) -> list[int]:
        """[rows + 1]: rows before each at which a value that decides is computed or asked for, also in what they call."""
        moving = {*self._computing, *(row for row, decision in self.decisions.items() if decision.known == COMPUTED)}
        calls = {number: row[CallOperand.ROW] for number, row in enumerate(self._rows) if row[ProgramRow.OPERATION] == Opcode.CALL}
        ends = {begin: self._end(begin, Opcode.RETURN) for begin in calls.values()}
        before = -1
        while len(moving) > before:
            before = len(moving)
            moving |= {row for row, begin in calls.items() if any(begin <= one < ends[begin] for one in moving)}
        return list(accumulate((number in moving for number in range(len(self._rows))), initial=0))

    def _is_moving(self, begin: int, end: int) -> bool:
        """Whether rows compute what decides, or are decided by it: they may cost something else each time."""
        return self._moving[end] > self._moving[begin]

    def _end(self, begin: int, last: Opcode) -> int:
        return end_of(self._rows, begin, last)

    def _until(self, begin: int, last: Opcode) -> Calls[Spent]:
        """A program or function from its first row on, to its `last`."""
        spent: Spent = yield self._piece(begin, self._end(begin, last))
        return spent

    def _piece(self, begin: int, end: int, inside: int = 0) -> Calls[Spent]:
        """The rows of a piece. Of the loops that begin at its first row, `inside` are around it."""
        parts = self._parts()
        row = begin
        while row < end:
            loops = self._loops.get(row, [])
            around = inside if row == begin else 0
            if len(loops) > around:
                loop = loops[len(loops) - 1 - around]
                parts.add((yield self._while(loop, around + 1)))
                row = loop.end
                continue
            operation = Opcode(self._rows[row][ProgramRow.OPERATION])
            if operation == Opcode.REPEAT:
                after = self._rows[row][RepeatOperand.AFTER]
                body, times = partial(self._piece, row + 1, after - 1), self._rows[row][RepeatOperand.TIMES]
                parts.add((yield self._rounds(body, times, each=self._is_moving(row + 1, after - 1))))
                row = after
            elif operation in (Opcode.BRANCH, Opcode.UNLESS_EQUAL):
                self._require(self.decisions[row])
                self._clocks.meet(row, parts)
                spent, row = yield self._choice(row)
                parts.add(spent)
            elif operation == Opcode.CALL:
                parts.add((yield self._called(self._rows[row][CallOperand.ROW])))
                row += 1
            else:
                self._single(operation, row, parts)
                row += 1
        return parts.finish()

    def _single(self, operation: Opcode, row: int, parts: SpentParts) -> None:
        """A row that does not decide what comes next."""
        operands = self._rows[row]
        for number in self._computing.get(row, ()):
            assert self.control is not None
            self.control.run(number)
        if operation == Opcode.COMPUTE:
            steps = (operands[ComputeOperand.BEFORE], operands[ComputeOperand.STEP], operands[ComputeOperand.AFTER])
            compute = operands[ComputeOperand.COMPUTE]
            self._clocks.superstep(row, steps, compute, self.prices.of(compute), parts)
        elif operation in STEPS:
            (step,) = STEPS[operation]
            self._clocks.move(operands[step], parts)
        elif operation in GATHERING:
            self._clocks.meet(row, parts)
        elif operation == Opcode.SERVICE:
            self._serve(row, operands[ServiceOperand.SERVICE], parts)
        elif operation not in PASSED:
            raise ControlProgramError(f"row {row} of the program, {operation.name}, is not where a program has it")

    def _serve(self, row: int, number: int, parts: SpentParts) -> None:
        service = self.executable.services[number]
        kind = ServiceKind(service["kind"])
        if kind == ServiceKind.ABORT:
            raise ApplicationRuntimeError(f"the program aborted: {service['message']} [{service['location']}]")
        if kind in MEETINGS:
            self._clocks.meet(row, parts)  # replicas that are priced alike come at the same time
            return
        if kind in NEEDS_DATA:
            raise ApplicationRuntimeError(
                f"{NEEDS_DATA[kind]}{_place(service)}, and mode='cost' has no data: leave it out of what is priced, or run it "
                "with mode='native'"
            )
        if kind not in COSTS_NOTHING:
            raise AssertionError(f"service {kind.name} is not known to mode 'cost'")

    # What is decided

    def _rounds(self, one: Callable[[], Calls[Spent]], rounds: int, *, each: bool) -> Calls[Spent]:
        """Rounds of a loop: one by one until the next begins with the tiles as far apart as this one did, and the rest at once.

        Where values are computed in them, `each` is walked.
        """
        parts, left = self._parts(), rounds
        while left > 0:
            before = self._clocks.relative()
            spent: Spent = yield one()
            left -= 1
            if left and not each and self._clocks.relative() == before:
                self._clocks.shift(round(spent.cycles * left))
                parts.add(spent.repeated(1 + left, self._events))
                break
            parts.add(spent)
        return parts.finish()

    def _while(self, loop: _WhileLoop, inside: int) -> Calls[Spent]:
        """A loop whose end a value decides; `inside` of the loops that begin where it does are around its head."""
        decision = self.decisions[loop.leaves]
        if decision.known == COMPUTED:
            computed: Spent = yield self._while_computed(loop, inside, decision)
            return computed
        if decision.known != ROUNDS:
            self._require(decision)
            stays = (decision.number != 0) == (loop.body == loop.leaves + 1)
            if stays:
                raise ControlProgramError(
                    f"{decision.kind} at {decision.made_at} never ends, as {decision.tensor!r} is {decision.number:g} "
                    f"whenever it is asked: say how often its body runs, with assume_count(program, n)"
                )
        parts = self._parts()
        if decision.known == ROUNDS:
            each = self._is_moving(loop.begin, loop.end)
            spent: Spent = yield self._rounds(partial(self._head_and_body, loop, inside), int(decision.number), each=each)
            parts.add(spent)
        parts.add((yield self._piece(loop.begin, loop.leaves, inside)))
        self._clocks.meet(loop.leaves, parts)
        return _decided(parts.finish(), decision)

    def _while_computed(self, loop: _WhileLoop, inside: int, decision: Decision) -> Calls[Spent]:
        """A loop whose end is computed, round by round."""
        parts = self._parts()
        while True:
            parts.add((yield self._piece(loop.begin, loop.leaves, inside)))
            self._clocks.meet(loop.leaves, parts)
            if (self._value(decision) != 0) != (loop.body == loop.leaves + 1):
                return parts.finish()
            parts.add((yield self._piece(loop.body, loop.end - 1)))

    def _value(self, decision: Decision) -> int:
        """What is read where a program decides."""
        if decision.known == COMPUTED:
            assert self.control is not None
            return self.control.value(int(decision.number))
        return int(decision.number)

    def _head_and_body(self, loop: _WhileLoop, inside: int) -> Calls[Spent]:
        parts = self._parts()
        parts.add((yield self._piece(loop.begin, loop.leaves, inside)))
        self._clocks.meet(loop.leaves, parts)
        parts.add((yield self._piece(loop.body, loop.end - 1)))
        return parts.finish()

    def _choice(self, row: int) -> Calls[tuple[Spent, int]]:
        """What a branch or comparison chooses from, and the row behind all of it."""
        operands = self._rows[row]
        compares = operands[ProgramRow.OPERATION] == Opcode.UNLESS_EQUAL
        other = operands[UnlessEqualOperand.ROW if compares else BranchOperand.ROW]
        jump = self._rows[other - 1]
        has_otherwise = jump[ProgramRow.OPERATION] == Opcode.JUMP and other - 1 > row
        then = (row + 1, other - 1 if has_otherwise else other)
        end = jump[JumpOperand.ROW] if has_otherwise else other
        decision = self.decisions[row]
        if decision.known == SHARE:
            spent: Spent = yield self._shared(decision, then, (other, end))
            return spent, end
        value = self._value(decision)
        taken = value == operands[UnlessEqualOperand.VALUE] if compares else value != 0
        chosen: Spent = yield self._piece(*(then if taken else (other, end)))
        return _decided(chosen, decision), end

    def _shared(self, decision: Decision, then: tuple[int, int], otherwise: tuple[int, int]) -> Calls[Spent]:
        """Both branches of an If, by the share of the times that each is taken. Clocks go on as after the one taken more often."""
        if self._is_moving(then[0], max(then[1], otherwise[1])):
            raise ControlProgramError(
                f"{decision.kind} at {decision.made_at}: a share of the times cannot be assumed where counters that decide are "
                "computed in its branches; assume its value"
            )
        before = self._clocks.copy()
        first: Spent = yield self._piece(*then)
        after_first = self._clocks.copy()
        self._clocks.return_to(before)
        second: Spent = yield self._piece(*otherwise)
        self._clocks.go_on_between(after_first, decision.number)
        return _decided(first.mixed(second, decision.number), decision)

    def _called(self, begin: int) -> Calls[Spent]:
        """A function; where tiles have no clocks of their own it costs the same at every call."""
        same = self._clocks.uniform and not self._is_moving(begin, self._end(begin, Opcode.RETURN))
        known = self._functions.get(begin) if same else None
        if known is not None:
            return known
        spent: Spent = yield self._until(begin, Opcode.RETURN)
        if same:
            self._functions[begin] = spent
        return spent

    def _require(self, decision: Decision) -> None:
        if decision.known == UNKNOWN:
            _refuse(decision)
        assert decision.known in (VALUE, SHARE, COMPUTED)


def _decided(spent: Spent, decision: Decision) -> Spent:
    """What a decision leads to, with the assumption behind it if there is one."""
    return spent if decision.assumption == NOTHING else spent.decided_by(decision.assumption)


def _refuse(decision: Decision) -> NoReturn:
    ways = {
        "If": "assumptions=[assume(tensor, value)], or [assume_share(program, 0.3)]",
        "RepeatWhileTrue": "assumptions=[assume_count(program, n)]",
        "RepeatWhileFalse": "assumptions=[assume_count(program, n)]",
    }
    way = ways.get(decision.kind, "assumptions=[assume(tensor, value)]")
    raise ControlProgramError(
        f"mode='cost' does not know how {decision.kind} at {decision.made_at} decides: it reads {decision.tensor!r}, which is "
        f"data. Say what to assume, with {way}"
    )


def _place(service: Mapping[str, Any]) -> str:
    where = service.get("location") or service.get("title") or service.get("name")
    return f" ({where})" if where else ""


def _while_loops(rows: Sequence[Sequence[int]]) -> dict[int, list[_WhileLoop]]:
    """The loops that jump back to their first row, by that row, each inside the next of its list."""
    found: dict[int, list[_WhileLoop]] = {}
    leaving: dict[int, tuple[int, int]] = {}  # by the row that is gone to: the row that decides, and where the body begins
    for number, row in enumerate(rows):
        operation = row[ProgramRow.OPERATION]
        if operation == Opcode.BRANCH:
            leaving.setdefault(row[BranchOperand.ROW], (number, number + 1))
        if operation != Opcode.JUMP:
            continue
        target, before = row[JumpOperand.ROW], rows[number - 1]
        if target > number:
            if before[ProgramRow.OPERATION] == Opcode.BRANCH and before[BranchOperand.ROW] == number + 1:
                leaving[target] = (number - 1, number + 1)
            continue
        decides, body = leaving[number + 1]
        found.setdefault(target, []).append(_WhileLoop(target, decides, body, number + 1))
    return found
