"""Flattens the programs that are about the host or the machine itself: prints, aborts, clocks, seeds, syncs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.exchange.exchange_costs import sync_cycles
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.rules import Around, Leaf, Rules
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


def flatten_print(flattening: Flattening, printed: PrintTensor) -> None:
    stream = flattening.fetch(printed.tensor)
    details = {"title": printed.title, "stream": stream, "shape": list(printed.tensor.shape())}
    flattening.serve("print", **details)


def flatten_sync(flattening: Flattening, sync: Sync) -> None:
    nothing = np.zeros(0, np.int64)
    cycles = sync_cycles(flattening.target, between_ipus=sync.type is not SyncType.INTERNAL)
    joins = sync.type is not SyncType.INTERNAL
    step = flattening.step(StaticStep(sync.name or "Sync", "sync", cycles, nothing, depth=flattening.depth, joins_ipus=joins))
    flattening.row(Opcode.SYNC, {SyncOperand.STEP: step})


def flatten_abort(flattening: Flattening, abort: Abort | AbortOnCondition) -> None:
    flattening.serve("abort", message=abort.message, location=line_text(abort.location))


def flatten_abort_on_condition(flattening: Flattening, abort: AbortOnCondition) -> None:
    go_on = flattening.branch(abort.predicate)
    flatten_abort(flattening, abort)
    flattening.rows[go_on][BranchOperand.ROW] = flattening.next_row()


def flatten_error(flattening: Flattening, error: ErrorProgram) -> None:
    stream = flattening.fetch(error.tensor)
    details = {"message": error.message, "stream": stream, "shape": list(error.tensor.shape())}
    flattening.serve("error", location=line_text(error.location), **details)


def flatten_cycle_count(flattening: Flattening, count: CycleCount, parts: tuple[Line, ...]) -> Iterator[Line]:
    clock = flattening.clocks
    flattening.clocks += 1
    flattening.row(Opcode.STAMP, {StampOperand.CLOCK: clock})
    yield from parts
    tile, offset = flattening.clock_place(count.result)
    operands = {ElapsedOperand.CLOCK: clock, ElapsedOperand.TILE: tile, ElapsedOperand.OFFSET: offset}
    flattening.row(Opcode.ELAPSED, operands)


def flatten_cycle_stamp(flattening: Flattening, stamp: CycleStamp) -> None:
    tile, offset = flattening.clock_place(stamp.result)
    flattening.row(Opcode.CLOCK, {ClockOperand.TILE: tile, ClockOperand.OFFSET: offset})


def flatten_floating_point(flattening: Flattening, setting: SetFloatingPointBehaviour) -> None:
    behaviour = setting.behaviour
    bits = (
        (behaviour.inv, FloatingPoint.INVALID),
        (behaviour.oflo, FloatingPoint.OVERFLOW),
        (behaviour.div0, FloatingPoint.DIVISION_BY_ZERO),
        (behaviour.esr, FloatingPoint.STOCHASTIC),
    )
    wanted = sum(bit for is_wanted, bit in bits if is_wanted)
    flattening.row(Opcode.FLOATING_POINT, {FloatingPointOperand.KEPT: 0, FloatingPointOperand.SET: wanted})
    if wanted & EXCEPTIONS:  # rounding at random by itself is none
        flattening.sets_exceptions = True


def flatten_stochastic_rounding(flattening: Flattening, setting: SetStochasticRounding) -> None:
    wanted = FloatingPoint.STOCHASTIC if setting.enabled else 0
    flattening.row(Opcode.FLOATING_POINT, {FloatingPointOperand.KEPT: EXCEPTIONS, FloatingPointOperand.SET: wanted})


def flatten_seed(flattening: Flattening, seed: SetSeed) -> None:
    stream = flattening.fetch(seed.seed)
    flattening.serve("seed", stream=stream, modifier=seed.modifier)


RULES: Rules = {
    PrintTensor: Leaf(flatten_print),
    Sync: Leaf(flatten_sync, is_steps=True),
    Abort: Leaf(flatten_abort),
    AbortOnCondition: Leaf(flatten_abort_on_condition),
    ErrorProgram: Leaf(flatten_error),
    CycleCount: Around(flatten_cycle_count),
    CycleStamp: Leaf(flatten_cycle_stamp),
    SetFloatingPointBehaviour: Leaf(flatten_floating_point),
    SetStochasticRounding: Leaf(flatten_stochastic_rounding),
    SetSeed: Leaf(flatten_seed),
}
