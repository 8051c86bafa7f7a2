"""Claims about the lives of variables, which are only reported."""

from __future__ import annotations

import numpy as np

from pypoplar.executable.claims import LARGEST, claim_each, claim_range, claim_running, claim_shape
from pypoplar.executable.executable import Executable


def verify_lives(executable: Executable, tiles: int) -> None:
    """Check the lives of an executable whose memory by category has been checked."""
    lives, variables = executable.lives, len(executable.variable_names)
    ranges, rows = lives.range_begin.size, lives.tile.size
    claim_shape("lives.always", lives.always, variables)
    claim_running("lives.first_range", lives.first_range, variables, ranges)
    claim_running("lives.first", lives.first, variables, rows)
    for name in ("range_begin", "range_end"):
        claim_shape(f"lives.{name}", getattr(lives, name), ranges)
        claim_range(f"lives.{name}", getattr(lives, name), 1, len(executable.steps) + 1)
    claim_each("lives.range_end", lives.range_end >= lives.range_begin, "comes before the range begins")
    claim_each("lives.always", ~lives.always | (np.diff(lives.first_range) == 0), "is true of a variable that lives only at times")
    for name, high in (("tile", tiles), ("bytes", LARGEST)):
        claim_shape(f"lives.{name}", getattr(lives, name), rows)
        claim_range(f"lives.{name}", getattr(lives, name), 0, high)
    memory = executable.memory
    parts = memory.always_live + memory.not_always_live
    claim_each("memory.always_live", parts == memory.total() - memory.gaps, "and what is not always live are not the total")
