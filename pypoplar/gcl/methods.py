"""The ways in which fragments go round, and which of them a collective chooses by the size of its data."""

from __future__ import annotations

METHODS = (
    "auto",
    "clockwise_ring",
    "anticlockwise_ring",
    "bidirectional_ring_pair",
    "meet_in_middle_ring",
    "quad_directional_ring",
    "broadcast",
)
IN_PARTS = {"bidirectional_ring_pair": 2, "quad_directional_ring": 4}
"""Parts of the data that go round by themselves, every other one against the clock."""

MIDDLE_BELOW = ((2, 1_245_184), (4, 4_980_736), (8, 39_845_888))
"""Of more than so many ranks a reduction meets in the middle below so many bytes: PopLibs' source of 2020."""
ALWAYS_ABOVE = 16  # ranks, of the same source: with more it always does


def automatic_method(ranks: int, ipus: int, bytes: int, *, gathers: bool) -> str:
    """The method that "auto" is for so many bytes of a replica of some IPUs, by the thresholds of PopLibs' source.

    A gather has half of them. IPUs are a mesh, as all targets have it.
    """
    if ipus > 1 or ranks <= 2:
        return "clockwise_ring"
    each = bytes * 2 if gathers else bytes
    if ranks > ALWAYS_ABOVE or any(ranks > above and each < below for above, below in MIDDLE_BELOW):
        return "meet_in_middle_ring"
    return "bidirectional_ring_pair"
