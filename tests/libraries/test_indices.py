"""Coordinates of elements, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, Graph, IPUModel, PoplarIndexError, PoplarTypeError
from pypoplar.poputil import unflattenIndex


@given(
    st.lists(st.integers(1, 5), max_size=4).flatmap(
        lambda shape: st.tuples(st.just(shape), st.integers(0, np.prod(shape, dtype=int) - 1))
    )
)
def test_coordinates_are_numpys_and_name_the_element_of_the_flattened_tensor(case):
    shape, index = case
    coordinates = unflattenIndex(shape, index)
    assert coordinates == [int(number) for number in np.unravel_index(index, shape)]
    tensor = Graph(IPUModel("tiny").createDevice()).addVariable(FLOAT, shape)
    assert tensor.index(coordinates) == tensor.flatten()[index]


@pytest.mark.parametrize(("shape", "index"), [([2, 3], 6), ([2, 3], -1), ([0], 0), ([], 1)])
def test_an_index_beyond_the_shape_is_refused(shape, index):
    with pytest.raises(PoplarIndexError, match=rf"index {index} is out of range for the shape .* of \d elements"):
        unflattenIndex(shape, index)


def test_a_set_is_no_shape():
    with pytest.raises(PoplarTypeError, match="a set has no order"):
        unflattenIndex({2, 3}, 4)
