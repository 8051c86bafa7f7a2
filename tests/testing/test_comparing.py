"""Equality to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pypoplar.testing.comparing import assert_same_bits
from pypoplar.types import SUPPORTED


@given(st.sampled_from(SUPPORTED).flatmap(lambda one: hnp.arrays(one.dtype, hnp.array_shapes(min_dims=0, min_side=0))))
def test_an_array_has_its_own_bits(array):
    assert_same_bits(array, array.copy())


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_different_bits_fail_whatever_they_mean(a, b):
    one, other = np.array([a], np.uint32).view(np.float32), np.array([b], np.uint32).view(np.float32)
    if a == b:
        assert_same_bits(one, other)
    else:
        with pytest.raises(AssertionError, match=f"0x{a:08x}.*0x{b:08x}"):
            assert_same_bits(one, other)


def test_the_message_shows_where():
    one = np.zeros((2, 3), np.float32)
    other = one.copy()
    other[1, 2] = -0.0
    with pytest.raises(AssertionError, match=r"y differs in 1 of 6 .*\n.*y\[1, 2\]: a 0\.0 .*, b -0\.0 \(0x80000000\)"):
        assert_same_bits(one, other, "y", ("a", "b"))


def test_a_long_message_is_cut():
    with pytest.raises(AssertionError, match="and 95 more"):
        assert_same_bits(np.zeros(100, np.int8), np.ones(100, np.int8))


@pytest.mark.parametrize("other", [np.zeros(2, np.int32), np.zeros(3, np.float32), np.zeros((1, 2), np.float32)])
def test_types_and_shapes_must_agree(other):
    with pytest.raises(AssertionError, match="float32"):
        assert_same_bits(np.zeros(2, np.float32), other)


def test_nans_may_be_told_apart_or_not():
    one = np.array([0x7FC00000], np.uint32).view(np.float32)
    other = np.array([0xFFC00000], np.uint32).view(np.float32)
    assert_same_bits(one, other, nan_bits=False)
    with pytest.raises(AssertionError):
        assert_same_bits(one, other)
    with pytest.raises(AssertionError):
        assert_same_bits(one, np.zeros(1, np.float32), nan_bits=False)


def test_arrays_of_any_layout_are_compared_by_value():
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    assert_same_bits(array.T, np.ascontiguousarray(array.T))
    assert_same_bits(array[::-1, ::2], array[::-1, ::2].copy())
