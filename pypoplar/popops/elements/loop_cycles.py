"""Cycles of a round of element operations' inner loops: the tables of PopLibs' popopsCycleEstimators, as data.

``f32=3/2`` says that a round of the loop takes three cycles and does two FLOATs. PopLibs gives some figures without what a round
spends on loads, stores and the loop: 4 cycles for unary operations, 2 for binary ones and 1 for those with a single second
operand; here they are included. Of the two between variance and standard deviation PopLibs has the broadcast form alone: with two
loads a round takes one cycle more. A type that a form does not list has the figure of the form before it, and so has in place.
Broadcast means that one operand is a single element.
"""

from __future__ import annotations

import functools
from typing import Literal

from attrs import frozen

from pypoplar.poputil.cycles import ceiling

Form = Literal["plain", "in place", "broadcast", "broadcast in place"]
BEFORE: dict[Form, Form] = {"in place": "plain", "broadcast in place": "broadcast", "broadcast": "plain"}


@frozen
class LoopRound:
    """A round of an inner loop."""

    cycles: int
    elements: int

    def of(self, elements: int) -> int:
        """Cycles of the loop over so many elements."""
        return ceiling(elements, self.elements) * self.cycles


def loop_round(operation: str, type: str, form: Form) -> LoopRound:
    """The round of an operation on elements of a type, by its code; `LookupError` where PopLibs has none."""
    forms, wanted = _loops(operation), form
    while True:
        if wanted in forms and type in forms[wanted]:
            return forms[wanted][type]
        if wanted not in BEFORE:
            raise LookupError(f"{operation} has no loop for {type}")
        wanted = BEFORE[wanted]


@functools.cache
def _loops(operation: str) -> dict[Form, dict[str, LoopRound]]:
    rounds: dict[Form, dict[str, LoopRound]] = {}
    for form, text in LOOPS[operation].items():
        rows = (word.replace("/", "=").split("=") for word in text.split())
        rounds[form] = {type: LoopRound(int(cycles), int(elements)) for type, cycles, elements in rows}
    return rounds


