"""Claims about the lives of variables, which are only reported."""

from __future__ import annotations

import numpy as np

from pypoplar.executable.claims import LARGEST
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.named_checks import check_each, check_least, check_most, check_range, check_running, check_shape


def verify_lives(executable: Executable, tiles: int) -> None:
    """Check the lives of an executable whose memory by category has been checked."""
    lives, variables = executable.lives, len(executable.variable_names)
    ranges, rows = lives.range_begin.size, lives.tile.size
    check_shape("lives.always", lives.always, variables)
    check_running("lives.first_range", lives.first_range, variables, ranges)
    check_running("lives.first", lives.first, variables, rows)
    for name in ("range_begin", "range_end"):
        check_shape(f"lives.{name}", getattr(lives, name), ranges)
    check_least("lives.range_begin", lives.range_begin, 1)
    check_most("lives.range_end", lives.range_end, len(executable.steps))
    check_least("lives.range_end order", lives.range_end, lives.range_begin, "comes before the range begins", "lives.range_end")
    times = np.where(lives.always, np.diff(lives.first_range), 0)
    check_most("lives.always times", times, 0, "is true of a variable that lives only at times", "lives.always")
    for name, high in (("tile", tiles), ("bytes", LARGEST), ("offset", LARGEST), ("span", LARGEST)):
        check_shape(f"lives.{name}", getattr(lives, name), rows)
        check_range(f"lives.{name}", getattr(lives, name), 0, high)
    memory = executable.memory
    parts = memory.always_live + memory.not_always_live
    whole = memory.total() - memory.gaps
    check_each("memory parts", parts == whole, "and what is not always live are not the total", "memory.always_live")
