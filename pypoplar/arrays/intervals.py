"""Half-open intervals: the public `Interval`, and sets of intervals as NumPy arrays.

The array helpers take (begin, end) arrays and never loop over intervals in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.errors import PoplarIndexError, PoplarTypeError


def _bound(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise PoplarTypeError(f"an Interval has whole numbers as bounds, got {value!r}") from None


@frozen(order=True)
class Interval:
    """The elements ``begin <= i < end``; ``begin()``, ``end()``, ``lower()``, ``upper()`` and ``size()`` are calls, as in Poplar.

    Unpacks into its bounds: ``begin, end = interval``. `PoplarIndexError` unless ``0 <= begin <= end``.
    """

    _begin: int = field(converter=_bound)
    _end: int = field(converter=_bound)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self._begin <= self._end:
            raise PoplarIndexError(f"an Interval needs 0 <= begin <= end, got [{self._begin}:{self._end})")

    def begin(self) -> int:
        """The first element."""
        return self._begin

    def end(self) -> int:
        """The element behind the last."""
        return self._end

    def lower(self) -> int:
        """As `begin`."""
        return self._begin

    def upper(self) -> int:
        """As `end`."""
        return self._end

    def size(self) -> int:
        """The number of elements."""
        return self._end - self._begin

    def __iter__(self) -> Iterator[int]:
        return iter((self._begin, self._end))

    def __repr__(self) -> str:
        return f"Interval({self._begin}, {self._end})"


@frozen
class VariableInterval:
    """A contiguous piece of a variable, as `Tensor.getVarRegions` lists them."""

    variable: str
    interval: Interval


def offsets(count: Int64s | Bools) -> Int64s:
    """Where each group of `count[k]` elements begins, and last the number of all: ``0, count[0], count[0] + count[1], ...``."""
    places = np.zeros(len(count) + 1, np.int64)
    np.cumsum(count, out=places[1:])
    return places


def counted(count: Int64s) -> Int64s:
    """``0, 1, ..., count[0] - 1, 0, 1, ..., count[1] - 1, ...``: the position of each element within its group."""
    places = offsets(count)
    position: Int64s = np.arange(places[-1], dtype=np.int64) - np.repeat(places[:-1], count)
    return position


def join_touching(begin: Int64s, end: Int64s, value: Int64s, barrier: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Sorted disjoint intervals with neighbours of equal value made one where they touch, but not across a number in `barrier`.

    `barrier` is sorted.
    """
    if len(begin) < 2:
        return begin, end, value
    apart = (begin[1:] != end[:-1]) | (value[1:] != value[:-1])
    place = np.searchsorted(barrier, begin[1:])
    within = np.minimum(place, max(len(barrier) - 1, 0))
    if len(barrier):
        apart |= barrier[within] == begin[1:]
    first = np.flatnonzero(np.concatenate(([True], apart)))
    last = np.concatenate((first[1:] - 1, [len(begin) - 1]))
    return begin[first], end[last], value[first]


def paint(begin: Int64s, end: Int64s, value: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """What is seen after painting each interval with its value, one after another: sorted disjoint (begin, end, value).

    Touching intervals are left apart. O(n log n).
    """
    full = end > begin
    if not full.all():
        begin, end, value = begin[full], end[full], value[full]
    order = np.argsort(begin, kind="stable")
    sorted_begin, sorted_end = begin[order], end[order]
    if (sorted_begin[1:] >= sorted_end[:-1]).all():
        return sorted_begin, sorted_end, value[order]
    bounds = np.unique(np.concatenate((begin, end)))
    top = _topmost(np.searchsorted(bounds, begin), np.searchsorted(bounds, end), len(bounds) - 1)
    seen = np.flatnonzero(top >= 0)
    top = top[seen]
    # Pieces of one painted interval that lie side by side are one piece again.
    first = np.flatnonzero(np.concatenate(([True], (top[1:] != top[:-1]) | (seen[1:] != seen[:-1] + 1))))
    last = np.concatenate((first[1:] - 1, [len(seen) - 1]))
    return bounds[seen[first]], bounds[seen[last] + 1], value[top[first]]


def _topmost(low: Int64s, high: Int64s, cells: int) -> Int64s:
    """For each of `cells` cells the largest i with ``low[i] <= cell < high[i]``, or -1.

    Each interval is the union of two blocks of the same power-of-two length (which may overlap, as a maximum allows);
    going from long blocks to short ones, a block hands its maximum to its two halves.
    """
    number = np.arange(len(low), dtype=np.int64)
    level = np.frexp((high - low).astype(np.float64))[1] - 1
    highest = int(level.max())
    order = np.argsort(level, kind="stable")
    first = np.searchsorted(level[order], np.arange(highest + 2))
    top = np.full(cells, -1, np.int64)
    for power in range(highest, -1, -1):
        length = 1 << power
        if power < highest and length < cells:
            top[length:] = np.maximum(top[length:], top[:-length])
        chosen = order[first[power] : first[power + 1]]
        np.maximum.at(top, low[chosen], number[chosen])
        np.maximum.at(top, high[chosen] - length, number[chosen])
    return top
