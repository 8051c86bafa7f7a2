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
from pypoplar.interface import opcodes

if TYPE_CHECKING:
    from pypoplar.compiler.lowering.lower import Lowering


def lower_call_host(lowering: Lowering, one: kinds.Call, function: HostFunction) -> None:
    inputs = [lowering.fetch(tensor) for tensor in one.inputs]
    outputs = [lowering.internal_stream(tensor.elementType(), tensor.numElements()) for tensor in one.outputs]
    lowering.row(opcodes.SERVICE, lowering.service("host_function", name=function.handle(), inputs=inputs, outputs=outputs))
    for stream, tensor in zip(outputs, one.outputs, strict=True):
        lowering.transfer(stream, tensor, inward=True)


def lower_print(lowering: Lowering, one: kinds.PrintTensor) -> None:
    stream = lowering.fetch(one.tensor)
    lowering.row(opcodes.SERVICE, lowering.service("print", title=one.title, stream=stream, shape=list(one.tensor.shape())))


def lower_write_undef(lowering: Lowering, one: kinds.WriteUndef) -> None:
    stream = lowering.internal_stream(one.tensor.elementType(), one.tensor.numElements())
    lowering.row(opcodes.SERVICE, lowering.service("undefined", stream=stream))
    lowering.transfer(stream, one.tensor, inward=True)


def lower_sync(lowering: Lowering, one: kinds.Sync) -> None:
    nothing = np.zeros(0, np.int64)
    cycles = sync_cycles(lowering.target, between_ipus=one.type is not kinds.SyncType.INTERNAL)
    lowering.row(opcodes.SYNC, lowering.step(Step(one.name or "Sync", "sync", cycles, nothing, depth=lowering.depth)))


def lower_abort(lowering: Lowering, one: kinds.Abort) -> None:
    lowering.row(opcodes.SERVICE, lowering.service("abort", message=one.message, location=line_text(one.location)))


def lower_abort_on_condition(lowering: Lowering, one: kinds.AbortOnCondition) -> None:
    go_on = lowering.branch(one.predicate)
    lowering.row(opcodes.SERVICE, lowering.service("abort", message=one.message, location=line_text(one.location)))
    lowering.rows[go_on][3] = lowering.here()


def lower_error(lowering: Lowering, one: kinds.ErrorProgram) -> None:
    stream = lowering.fetch(one.tensor)
    details = {"message": one.message, "stream": stream, "shape": list(one.tensor.shape())}
    lowering.row(opcodes.SERVICE, lowering.service("error", location=line_text(one.location), **details))


def lower_cycle_count(lowering: Lowering, one: kinds.CycleCount) -> None:
    clock = lowering.clocks
    lowering.clocks += 1
    lowering.row(opcodes.STAMP, clock)
    lowering.lower(one.body)
    lowering.mark()
    lowering.row(opcodes.ELAPSED, clock, lowering.address(one.result))


def lower_cycle_stamp(lowering: Lowering, one: kinds.CycleStamp) -> None:
    lowering.row(opcodes.CLOCK, 0, lowering.address(one.result))


def lower_floating_point(lowering: Lowering, one: kinds.SetFloatingPointBehaviour) -> None:
    behaviour = one.behaviour
    lowering.row(opcodes.FLOATING_POINT, behaviour.inv | behaviour.oflo << 1 | behaviour.div0 << 2)


def lower_stochastic_rounding(lowering: Lowering, one: kinds.SetStochasticRounding) -> None:
    if one.enabled:
        raise MissingFeature(
            f"{line_text(one.location)}: stochastic rounding is not there yet: halves round to nearest, ties to even"
        )


def lower_seed(lowering: Lowering, one: kinds.SetSeed) -> None:
    stream = lowering.fetch(one.seed)
    lowering.row(opcodes.SERVICE, lowering.service("seed", stream=stream, modifier=one.modifier))
