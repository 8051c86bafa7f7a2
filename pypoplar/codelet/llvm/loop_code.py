"""Writes the loops of a codelet as LLVM instructions.

A ``for`` counts its rounds once and then only counts up. Where `pypoplar.codelet.ir.loop_checks` finds index checks that can be
made before the loop, the loop is written twice: without those checks, which LLVM runs on vectors where the order of floating-point
operations allows it, and as the user wrote it, for the case that a check fails.
"""

from __future__ import annotations

from typing import Any

from pypoplar.codelet.ir.loop_checks import plan_loop
from pypoplar.codelet.ir.proven_accesses import PlannedBlock
from pypoplar.codelet.ir.typed import For, While
from pypoplar.codelet.llvm.eight_lanes import emit_eight_rounds
from pypoplar.codelet.llvm.emitter_state import EmitterState, ForRounds, LoopBlocks
from pypoplar.codelet.llvm.loop_rounds import count_rounds, prepare_lines, set_variable
from pypoplar.codelet.llvm.memory_forms import WORD, word
from pypoplar.interface.fault_codes import FaultCode


def emit_while(state: EmitterState, loop: While) -> None:
    builder, limit = state.builder, state.function.limit
    head, body, after = (builder.append_basic_block(name) for name in ("while", "while.body", "while.end"))
    builder.branch(head)
    builder.position_at_end(head)
    state.loops.append(LoopBlocks(after, head))
    spent = builder.load(state.slots)
    state.fault_unless(builder.icmp_signed("<=", spent, limit), FaultCode.CYCLE_LIMIT, loop.where, spent, limit)
    state.emit_block(loop.head)
    if not builder.block.is_terminated:
        builder.cbranch(state.value(loop.condition), body, after)
    builder.position_at_end(body)
    state.emit_block(loop.body)
    state.go(head)
    state.loops.pop()
    builder.position_at_end(after)


def emit_for(state: EmitterState, loop: For) -> None:
    builder, function = state.builder, state.function
    rounds = count_rounds(state, loop)
    after = builder.append_basic_block("for.end")
    running = builder.append_basic_block("for")
    builder.cbranch(builder.icmp_unsigned("!=", rounds.count, word(0)), running, after)
    builder.position_at_end(running)
    checks = state.checks
    plan = plan_loop(loop, function.stored, floats_fault=checks.floating_point) if checks.keeps_scalars else None
    if plan is not None:
        as_written = builder.append_basic_block("for.checked") if plan.has_checks else None
        state.lines = prepare_lines(state, plan, rounds, as_written)
        if plan.straight:
            state.spend(plan.price, rounds.count)
        _repeat(state, loop, rounds, plan.body, after)
        state.lines = None
        if as_written is not None:
            builder.position_at_end(as_written)
    if plan is None or plan.has_checks:
        _repeat(state, loop, rounds, loop.body, after)
    builder.position_at_end(after)


def _repeat(state: EmitterState, loop: For, rounds: ForRounds, body: PlannedBlock, after: Any) -> None:
    """Run a body for each round, and then go to `after`."""
    builder = state.builder
    before = builder.block
    top, following = (builder.append_basic_block(name) for name in ("for.body", "for.next"))
    builder.branch(top)
    builder.position_at_end(top)
    number = builder.phi(WORD)
    number.add_incoming(word(0), before)
    if state.lines is not None:
        state.lines.round = number
    emit_eight_rounds(state, loop, rounds, number, top, after)
    set_variable(state, loop, rounds, number)
    state.loops.append(LoopBlocks(after, following))
    state.emit_block(body)
    state.go(following)
    state.loops.pop()
    builder.position_at_end(following)
    upcoming = builder.add(number, word(1), flags=("nuw",))
    number.add_incoming(upcoming, following)
    builder.cbranch(builder.icmp_unsigned("!=", upcoming, rounds.count), top, after)
