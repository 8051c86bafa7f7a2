"""`ipu.bit_cast`: the bits of a number as a type of the same size, alike in both engines and on the host."""

import math

import numpy as np
import pytest
from codelet_rig import codelet_of, lines, run, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import ipu
from pypoplar.errors import CodeletError
from pypoplar.types import FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_INT, UNSIGNED_LONGLONG, UNSIGNED_SHORT

PAIRS = [(FLOAT, INT), (FLOAT, UNSIGNED_INT), (HALF, SHORT), (HALF, UNSIGNED_SHORT), (INT, UNSIGNED_INT)]
PAIRS += [(LONGLONG, UNSIGNED_LONGLONG), (FLOAT, FLOAT), (HALF, HALF), (SHORT, UNSIGNED_SHORT)]
PAIRS += [(target, source) for source, target in PAIRS if source is not target]


def cast(source, target):
    fields = f"x: Input[Vector[{source.__name__}]]\ny: Output[Vector[{target.__name__}]]"
    return vertex(f"for i in range(len(self.x)):\n    self.y[i] = ipu.bit_cast(self.x[i], {target.__name__})", fields=fields)


CASTS = {pair: cast(*pair) for pair in PAIRS}


@pytest.mark.parametrize(("source", "target"), PAIRS)
@examples(40)
@given(data=st.data())
def test_the_bits_stay_and_a_nan_has_one_pattern(source, target, data):
    patterns = st.integers(0, 2 ** (8 * source.size) - 1)
    bits = np.array(data.draw(st.lists(patterns, min_size=1, max_size=5)), f"u{source.size}")
    values = bits.view(source.dtype)
    if source.is_floating and not target.is_floating:
        bits = np.where(np.isnan(values), 0x7FC00000 if source is FLOAT else 0x7E00, bits).astype(bits.dtype)
    ran = run(CASTS[source, target], x=values, y=np.zeros(len(values)), nan_bits=not target.is_floating)
    np.testing.assert_array_equal(ran.fields["y"], bits.view(target.dtype))
    on_host = [ipu.bit_cast(value, target) for value in values.tolist()]
    np.testing.assert_array_equal(np.array(on_host, target.dtype), bits.view(target.dtype))


def test_a_nan_that_an_operation_makes_has_the_pattern_too():
    cls = vertex("self.n = ipu.bit_cast(self.x - self.x, INT)\nself.s = ipu.bit_cast(self.h * 0.0, SHORT)",
                 fields="x: FLOAT\nh: HALF\nn: INT\ns: SHORT")  # fmt: skip
    ran = run(cls, x=math.inf, h=-math.inf, n=0, s=0)
    assert (ran["n"], ran["s"]) == ([0x7FC00000], [0x7E00])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ipu.bit_cast(1.0, INT)", 0x3F800000),
        ("ipu.bit_cast(1.0, SHORT)", 0x3C00),
        ("ipu.bit_cast(-2.0, UNSIGNED_SHORT)", 0xC000),
        ("int(ipu.bit_cast(0x40490FDB, FLOAT) * 100)", 314),
        ("int(ipu.bit_cast(0xC0490FDB, FLOAT) * 100)", -314),
        ("int(ipu.bit_cast(0x3C00, HALF))", 1),
        ("int(ipu.bit_cast(0xBC00, HALF))", -1),
        ("int(ipu.bit_cast(SHORT(0x3C00), HALF))", 1),
        ("int(ipu.bit_cast(SHORT(self.n), HALF))", 4),
        ("int(ipu.bit_cast(UNSIGNED_SHORT(self.n + 0x10000), HALF))", 4),
        ("int(ipu.bit_cast(self.u, FLOAT))", -2),
        ("ipu.bit_cast(self.u, INT) >> 31", -1),
        ("fast(0.25) > 1.98 and fast(0.25) < 2.01", True),
    ],
)
def test_literals_and_converted_numbers(text, expected):
    prelude = """
    def fast(x):
        bits = 0x5F3759DF - (ipu.bit_cast(x, INT) >> 1)
        y = ipu.bit_cast(bits, FLOAT)
        for _ in range(2):
            y = y * (1.5 - 0.5 * x * y * y)
        return y
    """
    cls = vertex(f"self.out = int({text})", fields="n: INT\nu: UNSIGNED_INT\nout: INT", prelude=prelude)
    assert run(cls, n=0x4400, u=0xC0000000, out=0)["out"] == [expected]


