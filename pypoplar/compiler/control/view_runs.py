"""The runs of many views at once: programs may have hundreds of thousands, most of them of one run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, offsets
from pypoplar.graph.frozen import ElementRuns
from pypoplar.graph.tensor import Tensor


@frozen(eq=False)
class ViewRuns:
    """The runs of views, one view after the other."""

    views: int  # how many there are
    view: Int64s  # of each run, the number of its view, rising
    start: Int64s
    count: Int64s
    step: Int64s

    @staticmethod
    def of(views: Iterable[Tensor]) -> ViewRuns:
        """Those of each view, as `Tensor.runs` gives them."""
        parts: list[Int64s] = []
        single: list[tuple[int, int, int, int]] = []
        number = -1
        for number, view in enumerate(views):
            run = view.single_run()
            if run is not None:
                single.append((number, *run))
                continue
            parts.append(_rows(single))
            single = []
            runs = view.runs()
            parts.append(np.stack([np.full(len(runs.start), number), runs.start, runs.count, runs.step]))
        parts.append(_rows(single))
        return ViewRuns(number + 1, *np.concatenate(parts, axis=1))

    @staticmethod
    def joined(views: Sequence[ElementRuns]) -> ViewRuns:
        """Those of views whose runs are known."""
        view = np.repeat(np.arange(len(views)), [len(runs.start) for runs in views])
        columns = (np.concatenate([getattr(runs, column) for runs in views]) for column in ("start", "count", "step"))
        return ViewRuns(len(views), view, *columns)

    @property
    def elements(self) -> int:
        """How many elements all have together."""
        return int(self.count.sum())

    def elements_of_each(self) -> Int64s:
        """How many elements each view has."""
        elements = np.zeros(self.views, np.int64)
        np.add.at(elements, self.view, self.count)
        return elements

    def strands(self) -> int:
        """How many stretches of consecutive elements there are at most."""
        return int(np.where(self.step == 1, np.minimum(self.count, 1), self.count).sum())

    def parts(self, bounds: Int64s) -> list[tuple[ViewRuns, int, int]]:
        """What lies between two bounds each, counted in elements: the runs there, and the bounds."""
        if len(bounds) == 2:
            return [(self, 0, int(bounds[1]))]
        full = self.count > 0
        place = offsets(self.count[full])
        cuts = distinct(np.concatenate((place[:-1], bounds[:-1])))
        run = np.searchsorted(place, cuts, "right") - 1
        step = self.step[full][run]
        start = self.start[full][run] + (cuts - place[run]) * step
        count = np.diff(cuts, append=place[-1])
        runs = evolve(self, view=self.view[full][run], start=start, count=count, step=step)
        first = np.append(np.searchsorted(cuts, bounds[:-1]), len(cuts)).tolist()
        return [
            (runs.between(*ends), *of_part)
            for ends, of_part in zip(itertools.pairwise(first), itertools.pairwise(bounds.tolist()), strict=True)
        ]

    def between(self, first: int, last: int) -> ViewRuns:
        """Some of the runs."""
        part = slice(first, last)
        return ViewRuns(self.views, self.view[part], self.start[part], self.count[part], self.step[part])


def _rows(single: list[tuple[int, int, int, int]]) -> Int64s:
    """Their columns, int64 [4, runs]."""
    return np.array(single, np.int64).reshape(-1, 4).T
