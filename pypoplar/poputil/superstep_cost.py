"""What a compute set with an exchange costs beside its work."""

from __future__ import annotations

from pypoplar.target import Target

MESSAGE = 3  # cycles that a tile needs for a message, however short
SUPERSTEP = 120  # cycles of a compute set and its exchange beyond the sync, whatever they do


def superstep_cycles(target: Target) -> int:
    """What a compute set with an exchange costs beside its work."""
    return target.getMaxIPUSyncDelay() + SUPERSTEP
