"""The plan of a product by blocks: into how many parts rows, depth and columns are cut, chosen by cost.

Cycles are estimated for the busiest tile: what it receives, its vertex, and where the depth is cut, the sums of the
partial products.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.cycle_estimators import block_product_cycles, reduce_add_cycles
from pypoplar.poplin.splitting import bounds, largest
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, ElementType

MESSAGE = 3  # cycles that a tile needs for a message, however short: a row of a block is one
HALVES_COPIED = 2  # bytes a cycle, on a tile
SUPERSTEP = 120  # cycles of a compute set and its exchange beyond the sync, whatever they do
WORKERS = 6
WORKER_SHAPES = ((6, 1), (3, 2), (2, 3), (1, 6))  # how six workers share a block: groups of rows, groups of columns


@frozen
class BlockPlan:
    """How a product [rows, depth] x [depth, columns] is cut: parts of each, cycles, and the groups of rows of a tile's workers."""

    rows: int
    depth: int
    columns: int
    row_parts: int
    depth_parts: int
    column_parts: int
    row_groups: int
    grain: int
    cycles: int

    @property
    def blocks(self) -> int:
        """Tiles at work."""
        return self.row_parts * self.depth_parts * self.column_parts

    def row_bounds(self) -> list[int]:
        return bounds(self.rows, self.row_parts)

    def depth_bounds(self) -> list[int]:
        return bounds(self.depth, self.depth_parts, self.grain)

    def column_bounds(self) -> list[int]:
        return bounds(self.columns, self.column_parts, self.grain)

    def tile(self, row_part: int, depth_part: int, column_part: int, tiles: int) -> int:
        """The tile of a block; the blocks are spread evenly, those of one part of the rows side by side."""
        number = (row_part * self.depth_parts + depth_part) * self.column_parts + column_part
        return number * tiles // self.blocks


def superstep_cycles(target: Target) -> int:
    """What a compute set with an exchange costs beside its work."""
    return target.getMaxIPUSyncDelay() + SUPERSTEP


def plan_blocks(
    target: Target, rows: int, depth: int, columns: int, type: ElementType, result: ElementType, memory: float
) -> BlockPlan:
    """The cheapest plan whose blocks take no more than the part `memory` of a tile's memory; of equals the one on fewest tiles.

    If none does, the plan that takes least memory: whether it fits beside everything else is seen when the Engine is built.
    """
    grain = target.getVectorWidth(type)
    cuts = _candidates(target, rows, depth, columns, grain)
    cycles, groups, needed = _costs(target, (rows, depth, columns), cuts, grain, type, result)
    limit = max(int(memory * target.getBytesPerTile()), int(needed.min()))
    chosen = np.flatnonzero(needed <= limit)
    best = chosen[np.lexsort((cuts[chosen].prod(axis=1), cycles[chosen]))[0]]
    row_parts, depth_parts, column_parts = (int(cut) for cut in cuts[best])
    return BlockPlan(rows, depth, columns, row_parts, depth_parts, column_parts, int(groups[best]), grain, int(cycles[best]))


def _candidates(target: Target, rows: int, depth: int, columns: int, grain: int) -> Int64s:
    """All triples of numbers of parts worth a look that fit on the tiles."""
    tiles = target.getNumTiles()
    some = [_worthwhile(ceiling(size, unit), tiles) for size, unit in ((rows, 1), (depth, grain), (columns, grain))]
    grid = np.stack(np.meshgrid(*some, indexing="ij"), axis=-1).reshape(-1, 3)
    fitting: Int64s = grid[grid.prod(axis=1) <= tiles]
    return fitting


def _worthwhile(grains: int, tiles: int) -> Int64s:
    """Numbers of parts: one for each size of the largest part, which is what costs."""
    most = min(grains, tiles)
    root = isqrt(grains)
    few = np.arange(1, min(root, most) + 1)
    sizes = np.arange(1, root + 1)
    many = -(-grains // sizes)
    counts: Int64s = np.unique(np.concatenate((few, many[many <= most], [most])))
    return counts


def _costs(
    target: Target, sizes: tuple[int, int, int], cuts: Int64s, grain: int, type: ElementType, result: ElementType
) -> tuple[Int64s, Int64s, Int64s]:
    """For each cut the cycles, the groups of rows of the workers, and the bytes of the fullest tile."""
    rows, depth, columns = sizes
    block_rows = -(-rows // cuts[:, 0])
    block_depth = np.minimum(depth, -(-ceiling(depth, grain) // cuts[:, 1]) * grain)
    block_columns = np.minimum(columns, -(-ceiling(columns, grain) // cuts[:, 2]) * grain)
    rate = target.getExchangeBytesPerCycle()
    received = (block_rows * block_depth + block_depth * block_columns) * type.size
    compute = np.full(len(cuts), np.iinfo(np.int64).max)
    groups = np.ones(len(cuts), np.int64)
    for row_groups, column_groups in WORKER_SHAPES:
        worker_columns = -(-ceiling(block_columns, grain) // column_groups) * grain
        cost = target.getNumWorkerContexts() * block_product_cycles(
            target, -(-block_rows // row_groups), block_depth, np.minimum(worker_columns, block_columns), type
        )
        better = cost < compute
        compute, groups = np.where(better, cost, compute), np.where(better, row_groups, groups)
    arriving = np.maximum(ceiling(received, rate), MESSAGE * (block_rows + block_depth))
    cycles = superstep_cycles(target) + arriving + compute
    if type is HALF:  # rows of an odd number of halves are put behind each other, a half at a time
        uneven = (depth % 2) * block_rows * block_depth + (columns % 2) * block_depth * block_columns
        cycles = cycles + uneven * HALF.size // HALVES_COPIED

    summed = (cuts[:, 1] > 1) | (result is not FLOAT)
    outputs = -(-rows * columns // target.getNumTiles())
    partial_bytes = outputs * cuts[:, 1] * FLOAT.size
    adding = target.getNumWorkerContexts() * reduce_add_cycles(np.full(len(cuts), outputs), cuts[:, 1])
    cycles = cycles + np.where(summed, superstep_cycles(target) + ceiling(partial_bytes, rate) + adding, 0)
    needed = received + block_rows * block_columns * FLOAT.size
    return cycles, groups, needed


def worker_columns(columns: int, row_groups: int, grain: int) -> int:
    """Columns of each worker of a block, whole grains."""
    return largest(columns, WORKERS // row_groups, grain)
