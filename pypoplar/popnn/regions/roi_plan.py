"""How boxes, channels and rows are divided among tiles.

All divisions are priced by the vertices' formulas, by the bytes and pieces that a tile receives, and by the sums of what several
vertices have of one result; the cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.popnn.regions.roi_cycles import BYTES_OF_SUM, RoiWork, backward_slots, forward_slots
from pypoplar.popops.reduction.reduce_plan import MESSAGE, sync_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import ElementType

MEMORY = 0.4  # of a tile, for what a vertex reads and writes
OF_SUM = 2  # slots for two elements of a partial result that are added


@frozen
class RoiPlan:
    """Most groups of channels, boxes and rows of a vertex; the last of a dimension has what is left. And the predicted cycles."""

    steps: tuple[int, int, int]
    cycles: int

    def bounds(self, sizes: Sequence[int]) -> list[list[tuple[int, int]]]:
        """The ranges of the vertices in each dimension."""
        return [
            [(begin, min(begin + step, size)) for begin in range(0, size, step)]
            for size, step in zip(sizes, self.steps, strict=True)
        ]


def plan_regions(target: Target, type: ElementType, work: RoiWork, groups: int, boxes: int, back: bool) -> RoiPlan:
    """The cheapest division among those that fit into a part of a tile's memory, else the one that takes the least."""
    sizes = (groups, boxes, work.rows)
    choices = [np.array(sorted({ceiling(size, count) for count in range(1, size + 1)}, reverse=True)) for size in sizes]
    grid = [values.ravel() for values in np.meshgrid(*choices, indexing="ij")]
    vertices = np.prod([-(-size // step) for size, step in zip(sizes, grid, strict=True)], axis=0)
    grid = [steps[vertices <= target.getNumTiles()] for steps in grid]
    cycles, memory = _costs(target, type, work, sizes, grid, back)
    fits = memory <= MEMORY * target.getBytesPerTile()
    best = int(np.argmin(np.where(fits, cycles, np.iinfo(np.int64).max) if fits.any() else memory))
    return RoiPlan((int(grid[0][best]), int(grid[1][best]), int(grid[2][best])), int(cycles[best]))


def _costs(
    target: Target, type: ElementType, work: RoiWork, sizes: Sequence[int], steps: list[Int64s], back: bool
) -> tuple[Int64s, Int64s]:
    """Cycles, and bytes of the tile with the largest vertex."""
    groups, boxes, rows = steps
    line = work.width * work.channels
    places, lines = groups * boxes * work.bins, groups * rows
    images = np.minimum(-(-rows // work.height) + 1, work.images)
    workers = target.getNumWorkerContexts()
    if back:
        read, written, pieces = places * work.channels, lines * line, groups * boxes
        share = -(-lines // workers)
        slots = backward_slots(work, -(-share // rows), boxes, share)
        partials, results = -(-sizes[1] // boxes), sizes[0] * sizes[2] * line
    else:
        read, written, pieces = lines * line, places * work.channels, groups * images
        slots = forward_slots(work, -(-places // workers), rows)
        partials, results = -(-sizes[2] // rows), sizes[0] * sizes[1] * work.bins * work.channels
    rate = target.getExchangeBytesPerCycle()
    received = np.maximum((read + 4 * boxes) * type.size // rate, MESSAGE * pieces)
    summed = partials * ceiling(results, target.getNumTiles())
    sums = np.where(
        partials > 1, sync_cycles(target) + summed * BYTES_OF_SUM // rate + MESSAGE * partials + summed * OF_SUM // 2, 0
    )
    cycles: Int64s = sync_cycles(target) + received + workers * slots + sums
    memory: Int64s = read * type.size + written * BYTES_OF_SUM
    return cycles, memory
