"""The runs of many views at once: programs may have hundreds of thousands, most of them of one run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.tensor import Tensor


@frozen(eq=False)
class ViewRuns:
    """The runs of views, one view after the other."""

    view: Int64s  # of each run, the number of its view
    start: Int64s
    count: Int64s
    step: Int64s

    @staticmethod
    def of(views: Iterable[Tensor]) -> ViewRuns:
        """Those of each view, as `Tensor.runs` gives them."""
        parts: list[Int64s] = []
        single: list[tuple[int, int, int, int]] = []
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
        return ViewRuns(*np.concatenate(parts, axis=1))


def _rows(single: list[tuple[int, int, int, int]]) -> Int64s:
    """Their columns, int64 [4, runs]."""
    return np.array(single, np.int64).reshape(-1, 4).T
