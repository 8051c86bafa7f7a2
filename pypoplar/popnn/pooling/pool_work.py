"""The runs of places that the workers of a vertex have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.popnn.pooling.pool_axis import PoolAxis
from pypoplar.poputil.cycles import ceiling

NOTHING = 0xFFFFFFFF  # as in the codelets
Box = Sequence[tuple[int, int]]  # of results, by dimension


@frozen(eq=False)
class PoolWork:
    """Runs as triples (place of the result, place of what is pooled, count), and where each worker's runs and places begin."""

    runs: Int64s
    first_run: Int64s
    first_place: Int64s
    row: int

    @property
    def fields(self) -> dict[str, object]:
        """As the vertices have them."""
        runs = self.runs.ravel() if len(self.runs) else np.zeros(3, np.int64)
        lists = {"work": runs, "firstRun": self.first_run, "firstPlace": self.first_place}
        return {**{name: values.astype(np.uint32) for name, values in lists.items()}, "row": self.row}


def pool_work(axes: Sequence[PoolAxis], box: Box, workers: int, grain: int, blanks: bool) -> PoolWork:
    """The work on a box, in shares of a multiple of `grain` places; places are numbered from the box's beginning.

    With `blanks` there are runs, too, of results that meet nothing.
    """
    sizes = [end - begin for begin, end in box]
    others = [axis.others(*bounds) for axis, bounds in zip(axes, box, strict=True)]
    met = [
        [[place - low for place in places] for places in axis.meeting(*bounds)]
        for axis, bounds, (low, _) in zip(axes[:-1], box[:-1], others[:-1], strict=True)
    ]
    strides = [prod(high - low for low, high in others[place + 1 :]) for place in range(len(others))]
    places, row = prod(sizes), sizes[-1]
    share = ceiling(ceiling(places, workers), grain) * grain
    first_place = np.minimum(np.arange(workers + 1) * share, places)
    rows = list(product(*(range(size) for size in sizes[:-1])))
    last = _LastAxis(axes[-1], box[-1][0], others[-1][0], blanks)
    runs: list[tuple[int, int, int]] = []
    first_run = [0]
    for begin, end in zip(first_place[:-1].tolist(), first_place[1:].tolist(), strict=True):
        for number in range(begin // row, (end - 1) // row + 1 if end > begin else 0):
            low, high = max(begin - number * row, 0), min(end - number * row, row)
            meeting = product(*(met[dimension][index] for dimension, index in enumerate(rows[number])))
            bases = [sum(place * stride for place, stride in zip(other, strides[:-1], strict=True)) for other in meeting]
            runs += last.of_row(number * row, bases, low, high)
        first_run.append(len(runs))
    return PoolWork(np.array(runs, np.int64).reshape(-1, 3), np.array(first_run), first_place, row)


@frozen
class _LastAxis:
    """Runs along the last dimension of a box that begins at `begin`, with what is pooled from `other` on."""

    axis: PoolAxis
    begin: int
    other: int
    blanks: bool

    def of_row(self, place: int, bases: list[int], low: int, high: int) -> list[tuple[int, int, int]]:
        """Of a part of a row that begins at `place`, with each of the rows that begin at `bases`; and where nothing meets."""
        runs = self.axis.runs(self.begin + low, self.begin + high)
        found = [(place + run.first - self.begin, base + run.other - self.other, run.count) for base in bases for run in runs]
        if not self.blanks:
            return found
        if not bases:
            return [(place + low, NOTHING, high - low)]
        met = self.axis.meeting(self.begin + low, self.begin + high)
        return found + [(place + low + index, NOTHING, 1) for index, other in enumerate(met) if not other]
