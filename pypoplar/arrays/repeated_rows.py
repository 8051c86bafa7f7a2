"""Rows of a matrix in which few numbers come again in a regular order: each several times in turn, and all of them again."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s

AT_ONCE = 1 << 20  # entries that are compared at a time


@frozen(eq=False)
class RepeatedRows:
    """Entry i of row k is entry ``place[k, (i + offset[k]) // inner % period]`` of it; `place` is [rows, period]."""

    place: Int64s
    inner: int
    offset: Int64s  # [rows], below `inner`


def repeated_rows(rows: Int64s) -> RepeatedRows | None:
    """How the rows of a matrix repeat themselves, all with one `inner` and one period; None where they do not.

    There is a row at least. Of rows of which less than half comes again nothing is said.
    """
    length = rows.shape[1]
    if length < 2:
        return None
    changes = rows[:, 1:] != rows[:, :-1]
    inner = _longest_equal(changes[0])
    first = np.where(changes.any(1), changes.argmax(1) + 1, inner)
    offset = np.where(first < inner, inner - first, 0)
    entries = (length - 1 + offset) // inner + 1  # of each row, equal neighbours once
    widest = int(entries.max())
    place = np.clip(np.arange(widest) * inner - offset[:, None], 0, length - 1)
    once = np.take_along_axis(rows, place, 1)
    period = _period(once, int(entries.min()))
    found = RepeatedRows(place[:, :period], inner, offset)
    return found if 2 * period <= length and _holds(rows, found) else None


def _longest_equal(changes: Bools) -> int:
    """How many neighbours of a row are equal at most; between two others that is, where there are any such."""
    at = np.flatnonzero(changes)
    return int(np.diff(at).max()) if len(at) > 1 else int(max(at[0] + 1, len(changes) - at[0])) if len(at) else len(changes) + 1


def _period(rows: Int64s, least: int) -> int:
    """After how many entries rows begin anew, by the first of them, which has `least` entries at least; all if none does."""
    again = np.flatnonzero(rows[0, 1:least] == rows[0, 0])
    return int(again[0]) + 1 if len(again) else rows.shape[1]


def _holds(rows: Int64s, found: RepeatedRows) -> bool:
    count, length = rows.shape
    step = max(1, AT_ONCE // length)
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        number = (np.arange(length) + found.offset[part, None]) // found.inner % found.place.shape[1]
        if not np.array_equal(np.take_along_axis(rows[part], np.take_along_axis(found.place[part], number, 1), 1), rows[part]):
            return False
    return True
