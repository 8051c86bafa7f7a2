"""Views whose dimensions have several strides each: what parts that lie apart, and permutations of them, look like.

A dimension is a list of axes, outermost first, each with an extent and a step; the digits of its index go along the axes. A matrix
of blocks that lie behind each other is one box, whatever its order of dimensions, where runs would be as many as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import mul

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays import strides
from pypoplar.arrays.dtypes import Int64s

MOST_AXES = 12
Shape = tuple[int, ...]
Axes = tuple[tuple[int, int], ...]  # (extent, step): no extent is 1, no two axes would do as one


@frozen
class Box:
    """The elements ``offset + sum of digit * step`` of all indices; no extent is 0."""

    offset: int
    dimensions: tuple[Axes, ...]

    @staticmethod
    def strided(offset: int, shape: Shape, steps: Shape) -> Box:
        """A view with one stride a dimension."""
        return Box(offset, tuple(_few([(extent, step)]) for extent, step in zip(shape, steps, strict=True)))

    @staticmethod
    def of_starts(start: Int64s, count: int, step: int) -> Box | None:
        """One dimension of runs of `count` elements at a step, which begin at `start`; None if that takes too many axes."""
        axes: list[tuple[int, int]] = [(count, step)]
        while len(start) > 1:
            if len(axes) == MOST_AXES:
                return None
            gap = int(start[1] - start[0])
            other = np.flatnonzero(start[1:] - start[:-1] != gap)
            extent = int(other[0]) + 1 if len(other) else len(start)
            if len(start) % extent:
                return None
            groups = start.reshape(-1, extent)
            if len(groups) > 1 and not (groups == groups[:, :1] + np.arange(extent) * gap).all():
                return None
            axes.insert(0, (extent, gap))
            start = groups[:, 0]
        return Box(int(start[0]), (_few(axes),))

    @property
    def shape(self) -> Shape:
        """The size of each dimension."""
        return tuple(prod(extent for extent, _ in axes) for axes in self.dimensions)

    @property
    def axes(self) -> Axes:
        """Those of all dimensions, outermost first."""
        return tuple(axis for axes in self.dimensions for axis in axes)

    @property
    def extents(self) -> Shape:
        """Those of all axes."""
        return tuple(extent for extent, _ in self.axes)

    @property
    def steps(self) -> Shape:
        """Those of all axes."""
        return tuple(step for _, step in self.axes)

    def strides(self) -> Shape | None:
        """The stride of each dimension, if each has one."""
        if any(len(axes) > 1 for axes in self.dimensions):
            return None
        return tuple(axes[0][1] if axes else 1 for axes in self.dimensions)

    def ids(self) -> Int64s:
        """The elements as an array of the shape."""
        return strides.element_ids(self.offset, self.extents, self.steps).reshape(self.shape)

    def runs(self) -> tuple[Int64s, Int64s, Int64s]:
        """The elements as runs (start, count, step) in flattened order."""
        return strides.runs(self.offset, self.extents, self.steps)

    def bounds(self) -> tuple[int, int]:
        """The half-open range from the smallest element to the largest."""
        return strides.bounds(self.offset, self.extents, self.steps)

    def surely_distinct(self) -> bool:
        """True where no element can occur twice; False decides nothing."""
        return strides.surely_distinct(self.extents, self.steps)

    def compacted(self) -> Box:
        """The view if just its elements are kept, in their order, from 0 on. It is `surely_distinct`."""
        offset, steps = strides.compacted(self.extents, self.steps)
        left = iter(steps)
        return Box(offset, tuple(_few([(extent, next(left)) for extent, _ in axes]) for axes in self.dimensions))

    # Other boxes; None where one does not do.

    def permuted(self, order: Shape) -> Box:
        """Dimension k of the result is dimension ``order[k]``."""
        return evolve(self, dimensions=tuple(self.dimensions[dimension] for dimension in order))

    def reversed(self, dimension: int) -> Box:
        """With one dimension in reverse order."""
        axes = self.dimensions[dimension]
        last = sum((extent - 1) * step for extent, step in axes)
        return self._with(dimension, tuple((extent, -step) for extent, step in axes), last)

    def repeated(self, dimension: int, times: int, *, inner: bool) -> Box:
        """With one dimension repeated as a whole, or each of its indices; `times` is 1 at least."""
        axes = list(self.dimensions[dimension])
        axes.insert(len(axes) if inner else 0, (times, 0))
        return self._with(dimension, _few(axes))

    def part(self, dimension: int, begin: int, end: int) -> Box | None:
        """The indices ``[begin, end)`` of one dimension, one of them at least."""
        axes, offset, outer = list(self.dimensions[dimension]), 0, []
        while axes:
            _, step = axes.pop(0)
            size = prod(below for below, _ in axes)
            first, last = begin // size, (end - 1) // size
            offset += first * step
            if first == last:
                begin, end = begin - first * size, end - first * size
                continue
            if begin % size or end % size:
                return None
            outer = [(last - first + 1, step), *axes]
            break
        return self._with(dimension, _few(outer), offset)

    def every(self, dimension: int, stride: int) -> Box | None:
        """Each stride-th index of one dimension, from the first on."""
        axes = list(self.dimensions[dimension])
        kept: list[tuple[int, int]] = []
        while axes and stride > 1:
            extent, step = axes.pop()
            if not axes:
                kept.insert(0, (-(-extent // stride), step * stride))
                stride = 1
            elif extent % stride == 0:
                kept.insert(0, (extent // stride, step * stride))
                stride = 1
            elif stride % extent == 0:
                stride //= extent
            else:
                return None
        return self._with(dimension, _few([*axes, *kept]))

    def reshaped(self, shape: Shape) -> Box | None:
        """The same elements in the same order under a shape with as many."""
        left = list(_few(self.axes))
        dimensions: list[Axes] = []
        for wanted in reversed(shape):
            own: list[tuple[int, int]] = []
            while wanted > 1:
                extent, step = left.pop()
                taken = min(extent, wanted)
                if extent % taken or wanted % taken:
                    return None
                own.insert(0, (taken, step))
                if extent > taken:
                    left.append((extent // taken, step * taken))
                wanted //= taken
            dimensions.insert(0, tuple(own))
        return Box(self.offset, tuple(dimensions))

    def _with(self, dimension: int, axes: Axes, further: int = 0) -> Box:
        """With other axes of one dimension, from an offset on."""
        return Box(self.offset + further, (*self.dimensions[:dimension], axes, *self.dimensions[dimension + 1 :]))


def common_extents(boxes: Sequence[Box]) -> Shape | None:
    """A shape that all boxes can have whose dimensions have one axis in each, the fewest there are; None if there is none."""
    sizes = sorted({size for box in boxes for size in accumulate(reversed(_few_extents(box)), mul, initial=1)})
    if any(above % size for size, above in pairwise(sizes)):
        return None
    return tuple(above // size for size, above in reversed(list(pairwise(sizes))))


def _few_extents(box: Box) -> Shape:
    return tuple(extent for extent, _ in _few(box.axes))


def _few(axes: list[tuple[int, int]] | Axes) -> Axes:
    """The same indices with as few axes as possible."""
    joined: list[tuple[int, int]] = []
    for extent, step in axes:
        if extent == 1:
            continue
        if joined and joined[-1][1] == extent * step:
            joined[-1] = joined[-1][0] * extent, step
        else:
            joined.append((extent, step))
    return tuple(joined)
