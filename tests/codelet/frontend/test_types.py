"""The types of device code: literals, promotion, joins of locals, stores."""

import numpy as np
import pytest
from codelet_rig import DTYPES, codelet_of, lines, run, vertex

from pypoplar.errors import CodeletError
from pypoplar.types import SUPPORTED

FIELDS = """
f: FLOAT
h: HALF
i: INT
u: UNSIGNED_INT
l: LONGLONG
ul: UNSIGNED_LONGLONG
c: CHAR
uc: UNSIGNED_CHAR
s: SHORT
us: UNSIGNED_SHORT
b: BOOL
"""
MODULE = """
HALF_ONE = 0.5
SEVEN = 7
YES = True

def same(x):
    return x

def scaled(x, k=0.1):
    return x * k

def relu(x):
    if x > 0:
        return x
    return 0.0

def either(b, x, y):
    if b:
        return x
    return y
"""


def type_of(expression, before=""):
    """The type of a local that is assigned an expression."""
    made = lines(vertex(f"{before}\nresult = {expression}", fields=FIELDS, prelude=MODULE))
    (found,) = {one.strip().split(" = ")[0] for one in made if one.strip().startswith("result:")}
    return found.removeprefix("result:")


TYPES = [
    # literals alone
    ("1", "i32"), ("1.0", "f32"), ("True", "bool"), ("-1", "i32"), ("1 + 1.0", "f32"), ("1 / 2", "f32"), ("7 // 2", "i32"),
    ("2 ** -1", "f32"), ("1 < 2", "bool"), ("SEVEN", "i32"), ("HALF_ONE", "f32"), ("YES", "bool"), ("math.pi", "f32"),
    ("math.sqrt(2)", "f32"), ("int(2.5)", "i32"), ("float(2)", "f32"), ("abs(-2)", "i32"), ("min(1, 2.0)", "i32"),
    # a literal takes the other operand's type
    ("self.h + 1", "f16"), ("self.h + 1.0", "f16"), ("0.5 * self.h", "f16"), ("self.f + 1", "f32"), ("self.i + 1", "i32"),
    ("self.u + 1", "u32"), ("1 + self.l", "i64"), ("self.ul - 1", "u64"), ("self.i + 1.0", "f32"), ("self.u * 0.5", "f32"),
    ("self.h * HALF_ONE", "f16"), ("self.h + math.pi", "f16"), ("self.h + (1 + 0.5) * 2", "f16"), ("min(self.h, 1.0)", "f16"),
    ("self.h if self.b else 0.0", "f16"), ("self.h or 1.0", "f16"), ("1 << self.u", "u32"), ("self.l << 1", "i64"),
    ("scaled(self.h)", "f16"), ("scaled(self.h, 2)", "f16"), ("same(2.0) * self.h", "f16"), ("relu(self.h)", "f16"),
    ("relu(self.f)", "f32"), ("relu(self.i)", "f32"), ("either(self.b, 0, self.h)", "f16"), ("either(self.b, 0, 1.0)", "f32"),
    # promotion
    ("self.f + self.h", "f32"), ("self.h + self.h", "f16"), ("self.f + self.i", "f32"), ("self.u * self.f", "f32"),
    ("self.i + self.u", "u32"), ("self.c + self.c", "i32"), ("self.uc * self.s", "i32"), ("self.us + self.u", "u32"),
    ("self.i + self.l", "i64"), ("self.u + self.l", "i64"), ("self.l + self.ul", "u64"), ("self.i + self.ul", "u64"),
    ("self.i / self.i", "f32"), ("self.u / 2", "f32"), ("self.c / self.c", "f32"), ("self.h / self.h", "f16"),
    ("self.i // self.i", "i32"), ("self.f // self.h", "f32"), ("self.f % 2", "f32"), ("self.i ** 2", "i32"),
    ("self.i ** self.i", "i32"), ("self.f ** 0.5", "f32"), ("self.i ** 0.5", "f32"), ("self.h ** 2", "f16"),
    ("self.b & self.b", "bool"), ("self.b ^ True", "bool"), ("self.i & self.u", "u32"), ("~self.c", "i32"), ("-self.u", "u32"),
    ("self.i << self.u", "i32"), ("self.u >> self.i", "u32"), ("self.l >> self.i", "i64"), ("+self.c", "i32"),
    ("max(self.h, self.f, 1)", "f32"), ("abs(self.h)", "f16"), ("abs(self.u)", "u32"), ("self.c", "i32"), ("self.us", "i32"),
    # comparisons and conditions
    ("self.i < self.u", "bool"), ("self.h == self.f", "bool"), ("self.b == True", "bool"), ("not self.i", "bool"),
    ("self.i and self.u", "u32"), ("self.f or self.h", "f32"), ("self.b and self.i > 0", "bool"), ("0 < self.f < 1", "bool"),
    # conversions
    ("int(self.f)", "i32"), ("int(self.l)", "i32"), ("int(self.u)", "i32"), ("int(self.b)", "i32"), ("float(self.h)", "f32"),
    ("float(self.l)", "f32"), ("float(self.b)", "f32"), ("bool(self.f)", "bool"), ("HALF(self.f)", "f16"), ("HALF(self.i)", "f16"),
    ("HALF(1)", "f16"), ("FLOAT(1)", "f32"), ("UNSIGNED_INT(1)", "u32"), ("LONGLONG(self.f)", "i64"), ("CHAR(self.i)", "i32"),
    ("UNSIGNED_SHORT(self.f)", "i32"), ("BOOL(self.i)", "bool"), ("BOOL(1)", "bool"), ("UNSIGNED_LONGLONG(2 ** 63)", "u64"),
    # functions
    ("math.exp(self.h)", "f16"), ("math.exp(self.f)", "f32"), ("math.sqrt(self.i)", "f32"), ("math.atan2(self.h, 1)", "f16"),
    ("math.pow(self.f, self.h)", "f32"), ("math.isnan(self.h)", "bool"), ("math.floor(self.f)", "f32"), ("round(self.h)", "f16"),
    ("ipu.sigmoid(self.h)", "f16"), ("ipu.popcount(self.u)", "u32"), ("ipu.clz(self.c)", "i32"), ("ipu.random_uint()", "u32"),
    ("ipu.random_ulonglong()", "u64"), ("ipu.random_float()", "f32"), ("ipu.cycle_count()", "u32"), ("math.floor(2.5)", "f32"),
    ("round(2.5)", "f32"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), TYPES)
