"""How pooling is divided among tiles: into boxes of results, each a vertex.

All divisions are priced by the vertices' formula and the bytes and pieces that a tile receives; the cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.popnn.pooling.pool_axis import PoolAxis
from pypoplar.popnn.pooling.pool_cycles import SUPERVISOR, Kind, vectors_of, worker_slots
from pypoplar.popops.reduction.reduce_plan import MESSAGE, sync_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import ElementType

MOST = 4_000_000  # divisions that are looked at
OPERANDS: dict[Kind, tuple[int, int]] = {"max": (1, 0), "sum": (1, 0), "max gradient": (2, 1), "scale": (1, 2)}
"""How many tensors a vertex reads of what is pooled, and how many of the shape of the result."""


@frozen
class PoolPlan:
    """Places of a box in each dimension, the last box of a dimension has what is left; and the cycles that are predicted."""

    steps: tuple[int, ...]
    cycles: int

    def bounds(self, axes: Sequence[PoolAxis]) -> list[list[tuple[int, int]]]:
        """The ranges of the boxes in each dimension."""
        return [
            [(begin, min(begin + step, axis.size)) for begin in range(0, axis.size, step)]
            for axis, step in zip(axes, self.steps, strict=True)
        ]


def plan_pooling(target: Target, kind: Kind, type: ElementType, channels: int, axes: Sequence[PoolAxis]) -> PoolPlan:
    """The cheapest division of results that have `channels` elements in each place."""
    choices = [_steps(axis, target) for axis in axes]
    while prod(map(len, choices)) > MOST:
        longest = max(choices, key=len)
        longest[:] = longest[::2]
    grid = [values.ravel() for values in np.meshgrid(*map(np.array, choices), indexing="ij")]
    boxes = prod(-(-axis.size // step) for axis, step in zip(axes, grid, strict=True))
    fitting = np.flatnonzero(boxes <= target.getNumTiles())
    steps = [step[fitting] for step in grid]
    cycles = _cycles(target, kind, type, channels, axes, steps)
    best = int(np.argmin(cycles))
    return PoolPlan(tuple(int(step[best]) for step in steps), int(cycles[best]))


def _steps(axis: PoolAxis, target: Target) -> list[int]:
    """Sizes of boxes in a dimension: the whole, and those that differ in how many there are; of gradients whole strides."""
    grain = axis.stride if axis.back and axis.stride <= axis.size else 1
    counts = range(1, min(axis.size, target.getNumTiles()) + 1)
    return sorted({min(ceiling(ceiling(axis.size, count), grain) * grain, axis.size) for count in counts}, reverse=True)


def _cycles(target: Target, kind: Kind, type: ElementType, channels: int, axes: Sequence[PoolAxis], steps: list[Int64s]) -> Int64s:
    """Sync, exchange and compute of the tile with the largest box."""
    workers, vectors = target.getNumWorkerContexts(), vectors_of(type, channels)
    others = [_others(axis, step) for axis, step in zip(axes, steps, strict=True)]
    places, partners = np.prod(steps, axis=0), np.prod(others, axis=0)
    share = np.minimum(-(-places // workers), places)
    row = steps[-1]
    rows = -(-share // row)
    met = prod(axis.kernel if not axis.back else ceiling(axis.kernel, axis.stride) for axis in axes[:-1])
    runs = rows * met * axes[-1].kernel
    elements = share * met * (axes[-1].kernel if not axes[-1].back else ceiling(axes[-1].kernel, axes[-1].stride))
    slots = worker_slots(kind, vectors, share, rows, runs, np.maximum(elements, runs))
    pooled, like_result = OPERANDS[kind]
    size = channels * type.size
    received = (pooled * partners + like_result * places) * size // target.getExchangeBytesPerCycle()
    pieces = pooled * _pieces(axes, others) + like_result * places // row
    cycles: Int64s = sync_cycles(target) + np.maximum(received, MESSAGE * pieces) + workers * (SUPERVISOR + slots)
    return cycles


def _others(axis: PoolAxis, step: Int64s) -> Int64s:
    """How many places of what is pooled a box of so many results needs at most."""
    if axis.back:
        return np.minimum((step + axis.kernel - 2) // axis.stride + 1, axis.windows)
    return np.minimum((step - 1) * axis.stride + axis.kernel, axis.places)


def _pieces(axes: Sequence[PoolAxis], others: list[Int64s]) -> Int64s:
    """Contiguous pieces of what is pooled: rows, or several where dimensions are whole."""
    pieces: Int64s = np.ones_like(others[0])
    whole = np.ones(len(others[0]), bool)
    for axis, other in reversed(list(zip(axes, others, strict=True))):
        pieces = np.where(whole, 1, pieces * other)
        whole &= other == (axis.windows if axis.back else axis.places)
    return pieces
