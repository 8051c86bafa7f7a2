"""Blocks, branches and loops: where runs begin and end, what is known where ways meet, and which loops the code has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import assert_never

from attrs import define, field

from pypoplar.codelet.cost.addresses import SpanValue, Stepping
from pypoplar.codelet.cost.instructions import ALIASES, Instruction, LoopKind, MachineLoop, MachineRun, Pipe, Register, may_alias
from pypoplar.codelet.cost.selection import Known, Selection, Way, at_the_end, merged
from pypoplar.codelet.cost.straight_code import select
from pypoplar.codelet.cost.written_vectors import select_together
from pypoplar.codelet.ir.loop_limits import rounds_of
from pypoplar.codelet.ir.typed import (
    ApplyToVectors,
    Block,
    Break,
    Check,
    Continue,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Load,
    Once,
    Price,
    Return,
    Special,
    Statement,
    Store,
    Straight,
    While,
)
from pypoplar.codelet.ir.walk import assigned, inner_blocks, sets, together, walk
from pypoplar.codelet.operations.tile_readings import reading

ANY = 1 << 31  # what may be so large might be anything

BRANCHES = "there are branches in it"  # why a loop is no hardware repeat


@define(eq=False)
class CountedLoop:
    """A ``for`` as it was gone through: what decides how it goes round."""

    code: MachineLoop
    stepping: Stepping
    before: MachineRun
    body: list[MachineRun]
    start: Known
    stop: Known
    step: Known
    rounds: int | None  # if known
    most_rounds: int | None  # that the compiler can be sure of
    reads_stop: bool  # in every round again

    @property
    def begins_at_zero(self) -> bool:
        return isinstance(self.start, Literal) and self.start.value == 0

    @property
    def bounds(self) -> list[Register]:
        """The registers that decide its rounds."""
        return [bound for bound in (self.start, self.stop, self.step) if isinstance(bound, Register)]


@define(eq=False)
class ControlCode:
    """The walk through a codelet's blocks."""

    selection: Selection
    loops: list[CountedLoop] = field(factory=list)
    whiles: list[MachineLoop] = field(factory=list)

    def block(self, block: Block) -> None:
        """The runs of a block; the current run is its first."""
        last: Straight | None = None
        number = 0
        while number < len(block):
            statement = block[number]
            number += 1
            if not isinstance(statement, Straight):
                self._structured(statement, last)
                last = None
                continue
            vector = together(block, number - 1)
            if len(vector) > 1:
                select_together(self.selection, vector)
                number += len(vector) - 1
                statement = vector[-1]
            else:
                select(self.selection, statement)
            last = statement
            if isinstance(statement, Special) and reading(statement.name).ends_run:
                self.selection.numbering.next_run()

    def _structured(self, statement: Statement, last: Straight | None) -> None:
        match statement:
            case IfElse():
                self._if(statement)
            case While():
                self._while(statement)
            case For():
                self._for(statement, last)
            case Once():
                self._once(statement)
            case ApplyToVectors():
                self._of_vectors(statement)
            case Leave() | Break() | Continue() | Return():
                self.selection.numbering.may_end()
                self.selection.numbering.next_run()
            case Price():
                raise ValueError(f"a codelet is priced once, and this one has a price already: {statement}")
            case _:
                assert_never(statement)  # type: ignore[arg-type]

    def _if(self, statement: IfElse) -> None:
        selection, numbering = self.selection, self.selection.numbering
        selection.branch(statement.condition, statement.where)
        before, spans = dict(selection.locals), dict(selection.spans)
        ways: list[Way] = []
        for branch in (statement.then, statement.orelse):
            selection.locals, selection.spans = dict(before), dict(spans)
            numbering.next_run()
            with numbering.branch():
                self.block(branch)
            if not (branch and isinstance(branch[-1], Leave | Break | Continue | Return)):
                ways.append(Way(selection.locals, numbering.run))
        numbering.next_run()
        changed = assigned((statement,))
        selection.locals = {**before, **merged(sorted(changed), ways, len(numbering.loops))}
        self._after(stored_classes((statement,)), spans, changed)
        if any(isinstance(inner, Leave | Break | Continue | Return | Check) for inner in walk((statement,))):
            numbering.may_end()

    def _of_vectors(self, statement: ApplyToVectors) -> None:
        """A call at the end of the run, which finds its numbers in registers; it may be an error."""
        selection, numbering = self.selection, self.selection.numbering
        numbers = [selection.known(number) for number in statement.numbers]
        reads = tuple(selection.moved(number, statement.where, Pipe.MAIN) for number in numbers if isinstance(number, Register))
        call = Instruction("call", Pipe.MAIN, statement.where, reads=reads, control=True, needed=True)
        numbering.run.ending.append(call)
        numbering.may_end()
        numbering.forget(stored_classes(statement.loops))
        numbering.next_run()

    def _once(self, statement: Once) -> None:
        selection, numbering = self.selection, self.selection.numbering
        before, spans = set(selection.locals), dict(selection.spans)
        conditional = [loop.conditional for loop in numbering.loops]
        ends = any(isinstance(inner, Check | Return) for inner in walk(statement.body))
        numbering.next_run()
        with numbering.branch():
            for loop, was_so in zip(numbering.loops, conditional, strict=True):
                loop.conditional = was_so  # it is passed over only from its first `Leave` on
            self.block(statement.body)
        for loop in numbering.loops:
            loop.conditional |= ends
        last = numbering.next_run()
        for name in sorted(assigned(statement.body) & before):  # some way may have left before it was set
            value = at_the_end(last, selection.locals[name])
            selection.locals[name] = Register(value.file, value.words, len(numbering.loops), [value])
        self._after(stored_classes(statement.body), spans, assigned(statement.body))

    def _after(self, stored: frozenset[str], spans: Mapping[str, SpanValue], changed: Set[str]) -> None:
        """After a block that may have been passed over: its stores may have happened, and what it has `changed` lies anywhere."""
        self.selection.numbering.forget(stored)
        self.selection.spans = {name: value for name, value in spans.items() if name not in changed}

    # Loops

    def _while(self, statement: While) -> None:
        selection, numbering = self.selection, self.selection.numbering
        whole, spans = (*statement.head, *statement.body), dict(selection.spans)
        before, changed, stored = numbering.run, assigned(whole), stored_classes(whole)
        carried = self._enter(changed)
        numbering.next_run()
        code = MachineLoop(statement.where, len(numbering.loops) + 1, len(numbering.runs) - 1)
        self.whiles.append(code)
        with numbering.loop(before, stored):
            self.block(statement.head)
            selection.branch(statement.condition, statement.where, loops=True)
            numbering.may_end()
            numbering.next_run()
            self.block(statement.body)
        code.end = len(numbering.runs)
        self._leave(carried)
        self._after(stored, spans, changed)

    def _for(self, statement: For, last: Straight | None) -> None:
        selection, numbering = self.selection, self.selection.numbering
        body, spans = statement.body, dict(selection.spans)
        start, stop, step = (selection.known(operand) for operand in (statement.start, statement.stop, statement.step))
        rounds, most_rounds = self._rounds(start, stop, step)
        before, changed, stored = numbering.run, assigned(body) | {statement.variable.name}, stored_classes(body)
        carried = self._enter(changed)
        depth = len(numbering.loops) + 1
        variable = Register(Pipe.MAIN, 1, depth, [start] if isinstance(start, Register) else [])
        selection.locals[statement.variable.name] = variable
        stepping = Stepping(variable, depth)
        numbering.next_run()
        code = MachineLoop(statement.where, depth, len(numbering.runs) - 1)
        with numbering.loop(before, stored):
            selection.addresses.steppings.append(stepping)
            self.block(body)
            selection.addresses.steppings.pop()
        runs, code.end = numbering.runs[code.first :], len(numbering.runs)
        reads_stop = _reads_stop(statement, last, stored)
        loop = CountedLoop(code, stepping, before, runs, start, stop, step, rounds, most_rounds, reads_stop)
        code.kind, code.reason = _kind(statement, loop)
        self.loops.append(loop)
        self._leave(carried)
        self._after(stored, spans, changed)

    def _enter(self, changed: Set[str]) -> dict[str, Register]:
        """Give every local that a loop may change a register of its own, which the rounds share."""
        selection, numbering = self.selection, self.selection.numbering
        carried: dict[str, Register] = {}
        for name in sorted(changed & set(selection.locals)):
            first = at_the_end(numbering.run, selection.locals[name])
            carried[name] = Register(first.file, first.words, len(numbering.loops) + 1, [first])
        selection.locals = {**selection.locals, **carried}
        selection.spans = {name: value for name, value in selection.spans.items() if name not in changed}
        return carried

    def _leave(self, carried: Mapping[str, Register]) -> None:
        """After a loop, what it carried from round to round is in a register outside of it."""
        selection, numbering = self.selection, self.selection.numbering
        for name, register in carried.items():
            value = at_the_end(numbering.run, selection.locals[name])
            selection.locals[name] = Register(value.file, value.words, len(numbering.loops), [value, *register.sources])
            register.sources.append(value)
        numbering.next_run()

    def _rounds(self, start: Known, stop: Known, step: Known) -> tuple[int | None, int | None]:
        """How many rounds there are, and the most that there can be, as far as the compiler sees."""
        if not isinstance(step, Literal) or step.value == 0:
            return None, None
        if isinstance(start, Literal) and isinstance(stop, Literal):
            rounds = rounds_of(int(start.value), int(stop.value), int(step.value))
            return rounds, rounds
        high, low = (stop, start) if step.value > 0 else (start, stop)
        most = self.selection.bound(high)
        if most is None or most >= ANY or not isinstance(low, Literal):
            return None, None
        return None, rounds_of(int(low.value), most, abs(int(step.value)))


