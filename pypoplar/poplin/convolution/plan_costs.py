"""What candidates for a plan of a convolution take: cycles and memory of the busiest tile."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.convolution.conv_cycles import product_cycles, sliding_cycles
from pypoplar.poplin.convolution.conv_partition import CHANNELS_LAST
from pypoplar.poplin.convolution.conv_shape import AXES, ConvShape, ConvTypes
from pypoplar.poplin.matmul.matmul_cycles import reduce_add_cycles
from pypoplar.poplin.superstep import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target

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


def costs(target: Target, shape: ConvShape, types: ConvTypes, candidates: Candidates) -> PlanCost:
    """The costs of all candidates."""
    parts = candidates.parts
    groups, batch = -(-shape.groups // parts[:, 0]), -(-shape.batch // parts[:, 1])
    outs = [-(-axis.out // parts[:, 2 + place]) for place, axis in enumerate(shape.axes)]
    kernel = [-(-axis.kernel // parts[:, 2 + AXES + place]) for place, axis in enumerate(shape.axes)]
    depth = _largest(shape.in_channels, parts[:, 8], candidates.grains[0])
    columns = _largest(shape.out_channels, parts[:, 9], candidates.grains[1])
    reach = [
        np.minimum(axis.size, (out - 1) * axis.stride + (of_kernel - 1) * axis.dilation + 1)
        for axis, out, of_kernel in zip(shape.axes, outs, kernel, strict=True)
    ]
    size, partial = types.operands.size, types.partials.size
    window = groups * batch * prod(reach) * depth * size
    weights = groups * prod(kernel) * depth * columns * size
    positions = batch * prod(outs)
    result = groups * positions * columns * partial
    used = parts.prod(axis=1)

    sharing_inputs = used // (parts[:, 0] * parts[:, 1] * parts[:, 2] * parts[:, 3] * parts[:, 4] * parts[:, 8])
    own_field = prod(-(-axis.size // parts[:, 2 + place]) for place, axis in enumerate(shape.axes))
    own_inputs = np.minimum(window, groups * batch * own_field * depth * size) // sharing_inputs
    sharing_weights = parts[:, 1] * parts[:, 2] * parts[:, 3] * parts[:, 4]
    own_weights = weights // sharing_weights
    received = window - own_inputs + weights - own_weights
    if target.supportsExchangeBusSharing() and target.getTilesPerSharedExchangeBus() == 2:
        if candidates.order == CHANNELS_LAST:
            alike = np.where(parts[:, 9] % 2 == 0, np.maximum(window - 2 * own_inputs, 0), 0)
        else:
            even = (parts[:, 1] * parts[:, 2] * parts[:, 3] * parts[:, 4]) % 2 == 0
            alike = np.where(even, np.maximum(weights - 2 * own_weights, 0), 0)
        received = received - alike // 2
    rows = groups * batch * reach[0] * reach[1]
    exchange = superstep_cycles(target) + np.maximum(ceiling(received, target.getExchangeBytesPerCycle()), MESSAGE * rows)
    gathered = own_inputs < window
    copies = np.where(gathered, own_inputs // target.memcpy_bytes_per_cycle + COPY_SLOTS * target.getNumWorkerContexts(), 0)
    if shape.is_product:
        compute = product_cycles(target, groups, positions, depth, columns, types.operands)
        copies = 0 * copies
    else:
        compute = sliding_cycles(
            target, groups, positions, outs[2], kernel, depth, columns, types.operands, types.partials,
            shape.axes[2].dilation == 1,
        )  # fmt: skip
    reduce, summed = _reduction(target, shape, types, parts, result)
    bytes = window + weights + result + own_inputs + own_weights + summed
    return PlanCost(exchange, copies, compute, reduce, bytes)


def _reduction(target: Target, shape: ConvShape, types: ConvTypes, parts: Int64s, result: Int64s) -> tuple[Int64s, Int64s]:
    """Cycles of the sums of partials, or of rounding a single one; bytes of the fullest tile."""
    count = parts[:, 5:9].prod(axis=1)
    total = shape.groups * shape.batch * prod(shape.outputs) * shape.out_channels
    outputs = np.where(count > 1, -(-total // target.getNumTiles()), result // types.partials.size)
    arriving = np.where(count > 1, outputs * count * types.partials.size, 0)
    adding = target.getNumWorkerContexts() * reduce_add_cycles(outputs, count, types.partials, types.result)
    cycles = superstep_cycles(target) + ceiling(arriving, target.getExchangeBytesPerCycle()) + adding
    needed = (count > 1) | (types.partials is not types.result)
    return np.where(needed, cycles, 0), np.where(needed, arriving + outputs * types.result.size, 0)


def _largest(size: int, parts: Int64s, grain: int) -> Int64s:
    largest: Int64s = np.minimum(size, -(-ceiling(size, grain) // parts) * grain)
    return largest
