"""Numbers of register types to try operations on, and when two of them are the same."""

import math
from typing import Any

import numpy as np

from pypoplar.codelet.operations.registers import FLOATS, half, limits, single

SPECIAL = [0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 0.1, 7.0, math.pi, 1e-30, 1e30, 3e38, 88.7, 89.0, 104.0, 710.0, 65504.0, 1e-45, 6e-8]
SPECIAL += [2.0**31, 2.0**63, 2.0**64, 1 - 2.0**-24, 1 + 2.0**-23, math.inf, math.nan]
WHOLE = [0, 1, 2, 3, 7, 31, 32, 63, 2**24 + 1, 2**53, 2**53 + 1, 2**62 + 2**10 + 1, 2**31, 2**63]


def some(kind: str, random: np.random.Generator, count: int) -> list[Any]:
    """Registers of a type: special ones, small ones, any bits, and whatever lies between."""
    if kind == "bool":
        return [bool(random.integers(2)) for _ in range(count)]
    if kind in FLOATS:
        scales = 2.0 ** random.integers(-30, 30, count)
        sizes = np.concatenate([random.uniform(-100, 100, count), random.standard_normal(count) * scales])
        with np.errstate(invalid="ignore"):  # NaNs that signal
            bits = random.integers(0, 2**32, count, np.uint32).view(np.float32).astype(np.float64)
        chosen = random.choice(np.concatenate([SPECIAL * 20, np.negative(SPECIAL * 20), sizes, bits]), count)
        return [(single if kind == "f32" else half)(float(number)) for number in chosen]
    low, high = limits(kind)
    ends = [number for number in (low, low + 1, -1, *WHOLE, high - 1, high) if low <= number <= high]
    any_bits = random.integers(low, high, count, np.uint64 if low == 0 else np.int64, endpoint=True).tolist()
    spread = [number >> shift for number, shift in zip(any_bits, random.integers(0, 64, count).tolist(), strict=True)]
    return [ends[random.integers(len(ends))] if random.integers(3) == 0 else number for number in spread]


def same(left: Any, right: Any) -> bool:
    """Equal in type and value, except that a NaN has no sign and no payload."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return bool(left == right)
