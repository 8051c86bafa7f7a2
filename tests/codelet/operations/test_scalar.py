"""What the machine code of each operation computes, called from Python, against NumPy and exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from emitted_operations import FAULTS, FUNCTIONS, SIGNATURES
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.codelet.operations.float_exceptions import floating_fault
from pypoplar.codelet.operations.registers import WIDTH
from pypoplar.codelet.operations.table import typed_operation

DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64}
RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "i64": (-(2**63), 2**63 - 1), "u64": (0, 2**64 - 1)}
INTEGERS = pytest.mark.parametrize("kind", RANGES)
FLOATS = pytest.mark.parametrize("kind", ["f32", "f16"])


def values(kind):
    """Registers of a type, with the ends of its range often."""
    if kind == "bool":
        return st.booleans()
    if kind in RANGES:
        low, high = RANGES[kind]
        ends = [one for one in (low, low + 1, -1, 0, 1, 2, 31, 32, 63, high - 1, high) if low <= one <= high]
        return st.sampled_from(ends) | st.integers(low, high)
    ends = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, float(np.finfo(DTYPES[kind]).max)]
    return st.sampled_from(ends) | st.floats(width={"f32": 32, "f16": 16}[kind])


def wrapped(kind, value):
    low, high = RANGES[kind]
    return (value - low) % (high - low + 1) + low


def same(a, b):
    """Equal as bits, except that a NaN has no sign and no payload."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@given(data=st.data())
@INTEGERS
def test_integer_arithmetic_is_exact_arithmetic_wrapped(kind, data):
    a, b = data.draw(values(kind)), data.draw(values(kind))
    expected = {"add": a + b, "sub": a - b, "mul": a * b, "neg": -a, "abs": abs(a), "min": min(a, b), "max": max(a, b)}
    expected |= {"and": a & b, "or": a | b, "xor": a ^ b, "invert": ~a, "copy": a}
    if b != 0:
        expected |= {"floordiv": a // b, "mod": a % b}
    width = WIDTH[kind]
    expected |= {"popcount": (a % 2**width).bit_count(), "clz": width - (a % 2**width).bit_length()}
    for name, value in expected.items():
        name = f"{name}_{kind}"
        arguments = (a, b)[: len(SIGNATURES[name][0])]
        assert FUNCTIONS[name](*arguments) == wrapped(kind, value), name
    for name, value in {"less": a < b, "less_equal": a <= b, "equal": a == b, "not_equal": a != b}.items():
        assert FUNCTIONS[f"{name}_{kind}"](a, b) is value


@given(data=st.data())
@INTEGERS
def test_shifts_and_powers_wrap(kind, data):
    a, amount = data.draw(values(kind)), data.draw(st.integers(0, WIDTH[kind] - 1))
    assert FUNCTIONS[f"shift_left_{kind}"](a, amount) == wrapped(kind, a << amount)
    assert FUNCTIONS[f"shift_right_{kind}"](a, amount) == a >> amount
    width = WIDTH[kind]
    exponent = data.draw(values(kind).map(abs).filter(lambda one: one <= RANGES[kind][1]))
    assert FUNCTIONS[f"power_{kind}"](a, exponent) == wrapped(kind, pow(a, exponent, 2**width))


@given(data=st.data())
@INTEGERS
def test_only_the_operands_that_have_no_result_are_faults(kind, data):
    a, b = data.draw(values(kind)), data.draw(values(kind))
    width = WIDTH[kind]
    assert FAULTS[f"floordiv_{kind}"](a, b) == FAULTS[f"mod_{kind}"](a, b) == (2 if b == 0 else 0)
    assert FAULTS[f"shift_left_{kind}"](a, b) == FAULTS[f"shift_right_{kind}"](a, b) == (0 if 0 <= b < width else 3)
    if f"power_{kind}" in FAULTS:
        assert FAULTS[f"power_{kind}"](a, b) == (4 if b < 0 else 0)
    for name in ("floordiv", "mod", "shift_left", "shift_right"):
        FUNCTIONS[f"{name}_{kind}"](a, b)  # whatever it gives, it does not trap


def rounded(kind, value):
    with np.errstate(all="ignore"):
        return float(DTYPES[kind](value))


@given(data=st.data())
@FLOATS
def test_float_arithmetic_rounds_once(kind, data):
    a, b = data.draw(values(kind)), data.draw(values(kind))
    x, y = DTYPES[kind](a), DTYPES[kind](b)
    with np.errstate(all="ignore"):
        expected = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "neg": -x, "abs": abs(x), "sqrt": np.sqrt(x)}
        expected |= {"floor": np.floor(x), "ceil": np.ceil(x), "trunc": np.trunc(x), "round": np.rint(x), "fabs": abs(x)}
        expected |= {"fmod": np.fmod(x, y), "copy": x}
    expected |= {"min": b if b < a else a, "max": b if b > a else a}
    for name, value in expected.items():
        name = f"{name}_{kind}"
        arguments = (a, b)[: len(SIGNATURES[name][0])]
        assert same(FUNCTIONS[name](*arguments), float(value)), name
    tests = {"isnan": math.isnan(a), "isinf": math.isinf(a), "isfinite": math.isfinite(a)}
    tests |= {"less": a < b, "less_equal": a <= b, "equal": a == b, "not_equal": a != b}
    for name, value in tests.items():
        name = f"{name}_{kind}"
        assert FUNCTIONS[name](*(a, b)[: len(SIGNATURES[name][0])]) is value, name


