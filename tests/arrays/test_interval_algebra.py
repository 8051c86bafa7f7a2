"""Interval lists against Python sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays import groups
from pypoplar.arrays import interval_algebra as intervals

POINTS = st.integers(0, 30)
LISTS = st.lists(st.tuples(POINTS, POINTS).map(lambda pair: (min(pair), max(pair))), max_size=8)
RUNS = st.lists(st.tuples(st.integers(20, 60), st.integers(0, 5), st.integers(-3, 3)), max_size=6)


def columns(pairs: list[tuple[int, ...]], width: int = 2) -> tuple[Any, ...]:
    table = np.array(pairs, np.int64).reshape(-1, width)
    return tuple(table[:, at].copy() for at in range(width))


def members(begin: Any, end: Any) -> set[int]:
    return {number for low, high in zip(begin.tolist(), end.tolist(), strict=True) for number in range(low, high)}


@given(LISTS)
def test_a_union_covers_the_same_and_its_intervals_do_not_touch(pairs: list[tuple[int, int]]) -> None:
    begin, end = intervals.union(*columns(pairs))
    assert members(begin, end) == members(*columns(pairs))
    assert (begin < end).all()
    assert (begin[1:] > end[:-1]).all()


@given(LISTS, LISTS)
def test_an_overlay_cuts_each_interval_into_its_parts_in_the_other_list(
    pairs: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    pairs = [pair for pair in pairs if pair[0] < pair[1]]
    begin, end = columns(pairs)
    other_begin, other_end = intervals.union(*columns(others))
    found = intervals.overlay(begin, end, other_begin, other_end)
    expected = []
    for left in range(len(begin)):
        for right in range(len(other_begin)):
            low, high = max(begin[left], other_begin[right]), min(end[left], other_end[right])
            if low < high:
                expected.append((left, right, int(low), int(high)))
    assert list(zip(found.left.tolist(), found.right.tolist(), found.begin.tolist(), found.end.tolist(), strict=True)) == expected
    meeting = intervals.meets(begin, end, other_begin, other_end)
    assert np.flatnonzero(meeting).tolist() == sorted({one[0] for one in expected})


@given(LISTS, LISTS)
def test_subtracting_leaves_what_the_other_list_does_not_cover(pairs: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    one, other = intervals.union(*columns(pairs)), intervals.union(*columns(others))
    assert members(*intervals.subtract(*one, *other)) == members(*one) - members(*other)


@given(RUNS)
def test_strands_hold_the_elements_of_runs_in_order(runs: list[tuple[int, int, int]]) -> None:
    start, count, step = columns(runs, 3)
    found = intervals.ordered_strands(np.arange(len(runs)), start, count, step)
    listed: list[list[int]] = [[] for _ in runs]
    for owner, begin, length in zip(found.owner.tolist(), found.begin.tolist(), found.length.tolist(), strict=True):
        listed[owner] += range(begin, begin + length)
    assert listed == [[first + k * by for k in range(size)] for first, size, by in runs]


@given(RUNS)
def test_touched_strands_hold_the_same_elements_as_a_set(runs: list[tuple[int, int, int]]) -> None:
    start, count, step = columns(runs, 3)
    found = intervals.touched_strands(np.arange(len(runs)), start, count, step)
    for owner, (first, size, by) in enumerate(runs):
        mine = found.owner == owner
        assert members(found.begin[mine], found.begin[mine] + found.length[mine]) == {first + k * by for k in range(size)}
        assert found.length[mine].sum() == len({first + k * by for k in range(size)})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 4), st.integers(-4, 4)), max_size=4))
def test_runs_that_begin_side_by_side_are_touched_as_a_whole(blocks: list[tuple[int, int, int, int]]) -> None:
    runs = [(owner, first + k, size, by) for owner, (first, many, size, by) in enumerate(blocks) for k in range(many)]
    found = intervals.touched_strands(*columns(runs, 4))
    assert (np.diff(found.owner) >= 0).all()
    for owner, (_, many, size, by) in enumerate(blocks):
        mine = found.owner == owner
        begin, end = found.begin[mine], found.begin[mine] + found.length[mine]
        assert members(begin, end) == {start + k * by for number, start, *_ in runs if number == owner for k in range(size)}
        assert found.length[mine].sum() == many * (min(size, 1) if by == 0 else size)
        if size > 1 and abs(by) > 1 and many % abs(by) == 0:
            assert len(begin) == many // abs(by)  # a stretch for each round of them


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=10).map(sorted))
def test_sums_and_places_in_groups(entries: list[tuple[int, int]]) -> None:
    group, value = columns(entries)
    assert groups.sums(value, group, 4).tolist() == [sum(one for at, one in entries if at == k) for k in range(4)]
    before = [sum(one for at, one in entries[:k] if at == entries[k][0]) for k in range(len(entries))]
    assert groups.before_in_group(value, group).tolist() == before


def test_keys_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError, match="64-bit"):
        intervals.keys(np.array([2**33]), np.array([0]), 2**31)
