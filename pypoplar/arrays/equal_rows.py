"""Which rows of different lengths are equal, found without a loop over rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s, UInt64s
from pypoplar.arrays.groups import group_positions, ragged
from pypoplar.arrays.splitmix import splitmix64


def first_equal(first: Int64s, *columns: Int64s) -> Int64s:
    """[rows]: for each row the number of the first row that equals it, which may be its own.

    Row k has the entries ``first[k]`` to ``first[k + 1]`` of every column. Rows are told apart by a sum of 64 bits; those of equal
    sums are then compared entry by entry, so that no two different rows pass for equal.
    """
    count = np.diff(first)
    sums = _sums(first, count, columns)
    _, lowest, inverse = np.unique(sums, return_index=True, return_inverse=True)
    same: Int64s = lowest[inverse].astype(np.int64, copy=False)
    rest = np.flatnonzero(_differs(first, count, columns, same))
    if len(rest):  # two rows of one sum: they are compared among themselves
        places = ragged(first[rest], count[rest])
        bounds = np.concatenate(([0], np.cumsum(count[rest])))
        same[rest] = rest[_by_comparison(bounds, [column[places] for column in columns])]
    return same


def _sums(first: Int64s, count: Int64s, columns: tuple[Int64s, ...]) -> UInt64s:
    """[rows]: a number of 64 bits that depends on every entry and its place in the row."""
    mixed = group_positions(count).astype(np.uint64)
    for column in columns:
        mixed = splitmix64(mixed ^ splitmix64(column.astype(np.uint64)))
    total = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=total[1:])
    sums: UInt64s = splitmix64(total[first[1:]] - total[first[:-1]] + count.astype(np.uint64))
    return sums


def _differs(first: Int64s, count: Int64s, columns: tuple[Int64s, ...], same: Int64s) -> Bools:
    """bool [rows]: the row is not equal to row ``same[k]``."""
    differs: Bools = count != count[same]
    fitting = np.flatnonzero(~differs & (same != np.arange(len(same))))
    own, other = ragged(first[fitting], count[fitting]), ragged(first[same[fitting]], count[fitting])
    row = np.repeat(fitting, count[fitting])
    for column in columns:
        differs[row[column[own] != column[other]]] = True
    return differs


def _by_comparison(first: Int64s, columns: list[Int64s]) -> Int64s:
    """`first_equal` of a few rows, one by one."""
    known: dict[tuple[bytes, ...], int] = {}
    rows = (tuple(column[begin:end].tobytes() for column in columns) for begin, end in pairwise(first))
    return np.array([known.setdefault(row, number) for number, row in enumerate(rows)], np.int64)
