"""Intervals: the public class, and painting against a brute-force array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays.groups import group_positions, offsets
from pypoplar.arrays.interval_algebra import join_touching, paint
from pypoplar.arrays.intervals import Interval
from pypoplar.errors import PoplarIndexError, PoplarTypeError

intervals = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted)


@given(st.lists(intervals, max_size=30))
def test_the_last_interval_painted_is_the_one_seen(given_intervals):
    begin, end = np.array(given_intervals, np.int64).reshape(-1, 2).T
    value = np.arange(len(begin)) + 100
    wall = np.full(61, -1)
    for one_begin, one_end, one_value in zip(begin, end, value, strict=True):
        wall[one_begin:one_end] = one_value
    seen_begin, seen_end, seen_value = paint(begin, end, value)
    seen = np.full(61, -1)
    for one_begin, one_end, one_value in zip(seen_begin, seen_end, seen_value, strict=True):
        assert one_begin < one_end
        seen[one_begin:one_end] = one_value
    assert seen.tolist() == wall.tolist()
    assert (seen_begin[1:] >= seen_end[:-1]).all()


@given(st.lists(intervals, max_size=12), st.sets(st.integers(0, 60)))
def test_touching_intervals_of_one_value_are_joined_but_not_across_a_barrier(given_intervals, barrier):
    begin, end = np.array(given_intervals, np.int64).reshape(-1, 2).T
    value = np.arange(len(begin)) % 2
    painted = paint(begin, end, value)
    walls = np.array(sorted(barrier), np.int64)
    joined = join_touching(*painted, walls)
    expand = [
        [(element, one_value) for b, e, one_value in zip(*some, strict=True) for element in range(b, e)]
        for some in (painted, joined)
    ]
    assert expand[0] == expand[1]
    touching = (joined[0][1:] == joined[1][:-1]) & (joined[2][1:] == joined[2][:-1])
    assert set(joined[0][1:][touching].tolist()) <= barrier
    assert not any(b < wall < e for wall in barrier & {int(one) for one in painted[0]} for b, e, _ in zip(*joined, strict=True))


def test_nothing_painted_shows_nothing():
    nothing = np.empty(0, np.int64)
    assert [len(one) for one in paint(nothing, nothing, nothing)] == [0, 0, 0]
    assert [len(one) for one in join_touching(nothing, nothing, nothing, nothing)] == [0, 0, 0]


def test_offsets_and_counted_number_the_elements_of_groups():
    assert offsets(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert group_positions(np.array([2, 0, 3])).tolist() == [0, 1, 0, 1, 2]


def test_an_interval_has_poplars_calls_and_pythons_manners():
    one = Interval(2, 5)
    assert (one.begin(), one.end(), one.lower(), one.upper(), one.size()) == (2, 5, 2, 5, 3)
    begin, end = one
    assert (begin, end) == (2, 5)
    assert one == Interval(np.int64(2), 5)
    assert sorted([Interval(3, 4), Interval(2, 9)])[0].begin() == 2
    assert repr(one) == "Interval(2, 5)"
    assert len({one, Interval(2, 5)}) == 1


def test_an_interval_with_senseless_bounds_is_refused():
    for bounds in ((3, 2), (-1, 2)):
        with pytest.raises(PoplarIndexError, match="0 <= begin <= end"):
            Interval(*bounds)
    with pytest.raises(PoplarTypeError):
        Interval(0, 2.5)
