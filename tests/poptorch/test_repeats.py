"""Stretches of a list that repeat are found, longest savings first, and none lies over another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.poptorch.outlining.repeats import repeats


def found_in(labels, worth=None, least=0.9, kept=lambda stretch: stretch):
    before = np.concatenate(([0.0], np.cumsum([1.0] * len(labels) if worth is None else worth))).tolist()
    return [(one.starts, one.length) for one in repeats(np.array(labels, np.int64), before, least, kept)]


@examples(100)
@given(st.lists(st.integers(0, 3), max_size=40))
def test_what_is_found_is_equal_and_lies_nowhere_over_another(labels):
    taken = []
    for starts, length in found_in(labels):
        assert len(starts) > 1
        assert len({tuple(labels[start : start + length]) for start in starts}) == 1
        taken += [place for start in starts for place in range(start, start + length)]
    assert len(taken) == len(set(taken))
    assert all(place < len(labels) for place in taken)


@examples(100)
@given(st.lists(st.integers(0, 3), max_size=30))
def test_nothing_that_occurs_twice_is_left_over(labels):
    left = list(labels)
    for starts, length in found_in(labels):
        for start in starts:
            left[start : start + length] = [None] * length
    alone = [label for label in left if label is not None]
    assert len(alone) == len(set(alone))


@examples(60)
@given(st.integers(1, 8), st.integers(2, 7), st.integers(0, 3))
def test_a_period_is_found_whatever_stands_around(period, times, around):
    labels = [*range(100, 100 + around), *list(range(period)) * times, *range(200, 200 + around)]
    ((starts, length),) = found_in(labels)
    assert (length, len(starts)) == (period, times)


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_repeats_in_less_than_two(size):
    assert found_in(list(range(size))) == []


def test_what_is_worth_less_than_the_least_is_left():
    labels, worth = [1, 2, 9, 1, 2, 8, 3, 7, 3], [0.4, 0.4, 1, 0.4, 0.4, 1, 1, 1, 1]
    assert found_in(labels, worth) == [((6, 8), 1)]
    assert found_in(labels, worth, 0.5) == [((6, 8), 1), ((0, 3), 2)]
    assert found_in(labels, worth, 1.5) == []


def test_occurrences_that_differ_in_something_else_are_taken_back():
    labels = [1, 2, 3, 1, 2, 4, 1, 2, 5]

    def without_the_second(stretch):
        kept = tuple(start for start in stretch.starts if start != 3)
        return type(stretch)(kept, stretch.length) if len(kept) > 1 else None

    assert found_in(labels, kept=without_the_second) == [((0, 6), 2)]


def test_thousands_of_equal_operations_are_one_stretch():
    ((starts, length),) = found_in([0] * 2000)
    assert (len(starts), length) == (2000, 1)
