"""Halves that are rounded at random: what the rule is, and that machine code and meaning agree on it."""

import math

import numpy as np
import pytest
from emitted_operations import random_function
from hypothesis import given
from hypothesis import strategies as st
from register_values import same, some

from pypoplar.codelet.operations.registers import half, half_at_random, single
from pypoplar.codelet.operations.table import OPERATIONS, typed_operation

ROUNDING = sorted(name for name, operation in OPERATIONS.items() if operation.rounds_to_half)
BITS = st.integers(0, 2**64 - 1)
CAST = random_function("f16_from_f32")


def neighbours(value):
    """The halves around a number, in order of magnitude; infinity follows 65504."""
    nearest = np.float16(half(value))
    other = np.nextafter(nearest, np.float16(np.inf if abs(value) > abs(float(nearest)) else 0) * np.float16(np.sign(value) or 1))
    return sorted({float(nearest), float(other) if float(nearest) != value else float(nearest)}, key=abs)


@pytest.mark.parametrize("name", ROUNDING)
def test_the_machine_code_of_an_operation_rounds_at_random_as_it_means(name):
    called, emitted, random = typed_operation(name), random_function(name), np.random.default_rng(len(name))
    bits = random.integers(0, 2**64, 200, np.uint64).tolist()
    for *operands, drawn in zip(*(some(kind, random, 200) for kind in called.arguments), bits, strict=True):
        assert same(half_at_random(called.unrounded(*operands), drawn), emitted(*operands, drawn)), (operands, drawn)


@given(st.floats(width=32) | st.floats(-(2.0**-12), 2.0**-12, width=32) | st.floats(-65536, 65536, width=32), BITS)
def test_a_number_becomes_one_of_the_halves_around_it_in_both_forms(value, bits):
    rounded = half_at_random(value, bits)
    assert same(rounded, CAST(value, bits))
    if math.isnan(value) or abs(value) >= 65536:
        assert same(rounded, half(value))
        return
    assert rounded in neighbours(value)
    assert math.copysign(1.0, rounded) == math.copysign(1.0, value)


def test_every_half_stays_as_it_is_whatever_the_bits_are():
    every = np.arange(0x10000, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32)
    for value in every[~np.isnan(every)].tolist()[::7]:
        assert all(same(half_at_random(value, bits), value) and same(CAST(value, bits), value) for bits in (0, 2**64 - 1))


@pytest.mark.parametrize(
    ("lower", "unit"), [(1.0, 2.0**-10), (1000.0, 0.5), (65504.0, 32.0), (2.0**-14, 2.0**-24), (5 * 2.0**-24, 2.0**-24)]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_number_goes_up_for_as_many_bits_as_it_is_above_the_lower_half(lower, unit, sign):
    for part in (0.0, 1 / 8192, 0.25, 0.5, 0.625, 8191 / 8192):
        value = sign * single(lower + part * unit)
        upper = math.inf if lower == 65504 else lower + unit
        first = 2**24 - int(part * 2**24)  # the least of the upper 24 bits with which it goes up
        assert half_at_random(value, (first - 1) << 40) == sign * lower
        if part:
            assert half_at_random(value, first << 40) == sign * upper
            assert CAST(value, first << 40) == sign * upper
        assert CAST(value, (first - 1) << 40 | 2**40 - 1) == sign * lower


def test_numbers_too_small_for_the_bits_become_zero():
    assert all(half_at_random(2.0**exponent, 2**64 - 1) == CAST(2.0**exponent, 2**64 - 1) == 0.0 for exponent in range(-149, -48))
    assert half_at_random(2.0**-48, 2**64 - 1) == CAST(2.0**-48, 2**64 - 1) == 2.0**-24


def test_the_mean_of_many_roundings_is_the_number():
    random = np.random.default_rng(3)
    for value in (1 + 3 / 8192, -(1 + 5000 / 2**23), 3.1e-5, 1e-7):
        rounded = [half_at_random(single(value), bits) for bits in random.integers(0, 2**64, 20000, np.uint64).tolist()]
        assert abs(np.mean(rounded) - single(value)) <= 4 * np.std(rounded) / np.sqrt(len(rounded))


def test_what_gives_a_half_exactly_asks_for_no_bits():
    exact = {"add_f32", "neg_f16", "abs_f16", "min_f16", "max_f16", "copy_f16", "floor_f16", "of_bits_f16", "f16_from_f16"}
    assert not exact & set(ROUNDING)
    assert {"add_f16", "mul_f16", "div_f16", "exp_f16", "f16_from_f32", "f16_from_i32"} <= set(ROUNDING)
