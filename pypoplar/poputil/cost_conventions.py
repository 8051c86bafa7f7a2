"""What the libraries' estimates have in common: operations by PopLibs' FlopEstimation, and the cycles of a superstep.

Operations are a vertex's, those of all workers of a MultiVertex together. See `pypoplar.codelet.ir.flops` for what counts.
"""

from __future__ import annotations

from pypoplar.target import Target

MULTIPLY_ADD = 2  # flopsForMAC
MESSAGE = 3  # cycles that a tile needs for a message, however short
SUPERSTEP = 120  # cycles of a compute set and its exchange beyond the sync, whatever they do


def sum_flops(count: int) -> int:
    """A sum of so many numbers; the largest of them takes as many comparisons."""
    return max(count - 1, 0)


def superstep_cycles(target: Target) -> int:
    """What a compute set with an exchange costs beside its work."""
    return target.getMaxIPUSyncDelay() + SUPERSTEP
