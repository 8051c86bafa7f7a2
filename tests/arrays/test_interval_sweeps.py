"""Sweeps over intervals: as Python, as machine code, as NumPy, and as a few lines of plain Python say it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import both, swept_at_once

from pypoplar.arrays import interval_algebra as intervals
from pypoplar.arrays.interval_sweeps import join_intervals, mark_meeting, overlay_parts

POINTS = st.integers(-5, 40)
ANY = st.lists(st.tuples(POINTS, st.integers(-1, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=14)
WIDE = st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(-1, 2**61)).map(lambda pair: (pair[0], sum(pair))), max_size=6)


def columns(pairs: list[tuple[int, int]]) -> tuple[Any, Any]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def covered(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted, disjoint, not touching."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(pair for pair in pairs if pair[0] < pair[1]):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


@examples(200)
@given(ANY | WIDE)
def test_joined_intervals_are_sorted_apart_and_cover_the_same(pairs: list[tuple[int, int]]) -> None:
    given = columns(pairs)
    expected = covered(pairs)
    for joined in both(join_intervals):
        outputs = [np.full(len(pairs), -99) for _ in range(4)]
        count = joined(*given, *outputs, np.full(len(pairs) + 1, -99))
        assert list(zip(outputs[0][:count].tolist(), outputs[1][:count].tolist(), strict=True)) == expected
    begin, end = intervals.union_by_sorting(*given)
    assert list(zip(begin.tolist(), end.tolist(), strict=True)) == expected


@examples(200)
@given(ANY, ANY, st.integers(0, 12))
def test_an_overlay_has_the_parts_of_each_interval_in_order(
    pairs: list[tuple[int, int]], others: list[tuple[int, int]], room: int
) -> None:
    given, other = columns(pairs), columns(covered(others))
    pieces = [
        (left, right, max(low, first), min(high, last))
        for left, (low, high) in enumerate(pairs)
        for right, (first, last) in enumerate(covered(others))
        if first < high and last > low
    ]
    for cut in both(overlay_parts):
        for most in (room, len(pieces)):
            outputs = [np.full(most, -99) for _ in range(4)]
            assert cut(*given, *other, *outputs) == len(pieces)
            if most >= len(pieces):
                assert list(zip(*(column[: len(pieces)].tolist() for column in outputs), strict=True)) == pieces
    found = intervals.overlay_by_search(*given, *other)
    assert list(zip(*(column.tolist() for column in (found.left, found.right, found.begin, found.end)), strict=True)) == pieces


@examples(200)
@given(ANY, ANY)
def test_intervals_that_share_a_key_with_others_are_marked(pairs: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    given, other = columns(pairs), columns(covered(others))
    expected = [any(max(low, first) < min(high, last) for first, last in covered(others)) for low, high in pairs]
    for mark in both(mark_meeting):
        marks = np.zeros(len(pairs), bool)
        assert mark(*given, *other, marks) == sum(expected)
        assert marks.tolist() == expected
    assert intervals.meets_by_search(*given, *other).tolist() == expected


@pytest.mark.parametrize("rows", [300, 20_000])
@pytest.mark.parametrize("order", ["rising", "falling", "mixed"])
def test_long_lists_are_swept_as_numpy_has_them(rows: int, order: str) -> None:
    random = np.random.default_rng(rows)
    begin = random.integers(0, 40 * rows, rows)
    begin = {"rising": np.sort(begin), "falling": -np.sort(-begin), "mixed": begin}[order]
    end = begin + random.integers(0, 60, rows)
    other = intervals.union_by_sorting(*((random.integers(0, 40 * rows, rows // 2),) * 2 + np.array([[0], [9]])))
    with swept_at_once(join_intervals, overlay_parts, mark_meeting):
        assert [column.tolist() for column in intervals.union(begin, end)] == [
            column.tolist() for column in intervals.union_by_sorting(begin, end)
        ]
        swept, searched = intervals.overlay(begin, end, *other), intervals.overlay_by_search(begin, end, *other)
        for name in ("left", "right", "begin", "end"):
            assert getattr(swept, name).tolist() == getattr(searched, name).tolist()
            assert getattr(swept, name).dtype == getattr(searched, name).dtype
        assert intervals.meets(begin, end, *other).tolist() == intervals.meets_by_search(begin, end, *other).tolist()


def test_a_result_that_is_much_shorter_keeps_no_long_array() -> None:
    begin = np.arange(1000)[::-1].copy()
    with swept_at_once(join_intervals):
        joined, _ = intervals.union(begin, begin + 1)
    assert joined.tolist() == [0]
    assert joined.base is None
