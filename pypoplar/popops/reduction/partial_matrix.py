"""Partial results of outputs, as matrices: a row for each output, with all that is to be reduced to it."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, ragged
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.reduction.regular_views import places_view


@frozen(eq=False)
class PartialMatrix:
    """Partial results ``values[j, k]`` of outputs ``outputs[j]``, which ascend."""

    outputs: Int64s
    values: Tensor

    @staticmethod
    def whole(values: Tensor) -> PartialMatrix:
        """A matrix with a row for each output."""
        return PartialMatrix(np.arange(values.dim(0)), values)

    @property
    def partials(self) -> int:
        return self.values.dim(1)


def matrices_of(vector: Tensor, place: Int64s, output: Int64s, width: Int64s) -> list[PartialMatrix]:
    """The partial results in a vector: piece i, from ``place[i]`` on, has one for each of `width[i]` outputs from ``output[i]`` on.

    There is a matrix for all outputs with as many partial results.
    """
    bounds = distinct(np.concatenate((output, output + width)))
    first = np.searchsorted(bounds, output)
    count = np.searchsorted(bounds, output + width) - first
    piece = np.repeat(np.arange(len(place)), count)
    interval = ragged(first, count)
    order = np.argsort(interval, kind="stable")
    piece, interval = piece[order], interval[order]
    depth = np.bincount(interval, minlength=len(bounds) - 1)
    begin = place[piece] + bounds[interval] - output[piece]
    matrices = []
    for partials in distinct(depth[depth > 0]).tolist():
        chosen = np.flatnonzero(depth == partials)
        sizes = np.diff(bounds)[chosen]
        heads = begin[depth[interval] == partials].reshape(len(chosen), partials)
        inside = ragged(np.zeros(len(chosen), np.int64), sizes)
        places = np.repeat(heads, sizes, axis=0) + inside[:, None]
        matrices.append(PartialMatrix(ragged(bounds[chosen], sizes), places_view(vector, places)))
    return matrices