def test_it_costs_what_it_is_to_cross_the_register_files():
    assert "y:i32 = bits_f32 x" in " ".join(
        lines(vertex("x = self.x\ny = ipu.bit_cast(x, INT)\nself.n = y", fields="x: FLOAT\nn: INT"))
    )
    there = run(vertex("self.n = ipu.bit_cast(self.x, INT)", fields="x: FLOAT\nn: INT"), x=1, n=0)
    back = run(vertex("self.x = ipu.bit_cast(self.n, FLOAT)", fields="x: FLOAT\nn: INT"), x=1, n=0)
    assert there.slots == back.slots == 12 + 1 + 2 + 1


ONE_SIZE = "ipu.bit_cast takes types of one size:"
REFUSED = [
    ("ipu.bit_cast(self.x)", "write ipu.bit_cast(x, INT): a number and the type that its bits are to be"),
    ("ipu.bit_cast(self.x, 3)", "3 is no type; write ipu.bit_cast(x, INT), or another type"),
    ("ipu.bit_cast(self.x, int)", "int is no type; write ipu.bit_cast(x, INT), or another type"),
    ("ipu.bit_cast(self.x, HALF)", f"{ONE_SIZE} self.x is a FLOAT of 4 bytes, HALF has 2"),
    ("ipu.bit_cast(self.x, LONGLONG)", f"{ONE_SIZE} self.x is a FLOAT of 4 bytes, LONGLONG has 8"),
    ("ipu.bit_cast(1.5, LONGLONG)", f"{ONE_SIZE} 1.5 is a FLOAT of 4 bytes, LONGLONG has 8"),
    ("ipu.bit_cast(self.n, HALF)", f"{ONE_SIZE} self.n is an INT of 4 bytes, HALF has 2; write ipu.bit_cast(SHORT(self.n), HALF)"),
    ("ipu.bit_cast(self.n, SHORT)", f"{ONE_SIZE} self.n is an INT of 4 bytes, SHORT has 2"),
    ("ipu.bit_cast(self.c, HALF)", f"{ONE_SIZE} self.c is an INT of 1 bytes, HALF has 2; write ipu.bit_cast(SHORT(self.c), HALF)"),
    ("ipu.bit_cast(70000, HALF)", "70000 is out of the range of UNSIGNED_SHORT, 0 to 65535"),
    ("ipu.bit_cast(300, CHAR)", "300 is out of the range of UNSIGNED_CHAR, 0 to 255"),
    ("ipu.bit_cast(self.flag, CHAR)", "ipu.bit_cast is for numbers, not for BOOLs"),
    ("ipu.bit_cast(self.n, BOOL)", "ipu.bit_cast is for numbers, not for BOOLs"),
    ("ipu.bit_cast(self.v, INT)", "expected a number, got a vector, self.v; index it"),
    ("ipu.bit_cast(self.x, type=INT)", "ipu.bit_cast takes no keyword arguments in device code"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_types_of_other_sizes_are_refused(text, message):
    cls = vertex(f"a = {text}", fields="x: FLOAT\nn: INT\nc: CHAR\nflag: BOOL\nv: Vector[FLOAT]")
    with pytest.raises(CodeletError) as caught:
        codelet_of(cls)
    assert caught.value.msg == message


def test_a_template_casts_to_its_type():
    from typing import Generic, TypeVar

    from pypoplar import Output, Vertex
    from pypoplar.codelet.codelet import Codelet

    T = TypeVar("T")

    class Bits(Vertex, Generic[T]):
        x: FLOAT
        out: Output[T]

        def compute(self):
            self.out = ipu.bit_cast(self.x, T)

    assert run(Codelet.of_class(Bits, {T: UNSIGNED_INT}), x=-2.0, out=0)["out"] == [0xC0000000]
