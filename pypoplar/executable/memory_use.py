"""What lies in the tiles' memories, in bytes by category."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class TileMemory:
    """Bytes of each tile by category, as they count against the target's memory.

    Variables that share memory count as the memory that they share. `always_live` and `not_always_live` are the categories, without
    gaps, by whether their contents are needed from run to run: they add up to `total` without `gaps`.
    """

    variables: Array
    constants: Array
    exchange_buffers: Array
    vertex_state: Array
    edge_pointers: Array
    code: Array
    stack: Array
    gaps: Array  # left empty by alignment
    always_live: Array
    not_always_live: Array  # what is shared by variables that live only at times, and exchange buffers

    def total(self) -> Array:
        whole: Array = (
            self.variables
            + self.constants
            + self.exchange_buffers
            + self.vertex_state
            + self.edge_pointers
            + self.code
            + self.stack
            + self.gaps
        )
        return whole
