"""What the libraries' cycle estimators have in common.

The libraries' codelets stand for hand-written assembler of the vendor's libraries, so their cycles are those of the
estimators in these libraries' sources, as far as they are published (MIT licence). An estimator gives worker cycles:
for a MultiVertex those of its busiest worker, and the slots that pass while its supervisor prepares them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from pypoplar.target import Target
from pypoplar.types import FLOAT, ElementType

Count = TypeVar("Count", int, np.ndarray[Any, np.dtype[Any]])  # a number, or many at once


def ceiling(number: Count, divisor: int) -> Count:
    """`number` over `divisor`, rounded up."""
    return -(-number // divisor)


def supervisor_slots(cycles: int) -> int:
    """Tile cycles of a supervisor as worker slots of six cycles, to the nearest."""
    return (cycles + 3) // 6


def share_of_worker(elements: int, target: Target) -> int:
    """Elements that the busiest worker of a tile has."""
    return ceiling(elements, target.getNumWorkerContexts())


def by_type(type: ElementType, of_float: int, of_half: int) -> int:
    """The figure for a vertex on floats (or 32-bit integers) or on halves."""
    return of_float if type is FLOAT else of_half
