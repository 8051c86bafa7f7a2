"""The plan of a product by blocks: into how many parts groups, rows, depth and columns are cut, chosen by cost.

Cycles are estimated for the busiest tile: what it receives, its vertex, and where the depth is cut, the sums of the
partial products.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.matmul.matmul_cycles import WORKERS, block_product_cycles, reduce_add_cycles
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.splitting import bounds, largest
from pypoplar.poplin.superstep import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import HALF

HALVES_COPIED = 2  # bytes a cycle, on a tile
WORKER_SHAPES = ((6, 1), (3, 2), (2, 3), (1, 6))  # how six workers share a block: groups of rows, groups of columns


@frozen
class BlockPlan:
    """How a product is cut: parts of each dimension, sets of rows of a tile's workers, and the estimated cycles."""

    params: ProductParams
    group_parts: int
    row_parts: int
    depth_parts: int
    column_parts: int
    row_groups: int
    grain: int
    cycles: int
    bytes: int  # of the fullest tile

    @property
    def blocks(self) -> int:
        """Tiles at work."""
        return self.group_parts * self.row_parts * self.depth_parts * self.column_parts

    @property
    def summed(self) -> bool:
        """Whether partial products are added up or converted in a second step."""
        return self.depth_parts > 1 or self.params.result is not self.params.partials

    def group_bounds(self) -> list[int]:
        return bounds(self.params.groups, self.group_parts)

    def row_bounds(self) -> list[int]:
        return bounds(self.params.rows, self.row_parts)

    def depth_bounds(self) -> list[int]:
        return bounds(self.params.depth, self.depth_parts, self.grain)

    def column_bounds(self) -> list[int]:
        return bounds(self.params.columns, self.column_parts, self.grain)

    def tiles_of(self, tiles: int, groups: range, rows: range, depth: range, columns: range) -> Int64s:
        """The tiles of blocks, as an array of their parts; all are spread evenly, those of one part of the rows side by side."""
        number = np.arange(groups.start, groups.stop)[:, None] * self.row_parts + np.arange(rows.start, rows.stop)
        number = number[..., None] * self.depth_parts + np.arange(depth.start, depth.stop)
        number = number[..., None] * self.column_parts + np.arange(columns.start, columns.stop)
        places: Int64s = number * tiles // self.blocks
        return places


@lru_cache(maxsize=256)
def plan_blocks(target: Target, params: ProductParams) -> BlockPlan:
    """The cheapest plan whose blocks take no more than their part of a tile's memory; of equals the one on fewest tiles.

    If none does, the plan that takes least memory: whether it fits beside everything else is seen when the Engine is built.
    """
    grain = target.getVectorWidth(params.type)
    cuts = _candidates(target, params, grain)
    cycles, groups, needed = _costs(target, params, cuts, grain)
    limit = max(int(params.memory * target.getBytesPerTile()), int(needed.min()))
    chosen = np.flatnonzero(needed <= limit)
    best = chosen[np.lexsort((cuts[chosen].prod(axis=1), cycles[chosen]))[0]]
    group_parts, row_parts, depth_parts, column_parts = cuts[best].tolist()
    return BlockPlan(
        params,
        group_parts,
        row_parts,
        depth_parts,
        column_parts,
        row_groups=int(groups[best]),
        grain=grain,
        cycles=int(cycles[best]),
        bytes=int(needed[best]),
    )


def _candidates(target: Target, params: ProductParams, grain: int) -> Int64s:
    """All numbers of parts worth a look that fit on the tiles."""
    tiles = target.getNumTiles()
    sizes = ((params.rows, 1), (params.depth, grain), (params.columns, grain))
    some = [_worthwhile(ceiling(size, unit), tiles) for size, unit in sizes]
    grid = np.stack(np.meshgrid(*some, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid[grid.prod(axis=1) <= tiles]
    groups = _worthwhile(params.groups, tiles)
    both = np.concatenate([np.insert(grid[grid.prod(axis=1) <= tiles // count], 0, count, axis=1) for count in groups.tolist()])
    return both


def _worthwhile(grains: int, tiles: int) -> Int64s:
    """Numbers of parts: one for each size of the largest part, which is what costs."""
    most = min(grains, tiles)
    root = isqrt(grains)
    few = np.arange(1, min(root, most) + 1)
    sizes = np.arange(1, root + 1)
    many = -(-grains // sizes)
    counts: Int64s = np.unique(np.concatenate((few, many[many <= most], [most])))
    return counts


def _costs(target: Target, params: ProductParams, cuts: Int64s, grain: int) -> tuple[Int64s, Int64s, Int64s]:
    """For each cut the cycles, the sets of rows of the workers, and the bytes of the fullest tile."""
    depth, columns = params.depth, params.columns
    block_groups = -(-params.groups // cuts[:, 0])
    block_rows = -(-params.rows // cuts[:, 1])
    block_depth = np.minimum(depth, -(-ceiling(depth, grain) // cuts[:, 2]) * grain)
    block_columns = np.minimum(columns, -(-ceiling(columns, grain) // cuts[:, 3]) * grain)
    rate = target.getExchangeBytesPerCycle()
    received = block_groups * (block_rows * block_depth + block_depth * block_columns) * params.type.size
    compute = np.full(len(cuts), np.iinfo(np.int64).max)
    groups = np.ones(len(cuts), np.int64)
    for row_groups, column_groups in WORKER_SHAPES:
        worker_columns = -(-ceiling(block_columns, grain) // column_groups) * grain
        cost = (
            block_groups
            * target.getNumWorkerContexts()
            * block_product_cycles(
                target, -(-block_rows // row_groups), block_depth, np.minimum(worker_columns, block_columns), params.type
            )
        )
        better = cost < compute
        compute, groups = np.where(better, cost, compute), np.where(better, row_groups, groups)
    arriving = np.maximum(ceiling(received, rate), MESSAGE * block_groups * (block_rows + block_depth))
    cycles = superstep_cycles(target) + arriving + compute
    if params.type is HALF:  # rows of an odd number of halves are put behind each other, a half at a time
        uneven = block_groups * ((depth % 2) * block_rows * block_depth + (columns % 2) * block_depth * block_columns)
        cycles = cycles + uneven * HALF.size // HALVES_COPIED

    summed = (cuts[:, 2] > 1) | (params.result is not params.partials)
    size = params.partials.size
    blocks = block_groups * block_rows * block_columns
    outputs = -(-blocks // cuts[:, 2])
    adding = target.getNumWorkerContexts() * reduce_add_cycles(outputs, cuts[:, 2], params.partials, params.result)
    moved = np.maximum(ceiling((cuts[:, 2] - 1) * outputs * size, rate), MESSAGE * (cuts[:, 2] - 1))
    cycles = cycles + np.where(summed, superstep_cycles(target) + moved + adding, 0)
    needed = received + blocks * size
    return cycles, groups, needed


def worker_columns(columns: int, row_groups: int, grain: int) -> int:
    """Columns of each worker of a block, whole grains."""
    return largest(columns, WORKERS // row_groups, grain)
