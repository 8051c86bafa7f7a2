"""Integers and bools of device code in many lanes at once: a lane is one of several executions of the same code.

In each lane a value is known or not. What is not computed here is known in none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s
from pypoplar.codelet.operations.table import typed_operation

TYPES = ("i32", "u32", "bool")  # that lanes know


@frozen(eq=False)
class LaneValue:
    """A number for each lane, a bool as 0 or 1."""

    numbers: Int64s
    known: Bools

    @staticmethod
    def unknown(lanes: int) -> LaneValue:
        return LaneValue(np.zeros(lanes, np.int64), np.zeros(lanes, bool))

    @staticmethod
    def of(number: int, lanes: int) -> LaneValue:
        """The same number in all lanes."""
        return LaneValue(np.full(lanes, number, np.int64), np.ones(lanes, bool))

    @property
    def true(self) -> Bools:
        """Where it is known not to be zero."""
        true: Bools = self.known & (self.numbers != 0)
        return true

    @property
    def false(self) -> Bools:
        """Where it is known to be zero."""
        false: Bools = self.known & (self.numbers == 0)
        return false

    def at(self, lane: Int64s) -> LaneValue:
        """The values of some lanes."""
        return LaneValue(self.numbers[lane], self.known[lane])


@frozen(eq=False)
class Applied:
    """What an operation gives, and in which lanes it surely is an error."""

    value: LaneValue
    faulty: Bools


def _by(function: Callable[[Int64s, Int64s], Int64s]) -> Callable[[Int64s, Int64s], Int64s]:
    """A division, which is an error by 0."""
    return lambda a, b: function(a, np.where(b == 0, 1, b))


def _wrapped(width: int, *, signed: bool) -> Callable[[AnyArray], AnyArray]:
    low = -(1 << (width - 1)) if signed else 0
    return lambda a: (a - low) % (1 << width) + low


_MEANINGS: Mapping[str, Callable[..., AnyArray]] = {
    "copy": np.positive, "i32_from": np.positive, "u32_from": np.positive,
    "bool_from": lambda a: a != 0, "not": lambda a: a == 0,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs,
    "floordiv": _by(np.floor_divide), "mod": _by(np.mod),
    "quotient": _by(lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))), "remainder": _by(np.fmod),
    "part": lambda a, b: np.maximum(a, 0) // np.maximum(b, 1),
    "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "invert": np.invert,
    "shift_left": lambda a, b: a << (b & 31), "shift_right": lambda a, b: a >> (b & 31),
    "less": np.less, "less_equal": np.less_equal, "equal": np.equal, "not_equal": np.not_equal,
    "wrap_i8": _wrapped(8, signed=True), "wrap_u8": _wrapped(8, signed=False),
    "wrap_i16": _wrapped(16, signed=True), "wrap_u16": _wrapped(16, signed=False),
}  # fmt: skip
_WRAPS: Mapping[str, Callable[[AnyArray], AnyArray]] = {
    "i32": _wrapped(32, signed=True),
    "u32": _wrapped(32, signed=False),
    "bool": lambda a: a,
}
_FAULTS: Mapping[str, Callable[[Int64s], Bools]] = {
    "floordiv": lambda b: b == 0,
    "mod": lambda b: b == 0,
    "quotient": lambda b: b == 0,
    "remainder": lambda b: b == 0,
    "shift_left": lambda b: (b < 0) | (b > 31),
    "shift_right": lambda b: (b < 0) | (b > 31),
}


def apply(name: str, arguments: Sequence[LaneValue]) -> Applied | None:
    """What operation `name` gives; None of one that is not computed here."""
    row, types = typed_operation(name).row, (*typed_operation(name).arguments, typed_operation(name).result)
    meaning = _MEANINGS.get(row.name)
    if meaning is None or not all(type in TYPES for type in types):
        return None
    known: Bools = np.logical_and.reduce([argument.known for argument in arguments])
    numbers = meaning(*(argument.numbers for argument in arguments)).astype(np.int64, copy=False)
    fault = _FAULTS.get(row.name)
    last = arguments[-1]
    faulty = fault(last.numbers) & last.known if fault is not None else np.zeros_like(known)
    return Applied(LaneValue(_WRAPS[types[-1]](numbers), known & ~faulty), faulty)
