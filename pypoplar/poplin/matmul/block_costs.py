"""What a product by blocks costs: cycles of its busiest tiles, and bytes of the fullest."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.matmul_cycles import WORKERS, block_product_cycles, reduce_add_cycles
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.splitting import bounds, largest
from pypoplar.poplin.superstep_cost import MESSAGE
from pypoplar.popops.reduction.reduce_plan import sync_cycles
from pypoplar.poputil.cycles import Count, ceiling
from pypoplar.target import Target

WORKER_SHAPES = ((6, 1), (3, 2), (2, 3), (1, 6))  # how six workers share a block: groups of rows, groups of columns
SHARE = 8  # elements of a block's sums that a tile adds up, at least: whole words


def worker_columns(columns: int, row_groups: int, grain: int) -> int:
    """Columns of each worker of a block, whole grains."""
    return largest(columns, WORKERS // row_groups, grain)


def share_bounds(outputs: int, tiles: int) -> list[int]:
    """Which sums of a block each of several tiles adds up: where their shares begin, and the end."""
    return bounds(outputs, min(tiles, ceiling(outputs, SHARE)), SHARE)


def rough_costs(target: Target, params: ProductParams, cuts: Int64s, grain: int) -> tuple[Int64s, Int64s]:
    """For each of many cuts the cycles, and the bytes of the fullest tile; a column each for parts and steps."""
    depth, columns = params.depth, params.columns
    row_parts, depth_parts, column_parts = cuts[:, 1], cuts[:, 2], cuts[:, 3]
    groups = -(-params.groups // cuts[:, 0])
    rows = -(-params.rows // (row_parts * cuts[:, 4]))
    block_depth = np.minimum(depth, -(-ceiling(depth, grain) // depth_parts) * grain)
    block_columns = np.minimum(columns, -(-ceiling(columns, grain) // (column_parts * cuts[:, 5])) * grain)
    left, right = (groups * size * params.type.size for size in (rows * block_depth, block_depth * block_columns))
    shares = _shares(target)
    share_left = np.where((shares > 1) & (column_parts % 2 == 0), left - left // shares, 0)
    share_right = np.where((shares > 1) & (row_parts % 2 == 0), right - right // shares, 0)
    received = np.where(column_parts > 1, left, 0) + np.where(row_parts > 1, right, 0) - np.maximum(share_left, share_right)
    rate = target.getExchangeBytesPerCycle()
    _, compute = product_cycles(target, params, rows, block_depth, block_columns, groups)
    step = sync_cycles(target) + ceiling(received, rate) + compute
    outputs = groups * rows * block_columns
    share = np.minimum(outputs, -(-ceiling(outputs, SHARE) // depth_parts) * SHARE)
    summed = (depth_parts > 1) | (params.result is not params.partials)
    adding = target.getNumWorkerContexts() * reduce_add_cycles(share, depth_parts, params.partials, params.result)
    moved = np.maximum(ceiling((depth_parts - 1) * share * params.partials.size, rate), MESSAGE * (depth_parts - 1))
    step = step + np.where(summed, sync_cycles(target) + moved + adding, 0)
    needed = left + right + outputs * params.partials.size
    needed = needed + np.where(summed, (depth_parts - 1) * share * params.partials.size + share * params.result.size, 0)
    return step * cuts[:, 4] * cuts[:, 5], needed


def product_cycles(
    target: Target, params: ProductParams, rows: Count, depth: Count, columns: Count, groups: Count
) -> tuple[Int64s, Int64s]:
    """Into how many sets of rows the workers of a block are best divided, and the tile's cycles."""
    grain = target.getVectorWidth(params.type)
    sets, costs = [], []
    for row_sets, column_sets in WORKER_SHAPES:
        share = np.minimum(columns, -(-ceiling(columns, grain) // column_sets) * grain)
        each = block_product_cycles(target, ceiling(rows, row_sets), depth, share, params.type)
        sets.append(row_sets)
        costs.append(target.getNumWorkerContexts() * groups * each)
    best = np.argmin(costs, axis=0)
    return np.array(sets)[best], np.min(costs, axis=0)


def plan_cost(target: Target, params: ProductParams, cuts: BlockCuts) -> tuple[int, int, int]:
    """Sets of rows of the workers, cycles of all steps, and bytes of the fullest tile."""
    groups, depth = np.diff(cuts.group_bounds()), np.diff(cuts.depth_bounds())
    rows = np.diff(cuts.row_bounds()).reshape(cuts.row_steps, cuts.row_parts)
    columns = np.diff(cuts.column_bounds()).reshape(cuts.column_steps, cuts.column_parts)
    tiles = cuts.tiles(target.getNumTiles())
    most = (int(size.max()) for size in (rows, depth, columns, groups))
    row_groups = int(product_cycles(target, params, *most)[0])
    cycles = needed = 0
    for rows_of_step, row_steps in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
        for columns_of_step, column_steps in zip(*np.unique(columns, axis=0, return_counts=True), strict=True):
            sizes = (groups, rows_of_step, depth, columns_of_step)
            of_step, bytes = _step_cost(target, params, cuts, tiles, sizes, row_groups)
            cycles += int(row_steps * column_steps) * of_step
            needed = max(needed, bytes)
    return row_groups, cycles, needed


def _step_cost(
    target: Target,
    params: ProductParams,
    cuts: BlockCuts,
    tiles: Int64s,
    sizes: tuple[Int64s, Int64s, Int64s, Int64s],
    row_groups: int,
) -> tuple[int, int]:
    """Cycles and bytes of a step."""
    groups, rows, depth, columns = np.ix_(*sizes)
    grain = cuts.grain
    left, right = groups * rows * depth * params.type.size, groups * depth * columns * params.type.size
    exchange = _exchange(target, cuts, tiles, np.broadcast_to(left, tiles.shape), np.broadcast_to(right, tiles.shape))
    most = [int(size.max()) for size in sizes]
    share = min(most[3], worker_columns(most[3], row_groups, grain))
    each = block_product_cycles(target, ceiling(most[1], row_groups), most[2], share, params.type)
    cycles = sync_cycles(target) + exchange + target.getNumWorkerContexts() * most[0] * int(each)
    outputs, partial = most[0] * most[1] * (most[3] + most[3] % 2 * cuts.padding), params.partials.size
    needed = int((left + right).max()) + outputs * partial
    parts = cuts.depth_parts
    if parts > 1 or params.result is not params.partials:
        share = share_bounds(outputs, parts)[1]
        moved = max((parts - 1) * share * partial, (outputs - share) * partial) if parts > 1 else 0
        exchange = max(ceiling(moved, target.getExchangeBytesPerCycle()), MESSAGE * (parts - 1))
        adding = target.getNumWorkerContexts() * int(reduce_add_cycles(share, parts, params.partials, params.result))
        cycles += sync_cycles(target) + exchange + adding
        needed += (parts - 1) * share * partial + share * params.result.size
    return cycles, needed


def _exchange(target: Target, cuts: BlockCuts, tiles: Int64s, left: Int64s, right: Int64s) -> int:
    """Cycles in which the blocks of both operands reach the tiles that use them and have them not."""
    count, rate = target.getNumTiles(), target.getExchangeBytesPerCycle()
    group, row, depth, column = np.ix_(*map(np.arange, tiles.shape))
    foreign_left = column != cuts.left_owner()[None, :, :, None]
    foreign_right = row != cuts.right_owner()[None, None, :, :]
    zeros = np.zeros(tiles.shape, np.int64)
    of_left = zeros + ((group * cuts.row_parts + row) * cuts.depth_parts + depth)
    of_right = zeros + ((group * cuts.depth_parts + depth) * cuts.column_parts + column)
    received, sent, pieces = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    shares = _shares(target)
    for bytes, foreign, block, users in (
        (left, foreign_left, of_left, cuts.column_parts),
        (right, foreign_right, of_right, cuts.row_parts),
    ):
        arriving = np.where(foreign, bytes, 0)
        received[tiles] += arriving
        pieces[tiles] += foreign
        if users > 1:
            sent[tiles] += np.where(foreign, 0, bytes)
        if shares > 1:
            number = np.full(-(-count // shares) * shares, -1)
            number[tiles] = np.where(foreign, block, -1)
            alike = (number.reshape(-1, shares) == number.reshape(-1, shares)[:, :1]).all(axis=1) & (number[::shares] >= 0)
            both = np.repeat(alike, shares)[tiles]
            received[tiles] -= np.where(both, arriving - -(-arriving // shares), 0)
    busy: Int64s = np.maximum(np.maximum(-(-received // rate), -(-sent // rate)), MESSAGE * pieces)
    return int(busy.max())


def _shares(target: Target) -> int:
    """Tiles that share the buses on which they receive the same."""
    return target.getTilesPerSharedExchangeBus() if target.supportsExchangeBusSharing() else 1
