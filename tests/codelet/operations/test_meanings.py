"""What operations mean for the interpreter, in Python's numbers, against their machine code: each was written without the other."""

import math
import struct

import numpy as np
import pytest
from emitted_operations import FAULTS, FUNCTIONS, fault_function
from hypothesis import given
from hypothesis import strategies as st
from register_values import SPECIAL, same, some

from pypoplar.codelet.operations import c_library
from pypoplar.codelet.operations.registers import half, limits
from pypoplar.codelet.operations.table import OPERATIONS, library_functions


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
