"""What the libraries' estimators of floating-point operations have in common: the conventions of PopLibs' FlopEstimation.

They give a vertex's operations, those of all workers of a MultiVertex together. See `pypoplar.codelet.ir.flops` for what counts.
"""

from __future__ import annotations

MULTIPLY_ADD = 2  # flopsForMAC


def sum_flops(count: int) -> int:
    """A sum of so many numbers; the largest of them takes as many comparisons."""
    return max(count - 1, 0)
