"""Where the tiles' memories lie in the memories of their IPUs."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s

TILE_ALIGNMENT = 64  # of each tile's memory: a cache line of the host, so that threads do not share one


@frozen(eq=False)
class MemoryLayout:
    """Every IPU has as many tiles as the others; their memories lie end to end in its own, in the order of the tiles."""

    tile_bytes: Int64s  # [tiles]: the memory that each needs, a multiple of TILE_ALIGNMENT
    ipus: int

    @property
    def ipu(self) -> Int64s:
        """int64 [tiles]: the IPU of each tile."""
        return np.repeat(np.arange(self.ipus), len(self.tile_bytes) // self.ipus)

    @property
    def offset(self) -> Int64s:
        """int64 [tiles]: where each tile's memory begins in that of its IPU, in bytes."""
        by_ipu = self.tile_bytes.reshape(self.ipus, -1)
        ends: Int64s = np.cumsum(by_ipu, axis=1)
        return (ends - by_ipu).ravel()

    @property
    def ipu_bytes(self) -> Int64s:
        """int64 [IPUs]: the memory of each."""
        size: Int64s = self.tile_bytes.reshape(self.ipus, -1).sum(1)
        return size
