"""Sorted interval lists over 64-bit keys: the workhorses of the passes.

An interval list is a pair of int64 arrays ``begin, end`` (half-open). Lists of several groups (tiles, vertices, compute sets)
are one list over composite keys ``group * span + element``, with `span` larger than any element, so that groups never touch.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s, Integers
from pypoplar.arrays.groups import distinct, group_positions, in_order, is_sorted, ragged, stepped
from pypoplar.arrays.interval_sweeps import join_intervals, mark_meeting, overlay_parts
from pypoplar.arrays.run_sweeps import lay_strands, touch_strands
from pypoplar.arrays.swept import filled, shortened
from pypoplar.host_code.sweep import Sweep

LARGEST_KEY = 2**63 - 1


@frozen(eq=False)
class Overlay:
    """The parts that two lists have in common: part k lies in ``left[k]`` of the one and ``right[k]`` of the other."""

    left: Int64s
    right: Int64s
    begin: Int64s
    end: Int64s


@frozen(eq=False)
class Strands:
    """Stretches of consecutive elements, each owned by a view: what views look like when strides are resolved."""

    owner: Int64s  # non-decreasing
    begin: Int64s  # element ids
    length: Int64s  # at least 1


def keys(group: Integers, element: Int64s, span: int) -> Int64s:
    """Composite keys ``group * span + element``; raises where they would not fit into 64 bits."""
    if len(group) and (int(group.max()) + 1) * span > LARGEST_KEY:
        raise OverflowError(f"{int(group.max()) + 1} groups of {span} elements are more than 64-bit keys can number")
    key: Int64s = group.astype(np.int64)
    key *= span
    key += element
    return key


def union(begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The sorted disjoint list that covers the same keys; intervals that touch become one. Empty intervals are dropped."""
    code = join_intervals.code(len(begin))
    if code is None:
        return union_by_sorting(begin, end)
    out_begin, out_end, other_begin, other_end, lists = (np.empty(len(begin) + 1, np.int64) for _ in range(5))
    count = code(begin, end, out_begin, out_end, other_begin, other_end, lists)
    return shortened(out_begin, count), shortened(out_end, count)


