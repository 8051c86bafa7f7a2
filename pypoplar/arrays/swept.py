"""What sweeps fill: columns of results whose number only the sweep tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.host_code.sweep import SweepCode


def filled(code: SweepCode, given: tuple[Any, ...], room: int, columns: int) -> tuple[Int64s, ...]:
    """The columns that a sweep fills behind what it is given: with room for the number that is likely, or again for all."""
    made = [np.empty(room, np.int64) for _ in range(columns)]
    count = code(*given, *made)
    if count > room:
        made = [np.empty(count, np.int64) for _ in range(columns)]
        code(*given, *made)
    return tuple(shortened(column, count) for column in made)


def shortened(column: Int64s, count: int) -> Int64s:
    """Its first rows, which keep no more memory than twice their own."""
    return column[:count] if 2 * count >= len(column) else column[:count].copy()
