"""Boxes of a tensor, each flattened to a row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat

Bounds = list[tuple[int, int]]


def box_rows(view: Tensor, ranges: Sequence[Sequence[tuple[int, int]]]) -> Tensor:
    """[boxes, elements of each]: what the boxes have of a tensor, whose ranges in each dimension are of one length."""
    shape = []
    for dimension, bounds in enumerate(ranges):
        length = bounds[0][1] - bounds[0][0]
        adjacent = all(before[1] == behind[0] for before, behind in pairwise(bounds))
        if adjacent:
            view = view.slice(bounds[0][0], bounds[-1][1], dimension)
        else:
            view = concat([view.slice(begin, end, dimension) for begin, end in bounds], dimension)
        shape += [len(bounds), length]
    dimensions = len(ranges)
    view = view.reshape([*shape, view.dim(view.rank() - 1)])
    order = [*range(0, 2 * dimensions, 2), *range(1, 2 * dimensions, 2), 2 * dimensions]
    count = prod(len(bounds) for bounds in ranges)
    return view.dimShuffle(order).reshape([count, view.numElements() // count])
