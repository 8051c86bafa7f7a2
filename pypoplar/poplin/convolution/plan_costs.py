"""What candidates for a plan of a convolution take: cycles and memory of the busiest tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.convolution.conv_cycles import lanes_cycles, outer_cycles, product_cycles, sliding_cycles, sum_cycles
from pypoplar.poplin.convolution.conv_partition import CHANNELS_LAST
from pypoplar.poplin.convolution.conv_shape import AXES, ConvForm, ConvShape, ConvTypes
from pypoplar.poputil.cost_conventions import MESSAGE
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import HALF

WORKERS = 6
LEAST_PIECE = 128  # bytes of a tile of what is mapped linearly
COPY_SLOTS = 35  # of a vertex that copies on its tile, beside the bytes


@frozen(eq=False)
class Candidates:
    """Numbers of parts, one row for each candidate, with grains of channels and an order of the tiles."""

    parts: Int64s
    grains: tuple[int, int]
    order: tuple[int, ...]


@frozen
class PlanCost:
    """Cycles of each phase and bytes of the fullest tile; numbers, or arrays of them."""

    exchange: Any
    copies: Any
    compute: Any
    reduce: Any
    bytes: Any

    @property
    def cycles(self) -> Any:
        return self.exchange + self.copies + self.compute + self.reduce

    def at(self, place: int) -> PlanCost:
        return PlanCost(*(int(value[place]) for value in (self.exchange, self.copies, self.compute, self.reduce, self.bytes)))


def joined_costs(several: Sequence[PlanCost]) -> PlanCost:
    """The costs of several lists of candidates, one list after the other."""
    names = ("exchange", "copies", "compute", "reduce", "bytes")
    return PlanCost(*(np.concatenate([getattr(cost, name) for cost in several]) for name in names))


def costs(target: Target, form: ConvForm, shape: ConvShape, types: ConvTypes, candidates: Candidates) -> PlanCost:
    """The costs of all candidates."""
    parts, size = candidates.parts, types.operands.size
    groups, batch = -(-shape.groups // parts[:, 0]), -(-shape.batch // parts[:, 1])
    outs = [-(-axis.out // parts[:, 2 + place]) for place, axis in enumerate(shape.axes)]
    kernel = [-(-axis.kernel // parts[:, 2 + AXES + place]) for place, axis in enumerate(shape.axes)]
    depth = _largest(shape.in_channels, parts[:, 8], candidates.grains[0])
    columns = _largest(shape.out_channels, parts[:, 9], candidates.grains[1])
    reach = [
        np.minimum(axis.size, (out - 1) * axis.stride + (of_kernel - 1) * axis.dilation + 1)
        for axis, out, of_kernel in zip(shape.axes, outs, kernel, strict=True)
    ]
    positions = batch * prod(outs)
    window = groups * batch * prod(reach) * (columns if form.lanes else depth) * size
    weights = groups * prod(kernel) * depth * columns * size

    fields = parts[:, 1:5].prod(axis=1)
    own_weights = weights // fields
    if form.is_folded and not form.is_flat:
        needed, own_inputs, useful = _folded_inputs(form, shape, parts, batch, groups * size)
        pieces = groups * positions * -(-form.pieces // parts[:, 8])
    else:
        needed, sharing = window, parts[:, 5:8].prod(axis=1) * (1 if form.lanes else parts[:, 9])
        own_field = prod(-(-axis.size // parts[:, 2 + place]) for place, axis in enumerate(shape.axes))
        own_inputs = useful = np.minimum(window, window // prod(reach) * own_field) // sharing
        pieces = groups * (positions if form.scatters else 1 if shape.is_product else batch * reach[0] * reach[1])
    arriving = np.maximum(needed - useful, 0)
    received = arriving + weights - own_weights
    if target.supportsExchangeBusSharing() and target.getTilesPerSharedExchangeBus() == 2:
        if candidates.order == CHANNELS_LAST:
            alike = np.where((parts[:, 9] % 2 == 0) & (not form.lanes), np.maximum(needed - 2 * own_inputs, 0), 0)
        else:
            alike = np.where(fields % 2 == 0, weights - 2 * own_weights, 0)  # two parts at least
        received = received - alike // 2
    landing = pieces * arriving // needed + np.minimum(fields, groups * prod(kernel) * depth)
    exchange = start_cycles(target) + np.maximum(ceiling(received, target.getExchangeBytesPerCycle()), MESSAGE * landing)

    local = own_inputs * window // needed  # of what the vertex reads, several times what is there where it is folded
    several = local > form.channels * size  # pieces on the tile
    gathered = ((arriving > 0) & (not shape.is_product) | form.scatters & several) & (pieces > 1)
    copies = np.where(gathered, ceiling(local, _copy_rate(target, form, shape, size)) + COPY_SLOTS * WORKERS, 0)
    cut = groups * np.minimum(form.weight_pieces, form.weight_pieces if form.is_folded else prod(kernel))
    copies = _with_cut_weights(target, form, copies, cut, own_weights, shape.in_channels * shape.out_channels * size)
    copies = np.maximum(
        copies, _uneven_halves(shape, types, candidates, groups, positions, kernel[0] * kernel[1] * kernel[2], depth)
    )
    if form.lanes:
        compute = lanes_cycles(target, positions, outs[2], kernel, columns, types.operands, types.partials)
    elif form.outer:
        compute = outer_cycles(target, groups, positions, columns, types.operands, types.partials)
    elif shape.is_product:
        compute = product_cycles(target, groups, positions, depth, columns, types.operands)
    else:
        compute = sliding_cycles(
            target, groups, positions, outs[2], kernel, depth, columns, types.operands, types.partials,
            shape.axes[2].dilation == 1,
        )  # fmt: skip
    result = groups * positions * columns
    reduce, summed = _sums(target, types, parts, groups * positions, columns)
    gathering = np.where(gathered, window, arriving)
    bytes = gathering + weights + result * types.partials.size + own_inputs + own_weights + summed
    return PlanCost(exchange, copies, compute, reduce, bytes)


def start_cycles(target: Target) -> int:
    """What a compute set with an exchange takes beside its work."""
    return target.getMaxIPUSyncDelay() + target.compute_set_start_cycles


def _with_cut_weights(target: Target, form: ConvForm, copies: Int64s, pieces: Int64s, bytes: Int64s, row: int) -> Int64s:
    """Cycles of copies with those of weights that lie in pieces, as elements of the kernel are cut off; rows have so many bytes."""
    taken = np.maximum(copies, COPY_SLOTS * WORKERS) + bytes // _rate(target, row)
    return np.where((form.weight_pieces > 0) & (pieces > 1), taken, copies)


def zeroing_cycles(target: Target, outputs: int, size: int) -> int:
    """What it takes to copy a constant to so many outputs, which are shared out in pieces of `LEAST_PIECE` bytes at least."""
    own = min(outputs, max(LEAST_PIECE // size, int(ceiling(outputs, target.getNumTiles()))))
    return COPY_SLOTS * WORKERS + own + (start_cycles(target) if own < outputs else 0)


def spreading_cycles(target: Target, rows: int, size: int) -> int:
    """What it takes to copy so many rows of so many bytes to their places on their tile."""
    return int(COPY_SLOTS * WORKERS + rows * ceiling(size, _rate(target, size)))


def _folded_inputs(form: ConvForm, shape: ConvShape, parts: Int64s, batch: Int64s, size: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Bytes of different inputs that a tile needs of folded ones, for so many of the joined outputs; that it holds; of both."""
    samples = shape.batch // prod(form.axes[place].axis.out for place in form.joined)
    total = prod(trim.axis.size for trim in form.axes) * form.channels
    everywhere = _reached(form, batch, samples, [trim.axis.kernel for trim in form.axes])
    kernels, cuts = [], parts[:, 8]
    for trim, fold in zip(form.axes, form.folded, strict=True):  # parts of the channels are of the first of them, if they can
        kernel = trim.axis.kernel
        kernels.append(-(-kernel // cuts) if fold else kernel)
        cuts = np.maximum(cuts // kernel, 1) if fold else cuts
    needed = _reached(form, batch, samples, kernels)
    own = np.minimum(everywhere, -(-samples * total // parts[:, 1:].prod(axis=1)))
    return needed * size, own * size, own * needed // everywhere * size


def _reached(form: ConvForm, batch: Int64s, samples: int, kernels: Sequence[Any]) -> Int64s:
    """Inputs that meet so many of the joined outputs and elements of the kernel, at most those of all samples."""
    reached, rest = np.ones_like(batch), batch
    for place in reversed(form.joined):
        axis = form.axes[place].axis
        out = np.minimum(rest, axis.out)
        rest = np.where(rest > axis.out, -(-rest // axis.out) + 1, 1)
        reached = reached * np.minimum(axis.size, (out - 1) * axis.stride + (kernels[place] - 1) * axis.dilation + 1)
    for place in form.sliding:
        reached = reached * form.axes[place].axis.size
    most: Int64s = np.minimum(reached * rest, samples * prod(trim.axis.size for trim in form.axes)) * form.channels
    return most


def _copy_rate(target: Target, form: ConvForm, shape: ConvShape, size: int) -> int:
    """Bytes a cycle that are copied on a tile, by how the pieces lie."""
    piece = shape.out_channels * size if form.lanes else (form.channels if form.scatters else shape.in_channels) * size
    return _rate(target, piece)


def _rate(target: Target, piece: int) -> int:
    return int(target.memcpy_bytes_per_cycle) if piece % 8 == 0 else 4 if piece % 4 == 0 else 2


def _uneven_halves(
    shape: ConvShape, types: ConvTypes, candidates: Candidates, groups: Int64s, positions: Int64s, kernel: Int64s, depth: Int64s
) -> Int64s:
    """Cycles in which rows of an odd number of halves, where channels are cut, are put behind each other: a half at a time."""
    cycles = np.zeros_like(depth)
    if types.operands is not HALF:
        return cycles
    rows = (groups * positions, groups * kernel * depth)
    for place, (size, count) in enumerate(zip((shape.in_channels, shape.out_channels), rows, strict=True)):
        last = (size - 1) % candidates.grains[place] + 1
        odd = (candidates.parts[:, 8 + place] > 1) & (size % 2 == 1) & (count > 1)
        cycles = np.where(odd, np.maximum(cycles, count * last + COPY_SLOTS * WORKERS), cycles)
    return cycles


def _sums(target: Target, types: ConvTypes, parts: Int64s, positions: Int64s, columns: Int64s) -> tuple[Int64s, Int64s]:
    """Cycles of adding partial sums, or of converting single ones; bytes of the fullest tile."""
    count = parts[:, 5:9].prod(axis=1)
    outputs = -(-positions // count) * columns
    arriving = outputs * (count - 1) * types.partials.size
    exchange = np.maximum(ceiling(arriving, target.getExchangeBytesPerCycle()), MESSAGE * (count - 1))
    cycles = start_cycles(target) + exchange + sum_cycles(target, outputs, count, types.partials, types.result)
    needed = (count > 1) | (types.partials is not types.result)
    return np.where(needed, cycles, 0), np.where(needed, arriving + outputs * types.result.size, 0)


def _largest(size: int, parts: Int64s, grain: int) -> Int64s:
    largest: Int64s = np.minimum(size, -(-ceiling(size, grain) // parts) * grain)
    return largest