LOOPS: dict[str, dict[Form, str]] = {
    "ABSOLUTE": {"plain": "f32=5/1 f16=5/1 i32=6/1 i64=14/1", "in place": "f32=5/2 f16=5/4"},
    "ASIN": {"plain": "f16=106/1 f32=106/1"},
    "BITWISE_NOT": {"plain": "i32=5/2 i64=7/1 u32=5/2 u64=7/1 i16=2/4 u16=2/4"},
    "CBRT": {"plain": "f32=31/2 f16=21/4"},
    "CEIL": {"plain": "f32=6/2 f16=6/4"},
    "COS": {"plain": "f32=2304/1 f16=25/1"},
    "INVERSE": {"plain": "f16=15/4 f32=6/2"},
    "COUNT_LEADING_ZEROS": {"plain": "i32=5/1 u32=5/1"},
    "ERF": {"plain": "f32=41/1 f16=13/1"},
    "GELU_ERF": {"plain": "f32=22/1 f16=16/1"},
    "EXPONENT": {"plain": "f32=6/2 f16=4/4"},
    "EXPONENT_MINUS_ONE": {"plain": "f32=8/1 f16=9/4"},
    "EXPONENT2": {"plain": "f32=6/2 f16=4/4"},
    "FLOOR": {"plain": "f32=6/2 f16=6/4"},
    "IS_FINITE": {"plain": "f32=9/2 f16=9/4"},
    "IS_INF": {"plain": "f32=7/2 f16=9/4"},
    "IS_NAN": {"plain": "f32=7/2 f16=7/4"},
    "LOGARITHM": {"plain": "f32=12/2 f16=4/4", "in place": "f32=14/2 f16=6/4"},
    "LOGARITHM_ONE_PLUS": {"plain": "f32=22/2 f16=22/4", "in place": "f16=21/4"},
    "LOGICAL_NOT": {"plain": "bool=21/1", "in place": "bool=21/8"},
    "NEGATE": {"plain": "f32=2/2 f16=2/4 i32=6/1 i64=9/1", "in place": "f32=3/2 f16=3/4"},
    "POPCOUNT": {"plain": "i32=5/1 u32=5/1"},
    "NEARBY_INT": {"plain": "f32=6/2 f16=6/4"},
    "ROUND": {"plain": "f32=6/2 f16=6/4"},
    "SIGNUM": {"plain": "f32=9/2 f16=9/4 i32=9/1"},
    "SIN": {"plain": "f32=2304/1 f16=25/1"},
    "SQRT": {"plain": "f32=10/2 f16=23/4 i32=114/1"},
    "SQUARE": {"plain": "f32=2/2 f16=2/4 i32=5/2 u32=5/2"},
    "TAN": {"plain": "f32=5100/1 f16=5700/1"},
    "TANH": {"plain": "f32=12/2 f16=4/4", "in place": "f32=10/2 f16=2/4"},
    "TRUNC": {"plain": "f32=3/2 f16=11/4", "in place": "f32=4/2"},
    "SIGMOID": {"plain": "f32=12/2 f16=6/4", "in place": "f32=10/2 f16=4/4"},
    "RSQRT": {"plain": "f32=8/2 f16=19/4"},
    "RELU": {"plain": "f32=3/2 f16=3/4", "in place": "f32=2/2 f16=2/4"},
    "ADD": {
        "plain": "f32=3/2 f16=3/4 i32=7/1 u32=7/1 u64=11/1 i64=11/1",
        "broadcast": "f32=2/2 f16=2/4 i32=6/1 u32=6/1 u64=9/1 i64=9/1",
    },
    "ATAN2": {"plain": "f32=272/2 f16=578/4", "broadcast": "f32=272/2 f16=578/4"},
    "BITWISE_AND": {
        "plain": "i32=7/1 u32=7/1 u64=9/1 i64=9/1 i16=3/4 u16=3/4",
        "broadcast": "i32=6/1 u32=6/1 u64=7/1 i64=7/1 i16=2/4 u16=2/4",
    },
    "BITWISE_OR": {
        "plain": "i32=7/1 u32=7/1 u64=9/1 i64=9/1 i16=3/4 u16=3/4",
        "broadcast": "i32=6/1 u32=6/1 u64=7/1 i64=7/1 i16=2/4 u16=2/4",
    },
    "BITWISE_XOR": {
        "plain": "i32=7/1 u32=7/1 u64=9/1 i64=9/1 i16=5/2 u16=5/2",
        "broadcast": "i32=6/1 u32=6/1 u64=7/1 i64=7/1 i16=4/2 u16=4/2",
    },
    "BITWISE_XNOR": {
        "plain": "i32=7/1 u32=7/1 u64=9/1 i64=9/1 i16=6/2 u16=6/2",
        "broadcast": "i32=6/1 u32=6/1 u64=7/1 i64=7/1 i16=4/2 u16=4/2",
    },
    "DIVIDE": {
        "plain": "f32=10/2 f16=21/4 i32=277/1 u32=265/1 u64=115/1 i64=130/1",
        "in place": "u32=264/1 u64=113/1",
        "broadcast": "f32=6/2 f16=8/2 i32=277/1 u32=260/1 u64=148/1 i64=103/1",
    },
    "LOGICAL_AND": {"plain": "bool=5/4", "broadcast": "bool=4/4"},
    "LOGICAL_OR": {"plain": "bool=5/4", "broadcast": "bool=4/4"},
    "MAXIMUM": {
        "plain": "f32=3/2 f16=4/4 i32=7/1 u32=8/1 u64=13/1 i64=15/1",
        "in place": "f32=4/2",
        "broadcast": "f32=3/2 f16=3/4 i32=6/1 u32=7/1 u64=11/1 i64=14/1",
    },
    "MINIMUM": {
        "plain": "f32=3/2 f16=4/4 i32=7/1 u32=8/1 u64=13/1 i64=15/1",
        "in place": "f32=4/2",
        "broadcast": "f32=3/2 f16=3/4 i32=6/1 u32=8/1 u64=13/1 i64=14/1",
    },
    "MULTIPLY": {
        "plain": "f32=3/2 f16=3/4 i32=7/1 u32=7/1 u64=30/1 i64=30/1",
        "in place": "u64=28/1 i64=28/1",
        "broadcast": "f32=2/2 f16=2/4 i32=6/1 u32=6/1 u64=26/1 i64=26/1",
    },
    "POWER": {
        "plain": "f32=312/1 f16=325/1 i32=32/1",
        "in place": "i32=34/1",
        "broadcast": "f32=312/1 f16=325/1 i32=23/1",
        "broadcast in place": "i32=25/1",
    },
    "REMAINDER": {
        "plain": "f32=133/2 f16=300/4 i32=292/1 u32=282/1 u64=149/1 i64=166/1",
        "in place": "u64=146/1 i64=165/1",
        "broadcast": "f32=93/2 f16=225/4 i32=280/1 u32=267/1 u64=178/1 i64=137/1",
        "broadcast in place": "u64=179/1 i64=135/1",
    },
    "SHIFT_LEFT": {
        "plain": "i32=7/1 u32=7/1 u64=18/1 i64=18/1",
        "in place": "u64=16/1 i64=16/1",
        "broadcast": "i32=6/1 i64=16/1 u32=6/1 u64=16/1",
    },
    "SHIFT_RIGHT": {"plain": "i32=7/1 u32=7/1 u64=6/1 i64=6/1", "broadcast": "i32=6/1 u32=6/1 u64=5/1 i64=5/1"},
    "SHIFT_RIGHT_SIGN_EXTEND": {"plain": "i32=7/1 i64=19/1", "in place": "i64=17/1", "broadcast": "i32=6/1 i64=17/1"},
    "SUBTRACT": {
        "plain": "f32=3/2 f16=3/4 i32=7/1 u32=7/1 u64=11/1 i64=11/1",
        "broadcast": "f32=2/2 f16=2/4 i32=6/1 u32=6/1 u64=9/1 i64=9/1",
    },
    "EQUAL": {
        "plain": "f32=14/4 f16=9/4 i32=22/4 u32=22/4 u64=48/4 i64=48/4 i16=22/4 u16=22/4 bool=6/4",
        "broadcast": "f32=12/4 f16=8/4 i32=16/4 u32=16/4 u64=32/4 i64=32/4 i16=16/4 u16=16/4 bool=14/4",
        "broadcast in place": "bool=5/4",
    },
    "GREATER_THAN": {
        "plain": "f32=14/4 f16=9/4 i32=22/4 u32=22/4 u64=56/4 i64=56/4 bool=31/4",
        "broadcast": "f32=12/4 f16=8/4 i32=16/4 u32=16/4 u64=38/4 i64=38/4 bool=12/4",
    },
    "GREATER_THAN_EQUAL": {
        "plain": "f32=14/4 f16=9/4 i32=26/4 u32=26/4 u64=62/4 i64=62/4 bool=28/4",
        "broadcast": "f32=12/4 f16=8/4 i32=20/4 u32=20/4 u64=50/4 i64=50/4 bool=12/4",
    },
    "LESS_THAN": {
        "plain": "f32=14/4 f16=9/4 i32=22/4 u32=22/4 u64=56/4 i64=56/4 bool=28/4",
        "broadcast": "f32=12/4 f16=8/4 i32=16/4 u32=16/4 u64=38/4 i64=38/4 bool=16/4",
    },
    "LESS_THAN_EQUAL": {
        "plain": "f32=14/4 f16=9/4 i32=26/4 u32=26/4 u64=62/4 i64=62/4 bool=28/4",
        "broadcast": "f32=12/4 f16=8/4 i32=20/4 u32=20/4 u64=50/4 i64=50/4 bool=16/4",
    },
    "NOT_EQUAL": {
        "plain": "f32=20/4 f16=11/4 i32=22/4 u32=22/4 u64=48/4 i64=48/4 i16=22/4 u16=22/4 bool=5/4",
        "broadcast": "f32=18/4 f16=10/4 i32=16/4 u32=16/4 u64=32/4 i64=32/4 i16=16/4 u16=16/4 bool=4/4",
    },
    "INV_STD_DEV_TO_VARIANCE": {"plain": "f32=12/2 f16=11/2", "broadcast": "f32=11/2 f16=10/2"},
    "VARIANCE_TO_INV_STD_DEV": {"plain": "f32=13/2 f16=25/4", "broadcast": "f32=12/2 f16=24/4"},
    "SELECT": {"plain": "f32=5/1 f16=5/1 i32=5/1 u32=5/1 i64=5/1 u64=5/1 i16=5/1 u16=5/1 i8=5/1 u8=5/1 bool=5/1"},
    "CLAMP": {"plain": "f32=2/2 f16=2/4 i32=7/1 u32=7/1"},
}
