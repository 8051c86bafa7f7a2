"""Numbers as text: neighbours as a range, and how many there are of something."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypoplar.arrays.groups import distinct

MOST_RANGES = 8


def number_ranges(numbers: Iterable[int]) -> str:
    """``0-5, 7``; long lists are cut."""
    rising = distinct(np.fromiter(numbers, np.int64))
    breaks = np.flatnonzero(np.diff(rising) > 1)
    begins, ends = np.append(0, breaks + 1), np.append(breaks, len(rising) - 1)
    ranges = [
        f"{rising[begin]}" if begin == end else f"{rising[begin]}-{rising[end]}"
        for begin, end in zip(begins[:MOST_RANGES], ends[:MOST_RANGES], strict=True)
    ]
    more = f" and {len(begins) - MOST_RANGES} more ranges" if len(begins) > MOST_RANGES else ""
    return ", ".join(ranges) + more


def tile_ranges(tiles: Iterable[int]) -> str:
    """``tile 3``, or ``tiles 0-5, 7``; long lists are cut."""
    numbers = set(tiles)
    return f"tile{'' if len(numbers) == 1 else 's'} {number_ranges(numbers)}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 execution``, ``2,000 executions``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
