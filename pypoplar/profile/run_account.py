"""What runs have cost so far, as the engine counts it."""

from __future__ import annotations

from attrs import frozen

from pypoplar.compiler.executable import Array


@frozen(eq=False)
class RunAccount:
    """Counts by static step of the executable, summed over all executions."""

    runs: tuple[str, ...]  # names of what has run, in order
    executions: Array  # int64 [steps]
    compute_cycles: Array  # int64 [steps]: of the slowest tile
    first_tile: Array  # int64 [steps]: where a compute step's active tiles begin in the next two
    tile_cycles: Array  # int64
    tile_slots: Array  # int64: worker slots of all vertices of the tile
    codelet_slots: Array  # int64 [codelets]
