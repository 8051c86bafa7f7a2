"""Flattens copies: between tensors, and to and from the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange.exchange_costs import rearrange_cycles, sync_cycles
from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange.merged_copies import MergedCopies
from pypoplar.compiler.exchange.outside_transfers import OutsideLinks, outside_transfer
from pypoplar.compiler.exchange.stream_order import StreamExchange, price_stream, stream_exchange
from pypoplar.compiler.flattening.flatten_compute import moving_step
from pypoplar.compiler.flattening.flattening_state import HANDLE_STEP, Flattening
from pypoplar.compiler.flattening.planned_copies import shares_by_name, step_name
from pypoplar.compiler.flattening.rules import Leaf, Rules
from pypoplar.errors import ControlProgramError
from pypoplar.executable.exchange_account import name_together
from pypoplar.executable.steps import StaticStep
from pypoplar.graph.host_links import DataStream, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import CallbackOperand, MoveOperand, Opcode
from pypoplar.program.copying import Copy, WriteUndef


def flatten_copy(flattening: Flattening, copy: Copy) -> None:
    match copy.source, copy.destination:
        case Tensor() as source, Tensor() as target:
            _copy_tensor(flattening, copy, source, target)
        case DataStream() as stream, Tensor() as target:
            _copy_in(flattening, copy, stream, target)
        case Tensor() as source, DataStream() as stream:
            _copy_out(flattening, copy, source, stream)
        case RemoteBuffer() as buffer, Tensor() as target:
            _copy_remote(flattening, copy, buffer, target, inward=True)
        case Tensor() as source, RemoteBuffer() as buffer:
            _copy_remote(flattening, copy, buffer, source, inward=False)
        case _:
            raise ControlProgramError(f"{copy!r} cannot copy {copy.source!r} to {copy.destination!r}")


def _copy_tensor(flattening: Flattening, copy: Copy, source: Tensor, target: Tensor) -> None:
    """The copy's step, if it is the first of those that are one step: it moves what all of them move."""
    copies = flattening.merged_copies(copy)
    flattening.read(source)
    flattening.write(target)
    flattening.copy_step(copies, lambda: _exchange(flattening, copy, copies))


def _exchange(flattening: Flattening, copy: Copy, copies: MergedCopies) -> int:
    plan = flattening.planned_copy(copy)
    name = name_together([step_name(placed.copy) for placed in copies.copies])
    exchange = flattening.exchange(name, "copy", plan.account, plan.shares)
    sync = sync_cycles(flattening.target, between_ipus=plan.exchange.crosses) if len(plan.account.messages) else 0
    detail = f"{len(copies.copies):,} copies" if len(copies.copies) > 1 else ""
    step = flattening.step(moving_step(flattening, name, "copy", sync, plan.exchange, plan.rearrange_cycles, exchange), detail)
    move = flattening.moves.add_pieces(plan.pieces, flattening.places)
    if move != NOTHING:
        flattening.row(Opcode.MOVE, {MoveOperand.MOVE: move, MoveOperand.STEP: step})
    return step


def _host_step(flattening: Flattening, copies: Sequence[Copy], names: Sequence[str], *, inward: bool) -> int:
    """The step of transfers that share a host sync: over the host's link, and between streams' orders and tensors' places."""
    tensors = [tensor for copy in copies if isinstance(tensor := copy.destination if inward else copy.source, Tensor)]
    bytes = np.array([_bytes_by_ipu(flattening, tensor) for tensor in tensors])
    remote = any(isinstance(end, RemoteBuffer) for copy in copies for end in (copy.source, copy.destination))
    transfer = outside_transfer(OutsideLinks(flattening.target, flattening.replicas, inward, remote), bytes)
    cycles, size = transfer.cycles, int(bytes.sum())
    ordered = [number for number, copy in enumerate(copies) if not copy.optimise_memory]
    views = [tensors[number].runs() for number in ordered]
    order = stream_exchange(flattening.graph.tiles, flattening.homes, views, inward=inward)
    name = name_together(names)
    if order is None:
        step = StaticStep(name, "stream", 0, np.zeros(0, np.int64), -1, -1, size, cycles, flattening.depth)
    else:
        cost = price_stream(flattening.target, order)
        sync = sync_cycles(flattening.target, between_ipus=cost.crosses)
        copied, between = rearrange_cycles(flattening.target, order.local, flattening.graph.tiles), cost.global_cycles
        exchange = _rearrangement(flattening, order, [names[ordered[number]] for number in order.tensors])
        step = StaticStep(
            name, "stream", sync, cost.cycles, -1, exchange, size, cycles, flattening.depth, copied, between, cost.pieces
        )
    streams = tuple(end.handle() for copy in copies for end in (copy.source, copy.destination) if isinstance(end, DataStream))
    joins = flattening.target.host_sync_joins_ipus
    ipus = tuple(np.flatnonzero(bytes.any(0)).tolist()) if flattening.target.getNumIPUs() > 1 else ()
    step = evolve(step, host_ipus=ipus, joins_ipus=joins, streams=streams, host_limit=transfer.limit)
    several = f" in {len(copies):,} copies" if len(copies) > 1 else ""
    return flattening.step(step, f"{size:,} bytes to the {'device' if inward else 'host'}{several}")


