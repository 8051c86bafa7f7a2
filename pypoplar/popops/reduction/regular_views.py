"""Views of a vector's elements at places that numbers give: strided ones where the places allow it."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, concat_slices


def spaced_rows(vector: Tensor, begin: int, step: int, length: int, count: int) -> Tensor:
    """The tensor [count, length] whose row i begins at ``begin + i * step``, which is not within the row before."""
    if count == 1:
        return vector.slice(begin, begin + length).reshape([1, length])
    size = vector.numElements()
    if begin + count * step <= size:
        return vector.slice(begin, begin + count * step).reshape([count, step]).slice(0, length, 1)
    skipped = step - length
    if begin >= skipped:
        return vector.slice(begin - skipped, begin - skipped + count * step).reshape([count, step]).slice(skipped, step, 1)
    before = spaced_rows(vector, begin, step, length, count - 1)
    last = begin + (count - 1) * step
    return concat([before, vector.slice(last, last + length).reshape([1, length])])


def places_view(vector: Tensor, places: Int64s) -> Tensor:
    """The elements of a vector at ``places[i, j]``, as a tensor of that shape; no place is there twice."""
    rows, columns = places.shape
    first = int(places[0, 0])
    down = int(places[1, 0]) - first if rows > 1 else columns
    along = int(places[0, 1]) - first if columns > 1 else 1
    if down > 0 and along > 0:
        regular = first + down * np.arange(rows)[:, None] + along * np.arange(columns)
        if (places == regular).all():
            width, height = along * (columns - 1) + 1, down * (rows - 1) + 1
            if width <= down:
                return spaced_rows(vector, first, down, width, rows).subSample(along, 1)
            if height <= along:
                return spaced_rows(vector, first, along, height, columns).subSample(down, 1).transpose()
    flat = places.reshape(-1)
    return concat_slices(vector, flat, flat + 1).reshape([rows, columns])
