"""Views of several boxes: what parts of two sizes, as uneven cuts of a dimension give them, look like.

A flattened view is a list of boxes, each of which stands at regular places of it. So another shape changes nothing; another order
of dimensions, a part or a repetition of one are found box by box, where each box lies within the dimensions that matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import prod

import numpy as np
from attrs import evolve, field, frozen

from pypoplar.arrays import strides
from pypoplar.arrays.boxes import Box
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.element_runs import RunList, compress_rows
from pypoplar.arrays.groups import sorting_order

MOST_BOXES = 64  # of a view; more are runs
Shape = tuple[int, ...]
PlacedAxes = tuple[tuple[int, int, int], ...]  # (extent, stride among places, step among elements)


@frozen
class PlacedBox:
    """The elements ``offset + sum of digit * step``, each at the place ``place + sum of digit * stride`` of a flattened view.

    Strides fall, and each goes beyond all that the smaller ones reach; no extent is 1.
    """

    place: int
    offset: int
    axes: PlacedAxes

    @staticmethod
    def of(place: int, box: Box) -> PlacedBox:
        """A box whose elements follow each other from a place on."""
        extents = box.extents
        return PlacedBox(place, box.offset, _few(zip(extents, strides.row_major(extents), box.steps, strict=True)))

    @property
    def extents(self) -> Shape:
        """Those of all axes."""
        return tuple(extent for extent, _, _ in self.axes)

    def elements(self) -> int:
        """How many there are."""
        return prod(self.extents)

    def places(self) -> Int64s:
        """Where the elements stand."""
        return strides.element_ids(self.place, self.extents, tuple(stride for _, stride, _ in self.axes)).reshape(-1)

    def ids(self) -> Int64s:
        """The elements, in the same order."""
        return strides.element_ids(self.offset, self.extents, tuple(step for _, _, step in self.axes)).reshape(-1)

    def bounds(self) -> tuple[int, int]:
        """The half-open range from the smallest element to the largest."""
        return strides.bounds(self.offset, self.extents, tuple(step for _, _, step in self.axes))

    def moved(self, by: int) -> PlacedBox:
        """The same places of elements that lie so much further on."""
        return evolve(self, offset=self.offset + by)

    def digits(self, sizes: Shape) -> list[Digits] | None:
        """The places as digits of these sizes, the first of which is open; None where an axis goes over several of them."""
        place, left, found = self.place, self.axes, []
        for size in reversed(sizes[1:]):
            outer, inner = [], []
            for extent, stride, step in left:
                within = size // stride if stride < size and size % stride == 0 else 0
                if stride % size == 0:
                    outer.append((extent, stride // size, step))
                elif extent * stride <= size:
                    inner.append((extent, stride, step))
                elif within and extent % within == 0:
                    outer.append((extent // within, 1, step * within))
                    inner.append((within, stride, step))
                else:
                    return None
            found.append(Digits(place % size, tuple(inner)))
            if found[-1].last() >= size:
                return None
            place, left = place // size, tuple(outer)
        return [Digits(place, left), *reversed(found)]


@frozen
class Digits:
    """The indices ``first + sum of digit * stride`` of one dimension."""

    first: int
    axes: PlacedAxes

    def last(self) -> int:
        """The largest index."""
        return self.first + sum((extent - 1) * stride for extent, stride, _ in self.axes)

    def scaled(self, by: int) -> Digits:
        """With so much between two indices as there was between 0 and 1."""
        return Digits(self.first * by, tuple((extent, stride * by, step) for extent, stride, step in self.axes))

    def between(self, begin: int, end: int) -> list[tuple[int, Digits]]:
        """What has indices in ``[begin, end)``, counted from there: lists of digits, and how far on their elements begin."""
        if self.first >= begin and self.last() < end:
            return [(0, Digits(self.first - begin, self.axes))]
        if self.first >= end or self.last() < begin:
            return []
        (extent, stride, step), *inner = self.axes
        reach = Digits(self.first, tuple(inner)).last()
        low, high = max(0, -(-(begin - reach) // stride)), min(extent, (end - 1 - self.first) // stride + 1)
        first, last = max(0, -(-(begin - self.first) // stride)), min(extent, (end - 1 - reach) // stride + 1)
        whole = range(first, last) if first < last else range(high, high)
        axes = ((len(whole), stride, step), *inner)
        parts = [(first * step, Digits(self.first + first * stride - begin, axes))] if whole else []
        for digit in (*range(low, whole.start), *range(whole.stop, high)):
            own = Digits(self.first + digit * stride, tuple(inner))
            parts += [(digit * step + further, part) for further, part in own.between(begin, end)]
        return parts

    def every(self, stride: int) -> list[tuple[int, Digits]] | None:
        """Each stride-th index, in the same form; None where it does not do."""
        kept = [(extent, own // stride, step) for extent, own, step in self.axes if own % stride == 0]
        if len(kept) == len(self.axes):
            return [] if self.first % stride else [(0, Digits(self.first // stride, tuple(kept)))]
        extent, innermost, step = self.axes[-1]
        if len(kept) + 1 < len(self.axes) or innermost > 1:
            return None
        skipped = -self.first % stride
        count = -(-(extent - skipped) // stride)
        axes = (*kept, (count, 1, step * stride))
        return [(skipped * step, Digits((self.first + skipped) // stride, axes))] if count > 0 else []


@frozen(eq=False)
class BoxList:
    """The boxes of a flattened view of so many elements, each of which is in one of them."""

    boxes: tuple[PlacedBox, ...]
    size: int
    _runs: list[RunList] = field(factory=list, repr=False)  # once they are known

    @staticmethod
    def made(boxes: Iterable[PlacedBox], variable_first: Int64s) -> BoxList | None:
        """As few boxes as are found to do, each of one variable; None of too many, and of no elements."""
        own = [evolve(box, axes=_few(box.axes)) for box in boxes]
        if not 0 < len(own) <= 4 * MOST_BOXES:
            return None
        own, before = _joined(own, variable_first), len(own)
        while len(own) < before:
            own, before = _joined(own, variable_first), len(own)
        return BoxList(tuple(own), sum(box.elements() for box in own)) if len(own) <= MOST_BOXES else None

    def knowing(self, runs: RunList) -> BoxList:
        """The same, of which the runs are known."""
        return BoxList(self.boxes, self.size, [runs])

    def whole(self) -> Box | None:
        """The view as one box of one dimension."""
        if len(self.boxes) > 1:
            return None
        (box,) = self.boxes
        return Box.strided(box.offset, box.extents, tuple(step for _, _, step in box.axes)).reshaped((self.size,))

    def ids(self) -> Int64s:
        """The elements in flattened order."""
        ids = np.empty(self.size, np.int64)
        for box in self.boxes:
            ids[box.places()] = box.ids()
        return ids

    def runs(self, variable_first: Int64s) -> RunList:
        """The elements as runs in flattened order, of step 1 first; they are found once."""
        if not self._runs:
            self._runs.append(self._found_runs(variable_first))
        return self._runs[0]

    def _found_runs(self, variable_first: Int64s) -> RunList:
        rows = [(box, *(box.axes[-1] if box.axes and box.axes[-1][1] == 1 else (1, 1, 1))) for box in self.boxes]
        outer = [(evolve(box, axes=box.axes[:-1]) if count > 1 else box, count, step) for box, count, _, step in rows]
        place, start = (np.concatenate(column) for column in zip(*((box.places(), box.ids()) for box, _, _ in outer), strict=True))
        several = [box.elements() for box, _, _ in outer]
        count, step = (np.repeat([row[column] for row in outer], several) for column in (1, 2))
        order = sorting_order(place)
        if order is not None:
            start, count, step = start[order], count[order], step[order]
        return compress_rows(RunList(start, count, step), variable_first)

    def first(self) -> list[int]:
        """An element of each box."""
        return [box.offset for box in self.boxes]

    def moved(self, by: int) -> BoxList:
        """The view of elements that lie so much further on."""
        return BoxList(tuple(box.moved(by) for box in self.boxes), self.size, [runs.moved(by) for runs in self._runs])

    # Boxes of other views of a shape, which may be joined; None where one does not do.

    def permuted(self, shape: Shape, order: Shape) -> list[PlacedBox] | None:
        """Dimension k of the result is dimension ``order[k]``."""
        sizes = strides.row_major(tuple(shape[dimension] for dimension in order))
        boxes = []
        for box in self.boxes:
            digits = box.digits(shape)
            if digits is None:
                return None
            boxes.append(_placed(box.offset, (digits[own].scaled(size) for own, size in zip(order, sizes, strict=True))))
        return boxes

    def part(self, shape: Shape, dimension: int, begin: int, end: int) -> list[PlacedBox] | None:
        """The indices ``[begin, end)`` of one dimension."""
        own, inner = shape[dimension], prod(shape[dimension + 1 :])
        boxes = []
        for box in self.boxes:
            digits = box.digits((1, own, inner))
            if digits is None:
                return None
            for further, kept in digits[1].between(begin, end):
                boxes.append(_nested(box.offset + further, digits[0], kept, digits[2], end - begin, inner))
            if len(boxes) > 4 * MOST_BOXES:
                return None
        return boxes

    def reversed(self, shape: Shape, dimension: int) -> list[PlacedBox] | None:
        """With one dimension in reverse order."""
        own, inner = shape[dimension], prod(shape[dimension + 1 :])
        boxes = []
        for box in self.boxes:
            digits = box.digits((1, own, inner))
            if digits is None:
                return None
            turned = Digits(own - 1 - digits[1].last(), tuple((extent, stride, -step) for extent, stride, step in digits[1].axes))
            further = sum((extent - 1) * step for extent, _, step in digits[1].axes)
            boxes.append(_nested(box.offset + further, digits[0], turned, digits[2], own, inner))
        return boxes

    def repeated(self, shape: Shape, dimension: int, times: int, *, each: bool) -> list[PlacedBox] | None:
        """With one dimension repeated as a whole, or each of its indices; `times` is 1 at least."""
        own, inner = shape[dimension], prod(shape[dimension + 1 :])
        boxes = []
        for box in self.boxes:
            digits = box.digits((1, own, inner))
            if digits is None:
                return None
            wide = digits[1].scaled(times) if each else digits[1]
            more = ((times, 1, 0),) if each else ((times, own, 0),)
            boxes.append(_nested(box.offset, digits[0], Digits(wide.first, (*more, *wide.axes)), digits[2], own * times, inner))
        return boxes

    def every(self, shape: Shape, dimension: int, stride: int) -> list[PlacedBox] | None:
        """Each stride-th index of one dimension, from the first on."""
        own, inner = shape[dimension], prod(shape[dimension + 1 :])
        boxes = []
        for box in self.boxes:
            digits = box.digits((1, own, inner))
            parts = None if digits is None else digits[1].every(stride)
            if digits is None or parts is None:
                return None
            for further, kept in parts:
                boxes.append(_nested(box.offset + further, digits[0], kept, digits[2], -(-own // stride), inner))
        return boxes


def beside(lists: Sequence[tuple[Sequence[PlacedBox], int]]) -> list[PlacedBox] | None:
    """The boxes of views whose rows follow each other in turn; each view has rows of a size."""
    size, before, boxes = sum(own for _, own in lists), 0, []
    for several, own in lists:
        for box in several:
            digits = box.digits((1, own))
            if digits is None:
                return None
            boxes.append(_placed(box.offset, (digits[0].scaled(size), Digits(digits[1].first + before, digits[1].axes))))
        before += own
    return boxes


def _nested(offset: int, outer: Digits, middle: Digits, inner: Digits, size: int, inner_size: int) -> PlacedBox:
    return _placed(offset, (outer.scaled(size * inner_size), middle.scaled(inner_size), inner))


def _placed(offset: int, digits: Iterable[Digits]) -> PlacedBox:
    """The box at the sum of these digits."""
    several = list(digits)
    return PlacedBox(sum(own.first for own in several), offset, _few(chain.from_iterable(own.axes for own in several)))


def _few(axes: Iterable[tuple[int, int, int]]) -> PlacedAxes:
    """The same places and elements with as few axes as possible, those with larger strides first."""
    joined: list[tuple[int, int, int]] = []
    for extent, stride, step in sorted((axis for axis in axes if axis[0] > 1), key=lambda axis: -axis[1]):
        if joined and joined[-1][1:] == (extent * stride, extent * step):
            joined[-1] = joined[-1][0] * extent, stride, step
        else:
            joined.append((extent, stride, step))
    return tuple(joined)


def _joined(boxes: Sequence[PlacedBox], variable_first: Int64s) -> list[PlacedBox]:
    """The boxes by their places, where two that follow each other are one if they do as one, within a variable."""
    joined: list[PlacedBox] = []
    for box in sorted(boxes, key=lambda box: box.place):
        both = _as_one(joined[-1], box) if joined else None
        if both is not None:
            low, high = both.bounds()
            first, last = np.searchsorted(variable_first, (low, high - 1), side="right")
            if first == last:
                joined[-1] = both
                continue
        joined.append(box)
    return joined


def _as_one(first: PlacedBox, second: PlacedBox) -> PlacedBox | None:
    """One box that has the places and elements of two, which differ in the extent of one axis at most."""
    stride, step = second.place - first.place, second.offset - first.offset
    mine, its = set(first.axes) - set(second.axes), set(second.axes) - set(first.axes)
    if len(mine) > 1 or len(its) > 1 or len(set(first.axes)) < len(first.axes) or len(set(second.axes)) < len(second.axes):
        return None
    one, other = next(iter(mine), None), next(iter(its), None)
    if one is not None:
        further, way = (1, one[1:]) if other is None else (other[0], other[1:])
        if way != one[1:] or (one[0] * way[0], one[0] * way[1]) != (stride, step):
            return None
        axes = [*(axis for axis in first.axes if axis != one), (one[0] + further, *way)]
    elif other is not None:
        if other[1:] != (stride, step):
            return None
        axes = [*first.axes, (other[0] + 1, stride, step)]
    else:
        axes = [*first.axes, (2, stride, step)]
    reach = 0
    for extent, own, _ in sorted(axes, key=lambda axis: axis[1]):
        if own <= reach:
            return None
        reach += (extent - 1) * own
    return PlacedBox(first.place, first.offset, _few(axes))
