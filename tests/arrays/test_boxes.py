"""Boxes are NumPy's arrays of element numbers, whatever is done to them; where one does not do, it says so."""

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.arrays.boxes import MOST_AXES, Box

axes = st.lists(st.tuples(st.integers(2, 4), st.integers(-40, 40)), max_size=3).map(tuple)


@st.composite
def boxes(draw):
    """A box of up to three dimensions with up to three axes each, made as all are: with as few axes as possible."""
    dimensions = draw(st.lists(axes, min_size=1, max_size=3))
    extents = [extent for own in dimensions for extent, _ in own]
    steps = [step for own in dimensions for _, step in own]
    whole = Box.strided(draw(st.integers(0, 9)), tuple(extents), tuple(steps))
    return whole.reshaped(tuple(prod(extent for extent, _ in own) for own in dimensions))


def shapes_of(size, draw):
    """A shape of so many elements."""
    shape = []
    while size > 1:
        factor = draw(st.sampled_from([each for each in range(2, size + 1) if size % each == 0]))
        shape.append(factor)
        size //= factor
    return tuple(draw(st.permutations([*shape, *[1] * draw(st.integers(0, 2))])))


@given(boxes(), st.data())
@examples(100)
def test_parts_turns_and_repetitions_are_those_of_the_elements(box, data):
    ids = box.ids()
    assert box.shape == ids.shape
    dimension = data.draw(st.integers(0, ids.ndim - 1))
    begin = data.draw(st.integers(0, ids.shape[dimension] - 1))
    end = data.draw(st.integers(begin + 1, ids.shape[dimension]))
    part, wanted = box.part(dimension, begin, end), np.take(ids, range(begin, end), dimension)
    assert part is None or part.ids().tolist() == wanted.tolist()
    stride = data.draw(st.integers(1, 7))
    every, wanted = box.every(dimension, stride), np.take(ids, range(0, ids.shape[dimension], stride), dimension)
    assert every is None or every.ids().tolist() == wanted.tolist()
    assert box.reversed(dimension).ids().tolist() == np.flip(ids, dimension).tolist()
    order = tuple(data.draw(st.permutations(range(ids.ndim))))
    assert box.permuted(order).ids().tolist() == ids.transpose(order).tolist()
    times = data.draw(st.integers(1, 3))
    assert box.repeated(dimension, times, inner=True).ids().tolist() == ids.repeat(times, dimension).tolist()
    tiled = np.concatenate([ids] * times, dimension)
    assert box.repeated(dimension, times, inner=False).ids().tolist() == tiled.tolist()


@given(boxes(), st.data())
@examples(100)
def test_another_shape_has_the_same_elements_in_the_same_order(box, data):
    shape = shapes_of(prod(box.shape), data.draw)
    reshaped = box.reshaped(shape)
    assume(reshaped is not None)
    assert reshaped.ids().tolist() == box.ids().reshape(shape).tolist()
    assert reshaped.reshaped(box.shape) == box


@given(boxes())
@examples(100)
def test_the_axes_of_a_box_are_found_from_its_elements(box):
    ids = box.ids().reshape(-1)
    assume(len(box.reshaped((len(ids),)).axes) < MOST_AXES)
    found = Box.of_starts(ids, 1, 1)
    assert found is None or found.ids().tolist() == ids.tolist()
    if box.surely_distinct():
        assert found is not None, "elements that occur once show all axes"


@given(boxes())
@examples(60)
def test_runs_bounds_and_what_is_kept_are_those_of_the_elements(box):
    ids = box.ids().reshape(-1)
    start, count, step = box.runs()
    assert np.concatenate([one + np.arange(n) * s for one, n, s in zip(start, count, step, strict=True)]).tolist() == ids.tolist()
    assert box.bounds() == (ids.min(), ids.max() + 1)
    if box.surely_distinct():
        assert len(set(ids.tolist())) == len(ids)
        assert box.compacted().ids().reshape(-1).tolist() == np.argsort(np.argsort(ids)).tolist()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 3), st.integers(1, 2))
@examples(100)
def test_no_box_is_found_where_there_is_none(start, count, step):
    found = Box.of_starts(np.array(start), count, step)
    wanted = [one + step * number for one in start for number in range(count)]
    assert found is None or found.ids().tolist() == wanted


@pytest.mark.parametrize(
    ("begin", "end", "axes"),
    [(4, 8, (1, 4)), (4, 12, (2, 4)), (5, 7, (2,)), (5, 6, ()), (0, 12, (3, 4)), (3, 8, None), (5, 9, None)],
)
def test_a_part_of_blocks_is_a_box_where_it_is_of_whole_blocks_or_within_one(begin, end, axes):
    part = Box(0, (((3, 100), (4, 1)),)).part(0, begin, end)
    assert axes is None if part is None else part.extents == tuple(extent for extent in axes if extent > 1)


def test_uneven_elements_take_no_more_axes_than_a_box_may_have():
    assert Box.of_starts(np.random.default_rng(0).permutation(1 << 16), 1, 1) is None
    powers = sum(np.arange(2).reshape([2] + [1] * k) * 3**k for k in range(MOST_AXES + 1))
    assert Box.of_starts(powers.reshape(-1), 1, 1) is None
