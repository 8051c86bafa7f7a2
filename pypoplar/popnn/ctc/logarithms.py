"""Arithmetic with logarithms of probabilities, for the host and for device code."""

from __future__ import annotations

import math

NEVER = -65504.0  # the logarithm of the probability 0, as PopLibs'


def log_add(a: float, b: float) -> float:
    """The logarithm of the sum of two probabilities."""
    high = max(a, b)
    return high if high <= NEVER else high + math.log(1.0 + math.exp(min(a, b) - high))


def log_mul(a: float, b: float) -> float:
    """The logarithm of their product."""
    return max(a + b, NEVER)
