"""Lowers the programs that are about the host or the machine itself: prints, host functions, aborts, clocks, seeds, syncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pypoplar import program as kinds
from pypoplar.compiler.exchange.exchange_costs import sync_cycles
from pypoplar.errors import MissingFeature
from pypoplar.executable.steps import Step
from pypoplar.graph.host_links import HostFunction
from pypoplar.graph.location import line_text
from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.opcodes import (
    BranchOperand,
    ClockOperand,
    ElapsedOperand,
    FloatingPointOperand,
    Opcode,
    StampOperand,
    SyncOperand,
)

if TYPE_CHECKING:
    from pypoplar.compiler.lowering.lower import Lowering


def lower_call_host(lowering: Lowering, one: kinds.Call, function: HostFunction) -> None:
    inputs = [lowering.fetch(tensor) for tensor in one.inputs]
    outputs = [lowering.internal_stream(tensor.elementType(), tensor.numElements()) for tensor in one.outputs]
    lowering.serve("host_function", name=function.handle(), inputs=inputs, outputs=outputs)
    for stream, tensor in zip(outputs, one.outputs, strict=True):
        lowering.transfer(stream, tensor, inward=True)


def lower_print(lowering: Lowering, one: kinds.PrintTensor) -> None:
    stream = lowering.fetch(one.tensor)
    lowering.serve("print", title=one.title, stream=stream, shape=list(one.tensor.shape()))


def lower_write_undef(lowering: Lowering, one: kinds.WriteUndef) -> None:
    stream = lowering.internal_stream(one.tensor.elementType(), one.tensor.numElements())
    lowering.serve("undefined", stream=stream)
    lowering.transfer(stream, one.tensor, inward=True)


def lower_sync(lowering: Lowering, one: kinds.Sync) -> None:
    nothing = np.zeros(0, np.int64)
    cycles = sync_cycles(lowering.target, between_ipus=one.type is not kinds.SyncType.INTERNAL)
    step = lowering.step(Step(one.name or "Sync", "sync", cycles, nothing, depth=lowering.depth))
    lowering.row(Opcode.SYNC, {SyncOperand.STEP: step})


def lower_abort(lowering: Lowering, one: kinds.Abort) -> None:
    lowering.serve("abort", message=one.message, location=line_text(one.location))


def lower_abort_on_condition(lowering: Lowering, one: kinds.AbortOnCondition) -> None:
    go_on = lowering.branch(one.predicate)
    lowering.serve("abort", message=one.message, location=line_text(one.location))
    lowering.rows[go_on][BranchOperand.ROW] = lowering.here()


def lower_error(lowering: Lowering, one: kinds.ErrorProgram) -> None:
    stream = lowering.fetch(one.tensor)
    details = {"message": one.message, "stream": stream, "shape": list(one.tensor.shape())}
    lowering.serve("error", location=line_text(one.location), **details)


def lower_cycle_count(lowering: Lowering, one: kinds.CycleCount) -> None:
    clock = lowering.clocks
    lowering.clocks += 1
    lowering.row(Opcode.STAMP, {StampOperand.CLOCK: clock})
    lowering.lower(one.body)
    lowering.mark()
    lowering.row(Opcode.ELAPSED, {ElapsedOperand.CLOCK: clock, ElapsedOperand.ADDRESS: lowering.address(one.result)})


def lower_cycle_stamp(lowering: Lowering, one: kinds.CycleStamp) -> None:
    lowering.row(Opcode.CLOCK, {ClockOperand.ADDRESS: lowering.address(one.result)})


def lower_floating_point(lowering: Lowering, one: kinds.SetFloatingPointBehaviour) -> None:
    behaviour = one.behaviour
    exceptions = (
        (behaviour.inv, FloatingPoint.INVALID),
        (behaviour.oflo, FloatingPoint.OVERFLOW),
        (behaviour.div0, FloatingPoint.DIVISION_BY_ZERO),
    )
    mask = sum(bit for wanted, bit in exceptions if wanted)
    lowering.row(Opcode.FLOATING_POINT, {FloatingPointOperand.MASK: mask})


def lower_stochastic_rounding(lowering: Lowering, one: kinds.SetStochasticRounding) -> None:
    if one.enabled:
        raise MissingFeature(
            f"{line_text(one.location)}: stochastic rounding is not there yet: halves round to nearest, ties to even"
        )


def lower_seed(lowering: Lowering, one: kinds.SetSeed) -> None:
    stream = lowering.fetch(one.seed)
    lowering.serve("seed", stream=stream, modifier=one.modifier)
