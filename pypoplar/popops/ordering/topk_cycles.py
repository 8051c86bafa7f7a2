"""Worker cycles of the vertices that compare and swap, by popopsCycleEstimators of PopLibs."""

from __future__ import annotations

from enum import Enum

from pypoplar.poputil.cycles import supervisor_slots
from pypoplar.types import FLOAT, ElementType

SUPERVISOR = supervisor_slots(19)


class Companions(Enum):
    """What moves with the keys: nothing, values, or values that decide between equal keys."""

    NONE = "none"
    CARRIED = "carried"
    SECONDARY = "secondary"


# By float keys or integers: what a worker begins with (overhead, entry of the work list, outer loop), and what each pair takes.
COSTS: dict[tuple[bool, Companions], tuple[int, int]] = {
    (True, Companions.NONE): (40 + 17 + 3, 13),
    (False, Companions.NONE): (42 + 22 + 3, 12),
    (True, Companions.CARRIED): (23 + 4 + 11, 11),
    (False, Companions.CARRIED): (43 + 30 + 5, 17),
    (True, Companions.SECONDARY): (45 + 30 + 6, 25),
    (False, Companions.SECONDARY): (49 + 30 + 7, 27),
}


def swap_cycles(pairs: int, type: ElementType, companions: Companions) -> int:
    """Of a worker that compares so many pairs and swaps all of them."""
    start, pair = COSTS[type is FLOAT, companions]
    return SUPERVISOR + start + pair * pairs
