"""Writes the loops of a codelet as LLVM instructions.

A ``for`` counts its rounds once and then only counts up. It is written twice where something can be settled before its rounds:
with what is settled left out, which LLVM runs on vectors where the order of floating-point operations allows it, and as the user
wrote it, for the case that it is not. Index checks (`pypoplar.codelet.ir.loop_checks`) are settled before the first round, that
the cycle limit is far (`pypoplar.codelet.ir.loop_limits`) before each stretch of rounds.
"""

from __future__ import annotations

from typing import Any

from pypoplar.codelet.ir.loop_checks import LoopPlan, plan_loop
from pypoplar.codelet.ir.loop_limits import is_even, most_of_round, round_slots, stretch
from pypoplar.codelet.ir.proven_accesses import PlannedBlock
from pypoplar.codelet.ir.typed import For, While
from pypoplar.codelet.llvm.eight_lanes import emit_eight_rounds
from pypoplar.codelet.llvm.emitter_state import EmitterState, ForRounds, LoopBlocks
from pypoplar.codelet.llvm.loop_rounds import (
    bound_together,
    count_rounds,
    in_stretches,
    prepare_lines,
    price_together,
    set_variable,
    spends_at_most,
)
from pypoplar.codelet.llvm.memory_forms import WORD, word
from pypoplar.interface.context_words import Work
from pypoplar.interface.fault_codes import FaultCode


def emit_while(state: EmitterState, loop: While) -> None:
    builder = state.builder
    head, body, after = (builder.append_basic_block(name) for name in ("while", "while.body", "while.end"))
    builder.branch(head)
    builder.position_at_end(head)
    state.loops.append(LoopBlocks(after, head))
    state.begin_round(loop.where)
    state.judge()
    state.emit_block(loop.head)
    if not builder.block.is_terminated:
        builder.cbranch(state.value(loop.condition), body, after)
    builder.position_at_end(body)
    state.emit_block(loop.body)
    state.go(head)
    state.loops.pop()
    builder.position_at_end(after)


def emit_for(state: EmitterState, loop: For) -> None:
    builder = state.builder
    rounds = count_rounds(state, loop)
    after = builder.append_basic_block("for.end")
    running = builder.append_basic_block("for")
    unjudged = state.unjudged
    empty = after if unjudged is None else builder.append_basic_block("for.none")
    builder.cbranch(builder.icmp_unsigned("!=", rounds.count, word(0)), running, empty)
    if unjudged is not None:
        builder.position_at_end(empty)
        state.judge()
        builder.branch(after)
        state.unjudged = unjudged
    builder.position_at_end(running)
    state.count_block(loop.rounds_of, rounds.count)
    plan = _plan(state, loop)
    if loop.price is not None:
        _pay_together(state, loop, rounds.count)
        _emit_versions(state, loop, rounds, plan, after, None if state.judged else round_slots(loop))
    elif state.judged:
        _emit_versions(state, loop, rounds, plan, after, None)
    elif is_even(loop):
        _judge_all(state, loop, rounds.count)
        _emit_versions(state, loop, rounds, plan, after, round_slots(loop))
    else:
        most = most_of_round(loop)
        if most is None or state.as_written or not state.checks.keeps_scalars:
            _repeat(state, loop, rounds, loop.body, (word(0), rounds.count), after, after, judge=True)
        else:
            _emit_uneven(state, loop, rounds, plan, after, most)
    builder.position_at_end(after)


def _plan(state: EmitterState, loop: For) -> LoopPlan | None:
    if state.as_written or not state.checks.keeps_scalars:
        return None
    return plan_loop(loop, state.function.changing, floats_fault=state.checks.floating_point)


def _judge_all(state: EmitterState, loop: For, count: Any) -> None:
    """Judge all rounds of an even loop, and the round of a loop around in which it begins."""
    spent, limit = state.builder.load(state.slots), state.limit()
    state.fault_unless(spends_at_most(state, loop, count, limit), FaultCode.CYCLE_LIMIT, loop.where, spent, limit)
    state.unjudged = None


