"""Variables of a report, as tests write them down."""

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.report.memory_report import LoweredVariables


def with_one_life(
    names: tuple[str, ...], always: Bools, begin: Int64s, end: Int64s, first: Int64s, tile: Int64s, bytes: Int64s
) -> LoweredVariables:
    """Variables with at most one life each: `begin` and `end` are int64 [variables], -1 where there is none."""
    lives = np.asarray(begin) >= 0
    return LoweredVariables(names, always, offsets(lives), np.asarray(begin)[lives], np.asarray(end)[lives], first, tile, bytes)
