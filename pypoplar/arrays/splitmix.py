"""Numbers of 64 bits that look random and are always the same: those of the splitmix64 generator."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import UInt64s

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def splitmix64(places: UInt64s, seed: int = 0) -> UInt64s:
    """What the generator gives at each of these places, counted from 0, after it began with a seed. Written over the places."""
    places += np.uint64(1)
    places *= _STEP
    places += np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    for shift, factor in _ROUNDS:
        places ^= places >> np.uint64(shift)
        places *= np.uint64(factor)
    places ^= places >> np.uint64(31)
    return places