def _reads_stop(statement: For, last: Straight | None, stored: frozenset[str]) -> bool:
    """Whether the loop's end has just been read from memory that its body may change: a loop's condition in C++ reads it again.

    What the user has put into a local is read once.
    """
    if statement.end_kept or not isinstance(last, Length | Load) or sets(last) != statement.stop:
        return False
    alias = ALIASES["i32" if isinstance(last, Length) else last.span.element]
    return any(may_alias(alias, other) for other in stored)


def _kind(statement: For, loop: CountedLoop) -> tuple[LoopKind, str]:
    """How a loop goes round, as far as its source decides that."""
    if any(isinstance(inner, Break | Return) for inner in _own(statement.body)):
        return LoopKind.COMPARED, "it may end early"
    if loop.reads_stop:
        return LoopKind.COMPARED, "a store in it may change its end, which is read again in each round"
    if not isinstance(loop.step, Literal):
        return LoopKind.COMPARED, "its step is not a constant"
    if any(isinstance(inner, For | While) for inner in walk(statement.body)):
        return LoopKind.COUNTED, "there is a loop in it"
    if not all(isinstance(inner, Straight) and not isinstance(inner, Check) for inner in statement.body):
        return LoopKind.COUNTED, BRANCHES
    return LoopKind.REPEAT, ""


def _own(body: Block) -> Iterator[Statement]:
    """The statements of a loop's body; of loops in it only what returns, for their breaks are theirs."""
    for statement in body:
        yield statement
        if isinstance(statement, For | While):
            yield from (inner for inner in walk((statement,)) if isinstance(inner, Return))
        else:
            for inner in inner_blocks(statement):
                yield from _own(inner)


def stored_classes(block: Block) -> frozenset[str]:
    """The alias classes that a block may store to."""
    return frozenset(ALIASES[statement.span.element] for statement in walk(block) if isinstance(statement, Store))
