"""Lowers the programs that are about the host or the machine itself: prints, aborts, clocks, seeds, syncs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.exchange.exchange_costs import sync_cycles
from pypoplar.compiler.lowering.lowering_state import Lowering
from pypoplar.compiler.lowering.rules import Around, Leaf, Rules
from pypoplar.executable.steps import StaticStep
from pypoplar.interface.fault_codes import EXCEPTIONS, FloatingPoint
from pypoplar.interface.opcodes import (
    BranchOperand,
    ClockOperand,
    ElapsedOperand,
    FloatingPointOperand,
    Opcode,
    StampOperand,
    SyncOperand,
)
from pypoplar.program.clocks import CycleCount, CycleStamp
from pypoplar.program.floating_point import SetFloatingPointBehaviour, SetStochasticRounding
from pypoplar.program.messages import Abort, AbortOnCondition, ErrorProgram, PrintTensor
from pypoplar.program.seeds import SetSeed
from pypoplar.program.synchronisation import Sync, SyncType


def lower_print(lowering: Lowering, printed: PrintTensor) -> None:
    stream = lowering.fetch(printed.tensor)
    details = {"title": printed.title, "stream": stream, "shape": list(printed.tensor.shape())}
    lowering.serve("print", **details)


def lower_sync(lowering: Lowering, sync: Sync) -> None:
    nothing = np.zeros(0, np.int64)
    cycles = sync_cycles(lowering.target, between_ipus=sync.type is not SyncType.INTERNAL)
    joins = sync.type is not SyncType.INTERNAL
    step = lowering.step(StaticStep(sync.name or "Sync", "sync", cycles, nothing, depth=lowering.depth, joins_ipus=joins))
    lowering.row(Opcode.SYNC, {SyncOperand.STEP: step})


def lower_abort(lowering: Lowering, abort: Abort | AbortOnCondition) -> None:
    lowering.serve("abort", message=abort.message, location=line_text(abort.location))


def lower_abort_on_condition(lowering: Lowering, abort: AbortOnCondition) -> None:
    go_on = lowering.branch(abort.predicate)
    lower_abort(lowering, abort)
    lowering.rows[go_on][BranchOperand.ROW] = lowering.next_row()


def lower_error(lowering: Lowering, error: ErrorProgram) -> None:
    stream = lowering.fetch(error.tensor)
    details = {"message": error.message, "stream": stream, "shape": list(error.tensor.shape())}
    lowering.serve("error", location=line_text(error.location), **details)


def lower_cycle_count(lowering: Lowering, count: CycleCount, parts: tuple[Line, ...]) -> Iterator[Line]:
    clock = lowering.clocks
    lowering.clocks += 1
    lowering.row(Opcode.STAMP, {StampOperand.CLOCK: clock})
    yield from parts
    tile, offset = lowering.clock_place(count.result)
    operands = {ElapsedOperand.CLOCK: clock, ElapsedOperand.TILE: tile, ElapsedOperand.OFFSET: offset}
    lowering.row(Opcode.ELAPSED, operands)


def lower_cycle_stamp(lowering: Lowering, stamp: CycleStamp) -> None:
    tile, offset = lowering.clock_place(stamp.result)
    lowering.row(Opcode.CLOCK, {ClockOperand.TILE: tile, ClockOperand.OFFSET: offset})


def lower_floating_point(lowering: Lowering, setting: SetFloatingPointBehaviour) -> None:
    behaviour = setting.behaviour
    bits = (
        (behaviour.inv, FloatingPoint.INVALID),
        (behaviour.oflo, FloatingPoint.OVERFLOW),
        (behaviour.div0, FloatingPoint.DIVISION_BY_ZERO),
        (behaviour.esr, FloatingPoint.STOCHASTIC),
    )
    wanted = sum(bit for is_wanted, bit in bits if is_wanted)
    lowering.row(Opcode.FLOATING_POINT, {FloatingPointOperand.KEPT: 0, FloatingPointOperand.SET: wanted})
    lowering.sets_floating_point = True


def lower_stochastic_rounding(lowering: Lowering, setting: SetStochasticRounding) -> None:
    wanted = FloatingPoint.STOCHASTIC if setting.enabled else 0
    lowering.row(Opcode.FLOATING_POINT, {FloatingPointOperand.KEPT: EXCEPTIONS, FloatingPointOperand.SET: wanted})


def lower_seed(lowering: Lowering, seed: SetSeed) -> None:
    stream = lowering.fetch(seed.seed)
    lowering.serve("seed", stream=stream, modifier=seed.modifier)


RULES: Rules = {
    PrintTensor: Leaf(lower_print),
    Sync: Leaf(lower_sync, is_steps=True),
    Abort: Leaf(lower_abort),
    AbortOnCondition: Leaf(lower_abort_on_condition),
    ErrorProgram: Leaf(lower_error),
    CycleCount: Around(lower_cycle_count),
    CycleStamp: Leaf(lower_cycle_stamp),
    SetFloatingPointBehaviour: Leaf(lower_floating_point),
    SetStochasticRounding: Leaf(lower_stochastic_rounding),
    SetSeed: Leaf(lower_seed),
}
