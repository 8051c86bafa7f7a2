"""Groups of entries in flat arrays, one after the other: where they begin, what is inside, what they sum up to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s, Integers
from pypoplar.arrays.run_sweeps import step_through

_SHORT = 1000  # entries that are sorted as soon as their largest one is found
_SPARSE = 32  # entries of a table for each value, up to which it is faster to tick values off than to sort them
_LARGEST_SHIFT = 3


def is_sorted(values: Integers) -> bool:
    """Whether no value is less than the one before it."""
    return bool((values[1:] >= values[:-1]).all())


def sorting_order(values: Integers) -> Int64s | None:
    """The stable order that sorts `values`, or None where they are sorted already: most lists are."""
    return None if is_sorted(values) else stable_order(values)


def stable_order(values: Integers) -> Int64s:
    """The stable order that sorts `values`. NumPy sorts 16-bit integers by radix, an order of magnitude faster than others."""
    small = len(values) > _SHORT and int(values.min()) >= 0 and int(values.max()) < 1 << 16
    return np.argsort(values.astype(np.uint16) if small else values, kind="stable")


def in_order(values: Int64s) -> Int64s:
    """`values` sorted. Places in memories are mostly different and lie densely: they are ticked off, many times faster.

    Others consist of rising parts, which the stable way of sorting merges.
    """
    found = _ticked(values)
    if found is not None and len(found) == len(values):
        return found
    ordered: Int64s = np.sort(values, kind="stable")
    return ordered


def distinct(values: AnyArray) -> Int64s:
    """The different ones of `values` in order; NumPy's own `unique` makes a hash table, and takes far longer."""
    found = _ticked(values) if values.dtype == np.int64 else None
    if found is not None:
        return found
    ordered: Int64s = np.sort(values)
    return ordered[opens(ordered)]


def _ticked(values: Int64s) -> Int64s | None:
    """The different ones in order, by a table of all that there could be; None where that would be much longer than `values`.

    What all differences are a multiple of is left out of the table, if it is a power of two: the size of an element.
    """
    if len(values) < _SHORT:
        return None
    low = int(values.min())
    extent = int(values.max()) - low
    if extent > _SPARSE * len(values) << _LARGEST_SHIFT:
        return None
    above = values - low
    bits = int(np.bitwise_or.reduce(above))
    shift = (bits & -bits).bit_length() - 1 if bits else 0
    if extent >> shift > _SPARSE * len(values):
        return None
    ticks = np.zeros((extent >> shift) + 1, bool)
    above >>= shift
    ticks[above] = True
    found = np.flatnonzero(ticks)
    found <<= shift
    found += low
    return found


def opens(*columns: AnyArray) -> Bools:
    """Where a row of columns of equal length differs from the row before: where a group begins, if equal rows lie side by side."""
    differs = np.empty(len(columns[0]), bool)
    if len(differs):
        differs[0] = True
        differs[1:] = columns[0][1:] != columns[0][:-1]
        for column in columns[1:]:
            differs[1:] |= column[1:] != column[:-1]
    return differs


def groups_of(values: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The different values in order, where each is first, and the number of each entry's; quick where all lie in order."""
    order = sorting_order(values)
    ordered = values if order is None else values[order]
    begins = opens(ordered)
    number = np.cumsum(begins) - 1
    if order is None:
        return values[begins], np.flatnonzero(begins), number
    group = np.empty(len(values), np.int64)
    group[order] = number
    return ordered[begins], order[begins], group


def offsets(count: Integers | Bools | Sequence[int]) -> Int64s:
    """Where each group of `count[k]` elements begins, and last the number of all: ``0, count[0], count[0] + count[1], ...``."""
    places = np.zeros(len(count) + 1, np.int64)
    np.add.accumulate(count, dtype=np.int64, out=places[1:])
    return places


def ragged(first: Integers | int, count: Integers) -> Int64s:
    """The numbers ``first[i], first[i] + 1, ... first[i] + count[i] - 1`` of all i, one after the other."""
    code = step_through.code(len(count))
    if code is not None:
        swept = np.empty(int(count.sum()), np.int64)
        code(np.broadcast_to(first, len(count)), count, np.ones(len(count), np.int64), swept)
        return swept
    places = offsets(count)
    numbers: Int64s = np.arange(places[-1], dtype=np.int64)
    numbers += np.repeat(first - places[:-1], count)
    return numbers


def selection(numbers: Int64s) -> slice | Int64s:
    """What takes rows by their numbers, each there once: a slice, which copies nothing, where these are one range."""
    if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1 and is_sorted(numbers):
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def group_positions(count: Integers) -> Int64s:
    """``0, 1, ..., count[0] - 1, 0, 1, ..., count[1] - 1, ...``: the position of each element within its group."""
    return ragged(0, count)


def stepped(first: Integers, count: Integers, step: Integers) -> Int64s:
    """The numbers ``first[i] + k * step[i]`` for ``k < count[i]`` of all i, one after the other."""
    code = step_through.code(len(count))
    if code is not None:
        swept = np.empty(int(count.sum()), np.int64)
        code(first, count, step, swept)
        return swept
    numbers = group_positions(count)
    numbers *= np.repeat(step, count)
    numbers += np.repeat(first, count)
    return numbers


def sums(values: Integers, group: Integers, groups: int) -> Int64s:
    """[groups]: the sum of the values of each group; `group` must be sorted."""
    return sums_between(np.searchsorted(group, np.arange(groups + 1)), values)


def sums_between(first: Integers, values: Integers | Bools) -> Int64s:
    """[groups]: the sum of ``values[first[k] : first[k + 1]]`` of each group k."""
    if len(first) == len(values) + 1 and len(values) and bool((first[1:] - first[:-1] == 1).all()) and first[0] == 0:
        return values.astype(np.int64)
    total = offsets(values)
    return total[first[1:]] - total[first[:-1]]


def whole_groups(group: Integers, size: int) -> list[slice]:
    """Cuts a long list in which equal groups lie side by side into parts of about `size` entries, where a group ends."""
    ends = np.flatnonzero(group[1:] != group[:-1]) + 1
    wanted = np.arange(size, len(group), size)
    cuts = distinct(ends[np.searchsorted(ends, wanted[wanted <= ends[-1]])]) if len(ends) else ends
    bounds = [0, *cuts.tolist(), len(group)]
    return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]


def before_in_group(values: Integers, group: Integers) -> Int64s:
    """For each entry the sum of the earlier entries of its group; `group` must be sorted."""
    total = offsets(values)[:-1]
    starts = np.flatnonzero(opens(group))
    return total - np.repeat(total[starts], np.diff(np.append(starts, len(values))))
