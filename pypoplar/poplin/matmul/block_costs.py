"""What a product by blocks costs: cycles of its busiest tiles, and bytes of the fullest."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.matmul_cycles import WORKERS, block_product_cycles, reduce_add_cycles
from pypoplar.poplin.matmul.operand_exchange import OperandExchange, Sizes, shares_of_bus
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.splitting import SHARE, largest, share_bounds
from pypoplar.popops.reduction.reduce_plan import sync_cycles
from pypoplar.poputil.cost_conventions import MESSAGE
from pypoplar.poputil.cycles import Count, ceiling
from pypoplar.target import Target

WORKER_SHAPES = ((6, 1), (3, 2), (2, 3), (1, 6))  # how six workers share a block: groups of rows, groups of columns
MORE = 128  # a product may take one part in so many more where its operands lie on more tiles: updates of them take less


def worker_columns(columns: int, row_groups: int, grain: int) -> int:
    """Columns of each worker of a block, whole grains."""
    return largest(columns, WORKERS // row_groups, grain)


def rough_costs(target: Target, params: ProductParams, cuts: Int64s, grain: int) -> tuple[Int64s, Int64s]:
    """For each of many cuts the cycles, and the bytes of the fullest tile; a column each for parts and steps."""
    depth, columns = params.depth, params.columns
    row_parts, depth_parts, column_parts = cuts[:, 1], cuts[:, 2], cuts[:, 3]
    groups = -(-params.groups // cuts[:, 0])
    rows = -(-params.rows // (row_parts * cuts[:, 4]))
    block_depth = np.minimum(depth, -(-ceiling(depth, grain) // depth_parts) * grain)
    block_columns = np.minimum(columns, -(-ceiling(columns, grain) // (column_parts * cuts[:, 5])) * grain)
    left, right = (groups * size * params.type.size for size in (rows * block_depth, block_depth * block_columns))
    shares = shares_of_bus(target)
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


@frozen(eq=False)
class StepCosts:
    """What the steps of a product cost but for the exchange of its operands, whichever tile has which block.

    Of steps that are alike it has the sizes of their parts, how many they are, and the cycles of one.
    """

    row_groups: int  # sets of rows of a tile's workers
    steps: list[tuple[Sizes, int, int]]
    bytes: int  # of the fullest tile

    @staticmethod
    def of(target: Target, params: ProductParams, cuts: BlockCuts) -> StepCosts:
        groups, depth = np.diff(cuts.group_bounds()), np.diff(cuts.depth_bounds())
        rows = np.diff(cuts.row_bounds()).reshape(cuts.row_steps, cuts.row_parts)
        columns = np.diff(cuts.column_bounds()).reshape(cuts.column_steps, cuts.column_parts)
        row_groups = int(product_cycles(target, params, *(cuts.largest_block()[place] for place in (1, 2, 3, 0)))[0])
        steps, needed = [], 0
        for rows_of_step, row_steps in _alike(rows):
            for columns_of_step, column_steps in _alike(columns):
                sizes = (groups, rows_of_step, depth, columns_of_step)
                of_step, bytes = _step_cost(target, params, cuts, sizes, row_groups)
                steps.append((sizes, row_steps * column_steps, of_step))
                needed = max(needed, bytes)
        return StepCosts(row_groups, steps, needed)

    def with_exchange(self, target: Target, params: ProductParams, cuts: BlockCuts) -> tuple[BlockCuts, int]:
        """The cuts with the layout of the operands, and the cycles of all steps."""
        exchange = OperandExchange.of(target, cuts, params.type.size)
        cycles = np.zeros(len(exchange.layouts), np.int64)
        for sizes, steps, of_step in self.steps:
            cycles += steps * (of_step + np.array(exchange.cycles(sizes)))
        least = int(cycles.min())
        chosen = int(np.argmax(cycles <= least + least // MORE))
        left, right = exchange.layouts[chosen]
        return evolve(cuts, left_stretches=left, right_stretches=right), int(cycles[chosen])


def _alike(steps: Int64s) -> list[tuple[Int64s, int]]:
    """Different rows of sizes, and how many steps have each."""
    if len(steps) == 1:
        return [(steps[0], 1)]
    rows, counts = np.unique(steps, axis=0, return_counts=True)
    return list(zip(rows, counts.tolist(), strict=True))


def _step_cost(target: Target, params: ProductParams, cuts: BlockCuts, sizes: Sizes, row_groups: int) -> tuple[int, int]:
    """Cycles of a step, but for the exchange of the operands, and bytes."""
    most = [int(size.max()) for size in sizes]
    rows, depth, columns = np.ix_(*(np.unique(size) for size in sizes[1:]))  # a smaller block may take longer, where it is uneven
    share = np.minimum(columns, ceiling(ceiling(columns, cuts.grain), WORKERS // row_groups) * cuts.grain)
    each = np.max(block_product_cycles(target, ceiling(rows, row_groups), depth, share, params.type))
    cycles = sync_cycles(target) + target.getNumWorkerContexts() * most[0] * int(each)
    outputs, partial = most[0] * most[1] * (most[3] + most[3] % 2 * cuts.padding), params.partials.size
    needed = most[0] * most[2] * (most[1] + most[3]) * params.type.size + outputs * partial
    parts = cuts.depth_parts
    if parts > 1 or params.result is not params.partials:
        share = share_bounds(outputs, parts)[1]
        moved = max((parts - 1) * share * partial, (outputs - share) * partial) if parts > 1 else 0
        exchange = max(ceiling(moved, target.getExchangeBytesPerCycle()), MESSAGE * (parts - 1))
        added = _added_shares(cuts, sizes)
        adding = max(int(reduce_add_cycles(elements, parts, params.partials, params.result)) for elements in added)
        cycles += sync_cycles(target) + exchange + target.getNumWorkerContexts() * adding
        needed += (parts - 1) * share * partial + share * params.result.size
    return cycles, needed


def _added_shares(cuts: BlockCuts, sizes: Sizes) -> set[int]:
    """Elements that tiles add up, each number once: fewer of them may take longer, where they are no whole vectors."""
    groups, rows, _, columns = (set(size.tolist()) for size in sizes)
    padded = {size + size % 2 * cuts.padding for size in columns}
    outputs = {count * row * column for count in groups for row in rows for column in padded}
    return {end - begin for size in outputs for begin, end in pairwise(share_bounds(size, cuts.depth_parts))}
