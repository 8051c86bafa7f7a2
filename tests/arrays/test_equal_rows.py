"""Equal rows of different lengths, against Python's tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays import equal_rows
from pypoplar.arrays.equal_rows import first_equal
from pypoplar.arrays.groups import offsets

ENTRY = st.tuples(st.integers(0, 1), st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]))
ROWS = st.lists(st.lists(ENTRY, max_size=3), max_size=8)


def tables(rows):
    entries = np.array([entry for row in rows for entry in row], np.int64).reshape(-1, 2)
    return offsets([len(row) for row in rows]), entries[:, 0].copy(), entries[:, 1].copy()


@given(ROWS)
def test_each_row_is_told_the_first_row_that_equals_it(rows):
    assert first_equal(*tables(rows)).tolist() == [rows.index(row) for row in rows]


@given(ROWS)
def test_rows_whose_sums_are_equal_by_chance_are_told_apart_by_comparison(rows):
    def one_sum(first, count, columns):
        return np.zeros(len(count), np.uint64)

    with_sums = equal_rows._sums
    equal_rows._sums = one_sum
    try:
        assert first_equal(*tables(rows)).tolist() == [rows.index(row) for row in rows]
    finally:
        equal_rows._sums = with_sums


def test_many_rows_are_compared_without_a_loop():
    kinds, count = 100, 100_000
    length = np.arange(count) % kinds
    first = offsets(length)
    assert first_equal(first, np.repeat(length, length)).tolist() == length.tolist()
