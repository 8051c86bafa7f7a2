"""Strided views: pure arithmetic on (shape, strides), in elements.

A strided view holds the element ids ``offset + sum(i[k] * strides[k])`` for all indices i of its shape. Strides may be 0
(broadcast) and negative (reverse).
"""

from __future__ import annotations

from math import prod

import numpy as np

from pypoplar.arrays.dtypes import Int64s

Shape = tuple[int, ...]
_ONE = np.ones(1, np.int64)  # of all single elements, of which programs may have hundreds of thousands
_ONE.flags.writeable = False


def row_major(shape: Shape, step: int = 1) -> Shape:
    """The strides of elements that follow each other at `step` in row-major order."""
    strides = []
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def collapse(shape: Shape, strides: Shape) -> tuple[Shape, Shape]:
    """The same elements in the same order with as few dimensions as possible, none of size 1; at least one dimension is left."""
    extents: list[int] = []
    steps: list[int] = []
    for extent, step in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if extents and steps[-1] == extent * step:
            extents[-1] *= extent
            steps[-1] = step
        else:
            extents.append(extent)
            steps.append(step)
    return (tuple(extents), tuple(steps)) if extents else ((1,), (1,))


def reshape(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """The strides of the view in the shape `wanted`, which has as many elements, or None if that view is not strided."""
    if prod(wanted) == 0:
        return row_major(wanted)
    extents, steps = collapse(shape, strides)
    result = [0] * len(wanted)
    dimension = len(wanted) - 1
    for extent, step in zip(reversed(extents), reversed(steps), strict=True):
        while extent > 1:
            if dimension < 0 or extent % wanted[dimension]:
                return None
            result[dimension] = step
            step *= wanted[dimension]
            extent //= wanted[dimension]
            dimension -= 1
    return tuple(1 if extent == 1 else step for extent, step in zip(wanted, result, strict=True))


def element_ids(offset: int, shape: Shape, strides: Shape) -> Int64s:
    """The element ids as an array of the view's shape."""
    ids: Int64s = np.array(offset, np.int64)
    for dimension, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        along = np.arange(extent, dtype=np.int64) * step
        ids = ids + along.reshape((extent,) + (1,) * (len(shape) - 1 - dimension))
    return np.broadcast_to(ids, shape)


def runs(offset: int, shape: Shape, strides: Shape) -> tuple[Int64s, Int64s, Int64s]:
    """The view as runs (start, count, step) in flattened order."""
    elements = prod(shape)
    if elements == 0:
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    if elements == 1:
        return np.array([offset], np.int64), _ONE, _ONE
    extents, steps = (shape, strides) if len(shape) == 1 else collapse(shape, strides)
    count = extents[-1]
    step = steps[-1] if count > 1 else 1
    if len(extents) == 1:
        return np.array([offset], np.int64), np.array([count], np.int64), np.array([step], np.int64)
    start = element_ids(offset, extents[:-1], steps[:-1]).reshape(-1)
    return np.ascontiguousarray(start), np.full(len(start), count, np.int64), np.full(len(start), step, np.int64)


def bounds(offset: int, shape: Shape, strides: Shape) -> tuple[int, int]:
    """The half-open range of element ids from the smallest to the largest; the shape is not empty."""
    low = high = offset
    for extent, step in zip(shape, strides, strict=True):
        if step > 0:
            high += (extent - 1) * step
        else:
            low += (extent - 1) * step
    return low, high + 1


def surely_distinct(shape: Shape, strides: Shape) -> bool:
    """True where no element can occur twice: each stride jumps over all that the smaller ones reach. False decides nothing."""
    if len(shape) <= 1:  # most views of which there are very many
        return not shape or shape[0] <= 1 or strides[0] != 0
    reach = 0
    for step, extent in sorted((abs(step), extent) for extent, step in zip(shape, strides, strict=True) if extent > 1):
        if step <= reach:
            return False
        reach += (extent - 1) * step
    return True


def compacted(shape: Shape, strides: Shape) -> tuple[int, Shape]:
    """Offset and strides of the view if just its elements are kept, in the order of their ids. The view is `surely_distinct`."""
    step = 1
    offset = 0
    result = [1] * len(shape)
    for dimension in sorted(range(len(shape)), key=lambda d: abs(strides[d])):
        if shape[dimension] == 1:
            continue
        result[dimension] = step if strides[dimension] > 0 else -step
        if strides[dimension] < 0:
            offset += (shape[dimension] - 1) * step
        step *= shape[dimension]
    return offset, tuple(result)
