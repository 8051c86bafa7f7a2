"""Columns of tables that need no memory of their own where all their values are equal: then their stride is 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s


def constant(values: Int64s) -> Int64s:
    """The same values, without memory of their own where all are equal."""
    if len(values) == 0 or values.strides[0] == 0:
        return values
    return np.broadcast_to(values[0], values.shape) if bool((values == values[0]).all()) else values


def as_one(values: Sequence[AnyArray]) -> AnyArray:
    """The values of parts, one after the other, without memory of their own where all are equal."""
    if len(values) == 1:
        return values[0]
    first = next((value[0] for value in values if len(value)), values[0].dtype.type(0))
    if all(len(value) == 0 or (value.strides[0] == 0 and value[0] == first) for value in values):
        return np.broadcast_to(first, sum(map(len, values)))
    return np.concatenate(values)


def rows_of(columns: Sequence[AnyArray], which: Bools | Int64s) -> list[AnyArray]:
    """The rows of a mask or of a list of positions, of each column; what is equal everywhere stays without memory."""
    count = int(which.sum()) if which.dtype == bool else len(which)
    return [np.broadcast_to(column[0], count) if len(column) and column.strides[0] == 0 else column[which] for column in columns]
