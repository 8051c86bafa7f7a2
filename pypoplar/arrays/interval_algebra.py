"""Sorted interval lists over 64-bit keys: the workhorses of the passes.

An interval list is a pair of int64 arrays ``begin, end`` (half-open). Lists of several groups (tiles, vertices, compute sets)
are one list over composite keys ``group * span + element``, with `span` larger than any element, so that groups never touch.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s, Integers

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


def is_sorted(values: Int64s) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def sorting_order(values: Int64s) -> Int64s | None:
    """The stable order that sorts `values`, or None where they are sorted already: most lists are."""
    return None if is_sorted(values) else np.argsort(values, kind="stable")


def sums(values: Int64s, group: Int64s, groups: int) -> Int64s:
    """int64 [groups]: the sum of the values of each group; `group` must be sorted."""
    total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    bounds = np.searchsorted(group, np.arange(groups + 1))
    return total[bounds[1:]] - total[bounds[:-1]]


def before_in_group(values: Int64s, group: Int64s) -> Int64s:
    """For each entry the sum of the earlier entries of its group; `group` must be sorted."""
    if len(values) == 0:
        return np.zeros(0, np.int64)
    total = np.cumsum(values, dtype=np.int64) - values
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    return total - np.repeat(total[starts], np.diff(np.append(starts, len(values))))


def ragged(first: Int64s, count: Int64s) -> Int64s:
    """The numbers ``first[i], first[i] + 1, ... first[i] + count[i] - 1`` of all i, one after the other."""
    return stepped(first, count, None)


def stepped(first: Int64s, count: Int64s, step: Int64s | None) -> Int64s:
    """The numbers ``first[i] + k * step[i]`` for ``k < count[i]`` of all i, one after the other (step 1 where None)."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    if step is None:
        numbers: Int64s = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - count), count)
        return numbers
    place: Int64s = np.arange(total, dtype=np.int64) - np.repeat(ends - count, count)
    place *= np.repeat(step, count)
    place += np.repeat(first, count)
    return place


def union(begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The sorted disjoint list that covers the same keys; intervals that touch become one. Empty intervals are dropped."""
    if bool((begin >= end).any()):
        kept = begin < end
        begin, end = begin[kept], end[kept]
    if len(begin) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if not is_sorted(begin):
        length = end - begin
        if bool((length == length[0]).all()):
            # sorting values is many times faster than finding the order that sorts them
            begin = np.sort(begin)
            end = begin + length[0]
        else:
            order = np.argsort(begin)
            begin, end = begin[order], end[order]
    reach = np.maximum.accumulate(end)
    starts = np.flatnonzero(np.concatenate(([True], begin[1:] > reach[:-1])))
    return begin[starts], reach[np.append(starts[1:], len(begin)) - 1]


def overlay(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s) -> Overlay:
    """Cut the intervals ``begin, end`` (in any order) where those of the sorted disjoint other list begin and end.

    Parts come in the order of the first list, and by key within one of its intervals; what the other list does not cover is
    left out.
    """
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
    """The same elements as a set: a run of step -1 is one stretch as well, and a broadcast run (step 0) is one element."""
    kept = count > 0
    if not bool(kept.all()):
        owner, start, count, step = owner[kept], start[kept], count[kept], step[kept]
    if not bool((step == 1).all()):
        start = np.where(step == -1, start - (count - 1), start)
        count = np.where(step == 0, 1, count)
        step = np.where(np.abs(step) <= 1, 1, step)
    return ordered_strands(owner, start, count, step)


def _joined(strands: Strands) -> Strands:
    owner, begin, length = strands.owner, strands.begin, strands.length
    continues = (owner[1:] == owner[:-1]) & (begin[1:] == begin[:-1] + length[:-1])
    if not bool(continues.any()):
        return strands
    starts = np.flatnonzero(np.concatenate(([True], ~continues)))
    return Strands(owner[starts], begin[starts], np.add.reduceat(length, starts))
