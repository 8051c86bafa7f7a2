"""Runs of element ids: what is compressed, cut and joined stays the same sequence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.arrays import strides
from pypoplar.arrays.aliasing import (
    box_of_ids,
    box_of_long_runs,
    has_duplicates,
    misplaced,
    strided_form_of_ids,
    strided_form_of_long_runs,
)
from pypoplar.arrays.element_runs import SHORT_ROW, RunList, compress, compress_rows, interleaved, join, permuted_rows

BOUNDS = np.array([0, 10, 10, 25, 60], np.int64)
pieces = st.builds(
    lambda start, count, step: [start + k * step for k in range(count)], st.integers(20, 35), st.integers(1, 6), st.integers(-3, 3)
)
sequences = st.lists(pieces, max_size=8).map(lambda several: np.array([one for piece in several for one in piece], np.int64))


def variable(ids):
    return np.searchsorted(BOUNDS, ids, side="right")


@given(sequences)
def test_compressed_runs_expand_to_the_sequence(ids):
    runs = compress(ids, BOUNDS)
    assert runs.ids().tolist() == ids.tolist()
    assert runs.elements() == len(ids)
    assert (runs.step[runs.count == 1] == 1).all()
    assert (variable(runs.start) == variable(runs.start + (runs.count - 1) * runs.step)).all()


@given(sequences, st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted), min_size=1, max_size=5))
def test_cut_pieces_are_the_ranges_asked_for(ids, ranges):
    runs = compress(ids, BOUNDS)
    bounds = np.minimum(np.array(ranges, np.int64), len(ids))
    cut, owner = runs.cut(bounds[:, 0], bounds[:, 1])
    sizes = np.bincount(owner, cut.count, len(bounds)).astype(int) if len(owner) else np.zeros(len(bounds), int)
    assert sizes.tolist() == (bounds[:, 1] - bounds[:, 0]).tolist()
    assert cut.ids().tolist() == [one for begin, end in bounds for one in ids[begin:end].tolist()]
    for begin, end in bounds:
        part = runs.part(int(begin), int(end))
        assert part.ids().tolist() == ids[begin:end].tolist()
        assert (part.step[part.count == 1] == 1).all()


@given(st.lists(sequences, min_size=1, max_size=4))
def test_joined_runs_are_the_sequences_one_after_another(several):
    joined = join([compress(ids, BOUNDS) for ids in several], BOUNDS)
    assert joined.ids().tolist() == [one for ids in several for one in ids.tolist()]
    assert (variable(joined.start) == variable(joined.start + (joined.count - 1) * joined.step)).all()


rows_of_a_view = st.lists(
    st.tuples(st.sampled_from([1, 1, 2, 3, 5, 0, -1, -2]), st.integers(1, 7), st.integers(-2, 7), st.sampled_from([0, 0, 0, 90])),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("short", [0, 8])
@given(rows=rows_of_a_view)
@examples(300)
def test_rows_become_the_runs_of_their_elements(short, rows):
    made, bounds, last = [], [0], 500
    for step, count, gap, apart in rows:
        start = last + gap + 2 * apart  # in a variable of its own, where there is room for one
        bounds += [start - apart] if apart else []
        made.append((start, count, step if count > 1 else 1))
        last = start + (count - 1) * made[-1][2]
    listed = RunList(*np.array(made, np.int64).T)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.arrays.element_runs.SHORT_PART", short)
        found = compress_rows(listed, np.array(bounds))
    wanted = compress(listed.ids(), np.array(bounds))
    for name in ("start", "count", "step"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()


@given(data=st.data())
@examples(200)
def test_dimensions_that_keep_rows_together_are_exchanged_as_elements_are(data):
    outer = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    shape = (*outer, data.draw(st.integers(1, 3)) * SHORT_ROW)
    order = (*data.draw(st.permutations(range(len(outer)))), len(outer))
    if data.draw(st.booleans()):  # rows of a grid, some of them twice or at equal distances
        size = data.draw(st.sampled_from([SHORT_ROW, 4, shape[-1]]))
        count = int(np.prod(shape)) // size
        first, step = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)), data.draw(st.integers(0, 3))
        chosen = np.array(first) if data.draw(st.booleans()) else np.arange(count) * step + np.array(first)[0]
        ids = (500 + chosen[:, None] * size + np.arange(size)).reshape(-1)
    else:
        ids = np.arange(500, 500 + int(np.prod(shape)))
        for _ in range(data.draw(st.integers(0, 3))):  # parts of memory change places
            middle = data.draw(st.integers(0, len(ids)))
            ids = np.concatenate((ids[middle:], ids[:middle][:: data.draw(st.sampled_from([1, 1, -1]))]))
    bounds = np.array(sorted({0, 500, *data.draw(st.lists(st.integers(501, 900), max_size=3))}))
    found = permuted_rows(compress(ids, bounds), shape, order, bounds)
    if found is not None:
        permuted = ids.reshape(shape).transpose(order)
        wanted = compress(permuted.reshape(-1), bounds)
        for name in ("start", "count", "step"):
            assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
        assert strided_form_of_long_runs(found, permuted.shape, bounds) == strided_form_of_ids(permuted, bounds)
        assert box_of_long_runs(found, bounds) == box_of_ids(permuted, bounds)


def variable_of(ids, bounds):
    return np.searchsorted(bounds, ids, side="right")


def test_long_rows_are_exchanged_row_by_row_and_short_ones_are_not():
    bounds = np.array([0, 1000])
    whole = np.concatenate((np.arange(96, 192), np.arange(96)))
    assert permuted_rows(compress(whole, bounds), (2, 12, 8), (1, 0, 2), bounds) is not None
    assert permuted_rows(compress(whole, bounds), (2, 24, 4), (1, 0, 2), bounds) is None
    assert permuted_rows(compress(whole, bounds), (2, 12, 8), (0, 2, 1), bounds) is None


@given(data=st.data())
@examples(200)
def test_views_are_interleaved_row_by_row(data):
    rows, times = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([1, 1, 2]))
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 20]), min_size=1, max_size=4))
    views = [np.array(data.draw(st.permutations(range(20, 20 + 200))))[: rows * size] for size in sizes]
    views = [np.sort(ids) if data.draw(st.booleans()) else ids for ids in views]
    bounds = np.array([0, 40, 100, 300])
    found = interleaved([compress(ids, bounds) for ids in views], rows, bounds, times)
    wanted = np.repeat(np.concatenate([ids.reshape(rows, -1) for ids in views], axis=1), times, axis=0)
    assert found.ids().tolist() == wanted.reshape(-1).tolist()
    assert (variable_of(found.start, bounds) == variable_of(found.start + (found.count - 1) * found.step, bounds)).all()


def test_long_runs_that_touch_are_joined_within_a_variable_only():
    bounds = np.array([0, 100, 200], np.int64)
    parts = [compress(np.arange(begin, begin + 50), bounds) for begin in (0, 50, 100, 150)]
    joined = join(parts, bounds)
    assert joined.start.tolist() == [0, 100]
    assert joined.count.tolist() == [100, 100]


@given(sequences)
def test_unit_steps_keep_the_sequence(ids):
    unit = compress(ids, BOUNDS).unit_steps()
    assert unit.ids().tolist() == ids.tolist()
    assert (unit.step == 1).all()


@given(sequences)
def test_duplicates_are_found(ids):
    assert has_duplicates(compress(ids, BOUNDS)) == (len(set(ids.tolist())) < len(ids))


def test_duplicates_are_found_of_elements_that_lie_far_apart_or_close_together():
    """Runs whose ranges overlap: the elements between those of the first are those of the second, or one is the same."""
    for step in (2, 1 << 40):
        for second, twice in ((1, False), (step, True)):
            runs = RunList(np.array([0, second]), np.array([5, 5]), np.array([step, step]))
            assert has_duplicates(runs) == twice


RUN = st.tuples(st.integers(0, 30), st.integers(1, 5), st.integers(-6, 6)).map(lambda run: (*run[:2], run[2] if run[1] > 1 else 1))


@examples(300)
@given(st.lists(RUN, max_size=6))
def test_what_is_surely_distinct_is_nowhere_twice(runs):
    view = RunList(*np.array(runs, np.int64).reshape(-1, 3).T.copy())
    ids = view.ids().tolist()
    twice = len(set(ids)) < len(ids)
    assert not (view.surely_distinct() and twice)
    assert has_duplicates(view) == twice


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_matrices_that_are_read_by_columns_are_surely_distinct_and_one_stretch(shapes, random):
    """Whichever come first; and without the first one they are a stretch only if that shows in their elements."""
    begin, columns = 0, []
    for rows, width in shapes:
        columns += [(begin + column, rows, width if rows > 1 else 1) for column in range(width)]
        begin += rows * width
    random.shuffle(columns)
    view = RunList(*np.array(columns, np.int64).T.copy())
    assert view.surely_distinct()
    assert view.is_stretch()
    if len(columns) > 2:
        inner = sorted(columns)[1:]
        part = RunList(*np.array(inner, np.int64).T.copy())
        ids = sorted(part.ids().tolist())
        assert part.is_stretch() == (ids == list(range(ids[0], ids[0] + len(ids))))


@given(sequences, st.permutations(range(20, 40)))
def test_an_element_at_two_positions_is_found(source, target):
    target = np.array(target, np.int64)
    found = misplaced(compress(source, BOUNDS), compress(target, BOUNDS))
    position = {one: place for place, one in enumerate(target.tolist())}
    bad = [one for place, one in enumerate(source.tolist()) if position.get(one, place) != place]
    assert found == (bad[0] if bad else None)


@pytest.mark.parametrize(("shape", "steps", "wanted", "expected"), [
    ((4, 6), (6, 1), (24,), (1,)),
    ((4, 6), (6, 1), (2, 2, 3, 2), (12, 6, 2, 1)),
    ((4, 6), (1, 4), (24,), None),
    ((4, 6), (1, 4), (2, 2, 6), (2, 1, 4)),
    ((3, 1, 2), (2, 9, 1), (6, 1), (1, 1)),
    ((5,), (0,), (5, 1), (0, 1)),
    ((2, 0), (1, 1), (0, 7), (7, 1)),
    ((), (), (1, 1), (1, 1)),
])  # fmt: skip
def test_strides_are_reshaped_where_that_is_possible(shape, steps, wanted, expected):
    assert strides.reshape(shape, steps, wanted) == expected


def test_strides_that_jump_over_each_other_hold_no_element_twice():
    assert strides.surely_distinct((4, 6), (6, 1))
    assert strides.surely_distinct((4, 6), (-1, 4))
    assert strides.surely_distinct((1, 6), (0, 1))
    assert not strides.surely_distinct((2, 6), (0, 1))
    assert not strides.surely_distinct((2, 3), (2, 1))
