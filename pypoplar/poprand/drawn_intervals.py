"""Intervals of a type's numbers, and the scales and offsets with which random numbers stay within them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import frozen

from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.types import INT, ElementType

WHOLE_NUMBERS = 2**32  # of 32 bits


@frozen
class DrawnInterval:
    """The numbers of a type from `low` to `high`, both of which it has."""

    type: ElementType
    low: float
    high: float

    @staticmethod
    def within(call: str, type: ElementType, low: float, high: float) -> DrawnInterval:
        """The largest such interval in the given one; `PoplibsError` where there is none, or where the type ends before it."""
        given = f"[{low}, {high}]"
        if low > high:
            raise PoplibsError(f"{call}: minVal is above maxVal: {given}")
        if type is INT:
            return DrawnInterval._of_integers(call, low, high)
        largest = float(np.finfo(type.dtype).max)
        if low < -largest or high > largest:
            raise PoplibsError(f"{call}: {type!r} ends at {largest:.7g}, and the interval is {given}")
        inner = DrawnInterval(type, _at_least(type, low), -_at_least(type, -high))
        if inner.low > inner.high:
            raise PoplibsError(f"{call}: there is no {type!r} in the interval {given}")
        return inner

    @staticmethod
    def _of_integers(call: str, low: float, high: float) -> DrawnInterval:
        for name, value in (("minVal", low), ("maxVal", high)):
            if value != int(value):
                raise PoplibsError(f"{call}: {name} of INTs is a whole number, got {value}")
        if low < -(2**31) or high >= 2**31:
            raise PoplibsError(f"{call}: INT goes from {-(2**31)} to {2**31 - 1}, and the interval is [{low:.0f}, {high:.0f}]")
        return DrawnInterval(INT, int(low), int(high))

    def integer_scale(self) -> int:
        """How many integers there are, modulo 2**32."""
        return int(self.high - self.low + 1) % WHOLE_NUMBERS

    def scale_and_offset(self, call: str) -> tuple[float, float]:
        """FLOATs with which a number from -1/2 to 1/2, times scale, plus offset, is in the interval, however it is rounded.

        The offset is the middle, or the FLOAT next to it; the scale is twice the distance to the nearer end.
        """
        low, high = Fraction(self.low), Fraction(self.high)
        offset = float(np.float32(float((low + high) / 2)))
        width = 2 * min(Fraction(offset) - low, high - Fraction(offset))
        if width > Fraction(float(np.finfo(np.float32).max)):
            raise PoplibsError(f"{call}: the interval [{self.low}, {self.high}] is wider than the largest FLOAT")
        scale = np.float32(float(width))
        if Fraction(float(scale)) > width:
            scale = np.nextafter(scale, np.float32(0))
        return float(scale), offset


def _at_least(type: ElementType, value: float) -> float:
    """The least number of a type that is not below `value`."""
    nearest = type.dtype.type(value)
    return float(nearest if float(nearest) >= value else np.nextafter(nearest, type.dtype.type(np.inf)))
