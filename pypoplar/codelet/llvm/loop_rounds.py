"""The rounds of a ``for`` in native code: how many there are, the loop's variable, and accesses proven before the first of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from pypoplar.codelet.ir.loop_checks import NARROW, BindRow, InRange, LoopPlan
from pypoplar.codelet.ir.loop_limits import round_slots
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.proven_accesses import AccessLine, Linear
from pypoplar.codelet.ir.typed import Apply, For, Length, Literal, Load, RoundsPrice, Span
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.llvm.emitter_state import EmitterState, ForRounds, Lines
from pypoplar.codelet.llvm.memory_access import bind_row
from pypoplar.codelet.llvm.memory_forms import BOOL, WORD, memory_form, word
from pypoplar.interface.fault_codes import FaultCode

LARGEST_ROUND = 1 << 24  # slots: what 2**32 rounds of it are, eight times, is counted in 64 bits


def count_rounds(state: EmitterState, loop: For) -> ForRounds:
    """How often a loop runs; a step of zero is a fault."""
    builder = state.builder
    start, stop, step = (state.index(bound) for bound in (loop.start, loop.stop, loop.step))
    unsigned = loop.variable.type == "u64"
    compare = builder.icmp_unsigned if unsigned else builder.icmp_signed
    if not isinstance(loop.step, Literal):
        fine = builder.icmp_signed("!=", step, word(0))
        state.fault_unless(fine, FaultCode.RANGE_STEP, loop.where, word(0), word(0))
    elif loop.step.value == 0:
        state.fault_unless(BOOL(0), FaultCode.RANGE_STEP, loop.where, word(0), word(0))
    up = BOOL(1) if unsigned else builder.icmp_signed(">", step, word(0))
    size = builder.select(up, step, builder.neg(step))
    distance = builder.select(up, builder.sub(stop, start), builder.sub(start, stop))
    some = builder.select(up, compare("<", start, stop), compare(">", start, stop))
    count = distance
    if not (isinstance(loop.step, Literal) and abs(loop.step.value) == 1):
        size = builder.select(builder.icmp_signed("==", size, word(0)), word(1), size)
        count = builder.add(builder.udiv(builder.sub(distance, word(1)), size), word(1))
    return ForRounds(start, step, builder.select(some, count, word(0)))


def set_variable(state: EmitterState, loop: For, rounds: ForRounds, number: Any) -> None:
    """Give the loop's variable its value in a round."""
    value = state.builder.add(rounds.start, state.builder.mul(number, rounds.step))
    form = REGISTER_FORMS[loop.variable.type]
    state.assign(loop.variable, value if form == WORD else state.builder.trunc(value, form))


def spends_at_most(state: EmitterState, loop: For, count: Any, limit: Any) -> Any:
    """Whether the vertex will have spent at most `limit` slots after `count` rounds of an even loop, none of which has run."""
    builder, slots = state.builder, round_slots(loop)
    spent = builder.load(state.slots)
    if loop.variable.type in NARROW and slots <= LARGEST_ROUND:
        return builder.icmp_signed("<=", builder.add(spent, builder.mul(count, word(slots))), limit)
    rounds = builder.udiv(builder.sub(limit, spent), word(slots))
    return builder.and_(builder.icmp_signed("<=", spent, limit), builder.icmp_unsigned("<=", count, rounds))


def price_together(state: EmitterState, price: RoundsPrice, count: Any) -> Any:
    """What `count` rounds cost that are paid for together."""
    return _together(state, count, price.width, price.slots, price.rest)


def bound_together(state: EmitterState, price: RoundsPrice, count: Any) -> Any:
    """The bound of `count` rounds that are paid for together."""
    return _together(state, count, price.width, price.bound, price.bound_of_rest)


def _together(state: EmitterState, count: Any, width: int, whole: int, rest: int) -> Any:
    builder = state.builder
    of_whole = builder.mul(builder.udiv(count, word(width)), word(whole))
    return builder.add(of_whole, builder.mul(builder.urem(count, word(width)), word(rest)))


