"""Flattens the execution of compute sets: exchange, vertices, exchange."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.codelet.ir.typed import DebugPrint
from pypoplar.codelet.ir.walk import walk
from pypoplar.compiler.exchange.exchange_costs import ExchangeCost, sync_cycles
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.rules import Leaf, Rules
from pypoplar.executable.steps import StaticStep
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ComputeOperand, Opcode
from pypoplar.program.execute import Execute


def flatten_execute(flattening: Flattening, execute: Execute) -> None:
    phases = flattening.execute(execute.compute_set, execute.result)
    plan, name = phases.plan, execute.compute_set.name
    before = flattening.exchange(name, "before", plan.before)
    after = flattening.exchange(name, "after", plan.after)
    first = last = NOTHING
    if len(plan.before.messages) or phases.copied_before.any():
        first = flattening.step(moving_step(flattening, name, "exchange", 0, phases.before, phases.copied_before, before))
    waits = flattening.target.syncs_without_exchange or len(plan.before.messages) > 0 or execute.result is not None
    sync = sync_cycles(flattening.target, between_ipus=phases.before.crosses) if waits else 0
    nothing = np.zeros(0, np.int64)
    middle = flattening.step(
        StaticStep(name, "compute", sync, nothing, compute=phases.compute, depth=flattening.depth, waits=waits)
    )
    if len(plan.after.messages) or phases.copied_after.any():
        after_sync = sync_cycles(flattening.target, between_ipus=phases.after.crosses) if len(plan.after.messages) else 0
        last = flattening.step(moving_step(flattening, name, "exchange", after_sync, phases.after, phases.copied_after, after))
    flattening.row(
        Opcode.COMPUTE,
        {
            ComputeOperand.COMPUTE: phases.compute,
            ComputeOperand.BEFORE: first,
            ComputeOperand.STEP: middle,
            ComputeOperand.AFTER: last,
        },
    )
    if flattening.phases.tables.touches is not None:
        flattening.serve("judge", compute=phases.compute, name=name)
    if any(_prints(flattening.graph, int(codelet)) for codelet in distinct(flattening.graph.vertices.codelet[plan.vertex])):
        flattening.serve("prints")


def moving_step(
    flattening: Flattening, name: str, kind: str, sync: int, cost: ExchangeCost, copied: Int64s, exchange: int
) -> StaticStep:
    """A step that moves data between tiles and on them."""
    between, depth = cost.global_cycles, flattening.depth
    return StaticStep(name, kind, sync, cost.cycles, -1, exchange, 0, 0, depth, copied, between, exchange_pieces=cost.pieces)


def _prints(graph: FrozenGraph, codelet: int) -> bool:
    """Whether a codelet prints."""
    typed = graph.codelets[codelet].typed
    return bool(typed.texts) and any(isinstance(statement, DebugPrint) for statement in walk(typed.body))


RULES: Rules = {Execute: Leaf(flatten_execute, is_steps=True)}
