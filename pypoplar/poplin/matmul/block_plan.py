"""The plan of a product by blocks: into how many parts groups, rows, depth and columns are cut, and in how many steps it is done.

Cycles are those of the busiest tile: what it receives, its vertex, and where the depth is cut, the sums of the partial
products. All cuts are looked at by a formula, the best of them again by the exchange that they make, tile by tile.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import numpy as np
from attrs import evolve, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.matmul.block_costs import StepCosts, rough_costs
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.block_keepers import LEAST_STRETCH
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.splitting import SHARE, largest
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target

LOOKED_AT = 48  # cuts whose exchange is found tile by tile
ONE_WAY = (2, 3, 4, 6, 8), (12, 16, 24, 32, 48, 64)
STEPS = (  # numbers of steps of rows and columns that are looked at, until some fit
    ((1, 1),),
    *([(steps, 1) for steps in several] + [(1, steps) for steps in several] for several in ONE_WAY),
    [(4, 4), (8, 8), (16, 16), (32, 32), (64, 64)],
)


@frozen
class BlockPlan:
    """How a product is cut, sets of rows of a tile's workers, and the estimated cycles."""

    params: ProductParams
    cuts: BlockCuts
    row_groups: int
    cycles: int
    bytes: int  # of the fullest tile

    @property
    def cuts_shares(self) -> bool:
        """Whether rows of a block end within what a tile adds up of it: a bias that is added then comes in pieces."""
        return self.cuts.depth_parts > 1 and bool(np.any(np.diff(self.cuts.column_bounds()) % SHARE))

    @property
    def bytes_kept(self) -> int:
        """Of a block of the right operand, on the tile that has most; so few as are no burden count alike."""
        groups, _, depth, columns = self.cuts.largest_block()
        share = largest(groups * depth * columns, self.cuts.right_stretches, SHARE)
        return max(LEAST_STRETCH, share * self.params.type.size)

    @property
    def summed(self) -> bool:
        """Whether partial products are added up or converted in a second step."""
        return self.cuts.depth_parts > 1 or self.params.result is not self.params.partials


@lru_cache(maxsize=256)
def plan_blocks(target: Target, params: ProductParams) -> BlockPlan:
    """The cheapest plan whose blocks take no more than their part of a tile's memory.

    Of equals it is one that makes the user's next steps short: the right operand, which may be weights, is updated where it lies,
    so it lies on many tiles. Of these it is the one that computes on fewest.

    It takes several steps only where one would need more memory, or other cuts for it. If no plan takes so little, it is the
    one that takes least: whether it fits beside everything else is seen when the Engine is built.
    """
    search = _CutSearch.of(target, params)
    limit = int(params.memory * target.getBytesPerTile())
    cuts, cycles, needed = search.candidates(limit)
    chosen = np.flatnonzero(needed <= max(limit, int(needed.min())))
    order = chosen[np.lexsort((cuts[chosen].prod(axis=1), cycles[chosen]))]
    plans = [search.plan(cuts[number]) for number in order[:LOOKED_AT]]
    fitting = [plan for plan in plans if plan.bytes <= limit] or [min(plans, key=lambda plan: plan.bytes)]
    return min(fitting, key=lambda plan: (plan.cycles, plan.cuts_shares, plan.bytes_kept, plan.cuts.blocks))


@frozen(eq=False)
class _CutSearch:
    target: Target
    params: ProductParams
    grain: int
    parts: Int64s = field(repr=False)  # [candidates, 4]

    @staticmethod
    def of(target: Target, params: ProductParams) -> _CutSearch:
        """All numbers of parts worth a look that fit on the tiles."""
        tiles, grain = target.getNumTiles(), target.getVectorWidth(params.type)
        sizes = ((params.groups, 1), (params.rows, 1), (params.depth, grain), (params.columns, grain))
        groups, *others = [_worthwhile(ceiling(size, unit), tiles) for size, unit in sizes]
        grid = np.stack(np.meshgrid(*others, indexing="ij"), axis=-1).reshape(-1, 3)
        blocks = grid.prod(axis=1)
        several = [np.insert(grid[blocks <= tiles // count], 0, count, axis=1) for count in groups.tolist()]
        return _CutSearch(target, params, grain, np.concatenate(several))

    def candidates(self, limit: int) -> tuple[Int64s, Int64s, Int64s]:
        """Parts and steps of rows and columns [candidates, 6], with what they cost by the formula: cycles and bytes.

        More steps are looked at until the cheapest candidate takes no more than `limit` bytes, or any of several steps does.
        """
        several = []
        for level, steps in enumerate(STEPS):
            cuts = np.concatenate([self._in_steps(*pair) for pair in steps])
            several.append((cuts, *rough_costs(self.target, self.params, cuts, self.grain)))
            needed = several[-1][2]
            if len(cuts) and (needed[several[-1][1].argmin()] <= limit or (level and needed.min() <= limit)):
                break
        cuts, cycles, needed = (np.concatenate(column) for column in zip(*several, strict=True))
        return cuts, cycles, needed

    def _in_steps(self, rows: int, columns: int) -> Int64s:
        """The parts that can be had in each of so many steps."""
        grains = ceiling(self.params.columns, self.grain)
        fits = (self.parts[:, 1] * rows <= self.params.rows) & (self.parts[:, 3] * columns <= grains)
        steps = np.broadcast_to([rows, columns], (int(fits.sum()), 2))
        return np.concatenate((self.parts[fits], steps), axis=1)

    def plan(self, cut: Int64s) -> BlockPlan:
        """The plan of a candidate, with its exact costs."""
        params = self.params
        groups, rows, depth, columns, row_steps, column_steps = cut.tolist()
        cuts = BlockCuts(
            params.groups,
            params.rows,
            params.depth,
            params.columns,
            groups,
            rows,
            depth,
            columns,
            row_steps,
            column_steps,
            padding=params.stride - params.columns,
            grain=self.grain,
            columns_inner=True,
        )
        costs = StepCosts.of(self.target, params, cuts)
        one_order = depth == 1 and 1 in (rows, columns)  # blocks lie side by side in one way alone
        orders = (cuts,) if one_order else (cuts, evolve(cuts, columns_inner=False))
        found = [costs.with_exchange(self.target, params, ordered) for ordered in orders]
        laid_out, cycles = min(found, key=lambda plan: plan[1])
        return BlockPlan(params, laid_out, costs.row_groups, cycles, costs.bytes)


def _worthwhile(grains: int, tiles: int) -> Int64s:
    """Numbers of parts: one for each size of the largest part, which is what costs."""
    most = min(grains, tiles)
    root = isqrt(grains)
    few = np.arange(1, min(root, most) + 1)
    sizes = np.arange(1, root + 1)
    many = -(-grains // sizes)
    counts: Int64s = np.unique(np.concatenate((few, many[many <= most], [most])))
    return counts