def test_the_type_of_an_expression(expression, expected):
    assert type_of(expression) == expected


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ("t = 0\nt = self.i", "i32"),
        ("t = 0\nt = 1.0", "f32"),
        ("t = 0\nt = self.f", "f32"),
        ("t = self.i\nt = self.f", "f32"),
        ("t = self.f\nt = self.h", "f32"),
        ("t = 0.0\nt = self.h", "f32"),
        ("t = 0.0\nt += self.h", "f32"),
        ("t = self.h\nt = t * 2", "f16"),
        ("t = self.h\nt += self.f", "f32"),
        ("t = self.b\nt = True", "bool"),
        ("t = UNSIGNED_INT(0)\nt += self.u", "u32"),
        ("t = self.c\nt = self.us", "i32"),
        ("t: HALF = 0\nt = self.f", "f16"),
        ("t: UNSIGNED_INT = 0\nt = self.i", "u32"),
        ("t: float = 0\nt = self.i", "f32"),
        ("t: LONGLONG = 1\nt += self.i", "i64"),
        ("t: int = 0", "i32"),
        ("t: bool = True", "bool"),
        ("t: FLOAT\nt = 1", "f32"),
    ],
)
def test_a_local_has_the_join_of_its_assignments(assignments, expected):
    assert type_of("t", assignments) == expected


@pytest.mark.parametrize("later", [False, True])
def test_a_join_that_comes_later_counts_from_the_start(later):
    body = "t = 0\nfor i in range(3):\n    s = t\n    t = " + ("0.5" if later else "1") + "\nresult = s"
    assert type_of("s", body.removesuffix("\nresult = s")) == ("f32" if later else "i32")


def test_types_that_follow_each_other_through_a_loop_settle():
    body = "a = 0\nb = 0\nc = 0\nd = 0\nfor i in range(9):\n    a = b\n    b = c\n    c = d\n    d = self.h + 0.5 * a"
    assert type_of("a", body) == "f32"


@pytest.mark.parametrize("element", [one for one in SUPPORTED if one.code != "bool"])
def test_a_literal_is_stored_as_the_fields_type(element):
    ran = run(vertex("self.v = 3", fields=f"v: Output[{element.__name__}]"), v=0)
    assert ran["v"] == [3]


STORES = [  # the field's type, the type of the value, what is stored for a value
    ("HALF", "FLOAT", 1.0001, np.float16(1.0)),
    ("FLOAT", "HALF", 0.333, np.float32(np.float16(0.333))),
    ("FLOAT", "INT", 16777217, np.float32(16777216)),
    ("FLOAT", "UNSIGNED_INT", 4294967295, np.float32(4294967296)),
    ("CHAR", "INT", 300, np.int8(44)),
    ("SIGNED_CHAR", "INT", -129, np.int8(127)),
    ("UNSIGNED_CHAR", "INT", -1, np.uint8(255)),
    ("SHORT", "UNSIGNED_INT", 65535, np.int16(-1)),
    ("UNSIGNED_SHORT", "LONGLONG", 65537, np.uint16(1)),
    ("INT", "UNSIGNED_INT", 4294967295, np.int32(-1)),
    ("INT", "LONGLONG", 2**32 + 5, np.int32(5)),
    ("UNSIGNED_INT", "INT", -1, np.uint32(4294967295)),
    ("LONGLONG", "INT", -1, np.int64(-1)),
    ("LONGLONG", "UNSIGNED_INT", 4294967295, np.int64(4294967295)),
    ("UNSIGNED_LONGLONG", "INT", -1, np.uint64(2**64 - 1)),
    ("INT", "CHAR", -5, np.int32(-5)),
]


