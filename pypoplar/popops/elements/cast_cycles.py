"""What casts take: castWorkerCycles and getCast1DCycleEstimate of PopLibs' PerformanceEstimation.

Conversions between FLOAT and HALF go by 64 bits, the others element by element; halves and bytes have code of their own.
"""

from __future__ import annotations

from pypoplar.popops.elements.loop_cycles import LoopRound
from pypoplar.poputil.cycles import supervisor_slots
from pypoplar.types import CHAR, FLOAT, HALF, INT, SHORT, SIGNED_CHAR, UNSIGNED_CHAR, ElementType

SUPERVISOR = supervisor_slots(12)
CALL = 18  # of the function that a worker calls
LOOP_START = 19
BYTES = (CHAR, SIGNED_CHAR, UNSIGNED_CHAR)


def cast_start_cycles() -> int:
    """What entering a cast takes, before its loop."""
    return SUPERVISOR + CALL + LOOP_START


def cast_round(source: ElementType, target: ElementType) -> LoopRound:
    """The round of a cast's loop, as part of a tree."""
    if target.dtype.itemsize == 8:
        return LoopRound(5 if source in (INT, CHAR, SIGNED_CHAR, SHORT) else 4, 1)
    if source in (FLOAT, HALF) and target in (FLOAT, HALF):
        return LoopRound(2, 4) if target is HALF else LoopRound(1, 2)
    return LoopRound(2, 1)


def cast_cycles(elements: int, source: ElementType, target: ElementType) -> int:
    """Worker cycles of a vertex that does nothing but cast, whose busiest worker has so many elements."""
    loop = cast_round(source, target)
    if target.dtype.itemsize == 8:
        return SUPERVISOR + CALL + 3 + loop.of(elements)
    if source is UNSIGNED_CHAR and target is HALF:
        return SUPERVISOR + CALL + 4 + _by_fours(elements, 14, 9, (2, 12, 14, 22))
    if source is HALF and target in BYTES:
        return SUPERVISOR + CALL + 4 + 4 + _by_fours(elements, 19, 16, (2, 14, 21, 29))
    vectors, rest = divmod(elements, loop.elements)
    tests = loop.elements.bit_length() - 1  # is there a half of a vector left, a quarter?
    return cast_start_cycles() + loop.cycles * vectors + tests + 2 * rest.bit_count()


def _by_fours(elements: int, first: int, round: int, rest: tuple[int, int, int, int]) -> int:
    """A loop over four elements, whose first round fills the pipeline, and what is left of four."""
    rounds, left = divmod(elements, 4)
    return (first + round * (rounds - 1) if rounds else 0) + rest[left]
