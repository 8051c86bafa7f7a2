"""What operations mean for the interpreter, in Python's numbers, against their machine code: each was written without the other."""

import math
import struct

import numpy as np
import pytest
from emitted_operations import FAULTS, FUNCTIONS, fault_function
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.codelet.operations import c_library
from pypoplar.codelet.operations.registers import FLOATS, half, limits, single
from pypoplar.codelet.operations.table import OPERATIONS, library_functions

SPECIAL = [0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 0.1, 7.0, math.pi, 1e-30, 1e30, 3e38, 88.7, 89.0, 104.0, 710.0, 65504.0, 1e-45, 6e-8]
SPECIAL += [2.0**31, 2.0**63, 2.0**64, 1 - 2.0**-24, 1 + 2.0**-23, math.inf, math.nan]
WHOLE = [0, 1, 2, 3, 7, 31, 32, 63, 2**24 + 1, 2**53, 2**53 + 1, 2**62 + 2**10 + 1, 2**31, 2**63]


def some(kind, random, count):
    """Registers of a type: special ones, small ones, any bits, and whatever lies between."""
    if kind == "bool":
        return [bool(random.integers(2)) for _ in range(count)]
    if kind in FLOATS:
        scales = 2.0 ** random.integers(-30, 30, count)
        sizes = np.concatenate([random.uniform(-100, 100, count), random.standard_normal(count) * scales])
        with np.errstate(invalid="ignore"):  # NaNs that signal
            bits = random.integers(0, 2**32, count, np.uint32).view(np.float32).astype(np.float64)
        chosen = random.choice(np.concatenate([SPECIAL * 20, np.negative(SPECIAL * 20), sizes, bits]), count)
        return [(single if kind == "f32" else half)(float(number)) for number in chosen]
    low, high = limits(kind)
    ends = [number for number in (low, low + 1, -1, *WHOLE, high - 1, high) if low <= number <= high]
    any_bits = random.integers(low, high, count, np.uint64 if low == 0 else np.int64, endpoint=True).tolist()
    spread = [number >> shift for number, shift in zip(any_bits, random.integers(0, 64, count).tolist(), strict=True)]
    return [ends[random.integers(len(ends))] if random.integers(3) == 0 else number for number in spread]


def same(left, right):
    """Equal in type and value, except that a NaN has no sign and no payload."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return left == right


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_machine_code_of_an_operation_computes_what_it_means(name):
    operation, emitted, random = OPERATIONS[name], FUNCTIONS[name], np.random.default_rng(len(name))
    for operands in zip(*(some(kind, random, 400) for kind in operation.arguments), strict=True):
        assert same(operation.compute(*operands), emitted(*operands)), operands


@pytest.mark.parametrize("name", FAULTS)
def test_the_machine_code_of_a_fault_finds_what_its_condition_says(name):
    fault, emitted, kind = FAULTS[name], fault_function(name), OPERATIONS[name].arguments[-1]
    near = [number for number in range(-2, 70) if number >= limits(kind)[0]]
    for operand in near + some(kind, np.random.default_rng(3), 400):
        assert fault.test(operand) == emitted(operand), operand


@given(data=st.data())
def test_any_operation_on_any_operands_means_what_its_machine_code_computes(data):
    operation = OPERATIONS[data.draw(st.sampled_from(sorted(OPERATIONS)))]
    draws = {"f32": st.floats(width=32), "f16": st.floats(width=16), "bool": st.booleans()}
    operands = [data.draw(draws[kind] if kind in draws else st.integers(*limits(kind))) for kind in operation.arguments]
    assert same(operation.compute(*operands), FUNCTIONS[operation.name](*operands))


def test_a_half_is_rounded_as_numpy_rounds_it():
    every = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middle = (every[:-1] + every[1:]) / 2
    nudge = np.maximum(middle * 2.0**-50, 5e-324)
    values = np.concatenate([every, middle, middle - nudge, middle + nudge, [65519.99, 65520.0, 65536.0, 1e300, 5e-324, np.inf]])
    for value in np.concatenate([values, -values]).tolist():
        with np.errstate(over="ignore"):
            expected = np.float16(value)
        assert struct.pack("d", half(value)) == struct.pack("d", float(expected)), value
    assert math.isnan(half(math.nan))


@pytest.mark.parametrize("name", c_library.ARGUMENTS)
def test_a_library_function_is_the_c_librarys_and_never_raises(name):
    arguments = c_library.ARGUMENTS[name]
    quick, itself = c_library.function(name), c_library._direct(name, arguments)
    random, special = np.random.default_rng(7), [*SPECIAL, *(-number for number in SPECIAL)]
    columns = [
        np.concatenate([random.choice(special, 300), random.standard_normal(1000) * 10.0 ** random.integers(-5, 6, 1000)])
        for _ in range(arguments)
    ]
    for operands in zip(*(column.tolist() for column in columns), strict=True):
        assert same(quick(*operands), itself(*operands)), operands


def test_a_function_that_the_c_library_has_not_is_named():
    with pytest.raises(LookupError, match="C library has no function 'sinus'"):
        c_library.address("sinus")
    with pytest.raises(LookupError, match=r"C has no function 'sinhh' of float64 numbers; did you mean 'sinh'\?"):
        c_library.function("sinhh")


def test_the_c_library_has_every_function_that_recipes_may_call():
    assert set(library_functions()) <= set(c_library.ARGUMENTS)
    assert all(c_library.address(name) for name in c_library.ARGUMENTS)