def _pay_together(state: EmitterState, loop: For, count: Any) -> None:
    """Judge all rounds of a loop that are paid for together, and pay."""
    builder = state.builder
    assert loop.price is not None
    spent, total = builder.load(state.slots), price_together(state, loop.price, count)
    if not state.judged:
        limit = state.limit()
        fine = builder.icmp_signed("<=", builder.add(spent, total), limit)
        state.fault_unless(fine, FaultCode.CYCLE_LIMIT, loop.where, spent, limit)
        state.unjudged = None
    state.add_to(state.slots, total)
    if state.work:
        state.add_to(state.work[Work.BOUND], bound_together(state, loop.price, count))
    if loop.price.block in state.blocks:
        width = word(loop.price.width)
        state.count_block(loop.price.block, builder.udiv(count, width))
        state.count_block(loop.price.block + 1, builder.urem(count, width))


def _look(state: EmitterState, loop: For) -> None:
    """Between stretches of a loop that has been judged: whether the run has been stopped."""
    state.begin_round(loop.where)
    state.judge()


def _emit_versions(state: EmitterState, loop: For, rounds: ForRounds, plan: LoopPlan | None, after: Any, slots: int | None) -> None:
    """A loop whose rounds have been judged. Those of an even loop, of so many `slots`, are interrupted by looks at the limit."""
    builder = state.builder
    body: PlannedBlock = loop.body
    as_written = builder.append_basic_block("for.checked") if plan is not None and plan.has_checks else None
    if plan is not None:
        state.lines = prepare_lines(state, plan, rounds, as_written)
        body = plan.body
        if plan.straight:
            state.spend(plan.price, rounds.count)
    in_stretches(
        builder,
        rounds.count,
        None if slots is None else stretch(loop, slots, state.function.short, plan),
        after,
        lambda begin, end, done: _repeat(state, loop, rounds, body, (begin, end), done, after),
        lambda: _look(state, loop),
    )
    state.lines = None
    if as_written is not None:
        builder.position_at_end(as_written)
        _repeat(state, loop, rounds, loop.body, (word(0), rounds.count), after, after, judge=slots is not None)


def _emit_uneven(state: EmitterState, loop: For, rounds: ForRounds, plan: LoopPlan | None, after: Any, most: int) -> None:
    """A loop whose rounds cost at most `most` slots: where the limit is near, each round is judged from there on."""
    builder = state.builder
    as_written = builder.append_basic_block("for.checked")
    first = state.function.allocate(WORD)
    builder.store(word(0), first)
    body: PlannedBlock = loop.body
    if plan is not None:
        state.lines = prepare_lines(state, plan, rounds, as_written)
        body = plan.body

    def unjudged(begin: Any, end: Any, done: Any) -> None:
        builder.store(begin, first)
        ahead = builder.mul(builder.sub(end, begin), word(most))
        state.require(builder.icmp_signed("<=", builder.add(builder.load(state.slots), ahead), state.limit()), as_written)
        _repeat(state, loop, rounds, body, (begin, end), done, after)

    state.judged = True
    in_stretches(builder, rounds.count, stretch(loop, most, state.function.short, plan), after, unjudged, lambda: None)
    state.judged, state.lines = False, None
    builder.position_at_end(as_written)
    state.as_written = True
    _repeat(state, loop, rounds, loop.body, (builder.load(first), rounds.count), after, after, judge=True)
    state.as_written = False


def _repeat(
    state: EmitterState,
    loop: For,
    rounds: ForRounds,
    body: PlannedBlock,
    some: tuple[Any, Any],
    done: Any,
    after: Any,
    *,
    judge: bool = False,
) -> None:
    """Run a body for some rounds, from the first up to an end, and then go to `done`; ``break`` goes to `after`.

    With `judge` each round is judged before it begins.
    """
    builder, (first, end) = state.builder, some
    before = builder.block
    top, following = (builder.append_basic_block(name) for name in ("for.body", "for.next"))
    builder.branch(top)
    builder.position_at_end(top)
    number = builder.phi(WORD)
    number.add_incoming(first, before)
    if state.lines is not None:
        state.lines.round = number
    if not state.as_written:
        emit_eight_rounds(state, loop, rounds, number, end, top, done, after)
    if judge:
        state.begin_round(loop.where)
    set_variable(state, loop, rounds, number)
    state.loops.append(LoopBlocks(after, following))
    state.emit_block(body)
    state.judge()
    state.go(following)
    state.loops.pop()
    builder.position_at_end(following)
    upcoming = builder.add(number, word(1), flags=("nuw",))
    number.add_incoming(upcoming, following)
    builder.cbranch(builder.icmp_unsigned("!=", upcoming, end), top, done)