def union_by_sorting(begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The same, of short lists, or where there is no machine code."""
    if bool((begin >= end).any()):
        kept = begin < end
        begin, end = begin[kept], end[kept]
    if len(begin) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Each sorted by itself, which is many times faster than finding an order: where all that begins before an interval has ended
    # before it, these are the first to begin, and the first to end.
    length = end[0] - begin[0]
    if is_sorted(begin):
        end = end if is_sorted(end) else in_order(end)
    elif bool((end - begin == length).all()):
        begin = in_order(begin)
        end = begin + length
    else:
        begin, end = in_order(begin), in_order(end)
    starts = np.flatnonzero(np.concatenate(([True], begin[1:] > end[:-1])))
    return begin[starts], end[np.append(starts[1:], len(begin)) - 1]


def overlay(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> Overlay:
    """Cut the intervals ``begin, end`` (in any order) where those of the sorted disjoint other list begin and end.

    Parts come in the order of the first list, and by key within one of its intervals; what the other list does not cover is
    left out.
    """
    code = overlay_parts.code(len(begin))
    if code is None:
        return overlay_by_search(begin, end, other_begin, other_end)
    return Overlay(*filled(code, (begin, end, other_begin, other_end), len(begin), 4))


def overlay_by_search(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> Overlay:
    """The same, of short lists, or where there is no machine code."""
    first = np.searchsorted(other_end, begin, "right")
    if len(other_begin) == 0:
        count = np.zeros(len(begin), np.int64)
    else:
        # nearly all intervals lie within one of the other list: look further only for the rest
        inside = np.minimum(first, len(other_begin) - 1)
        count = ((first < len(other_begin)) & (other_begin[inside] < end)).astype(np.int64)
        longer = np.flatnonzero((count > 0) & (end > other_end[inside]))
        count[longer] = np.searchsorted(other_begin, end[longer], "left") - first[longer]
    if bool((count == 1).all()):
        return Overlay(np.arange(len(begin)), first, np.maximum(begin, other_begin[first]), np.minimum(end, other_end[first]))
    left = np.repeat(np.arange(len(begin)), count)
    right = ragged(first, count)
    return Overlay(left, right, np.maximum(begin[left], other_begin[right]), np.minimum(end[left], other_end[right]))


def meets(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> Bools:
    """bool: which of the intervals share a key with the sorted disjoint other list."""
    code = mark_meeting.code(len(begin))
    if code is None:
        return meets_by_search(begin, end, other_begin, other_end)
    marks = np.empty(len(begin), bool)
    code(begin, end, other_begin, other_end, marks)
    return marks


def meets_by_search(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> Bools:
    """The same, of short lists, or where there is no machine code."""
    if len(other_begin) == 0:
        return np.zeros(len(begin), bool)
    first = np.searchsorted(other_end, begin, "right")
    meeting: Bools = (first < len(other_begin)) & (other_begin[np.minimum(first, len(other_begin) - 1)] < end) & (begin < end)
    return meeting


def subtract(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> tuple[Int64s, Int64s]:
    """What a sorted disjoint list covers and the sorted disjoint other list does not."""
    if len(other_begin) == 0 or len(begin) == 0:
        return begin, end
    low = min(int(begin[0]), int(other_begin[0]))
    high = max(int(end[-1]), int(other_end[-1]))
    gap_begin = np.concatenate(([low], other_end))
    gap_end = np.concatenate((other_begin, [high]))
    real = gap_begin < gap_end
    rest = overlay(begin, end, gap_begin[real], gap_end[real])
    return rest.begin, rest.end


def holder(begin: Int64s, key: Int64s) -> Int64s:
    """The number of the interval of a sorted list in which each key lies; the caller knows that there is one."""
    number: Int64s = np.searchsorted(begin, key, "right") - 1
    return number


def ordered_strands(owner: Int64s, start: Int64s, count: Int64s, step: Int64s) -> Strands:
    """The elements of runs in their order, as stretches of consecutive ids: a view's elements as they are laid out for a vertex.

    A run of step 1 is one stretch, any other a stretch for each element; stretches that continue each other become one.
    """
    return _swept_strands(lay_strands, owner, start, count, step) or ordered_by_pieces(owner, start, count, step)


def _swept_strands(sweep: Sweep, owner: Int64s, start: Int64s, count: Int64s, step: Int64s) -> Strands | None:
    code = sweep.code(len(owner))
    if code is None:
        return None
    most = len(owner) if bool((step == 1).all()) else int(np.where(step == 1, 1, np.maximum(count, 0)).sum())
    return Strands(*filled(code, (owner, start, count, step), most, 3))


def ordered_by_pieces(owner: Int64s, start: Int64s, count: Int64s, step: Int64s) -> Strands:
    """The same, of short lists, or where there is no machine code."""
    if bool((count <= 0).any()):
        kept = count > 0
        owner, start, count, step = owner[kept], start[kept], count[kept], step[kept]
    whole = (step == 1) | (count == 1)
    if not bool(whole.all()):
        pieces = np.where(whole, 1, count)
        begin = stepped(start, pieces, step)
        length = np.repeat(np.where(whole, count, 1), pieces)
        owner = np.repeat(owner, pieces)
    else:
        begin, length = start, count
    return _joined(Strands(owner, begin, length))


def touched_strands(owner: Int64s, start: Int64s, count: Int64s, step: Int64s) -> Strands:
    """The same elements as a set: a broadcast run (step 0) is one element, a run of step -1 is one stretch as well.

    So are runs of equal step and count that begin side by side, one for each place up to the step, as a matrix's columns do.
    """
    return _swept_strands(touch_strands, owner, start, count, step) or touched_by_pieces(owner, start, count, step)


def touched_by_pieces(owner: Int64s, start: Int64s, count: Int64s, step: Int64s) -> Strands:
    """The same, of short lists, or where there is no machine code."""
    kept = count > 0
    if not bool(kept.all()):
        owner, start, count, step = owner[kept], start[kept], count[kept], step[kept]
    if bool((step == 1).all()):
        return _joined(Strands(owner, start, count))
    if bool((step < 1).any()):
        start = np.where(step < 0, start + (count - 1) * step, start)
        count = np.where(step == 0, 1, count)
        step = np.where(count == 1, 1, np.abs(step))
    beside = (start[1:] == start[:-1] + 1) & (step[1:] > 1)
    for column in (owner, count, step):
        beside &= column[1:] == column[:-1]
    if not bool(beside.any()):
        return ordered_by_pieces(owner, start, count, step)
    first = np.flatnonzero(np.concatenate(([True], ~beside)))
    runs = np.diff(np.append(first, len(start)))
    owner, start, count, step = owner[first], start[first], count[first], step[first]
    # Of runs that begin side by side as many as the step are one stretch; of what is left over each round of them is one.
    blocks, rest = np.divmod(runs, step)
    pieces = blocks + np.where(rest > 0, count, 0)
    length = np.where(group_positions(pieces) < np.repeat(blocks, pieces), np.repeat(step * count, pieces), np.repeat(rest, pieces))
    return _joined(Strands(np.repeat(owner, pieces), stepped(start, pieces, step), length))


def same_strands(strands: Strands, left: Int64s, right: Int64s) -> Bools:
    """bool: which of the owners `left` own what the owners `right` beside them own, in the same order."""
    first, mine = np.searchsorted(strands.owner, left), np.searchsorted(strands.owner, right)
    count = np.searchsorted(strands.owner, left, "right") - first
    same: Bools = count == np.searchsorted(strands.owner, right, "right") - mine
    compared = np.flatnonzero(same)
    here, there = ragged(first[compared], count[compared]), ragged(mine[compared], count[compared])
    differs = (strands.begin[here] != strands.begin[there]) | (strands.length[here] != strands.length[there])
    same[np.repeat(compared, count[compared])[differs]] = False
    return same


def _joined(strands: Strands) -> Strands:
    owner, begin, length = strands.owner, strands.begin, strands.length
    continues = (owner[1:] == owner[:-1]) & (begin[1:] == begin[:-1] + length[:-1])
    if not bool(continues.any()):
        return strands
    starts = np.flatnonzero(np.concatenate(([True], ~continues)))
    return Strands(owner[starts], begin[starts], np.add.reduceat(length, starts))


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
    bounds = distinct(np.concatenate((begin, end)))
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