@given(data=st.data())
def test_float_floor_division_and_modulo_are_numpys(data):
    a, b = np.float32(data.draw(values("f32"))), np.float32(data.draw(values("f32")))
    with np.errstate(all="ignore"):
        assert same(FUNCTIONS["floordiv_f32"](a, b), float(a // b))
        assert same(FUNCTIONS["mod_f32"](a, b), float(np.mod(a, b)))


@given(data=st.data())
def test_half_floor_division_and_modulo_round_the_exact_result_once(data):
    a = data.draw(values("f16").filter(math.isfinite))
    b = data.draw(values("f16").filter(lambda one: math.isfinite(one) and one != 0))
    quotient = Fraction(a) / Fraction(b)
    assert FUNCTIONS["floordiv_f16"](a, b) == rounded("f16", float(math.floor(quotient)))
    rest = FUNCTIONS["mod_f16"](a, b)
    assert rest == rounded("f16", float(Fraction(a) - math.floor(quotient) * Fraction(b)))
    assert math.copysign(1, rest) == math.copysign(1, b)


@given(data=st.data())
def test_a_float_becomes_an_integer_cut_and_held_within_its_range(data):
    source = data.draw(st.sampled_from(["f32", "f16"]))
    target = data.draw(st.sampled_from(sorted(RANGES)))
    a = data.draw(values(source))
    low, high = RANGES[target]
    expected = 0 if math.isnan(a) else low if a <= low else high if a >= high else int(a)
    assert FUNCTIONS[f"{target}_from_{source}"](a) == expected


@given(data=st.data())
def test_an_integer_becomes_the_nearest_float(data):
    source = data.draw(st.sampled_from(sorted(RANGES)))
    a = data.draw(values(source) | st.integers(0, 70000))
    assert FUNCTIONS[f"f32_from_{source}"](a) == rounded("f32", DTYPES[source](a))
    assert FUNCTIONS[f"f16_from_{source}"](a) == rounded("f16", DTYPES[source](a))


@given(data=st.data())
def test_other_conversions_wrap_or_widen(data):
    source, target = data.draw(st.sampled_from(sorted(RANGES))), data.draw(st.sampled_from(sorted(RANGES)))
    a = data.draw(values(source))
    assert FUNCTIONS[f"{target}_from_{source}"](a) == wrapped(target, a)
    assert FUNCTIONS[f"bool_from_{source}"](a) is (a != 0)
    b = data.draw(st.booleans())
    assert FUNCTIONS[f"{target}_from_bool"](b) == int(b)
    x = data.draw(values("f32"))
    assert same(FUNCTIONS["f16_from_f32"](x), rounded("f16", x))
    assert same(FUNCTIONS["f32_from_f16"](rounded("f16", x)), rounded("f16", x))
    assert FUNCTIONS["bool_from_f32"](x) is (x != 0)


@given(st.integers(-(2**31), 2**31 - 1))
def test_narrow_integers_wrap(a):
    for name, dtype in (("i8", np.int8), ("u8", np.uint8), ("i16", np.int16), ("u16", np.uint16)):
        assert FUNCTIONS[f"wrap_{name}"](a) == np.int32(a).astype(dtype)


@given(a=st.booleans(), b=st.booleans())
def test_bools_have_logic_only(a, b):
    expected = {"and": a & b, "or": a | b, "xor": a ^ b, "equal": a == b, "not_equal": a != b, "less": a < b, "less_equal": a <= b}
    for name, value in expected.items():
        assert FUNCTIONS[f"{name}_bool"](a, b) is value
    assert FUNCTIONS["not_bool"](a) is (not a)


MATH = {
    "exp": (math.exp, -80, 80), "expm1": (math.expm1, -20, 80), "exp2": (math.exp2, -80, 80), "log": (math.log, 1e-30, 1e30),
    "log2": (math.log2, 1e-30, 1e30), "log10": (math.log10, 1e-30, 1e30), "log1p": (math.log1p, -0.99, 1e30),
    "sin": (math.sin, -1e4, 1e4), "cos": (math.cos, -1e4, 1e4), "tan": (math.tan, -1e4, 1e4), "asin": (math.asin, -1, 1),
    "acos": (math.acos, -1, 1), "atan": (math.atan, -1e30, 1e30), "sinh": (math.sinh, -80, 80), "cosh": (math.cosh, -80, 80),
    "tanh": (math.tanh, -20, 20), "erf": (math.erf, -5, 5), "erfc": (math.erfc, -5, 5),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), -80, 80), "rsqrt": (lambda x: 1 / math.sqrt(x), 1e-30, 1e30),
}  # fmt: skip


