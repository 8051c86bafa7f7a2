"""Writes the loops of a codelet as LLVM instructions.

A ``for`` counts its rounds once and then only counts up. Where `pypoplar.codelet.ir.loop_checks` finds index checks that can be
made before the loop, the loop is written twice: without those checks, which LLVM runs on vectors where the order of floating-point
operations allows it, and as the user wrote it, for the case that a check fails.
"""

from __future__ import annotations

from typing import Any

from pypoplar.codelet.ir.loop_checks import BindRow, InRange, LoopPlan, plan_loop
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.proven_accesses import Line, Linear, PlannedBlock, PlannedStatement
from pypoplar.codelet.ir.typed import For, Literal, Span, While
from pypoplar.codelet.llvm import memory_access as access
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.llvm.emitter_state import Frame, Lines, Rounds, Writer
from pypoplar.codelet.llvm.memory_access import BOOL, WORD, word
from pypoplar.interface.fault_codes import FaultCode


class LoopCode(Writer):
    """Loops, on top of reads and writes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.loops: list[tuple[Any, Any]] = []  # where break and continue go

    def block(self, frame: Frame, block: PlannedBlock) -> None:
        raise NotImplementedError

    def simple(self, frame: Frame, statement: PlannedStatement) -> None:
        raise NotImplementedError

    def run_eight(self, frame: Frame, loop: For, rounds: Rounds, number: Any, top: Any, after: Any) -> None:
        raise NotImplementedError

    # while

    def while_loop(self, frame: Frame, statement: While) -> None:
        builder = self.builder
        head, body, after = (builder.append_basic_block(name) for name in ("while", "while.body", "while.end"))
        builder.branch(head)
        builder.position_at_end(head)
        self.loops.append((after, head))
        spent = builder.load(frame.slots)
        fine = builder.icmp_signed("<=", spent, self.limit)
        self.fault_unless(frame, fine, FaultCode.CYCLE_LIMIT, statement.where, spent, self.limit)
        self.block(frame, statement.head)
        if not builder.block.is_terminated:
            builder.cbranch(self.value(frame, statement.condition), body, after)
        builder.position_at_end(body)
        self.block(frame, statement.body)
        self.go(head)
        self.loops.pop()
        builder.position_at_end(after)

    def go(self, block: Any) -> None:
        """Go to a block, unless the code has gone elsewhere already."""
        if not self.builder.block.is_terminated:
            self.builder.branch(block)

    # for

    def for_loop(self, frame: Frame, loop: For) -> None:
        builder = self.builder
        rounds = self.rounds(frame, loop)
        after = builder.append_basic_block("for.end")
        running = builder.append_basic_block("for")
        builder.cbranch(builder.icmp_unsigned("!=", rounds.count, word(0)), running, after)
        builder.position_at_end(running)
        plan = plan_loop(loop, self.stored, floats_fault=self.checks.floating_point) if self.checks.keeps_scalars else None
        if plan is not None:
            as_written = builder.append_basic_block("for.checked") if plan.has_checks else None
            frame.lines = self.prepare(frame, plan, rounds, as_written)
            if plan.straight:
                self.spend(frame, plan.price, rounds.count)
            self.repeat(frame, loop, rounds, plan.body, after)
            frame.lines = None
            if as_written is not None:
                builder.position_at_end(as_written)
        if plan is None or plan.has_checks:
            self.repeat(frame, loop, rounds, loop.body, after)
        builder.position_at_end(after)

    def rounds(self, frame: Frame, loop: For) -> Rounds:
        """How often a loop runs; a step of zero is a fault."""
        builder = self.builder
        start, stop, step = (self.index(frame, one) for one in (loop.start, loop.stop, loop.step))
        unsigned = loop.variable.type == "u64"
        compare = builder.icmp_unsigned if unsigned else builder.icmp_signed
        if not isinstance(loop.step, Literal):
            fine = builder.icmp_signed("!=", step, word(0))
            self.fault_unless(frame, fine, FaultCode.RANGE_STEP, loop.where, word(0), word(0))
        elif loop.step.value == 0:
            self.fault_unless(frame, BOOL(0), FaultCode.RANGE_STEP, loop.where, word(0), word(0))
        up = BOOL(1) if unsigned else builder.icmp_signed(">", step, word(0))
        size = builder.select(up, step, builder.neg(step))
        distance = builder.select(up, builder.sub(stop, start), builder.sub(start, stop))
        some = builder.select(up, compare("<", start, stop), compare(">", start, stop))
        count = distance
        if not (isinstance(loop.step, Literal) and abs(loop.step.value) == 1):
            size = builder.select(builder.icmp_signed("==", size, word(0)), word(1), size)
            count = builder.add(builder.udiv(builder.sub(distance, word(1)), size), word(1))
        return Rounds(start, step, builder.select(some, count, word(0)))

    def repeat(self, frame: Frame, loop: For, rounds: Rounds, body: PlannedBlock, after: Any) -> None:
        """Run a body for each round, and then go to `after`."""
        builder = self.builder
        before = builder.block
        top, following = (builder.append_basic_block(name) for name in ("for.body", "for.next"))
        builder.branch(top)
        builder.position_at_end(top)
        number = builder.phi(WORD)
        number.add_incoming(word(0), before)
        if frame.lines is not None:
            frame.lines.round = number
        self.run_eight(frame, loop, rounds, number, top, after)
        self.set_variable(frame, loop, rounds, number)
        self.loops.append((after, following))
        self.block(frame, body)
        self.go(following)
        self.loops.pop()
        builder.position_at_end(following)
        upcoming = builder.add(number, word(1), flags=("nuw",))
        number.add_incoming(upcoming, following)
        builder.cbranch(builder.icmp_unsigned("!=", upcoming, rounds.count), top, after)

    def set_variable(self, frame: Frame, loop: For, rounds: Rounds, number: Any) -> None:
        value = self.builder.add(rounds.start, self.builder.mul(number, rounds.step))
        form = REGISTER_FORMS[loop.variable.type]
        self.assign(frame, loop.variable, value if form == WORD else self.builder.trunc(value, form))

    # Loops without checks

    def prepare(self, frame: Frame, plan: LoopPlan, rounds: Rounds, otherwise: Any) -> Lines:
        """Do the setup of a plan; where a check fails, go to `otherwise`."""
        for one in plan.setup:
            match one:
                case InRange(span=span, index=index):
                    self.require(self.in_range(frame, span, index, rounds), otherwise)
                case BindRow(target=target, rows=rows, index=index):
                    number = self.linear(frame, index, word(0))
                    self.require(self.builder.icmp_unsigned("<", number, self.place(frame, rows).length), otherwise)
                    self.bind_row(frame, target, rows, number)
                case _:
                    self.simple(frame, one)
        lines = Lines(rounds)
        for one in plan.setup:
            if isinstance(one, InRange):
                self.begin_line(frame, lines, one)
        return lines

    def linear(self, frame: Frame, index: Linear, variable: Any) -> Any:
        """A linear index for a value of the loop's variable, exact in 64 bits."""
        builder = self.builder
        total = word(index.constant)
        for local, factor in index.terms:
            total = builder.add(total, builder.mul(self.index(frame, local), word(factor)))
        return builder.add(total, builder.mul(variable, word(index.scale))) if index.scale else total

    def in_range(self, frame: Frame, span: Span, index: Linear, rounds: Rounds) -> Any:
        builder = self.builder
        length = self.place(frame, span).length
        first = self.linear(frame, index, rounds.start)
        fine = builder.icmp_unsigned("<", first, length)
        if index.scale:
            last = builder.add(rounds.start, builder.mul(builder.sub(rounds.count, word(1)), rounds.step))
            fine = builder.and_(fine, builder.icmp_unsigned("<", self.linear(frame, index, last), length))
        return fine

    def begin_line(self, frame: Frame, lines: Lines, check: InRange) -> None:
        """The pointer to the first element that a proven access with constant 0 would reach (it may lie outside the span)."""
        span, index = check.span, check.index
        line = Line.of(span, index)
        if line in lines.bases:
            return
        builder = self.builder
        first = self.linear(frame, Linear(index.scale, index.terms), lines.rounds.start)
        address = builder.add(self.place(frame, span).address, builder.mul(first, word(SIZES[span.element])))
        lines.bases[line] = builder.inttoptr(address, access.memory_form(span.element).as_pointer())

    def offset(self, frame: Frame, index: Linear) -> Any:
        """Elements from the beginning of its line to a proven access, in the round that is being written."""
        builder, lines = self.builder, frame.lines
        assert lines is not None
        if not index.scale:
            return word(index.constant)
        stride = builder.mul(lines.rounds.step, word(index.scale))
        return builder.add(builder.mul(lines.round, stride), word(index.constant))

    def proven(self, frame: Frame, span: Span, index: Linear, offset: Any) -> Any:
        """Pointer to the element of a proven access."""
        assert frame.lines is not None
        return self.builder.gep(frame.lines.bases[Line.of(span, index)], [offset], source_etype=access.memory_form(span.element))
