"""Values that lie densely are put in order by a table: as sorting does it, wherever they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.arrays import groups
from pypoplar.arrays.groups import distinct, in_order


@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from([0, 1, 7, 999, 1000, 1500]),
    spread=st.sampled_from([1, 3, 40, 10**4, 10**12]),
    step=st.sampled_from([1, 2, 3, 4, 8, 24, 4096]),
    low=st.sampled_from([0, 5, -7, -(2**62), 2**61]),
    different=st.booleans(),
)
@examples(100)
def test_values_are_in_order_and_different_as_when_sorted(seed, count, spread, step, low, different):
    random = np.random.default_rng(seed)
    chosen = random.permutation(count * min(spread, 64))[:count] if different else random.integers(0, spread, count)
    values = low + chosen * step
    before = values.copy()
    assert in_order(values).tolist() == sorted(values.tolist())
    assert distinct(values).tolist() == sorted({*values.tolist()})
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("values", [np.arange(5000)[::-1] * 4 + 3, np.arange(2000) % 7, np.full(1000, -3)])
def test_dense_values_are_not_sorted(values, monkeypatch):
    monkeypatch.setattr(groups.np, "sort", lambda values: pytest.fail("sorted"))
    assert distinct(values).tolist() == sorted({*values.tolist()})


def test_values_of_other_types_keep_them():
    assert distinct(np.full(2000, 3, np.int32)).dtype == np.int32
    assert distinct(np.array([True] * 1500)).tolist() == [True]
