"""Codelets written by hand in the typed form, and what they compute."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypoplar.codelet.ir.terms import Location
from pypoplar.codelet.ir.typed import (
    Apply,
    For,
    Length,
    Literal,
    Load,
    Local,
    Price,
    PricedCodelet,
    Row,
    Span,
    SpanList,
    Store,
    TypedField,
)

RANDOM = np.random.default_rng(5)
START = RANDOM.bit_generator.state


def i32(value: int) -> Literal:
    return Literal(value, "i32")


def f32(value: float) -> Literal:
    return Literal(value, "f32")


def codelet(
    fields: Sequence[str], *body: Any, kind: Any = "vertex", returns: bool = False, worker: Local | None = None
) -> PricedCodelet:
    """A codelet from field texts such as ``"a input vector f32"``."""
    rows: list[Any] = [text.split() for text in fields]
    typed_fields = tuple(TypedField(*row) for row in rows)
    places = tuple(Location("codelets.py", line, "compute") for line in range(10))
    return PricedCodelet("Test", kind, typed_fields, tuple(body), returns, places, ("first", "second"), worker)


A, B, OUT = Span("a", "f32"), Span("b", "f32"), Span("out", "f32")

K, N, J = Local("i", "i32"), Local("n", "i32"), Local("j", "i32")

X, Y, Z, TOTAL = Local("x", "f32"), Local("y", "f32"), Local("z", "f32"), Local("total", "f32")

DOT = codelet(
    ["a input vector f32", "b input vector f32", "out output scalar f32"],
    Price(14),
    Apply(TOTAL, "copy_f32", (f32(0.0),), 0),
    Length(N, A, 0),
    For(
        K, i32(0), N, i32(1),
        (
            Price(4),
            Load(X, A, K, 1),
            Load(Y, B, K, 2),
            Apply(Z, "mul_f32", (X, Y), 1),
            Apply(TOTAL, "add_f32", (TOTAL, Z), 1),
        ),
        1,
    ),
    Price(2),
    Store(OUT, i32(0), TOTAL, 3, checked=False),
)  # fmt: skip


def ordered_dot(a: Iterable[Any], b: Iterable[Any]) -> np.float32:
    total = np.float32(0)
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def floats(*shape: int) -> NDArray[np.float32]:
    return RANDOM.standard_normal(shape).astype(np.float32)


STENCIL = codelet(
    ["a input list f32", "out output list f32"],
    Length(N, SpanList("a", "f32"), 0),
    Apply(N, "sub_i32", (N, i32(1)), 0),
    For(
        K, i32(1), N, i32(1),
        (
            Row(Span("row", "f32"), SpanList("a", "f32"), K, 1),
            Length(Local("m", "i32"), Span("row", "f32"), 1),
            Apply(Local("m1", "i32"), "sub_i32", (Local("m", "i32"), i32(1)), 1),
            Price(5),
            For(
                J, i32(1), Local("m1", "i32"), i32(1),
                (
                    Price(11),
                    Apply(Local("r", "i32"), "sub_i32", (K, i32(1)), 2),
                    Row(Span("up", "f32"), SpanList("a", "f32"), Local("r", "i32"), 2),
                    Load(X, Span("up", "f32"), J, 2),
                    Apply(Local("r", "i32"), "add_i32", (K, i32(1)), 3),
                    Row(Span("down", "f32"), SpanList("a", "f32"), Local("r", "i32"), 3),
                    Load(Y, Span("down", "f32"), J, 3),
                    Apply(X, "add_f32", (X, Y), 3),
                    Apply(Local("c", "i32"), "sub_i32", (J, i32(1)), 4),
                    Load(Y, Span("row", "f32"), Local("c", "i32"), 4),
                    Apply(X, "add_f32", (X, Y), 4),
                    Apply(Local("c", "i32"), "add_i32", (J, i32(1)), 5),
                    Load(Y, Span("row", "f32"), Local("c", "i32"), 5),
                    Apply(X, "add_f32", (X, Y), 5),
                    Apply(X, "mul_f32", (X, f32(0.25)), 5),
                    Row(Span("to", "f32"), SpanList("out", "f32"), K, 6),
                    Store(Span("to", "f32"), J, X, 6),
                ),
                2,
            ),
        ),
        1,
    ),
)  # fmt: skip
