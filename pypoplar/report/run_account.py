"""What runs have cost, as the engine counts it."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from pypoplar.executable.executable import Array
from pypoplar.report.execution import Trace


def _nothing() -> Array:
    return np.zeros(0, np.int64)


@frozen(eq=False)
class RunAccount:
    """Counts of one run, or of `count` runs together, by static step of the executable, summed over all executions."""

    name: str
    count: int
    executions: Array  # int64 [steps]
    compute_cycles: Array  # int64 [steps]: of the slowest tile
    first_tile: Array  # int64 [steps + 1]: where a compute step's active tiles begin in the next two
    tile_cycles: Array  # int64
    tile_slots: Array  # int64: worker slots of all vertices of the tile
    codelet_slots: Array  # int64 [codelets]
    # With the option profiler.includeFlopEstimates, else empty: floating-point operations, and bytes loaded and stored by vertices.
    step_flops: Array = field(factory=_nothing)  # int64 [steps]
    step_bytes: Array = field(factory=_nothing)  # int64 [steps]
    codelet_flops: Array = field(factory=_nothing)  # int64 [codelets]
    codelet_bytes: Array = field(factory=_nothing)  # int64 [codelets]


@frozen(eq=False)
class RunHistory:
    """The runs since the engine was loaded, or its profile reset."""

    programs: tuple[str, ...]  # names of what has run, in order; equal neighbours count once
    runs: tuple[RunAccount, ...]  # those kept apart, then all further ones together
    trace: Trace