def _bytes_by_ipu(flattening: Flattening, tensor: Tensor) -> Int64s:
    """int64 [IPUs]: what each has of a tensor."""
    ipus = flattening.target.getNumIPUs()
    if ipus == 1:
        return np.array([tensor.numElements() * tensor.elementType().size])
    pieces = host_pieces(flattening.homes, tensor.runs())
    return np.bincount(pieces.tile // flattening.target.getTilesPerIPU(), pieces.bytes, ipus).astype(np.int64)


def _rearrangement(flattening: Flattening, order: StreamExchange, names: Sequence[str]) -> int:
    """The exchange of streams that are rearranged, if anything of them crosses."""
    if len(order.account.offset) == 0:
        return NOTHING
    every = () if order.shares is None else shares_by_name(names, 0, order.shares)
    shares = tuple(share for share in every if len(share.messages))  # others stay on their tiles
    crossing = [share.name for share in shares] or names
    return flattening.exchange(name_together(crossing), "stream", order.account.exchange, shares if len(shares) > 1 else ())


def _stream_step(flattening: Flattening, copy: Copy, *, inward: bool) -> int:
    """The step of a transfer. Of those that share one, the last takes it, and the others one that costs nothing."""
    copies = flattening.merged_copies(copy)

    def make() -> int:
        together = [placed.copy for placed in copies.copies]
        return _host_step(flattening, together, [_stream_name(copy) for copy in together], inward=inward)

    step = flattening.copy_step(copies, make)
    return step if copies.copies[-1].copy is copy else HANDLE_STEP


def _stream_name(copy: Copy) -> str:
    stream = copy.source if isinstance(copy.source, DataStream) else copy.destination
    assert isinstance(stream, DataStream)
    return copy.name or stream.handle()


def _copy_in(flattening: Flattening, copy: Copy, stream: DataStream, tensor: Tensor) -> None:
    number = flattening.add_stream(stream)
    flattening.used_streams.add(number)
    _serve_callback(flattening, number)
    flattening.transfer(number, tensor, inward=True, step=_stream_step(flattening, copy, inward=True))


def _copy_out(flattening: Flattening, copy: Copy, tensor: Tensor, stream: DataStream) -> None:
    number = flattening.add_stream(stream)
    flattening.used_streams.add(number)
    flattening.transfer(number, tensor, inward=False, step=_stream_step(flattening, copy, inward=False))
    _serve_callback(flattening, number)


def _serve_callback(flattening: Flattening, stream: int) -> None:
    service = flattening.service("callback", stream=stream)
    flattening.row(Opcode.CALLBACK, {CallbackOperand.STREAM: stream, CallbackOperand.SERVICE: service})


def _copy_remote(flattening: Flattening, copy: Copy, buffer: RemoteBuffer, tensor: Tensor, *, inward: bool) -> None:
    flattening.remotes.use(copy, buffer, np.flatnonzero(_bytes_by_ipu(flattening, tensor)).tolist())
    offsets = NOTHING if copy.offset is None else flattening.fetch(copy.offset)
    step = _host_step(flattening, [copy], [copy.name or buffer.handle()], inward=inward)
    stream = flattening.internal_stream(tensor.elementType(), tensor.numElements())
    details = {"buffer": flattening.remote_number(buffer), "stream": stream, "offsets": offsets}
    if inward:
        flattening.serve("remote_read", **details)
        flattening.transfer(stream, tensor, inward=True, step=step)
    else:
        flattening.transfer(stream, tensor, inward=False, step=step)
        flattening.serve("remote_write", **details)


def flatten_write_undef(flattening: Flattening, undefine: WriteUndef) -> None:
    tensor = undefine.tensor
    stream = flattening.internal_stream(tensor.elementType(), tensor.numElements())
    flattening.serve("undefined", stream=stream)
    flattening.transfer(stream, tensor, inward=True)


RULES: Rules = {Copy: Leaf(flatten_copy, is_steps=True), WriteUndef: Leaf(flatten_write_undef)}
