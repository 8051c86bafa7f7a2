"""Rows in which few numbers come again in a regular order, against what they are made of."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays import repeated_rows as module
from pypoplar.arrays.repeated_rows import repeated_rows


def spelled_out(found, length):
    """The places of a row's entries, as the found form says them."""
    number = (np.arange(length) + found.offset[:, None]) // found.inner % found.place.shape[1]
    return np.take_along_axis(found.place, number, 1)


@st.composite
def regular(draw):
    inner, period, length = draw(st.integers(1, 5)), draw(st.integers(1, 6)), draw(st.integers(1, 60))
    ahead = np.array(draw(st.lists(st.integers(0, inner * period - 1), min_size=1, max_size=4)))
    values = np.array(draw(st.permutations(range(period))))
    return inner, period, values[(np.arange(length) + ahead[:, None]) // inner % period]


@given(regular(), st.none() | st.integers(0, 239))
def test_what_is_found_spells_out_the_rows_to_the_entry(drawn, changed):
    _, _, rows = drawn
    rows = rows.copy()
    if changed is not None:
        rows.flat[changed % rows.size] = 99
    found = repeated_rows(rows)
    if found is not None:
        assert 2 * found.place.shape[1] <= rows.shape[1]
        assert (found.offset >= 0).all()
        assert (found.offset < found.inner).all()
        assert np.array_equal(np.take_along_axis(rows, spelled_out(found, rows.shape[1]), 1), rows)


@given(regular())
def test_rows_that_go_through_everything_three_times_are_found_with_few_entries(drawn):
    inner, period, rows = drawn
    if rows.shape[1] >= 3 * inner * period:
        found = repeated_rows(rows)
        assert found is not None
        assert found.place.shape[1] <= period


def test_rows_are_compared_to_their_last_entry_however_many_are_compared_at_a_time(monkeypatch):
    rows = np.tile(np.arange(20), (7, 5))
    for at_once in (1, 100, 250, 1 << 20):
        monkeypatch.setattr(module, "AT_ONCE", at_once)
        assert repeated_rows(rows) is not None
        for row in range(7):
            other = rows.copy()
            other[row, -1] = 3
            assert repeated_rows(other) is None, (at_once, row)


def test_rows_of_one_entry_or_of_different_ones_do_not_repeat_themselves():
    assert repeated_rows(np.array([[5], [6]])) is None
    assert repeated_rows(np.arange(12).reshape(2, 6)) is None
