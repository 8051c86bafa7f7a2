"""Sweeps over lists of intervals and runs: what `interval_algebra` and `element_runs` do with long lists.

Intervals are half-open. Where the number of results is not known before, a sweep fills what it is given room for, and returns how
many there are.
"""

from __future__ import annotations

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.host_code.sweep import sweep


@sweep
def join_intervals(
    begin: Int64s, end: Int64s, out_begin: Int64s, out_end: Int64s, other_begin: Int64s, other_end: Int64s, lists: Int64s
) -> int:
    """The sorted disjoint list that covers the same keys, by merging lists that are sorted; its rows are what is counted.

    Intervals in any order, empty ones among them. There is room for as many in the outputs and in the others, which are used on the
    way, and in `lists` for one more: there begin the sorted lists that are left to be merged.
    """
    rows, parts = 0, 0
    for i in range(len(begin)):
        first, last = begin[i], end[i]
        if first >= last:
            continue
        if rows > 0 and out_begin[rows - 1] <= first <= out_end[rows - 1]:
            out_end[rows - 1] = max(out_end[rows - 1], last)
            continue
        if rows == 0 or first < out_begin[rows - 1]:
            lists[parts] = rows
            parts += 1
        out_begin[rows], out_end[rows] = first, last
        rows += 1
    lists[parts] = rows
    from_begin, from_end, to_begin, to_end = out_begin, out_end, other_begin, other_end
    while parts > 1:
        merged, rows = 0, 0
        for part in range(0, parts, 2):
            left, left_end, right_end = lists[part], lists[part + 1], lists[min(part + 2, parts)]
            lists[merged] = rows
            rows = _merge(from_begin, from_end, left, left_end, right_end, to_begin, to_end, rows)
            merged += 1
        lists[merged] = rows
        parts = merged
        from_begin, from_end, to_begin, to_end = to_begin, to_end, from_begin, from_end
    for i in range(rows):
        out_begin[i] = from_begin[i]
    for i in range(rows):
        out_end[i] = from_end[i]
    return rows


@sweep
def _merge(begin: Int64s, end: Int64s, left: int, middle: int, stop: int, out_begin: Int64s, out_end: Int64s, rows: int) -> int:
    """Two sorted lists side by side as one, behind `rows` rows of the outputs; how many rows these have then."""
    right, before = middle, rows
    while left < middle or right < stop:
        if right >= stop or (left < middle and begin[left] <= begin[right]):
            first, last = begin[left], end[left]
            left += 1
        else:
            first, last = begin[right], end[right]
            right += 1
        if rows > before and first <= out_end[rows - 1]:
            out_end[rows - 1] = max(out_end[rows - 1], last)
        else:
            out_begin[rows], out_end[rows] = first, last
            rows += 1
    return rows


@sweep
def place_behind(end: Int64s, key: int, near: int) -> int:
    """The place of the first of the rising numbers `end` that is greater than `key`, which is looked for from `near` on."""
    low, high = 0, len(end)
    if near < len(end) and end[near] <= key:
        low = near + 1
        while low < len(end) and low < near + 4:  # the next ones are often next
            if end[low] > key:
                return low
            low += 1
    else:
        if near == 0 or end[near - 1] <= key:
            return near
        high = near - 1
    while low < high:
        middle = (low + high) >> 1
        if end[middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low


@sweep
def overlay_parts(
    begin: Int64s,
    end: Int64s,
    other_begin: Int64s,
    other_end: Int64s,
    left: Int64s,
    right: Int64s,
    out_begin: Int64s,
    out_end: Int64s,
) -> int:
    """The parts that intervals in any order have in common with a sorted disjoint list.

    They come in the order of the first and by key within; `left` and `right` say of which interval of either list each is.
    """
    rows, near, most = 0, 0, len(left)
    for i in range(len(begin)):
        first, last = begin[i], end[i]
        near = place_behind(other_end, first, near)
        other = near
        while other < len(other_begin) and other_begin[other] < last:
            if rows < most:
                left[rows], right[rows] = i, other
                out_begin[rows], out_end[rows] = max(first, other_begin[other]), min(last, other_end[other])
            rows += 1
            other += 1
    return rows


@sweep
def mark_meeting(begin: Int64s, end: Int64s, other_begin: Int64s, other_end: Int64s, meeting: Bools) -> int:
    """Marks which of the intervals, in any order, share a key with the sorted disjoint other list; returns how many."""
    rows, near = 0, 0
    for i in range(len(begin)):
        near = place_behind(other_end, begin[i], near)
        meeting[i] = near < len(other_begin) and begin[i] < end[i] and other_begin[near] < end[i]
        rows += meeting[i]
    return rows