@given(data=st.data())
@FLOATS
@pytest.mark.parametrize("name", MATH)
def test_a_transcendental_function_is_the_float64_function_rounded_once(name, kind, data):
    function, low, high = MATH[name]
    if kind == "f16":
        low, high = max(low, 1e-7 if low > 0 else -6e4), min(high, 6e4)
    a = rounded(kind, data.draw(st.floats(low, high)))
    # Python's math module may have an erf and erfc of its own, a unit in the last place of float64 from the C library's.
    near = {rounded(kind, function(a) * (1 + step * 2.0**-52)) for step in (-1, 0, 1)}
    assert FUNCTIONS[f"{name}_{kind}"](a) in near


@given(data=st.data())
@FLOATS
def test_functions_of_two_floats_are_the_float64_functions_rounded_once(kind, data):
    a, b = data.draw(values(kind).filter(math.isfinite)), data.draw(values(kind).filter(math.isfinite))
    assert same(FUNCTIONS[f"atan2_{kind}"](a, b), rounded(kind, math.atan2(a, b)))
    near = {rounded(kind, math.hypot(a, b) * (1 + step * 2.0**-52)) for step in (-1, 0, 1)}
    assert FUNCTIONS[f"hypot_{kind}"](a, b) in near
    with np.errstate(all="ignore"):
        expected = rounded(kind, np.float64(a) ** np.float64(b))
    assert same(FUNCTIONS[f"power_{kind}"](a, b), expected)
    assert same(FUNCTIONS[f"pow_{kind}"](a, b), expected)
    assert FUNCTIONS[f"copysign_{kind}"](a, b) == math.copysign(a, b)


def test_the_sign_of_a_nan_cannot_be_seen():
    assert FUNCTIONS["copysign_f32"](-2.0, math.nan) == FUNCTIONS["copysign_f32"](-2.0, -math.nan) == 2.0


def test_floating_point_exceptions_are_told_apart_and_only_those_asked_for_are_faults():
    nan, inf = math.nan, math.inf
    assert floating_fault("sub_f32", 7, nan, inf, inf) == 8
    assert floating_fault("add_f32", 7, nan, nan, 1.0) == 0
    assert floating_fault("mul_f32", 7, inf, 3e38, 2.0) == 9
    assert floating_fault("mul_f32", 7, inf, inf, 2.0) == 0
    assert floating_fault("div_f32", 7, -inf, -1.0, 0.0) == 10
    assert floating_fault("div_f32", 7, inf, 3e38, 1e-3) == 9
    assert floating_fault("log_f16", 7, -inf, 0.0) == 10
    assert floating_fault("add_f32", 7, 3.0, 1.0, 2.0) == 0
    assert floating_fault("sub_f32", 6, nan, inf, inf) == 0
    assert floating_fault("mul_f32", 5, inf, 3e38, 2.0) == 0
    assert floating_fault("div_f32", 3, inf, 1.0, 0.0) == 0


def test_an_unknown_operation_is_refused_with_the_nearest_name():
    with pytest.raises(LookupError, match="no device operation 'add_f64'; did you mean 'add_"):
        typed_operation("add_f64")
