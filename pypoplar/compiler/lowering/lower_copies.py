"""Lowers copies: between tensors, and to and from the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypoplar.compiler.exchange.exchange_costs import host_cycles, price_exchange, rearrange_cycles, sync_cycles
from pypoplar.compiler.exchange.stream_order import stream_exchange
from pypoplar.compiler.lowering.lower_compute import moving_step
from pypoplar.compiler.lowering.lowering_state import Lowering
from pypoplar.compiler.lowering.rules import Leaf, Rules
from pypoplar.errors import ControlProgramError
from pypoplar.executable.steps import StaticStep
from pypoplar.graph.host_links import DataStream, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import CallbackOperand, MoveOperand, Opcode
from pypoplar.program.copying import Copy, WriteUndef


def lower_copy(lowering: Lowering, copy: Copy) -> None:
    match copy.source, copy.destination:
        case Tensor(), Tensor():
            _copy_tensor(lowering, copy)
        case DataStream() as stream, Tensor() as target:
            _copy_in(lowering, copy, stream, target)
        case Tensor() as source, DataStream() as stream:
            _copy_out(lowering, copy, source, stream)
        case RemoteBuffer() as buffer, Tensor() as target:
            _copy_remote(lowering, copy, buffer, target, inward=True)
        case Tensor() as source, RemoteBuffer() as buffer:
            _copy_remote(lowering, copy, buffer, source, inward=False)
        case _:
            raise ControlProgramError(f"{copy!r} cannot copy {copy.source!r} to {copy.destination!r}")


def announce_copies(lowering: Lowering, copies: Sequence[Copy]) -> None:
    """Copies between tensors are planned together."""
    lowering.copies.announce([copy for copy in copies if _is_between_tensors(copy)])


def _is_between_tensors(copy: Copy) -> bool:
    return isinstance(copy.source, Tensor) and isinstance(copy.destination, Tensor)


def _copy_tensor(lowering: Lowering, copy: Copy) -> None:
    plan = lowering.planned_copy(copy)
    name = copy.name or "Copy"
    exchange = lowering.exchange(name, "copy", plan.account)
    sync = sync_cycles(lowering.target, between_ipus=plan.exchange.crosses) if len(plan.account.messages) else 0
    step = lowering.step(moving_step(lowering, name, "copy", sync, plan.exchange, plan.rearrange_cycles, exchange))
    move = lowering.moves.add_pieces(plan.pieces, lowering.places)
    if move != NOTHING:
        lowering.row(Opcode.MOVE, {MoveOperand.MOVE: move, MoveOperand.STEP: step})


def _host_step(lowering: Lowering, copy: Copy, name: str, tensor: Tensor, *, inward: bool) -> int:
    """The step of a transfer: over the host's link, and between the stream's order and the tensor's places."""
    size = tensor.numElements() * tensor.elementType().size
    cycles = host_cycles(lowering.target, size, to_device=inward) if size else 0
    order = None if copy.optimise_memory else stream_exchange(lowering.graph.tiles, lowering.homes, tensor.runs(), inward=inward)
    if order is None:
        step = StaticStep(name, "stream", 0, np.zeros(0, np.int64), -1, -1, size, cycles, lowering.depth)
    else:
        cost = price_exchange(lowering.target, order.account.exchange, order.account.offset, order.pieces)
        sync = sync_cycles(lowering.target, between_ipus=cost.crosses)
        copied, between = rearrange_cycles(lowering.target, order.local, lowering.graph.tiles), cost.global_cycles
        exchange = lowering.exchange(name, "stream", order.account.exchange) if len(order.account.offset) else NOTHING
        step = StaticStep(name, "stream", sync, cost.cycles, -1, exchange, size, cycles, lowering.depth, copied, between)
    return lowering.step(step, f"{size:,} bytes to the {'device' if inward else 'host'}")


def _copy_in(lowering: Lowering, copy: Copy, stream: DataStream, tensor: Tensor) -> None:
    number = lowering.add_stream(stream)
    lowering.used_streams.add(number)
    _serve_callback(lowering, number)
    lowering.transfer(
        number, tensor, inward=True, step=_host_step(lowering, copy, copy.name or stream.handle(), tensor, inward=True)
    )


def _copy_out(lowering: Lowering, copy: Copy, tensor: Tensor, stream: DataStream) -> None:
    number = lowering.add_stream(stream)
    lowering.used_streams.add(number)
    lowering.transfer(
        number, tensor, inward=False, step=_host_step(lowering, copy, copy.name or stream.handle(), tensor, inward=False)
    )
    _serve_callback(lowering, number)


def _serve_callback(lowering: Lowering, stream: int) -> None:
    service = lowering.service("callback", stream=stream)
    lowering.row(Opcode.CALLBACK, {CallbackOperand.STREAM: stream, CallbackOperand.SERVICE: service})


def _copy_remote(lowering: Lowering, copy: Copy, buffer: RemoteBuffer, tensor: Tensor, *, inward: bool) -> None:
    offsets = NOTHING if copy.offset is None else lowering.fetch(copy.offset)
    step = _host_step(lowering, copy, copy.name or buffer.handle(), tensor, inward=inward)
    stream = lowering.internal_stream(tensor.elementType(), tensor.numElements())
    details = {"buffer": lowering.remote_number(buffer), "stream": stream, "offsets": offsets}
    if inward:
        lowering.serve("remote_read", **details)
        lowering.transfer(stream, tensor, inward=True, step=step)
    else:
        lowering.transfer(stream, tensor, inward=False, step=step)
        lowering.serve("remote_write", **details)


def lower_write_undef(lowering: Lowering, undefine: WriteUndef) -> None:
    tensor = undefine.tensor
    stream = lowering.internal_stream(tensor.elementType(), tensor.numElements())
    lowering.serve("undefined", stream=stream)
    lowering.transfer(stream, tensor, inward=True)


RULES: Rules = {Copy: Leaf(lower_copy, is_steps=True, announce=announce_copies), WriteUndef: Leaf(lower_write_undef)}
