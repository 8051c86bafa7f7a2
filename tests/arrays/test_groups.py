"""Groups in flat arrays against Python's lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays.groups import (
    before_in_group,
    distinct,
    group_positions,
    groups_of,
    offsets,
    opens,
    ragged,
    selection,
    sorting_order,
    stepped,
    sums,
    sums_between,
)

COUNTS = st.lists(st.integers(0, 5), max_size=8)
NUMBERS = st.integers(-20, 20)


def column(numbers, dtype=np.int64):
    return np.array(numbers, dtype)


@given(COUNTS)
def test_offsets_say_where_groups_begin_and_how_many_elements_there_are(counts):
    assert offsets(column(counts)).tolist() == [sum(counts[:number]) for number in range(len(counts) + 1)]
    assert offsets(column(counts, bool)).tolist() == [sum(map(bool, counts[:number])) for number in range(len(counts) + 1)]


@given(COUNTS, st.data())
def test_ragged_numbers_go_on_from_the_first_of_each_group_and_stepped_ones_by_its_step(counts, data):
    several = st.lists(NUMBERS, min_size=len(counts), max_size=len(counts))
    first, step = data.draw(several), data.draw(several)
    groups = list(zip(first, counts, step, strict=True))
    assert ragged(column(first), column(counts)).tolist() == [begin + place for begin, count, _ in groups for place in range(count)]
    assert group_positions(column(counts)).tolist() == [place for count in counts for place in range(count)]
    assert stepped(column(first), column(counts), column(step)).tolist() == [
        begin + place * by for begin, count, by in groups for place in range(count)
    ]


@given(st.lists(st.lists(NUMBERS, max_size=4), max_size=6))
def test_sums_between_are_those_of_the_groups(groups):
    first, values = offsets([len(group) for group in groups]), column([value for group in groups for value in group])
    assert sums_between(first, values).tolist() == [sum(group) for group in groups]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12))
def test_a_group_opens_where_a_row_differs_from_the_row_before(rows):
    left, right = column(rows).reshape(-1, 2).T
    assert opens(left, right).tolist() == [number == 0 or rows[number] != rows[number - 1] for number in range(len(rows))]


@given(st.lists(st.tuples(st.integers(0, 4), NUMBERS), max_size=12).map(lambda rows: sorted(rows, key=lambda row: row[0])))
def test_sums_are_of_groups_and_entries_know_what_comes_before_them(rows):
    group, values = column(rows).reshape(-1, 2).T
    assert sums(values, group, 6).tolist() == [sum(value for at, value in rows if at == number) for number in range(6)]
    assert before_in_group(values, group).tolist() == [
        sum(value for at, value in rows[:place] if at == rows[place][0]) for place in range(len(rows))
    ]


@given(st.lists(NUMBERS, max_size=12))
def test_distinct_values_are_those_of_a_set_in_order(numbers):
    assert distinct(column(numbers)).tolist() == sorted(set(numbers))


@given(st.lists(NUMBERS, max_size=12))
def test_only_what_is_not_sorted_yet_has_an_order(numbers):
    order = sorting_order(column(numbers))
    assert (order is None) == (numbers == sorted(numbers))
    if order is not None:
        assert [numbers[place] for place in order] == sorted(numbers)


@given(st.lists(st.integers(0, 9), unique=True) | st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: [*range(*pair)]))
def test_rows_are_selected_by_their_numbers_and_ranges_of_them_without_a_copy(numbers):
    rows = np.arange(10, 20)
    selected = rows[selection(column(numbers))]
    assert selected.tolist() == [10 + number for number in numbers]
    assert np.shares_memory(selected, rows) == (len(numbers) > 0 and numbers == [*range(numbers[0], numbers[0] + len(numbers))])


@given(st.lists(st.integers(-4, 4)), st.booleans())
def test_groups_are_those_that_numpy_finds(values, sort):
    numbers = column(sorted(values) if sort else values)
    expected = np.unique(numbers, return_index=True, return_inverse=True)
    assert [one.tolist() for one in groups_of(numbers)] == [one.tolist() for one in expected]
