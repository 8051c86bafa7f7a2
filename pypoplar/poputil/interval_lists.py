"""Lists of intervals: joined, flattened, counted, put back into order; numbers split evenly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.arrays.intervals import Interval, bounds_of
from pypoplar.braces import INTERVALS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    Region = Interval | tuple[int, int]
else:  # what is none of these, the calls say better than a form that does not fit
    Region = Any


def is_interval(entry: Any) -> bool:
    """Whether an entry of a list is an interval, or a pair of numbers that stands for one; else it is a list of such."""
    if isinstance(entry, Interval):
        return True
    return isinstance(entry, Sequence) and len(entry) == 2 and all(hasattr(bound, "__index__") for bound in entry)


def entries(call: str, given: Any) -> list[Any]:
    """What a user gave as a list of intervals or of lists of them; `PoplarTypeError` for what is none."""
    given = ordered(given, f"the intervals of {call}", INTERVALS)
    if isinstance(given, str | Interval | Tensor) or not isinstance(given, Iterable) or getattr(given, "shape", None) == ():
        raise PoplarTypeError(f"{call} takes a list of intervals, got {given!r}; write {INTERVALS}")
    return list(given)


def bounds(call: str, intervals: Any) -> tuple[Int64s, Int64s]:
    """Begins and ends of a list of intervals; `PoplibsError` for one that is none, such as (4, 0)."""
    pairs = [bounds_of(interval, f"an interval of {call}") for interval in entries(call, intervals)]
    begin, end = np.array(pairs, np.int64).reshape(-1, 2).T
    bad = np.flatnonzero((begin < 0) | (end < begin))
    if len(bad):
        raise PoplibsError(f"{call}: an interval has 0 <= begin <= end, got [{begin[bad[0]]}:{end[bad[0]]})")
    return begin, end


def as_intervals(begin: Int64s, end: Int64s) -> list[Interval]:
    """Arrays of bounds as the intervals that users get."""
    return [Interval(low, high) for low, high in zip(begin.tolist(), end.tolist(), strict=True)]


@overload
def mergeAdjacentRegions(regions: Iterable[Region]) -> list[Interval]: ...
@overload
def mergeAdjacentRegions(mapping: Iterable[Iterable[Region]]) -> list[list[Interval]]: ...
@overloaded("poputil.mergeAdjacentRegions")
def mergeAdjacentRegions(regions: Any = None, mapping: Any = None) -> list[Any]:
    """Regions in order, with those that touch made one and empty ones left out.

    C++ changes its argument; here the lists are returned.

    Parameters
    ----------
    regions:
        Intervals, or pairs of bounds.
    mapping:
        A list of such for each tile, instead.

    Returns
    -------
    list[Interval] | list[list[Interval]]
        The regions; of a mapping those of each tile.

    Raises
    ------
    PoplibsError
        For regions that overlap.
    """
    listed = entries("mergeAdjacentRegions", regions if mapping is None else mapping)
    if listed and not is_interval(listed[0]):
        return [merged(intervals) for intervals in listed]
    return merged(listed)


def merged(regions: Iterable[Any]) -> list[Interval]:
    """See `mergeAdjacentRegions`."""
    begin, end = bounds("mergeAdjacentRegions", regions)
    filled = end > begin
    order = np.argsort(begin[filled], kind="stable")
    begin, end = begin[filled][order], end[filled][order]
    bad = np.flatnonzero(begin[1:] < end[:-1])
    if len(bad):
        pair = as_intervals(begin[bad[0] :][:2], end[bad[0] :][:2])
        raise PoplibsError(f"mergeAdjacentRegions takes regions that do not overlap, got {pair[0]} and {pair[1]}")
    starts = np.flatnonzero(np.concatenate((np.ones(min(len(begin), 1), bool), begin[1:] > end[:-1])))
    return as_intervals(begin[starts], end[np.append(starts[1:], len(begin)) - 1] if len(begin) else end)


@public
def flattenIntervals(intervals: Iterable[Iterable[Region]]) -> list[Interval]:
    """The intervals of all lists as one list, in their order.

    Parameters
    ----------
    intervals:
        The lists.

    Returns
    -------
    list[Interval]
        As many intervals, none merged.

    Raises
    ------
    PoplibsError
        For an interval that ends before it begins.
    """
    listed = [entries("flattenIntervals", several) for several in entries("flattenIntervals", intervals)]
    return as_intervals(*bounds("flattenIntervals", chain.from_iterable(listed)))


@public
def intervalSequenceNumElements(seq: Iterable[Iterable[Region]]) -> int:
    """How many elements the intervals of all lists have together.

    Parameters
    ----------
    seq:
        The lists.

    Returns
    -------
    int
        Elements in two intervals count twice.

    Raises
    ------
    PoplibsError
        For an interval that ends before it begins.
    """
    begin, end = bounds("intervalSequenceNumElements", flattenIntervals(seq))
    return int((end - begin).sum())


@public
def calculateUnshufflingIntervals(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals that undo a shuffling: of ``concat(t.slices(intervals))`` they give `t` again.

    Parameters
    ----------
    intervals:
        Those that the tensor was shuffled by.

    Returns
    -------
    list[Interval]
        As many intervals.

    Raises
    ------
    PoplibsError
        Unless the intervals, put into order, follow each other from 0 on without gaps.
    """
    begin, end = bounds("calculateUnshufflingIntervals", intervals)
    order = np.lexsort((end, begin))
    if not np.array_equal(begin[order], offsets((end - begin)[order])[:-1]):
        raise PoplibsError("calculateUnshufflingIntervals takes intervals that cover 0 to their end once, without gaps or overlaps")
    places = offsets(end - begin)
    return as_intervals(places[:-1][order], places[1:][order])


@public
def balancedPartition(rangeUpperBound: int, splitCount: int) -> list[int]:
    """A number as a sum of numbers that differ by 1 at most, the larger ones first.

    Parameters
    ----------
    rangeUpperBound:
        The number, 0 at least.
    splitCount:
        How many there are in the sum, 1 at least.

    Returns
    -------
    list[int]
        So many numbers.

    Raises
    ------
    PoplibsError
        For smaller numbers.
    """
    total = whole_number("balancedPartition", "rangeUpperBound", rangeUpperBound)
    each, more = divmod(total, parts := whole_number("balancedPartition", "splitCount", splitCount, 1))
    return [each + (part < more) for part in range(parts)]
