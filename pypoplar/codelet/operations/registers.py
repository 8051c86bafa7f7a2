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
SIGNED, UNSIGNED = ("i32", "i64"), ("u32", "u64")
INTEGERS = ("i32", "u32", "i64", "u64")
NUMBERS = FLOATS + INTEGERS
REGISTERS = (*NUMBERS, "bool")
WIDTH = {"i32": 32, "u32": 32, "i64": 64, "u64": 64}


def limits(type: str) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    width = WIDTH[type]
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if type in SIGNED else (0, (1 << width) - 1)


_SINGLE = struct.Struct("f")
_pack, _unpack = _SINGLE.pack, _SINGLE.unpack


def single(value: float) -> float:
    """The nearest float32 of a float64."""
    rounded: float = _unpack(_pack(value))[0]
    return rounded


_frexp = math.frexp
_BEYOND_HALVES = 65520.0  # from here on the nearest half is infinity
_BEYOND_ROUNDING = 65536.0  # from here on any rounding gives infinity
# A float64 loses all bits below a half's last one when this is added, by its exponent: the sum's last bit is worth the half's.
# (What a negative exponent indexes lies at the list's end.)
_SHIFTS = [1.5 * 2.0 ** (52 - 10 + max(exponent - 1, -14)) for exponent in (*range(17), *range(-1100, 0))]


def half(value: float) -> float:
    """The nearest half of a float64, rounded once."""
    if -_BEYOND_HALVES < value < _BEYOND_HALVES:
        shift = _SHIFTS[_frexp(value)[1]]
        return value + shift - shift or value * 0.0  # a zero keeps its sign
    return value if value != value else math.copysign(math.inf, value)


def half_at_random(value: float, bits: int) -> float:
    """One of the two neighbouring halves of a float32, the nearer the likelier; a half stays as it is.

    `bits` are 64 random ones, of which the upper 24 are a number in [0, 1): the magnitude goes up if that and its distance from the
    lower half, in units of the upper half's distance from it, are 1 or more together. Beyond 65504 the next is infinity.
    """
    magnitude = abs(value)
    if not magnitude < _BEYOND_ROUNDING:
        return half(value)
    unit = 2.0 ** max(_frexp(magnitude)[1] - 11, -24)
    whole, part = divmod(magnitude / unit, 1.0)
    rounded = (whole + (math.floor(part * 2.0**24) + (bits >> 40) >> 24)) * unit
    return math.copysign(rounded if rounded < _BEYOND_ROUNDING else math.inf, value)


def rounding(type: str, meaning: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    """`meaning` with its result rounded once to a register type, or wrapped at its width.

    It is written out for one and two arguments, and for FLOAT: the interpreter spends its time here.
    """
    finish = _FINISH[type]
    pack, unpack = _pack, _unpack
    match arguments, type:
        case 1, "f32":
            return lambda a: unpack(pack(meaning(a)))[0]
        case 2, "f32":
            return lambda a, b: unpack(pack(meaning(a, b)))[0]
        case 1, _:
            return lambda a: finish(meaning(a))
        case 2, _:
            return lambda a, b: finish(meaning(a, b))
        case _:
            return lambda *operands: finish(meaning(*operands))


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
