"""Register types: what a local of device code holds, and how a number becomes one of them.

FLOAT is ``f32`` and HALF ``f16``; both are Python's floats that a float32 or a half can be. A NaN that an operation makes has some
sign and payload.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

Number = int | float | bool

FLOATS = ("f32", "f16")
SIGNED = ("i32", "i64")
INTEGERS = ("i32", "u32", "i64", "u64")
NUMBERS = FLOATS + INTEGERS
REGISTERS = (*NUMBERS, "bool")
WIDTH = {"i32": 32, "u32": 32, "i64": 64, "u64": 64}


def limits(type: str) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    width = WIDTH[type]
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if type in SIGNED else (0, (1 << width) - 1)


_SINGLE, _HALF = struct.Struct("f"), struct.Struct("e")


def single(value: float) -> float:
    """The nearest float32 of a float64."""
    rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    return rounded


def half(value: float) -> float:
    """The nearest half of a float64."""
    try:
        rounded: float = _HALF.unpack(_HALF.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def rounding(type: str, meaning: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    """`meaning` with its result rounded once to a register type, or wrapped at its width.

    It is written out for one and two arguments: the interpreter spends its time here.
    """
    if arguments > 2:
        finish = _FINISH[type]
        return lambda *operands: finish(meaning(*operands))
    return (_one_argument if arguments == 1 else _two_arguments)(type, meaning)


def _one_argument(type: str, meaning: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if type == "f32":
        pack, unpack = _SINGLE.pack, _SINGLE.unpack
        return lambda a: unpack(pack(meaning(a)))[0]
    finish = _FINISH[type]
    return lambda a: finish(meaning(a))


def _two_arguments(type: str, meaning: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    if type == "f32":
        pack, unpack = _SINGLE.pack, _SINGLE.unpack
        return lambda a, b: unpack(pack(meaning(a, b)))[0]
    if type == "f16":
        return _half_of_two(meaning)
    if type == "bool":
        return lambda a, b: bool(meaning(a, b))
    low, high = limits(type)
    size = high - low + 1

    def wrapped(a: int, b: int) -> int:
        value: int = meaning(a, b)
        return value if low <= value <= high else (value - low) % size + low

    return wrapped


def _half_of_two(meaning: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    pack, unpack = _HALF.pack, _HALF.unpack

    def rounded(a: float, b: float) -> float:
        value = meaning(a, b)
        try:
            return unpack(pack(value))[0]  # type: ignore[no-any-return]
        except OverflowError:
            return math.copysign(math.inf, value)

    return rounded


def _wrapping(type: str) -> Callable[[int], int]:
    low, high = limits(type)
    size = high - low + 1
    return lambda value: value if low <= value <= high else (value - low) % size + low


_FINISH: Mapping[str, Callable[[Any], Any]] = {
    "f32": single,
    "f16": half,
    "bool": bool,
    **{type: _wrapping(type) for type in INTEGERS},
}