@pytest.mark.parametrize(("field", "value", "given", "stored"), STORES)
def test_stores_convert_and_narrower_integers_wrap(field, value, given, stored):
    cls = vertex("self.out = self.given", fields=f"given: {value}\nout: Output[{field}]")
    codes = {one.name: one.element for one in codelet_of(cls).typed.fields}
    ran = run(cls, given=DTYPES[codes["given"]](given), out=0)
    assert ran.fields["out"].tobytes() == stored.tobytes()


INTS = [
    ("int(self.f)", 2.9, 2), ("int(self.f)", -2.9, -2), ("int(self.f)", 1e10, 2**31 - 1), ("int(self.f)", -1e10, -(2**31)),
    ("int(self.f)", float("nan"), 0), ("int(self.f)", float("inf"), 2**31 - 1), ("round(self.f)", 2.5, 2),
    ("round(self.f)", 3.5, 4),
    ("math.floor(self.f)", -2.5, -3), ("math.ceil(self.f)", -2.5, -2), ("math.trunc(self.f)", -2.5, -2),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "given", "expected"), INTS)
def test_a_float_becomes_an_integer_only_on_request(expression, given, expected):
    cls = vertex(f"self.out = int({expression})", fields="f: FLOAT\nout: Output[INT]")
    assert run(cls, f=given, out=0)["out"] == [expected]


def test_literals_round_to_the_type_that_they_take():
    cls = vertex(
        "self.a = self.h * 0.1\nself.b = self.f * 0.1\nself.c = 0.1", fields="h: HALF\nf: FLOAT\na: HALF\nb: FLOAT\nc: HALF"
    )
    ran = run(cls, h=3, f=3, a=0, b=0, c=0)
    assert ran.fields["a"].tobytes() == (np.float16(3) * np.float16(0.1)).tobytes()
    assert ran.fields["b"].tobytes() == (np.float32(3) * np.float32(0.1)).tobytes()
    assert ran.fields["c"].tobytes() == np.float16(0.1).tobytes()


def test_folded_literals_are_exact_until_they_meet_a_type():
    cls = vertex("self.out = self.x * (1.0 / 3.0) * 3\nself.n = (2 ** 40) // 2 ** 38", fields="x: FLOAT\nout: FLOAT\nn: INT")
    ran = run(cls, x=1, out=0, n=0)
    assert ran.fields["out"] == np.float32(1) * np.float32(1 / 3) * np.float32(3)
    assert ran["n"] == [4]


@pytest.mark.parametrize("one", ["math.inf", "-math.inf", "math.nan", "float(math.inf)"])
def test_infinity_and_nan_are_literals_of_every_float_type(one):
    ran = run(vertex(f"self.f = {one}\nself.h = {one}", fields="f: FLOAT\nh: HALF"), f=0, h=0)
    expected = eval(one, {"math": np, "float": float})
    np.testing.assert_array_equal([ran.fields["f"][0], ran.fields["h"][0]], [expected, expected])


def test_a_square_is_a_product():
    assert any("mul_f32 " in one for one in lines(vertex("self.f = self.f ** 2", fields="f: FLOAT")))


def test_a_vector_local_takes_vectors_of_one_element_type():
    with pytest.raises(CodeletError, match="another element type"):
        codelet_of(vertex("v = self.a\nv = self.b", fields="a: Input[Vector[FLOAT]]\nb: Input[Vector[HALF]]"))


def test_a_local_vector_is_read_only_if_any_vector_bound_to_it_is():
    fields = "a: Input[Vector[FLOAT]]\nb: Output[Vector[FLOAT]]\nk: BOOL"
    with pytest.raises(CodeletError, match="v, a view, is an Input"):
        codelet_of(vertex("v = self.b\nif self.k:\n    v = self.a\nv[0] = 1.0", fields=fields))
    codelet_of(vertex("v = self.b\nif self.k:\n    v = self.b[1:]\nv[0] = 1.0", fields=fields))


def test_an_annotated_local_is_checked_like_a_field():
    with pytest.raises(CodeletError, match="'t' is an INT, the value a FLOAT: write int"):
        codelet_of(vertex("t: INT = self.f", fields="f: FLOAT"))


def test_a_narrow_field_that_is_added_to_wraps():
    cls = vertex("self.n[0] += 100\nself.n[1] -= 1\nself.k += self.n[0]", fields="n: InOut[Vector[UNSIGNED_CHAR]]\nk: CHAR")
    ran = run(cls, n=[200, 0], k=100)
    assert ran["n"] == [44, 255]
    assert ran["k"] == [-112]
