"""Half precision: the host's instructions, the integer forms and NumPy agree on every value that could tell them apart."""

import ctypes

import numpy as np
import pytest
from llvmlite import ir

from pypoplar.codelet.llvm import halves
from pypoplar.host_code import machine

FORMS = [
    pytest.param(halves.to_half_by_integers, halves.from_half_by_integers, id="integers"),
    pytest.param(
        halves.to_half_by_instruction,
        halves.from_half_by_instruction,
        id="instruction",
        marks=pytest.mark.skipif(not machine.host().converts_halves, reason="the processor has no half conversions"),
    ),
]


def array_function(emit, source, target):
    """``f(source array, target array)`` that applies an emitter to each element."""
    module = ir.Module()
    word = ir.IntType(64)
    pointers = [source.as_pointer(), target.as_pointer()]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*pointers, word]), "apply")
    entry, loop, end = (function.append_basic_block() for _ in range(3))
    ir.IRBuilder(entry).branch(loop)
    builder = ir.IRBuilder(loop)
    i = builder.phi(word)
    value = emit(builder, builder.load(builder.gep(function.args[0], [i], source_etype=source), typ=source))
    builder.store(value, builder.gep(function.args[1], [i], source_etype=target))
    following = builder.add(i, word(1))
    i.add_incoming(word(0), entry)
    i.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, function.args[2]), loop, end)
    ir.IRBuilder(end).ret_void()
    code = machine.load(machine.compile_text(str(module)))
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code.address("apply"))

    def call(values, dtype):
        values = np.ascontiguousarray(values)
        result = np.zeros(values.size, dtype)
        native(values.ctypes.data, result.ctypes.data, values.size)
        assert code is not None  # alive until here
        return result

    return call


def critical_values():
    """Every half, every midpoint of two halves, both float32 neighbours of each midpoint, the last values before infinity."""
    every = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = ((every[:-1].astype(np.float64) + every[1:]) / 2).astype(np.float32)
    below, above = np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))
    last = np.float32([65519.996, 65520, 65536, 1e30, np.inf, 1e-30, 1e-45])
    values = np.concatenate([every, middle, below, above, last])
    return np.concatenate([values, -values])


@pytest.mark.parametrize(("to_half", "from_half"), FORMS)
def test_every_critical_float_rounds_to_the_half_that_numpy_gives(to_half, from_half):
    values = critical_values()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(array_function(to_half, halves.FLOAT, halves.SHORT)(values, np.uint16), expected)


@pytest.mark.parametrize(("to_half", "from_half"), FORMS)
def test_every_half_widens_to_the_float_that_numpy_gives(to_half, from_half):
    bits = np.arange(1 << 16, dtype=np.uint16)
    expected = bits.view(np.float16).astype(np.float32)
    got = array_function(from_half, halves.SHORT, halves.FLOAT)(bits, np.float32)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.skipif(not machine.host().converts_halves, reason="the processor has no half conversions")
def test_both_forms_give_the_same_bits_for_every_not_a_number():
    bits = np.arange(1 << 16, dtype=np.uint16)
    bits = bits[np.isnan(bits.view(np.float16))]
    forms = (halves.from_half_by_integers, halves.from_half_by_instruction)
    one, other = (array_function(form, halves.SHORT, halves.FLOAT)(bits, np.uint32) for form in forms)
    np.testing.assert_array_equal(one, other)
    values = np.concatenate([one, one | 0x1FFF, np.uint32([0x7F800001, 0xFFFFFFFF, 0x7FC00000])])
    forms = (halves.to_half_by_integers, halves.to_half_by_instruction)
    one, other = (array_function(form, halves.FLOAT, halves.SHORT)(values, np.uint16) for form in forms)
    np.testing.assert_array_equal(one, other)
    assert np.isnan(one.view(np.float16)).all()


@pytest.mark.parametrize("by_instruction", [True, False])
def test_a_double_is_rounded_to_half_once(monkeypatch, by_instruction):
    if by_instruction and not machine.host().converts_halves:
        pytest.skip("the processor has no half conversions")
    monkeypatch.setattr(halves, "by_instruction", lambda: by_instruction)
    middle = critical_values().astype(np.float64)
    middle = middle[np.isfinite(middle)]
    nudge = np.abs(middle) * 2.0**-40 + 5e-324  # lost when float32 stands in between
    values = np.concatenate([middle, middle + nudge, middle - nudge, [1e300, -1e300, 1e-300, np.inf, -np.inf, np.nan]])
    with np.errstate(over="ignore", under="ignore"):
        expected = values.astype(np.float16).astype(np.float32)
    got = array_function(halves.narrow_double, halves.DOUBLE, halves.FLOAT)(values, np.float32)
    np.testing.assert_array_equal(got, expected)
    assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()
