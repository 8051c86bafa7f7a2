"""Worker cycles of the vertices that encode, by popopsCycleEstimators of PopLibs."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.popops.elements.fill import fill_cycles
from pypoplar.poputil.cycles import ceiling, supervisor_slots
from pypoplar.types import HALF, UNSIGNED_INT, ElementType

IOTA_START = 10
IOTA_REGION = 4
IOTA_VECTOR = 3
SUPERVISOR = supervisor_slots(11)  # basicOpSupervisorOverhead
INDEX = 100  # C++, for one index
INDEX_IN_ASSEMBLER = supervisor_slots(62 + 12)  # of unsigned indices to halves


def iota_cycles(shares: Iterable[int], vector_width: int) -> int:
    """Of the busiest worker, by the elements that it has of each region."""
    return SUPERVISOR + IOTA_START + sum(IOTA_REGION + IOTA_VECTOR * ceiling(share, vector_width) for share in shares)


def one_hot_cycles(share: int, rows: int, index_type: ElementType, type: ElementType) -> int:
    """Of the busiest worker, which fills its share of the elements and goes over the rows that have some of these."""
    in_assembler = (index_type, type) == (UNSIGNED_INT, HALF)
    return SUPERVISOR + fill_cycles(share, type) + rows * (INDEX_IN_ASSEMBLER if in_assembler else INDEX)