def in_stretches(
    builder: Any, count: Any, length: int | None, after: Any, run: Callable[[Any, Any, Any], None], look: Callable[[], None]
) -> None:
    """Run `count` rounds, not 0, with a look after each `length` of them (None: none is needed), and then go to `after`.

    ``run(begin, end, block)`` writes the rounds from `begin` up to `end`, and goes to a block.
    """
    if length is None:
        run(word(0), count, after)
        return
    before = builder.block
    top, following, looking = (builder.append_basic_block(name) for name in ("stretch", "stretch.end", "stretch.look"))
    builder.branch(top)
    builder.position_at_end(top)
    begin = builder.phi(WORD)
    begin.add_incoming(word(0), before)
    left = builder.sub(count, begin)
    end = builder.add(begin, builder.select(builder.icmp_unsigned("<", left, word(length)), left, word(length)))
    run(begin, end, following)
    builder.position_at_end(following)
    builder.cbranch(builder.icmp_unsigned("!=", end, count), looking, after)
    builder.position_at_end(looking)
    look()
    begin.add_incoming(end, builder.block)
    builder.branch(top)


# Loops without checks


def prepare_lines(state: EmitterState, plan: LoopPlan, rounds: ForRounds, otherwise: Any) -> Lines:
    """Do the setup of a plan; where a check fails, go to `otherwise`."""
    for step in plan.setup:
        match step:
            case InRange():
                state.require(_in_range(state, step, rounds), otherwise)
            case BindRow(target=target, rows=rows, index=index):
                number = _linear(state, index, word(0))
                state.require(state.builder.icmp_unsigned("<", number, state.place(rows).length), otherwise)
                bind_row(state, target, rows, number)
            case Apply() | Length() | Load():
                state.emit(state, step)
            case _:
                assert_never(step)
    lines = Lines(rounds)
    for step in plan.setup:
        if isinstance(step, InRange):
            _begin_line(state, lines, step)
    return lines


def _linear(state: EmitterState, index: Linear, variable: Any) -> Any:
    """A linear index for a value of the loop's variable, exact in 64 bits."""
    builder = state.builder
    total = word(index.constant)
    for local, factor in index.terms:
        total = builder.add(total, builder.mul(state.index(local), word(factor)))
    return builder.add(total, builder.mul(variable, word(index.scale))) if index.scale else total


def _in_range(state: EmitterState, check: InRange, rounds: ForRounds) -> Any:
    builder, index = state.builder, check.index
    length = state.place(check.span).length
    first = _linear(state, index, rounds.start)
    fine = builder.icmp_unsigned("<", first, length)
    if index.scale:
        last = builder.add(rounds.start, builder.mul(builder.sub(rounds.count, word(1)), rounds.step))
        fine = builder.and_(fine, builder.icmp_unsigned("<", _linear(state, index, last), length))
    return fine


def _begin_line(state: EmitterState, lines: Lines, check: InRange) -> None:
    """The pointer to the first element that a proven access with constant 0 would reach (it may lie outside the span)."""
    span, index = check.span, check.index
    line = AccessLine.of(span, index)
    if line in lines.bases:
        return
    builder = state.builder
    first = _linear(state, Linear(index.scale, index.terms), lines.rounds.start)
    address = builder.add(state.place(span).address, builder.mul(first, word(SIZES[span.element])))
    lines.bases[line] = builder.inttoptr(address, memory_form(span.element).as_pointer())


def running_lines(state: EmitterState) -> Lines:
    """The lines of the loop without checks that is being written."""
    assert state.lines is not None
    return state.lines


def line_offset(state: EmitterState, index: Linear) -> Any:
    """Elements from the beginning of its line to a proven access, in the round that is being written."""
    builder, lines = state.builder, running_lines(state)
    if not index.scale:
        return word(index.constant)
    stride = builder.mul(lines.rounds.step, word(index.scale))
    return builder.add(builder.mul(lines.round, stride), word(index.constant))


def line_pointer(state: EmitterState, span: Span, index: Linear, offset: Any) -> Any:
    """Pointer to the element of a proven access."""
    base = running_lines(state).bases[AccessLine.of(span, index)]
    return state.builder.gep(base, [offset], source_etype=memory_form(span.element))
