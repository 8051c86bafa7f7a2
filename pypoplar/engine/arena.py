"""The simulated memory: one block of the host's, in which the IPUs' memories lie end to end.

Tables name places by tile or IPU and offset; here are the bases that make them places in the block. Nobody but the engine that
made it knows them.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bytes, Int64s
from pypoplar.executable.executable import Executable
from pypoplar.executable.memory_layout import TILE_ALIGNMENT

# Bytes that are copied aside at once, as measured: states of an optimiser are runs of some KB on each tile, which take longer in
# smaller lines; larger ones have more of what lies beside.
LINE = 256


@frozen(eq=False)
class Arena:
    """The memories of all IPUs, a whole number of lines, and behind them the marks of touched elements."""

    whole: Bytes
    tile_base: Int64s  # [tiles]: where each tile's memory begins
    ipu_base: Int64s  # [IPUs]: where each IPU's memory begins
    marks_base: int

    @staticmethod
    def allocate(executable: Executable) -> Arena:
        """Memory for an executable; what it holds is arbitrary."""
        layout = executable.layout
        ends = np.cumsum(layout.ipu_bytes)
        ipu_base = ends - layout.ipu_bytes
        marks_base = -(-int(ends[-1]) // LINE) * LINE
        size = marks_base + executable.touch_bytes
        block = np.empty(size + TILE_ALIGNMENT, np.uint8)
        skipped = -block.ctypes.data % TILE_ALIGNMENT
        return Arena(block[skipped : skipped + size], ipu_base[layout.ipu] + layout.offset, ipu_base, marks_base)

    @property
    def marks(self) -> Bytes:
        """The marks of touched elements."""
        return self.whole[self.marks_base :]

    def from_tile(self, tile: int) -> Bytes:
        """The memory of a tile, and all that lies behind it."""
        return self.whole[self.tile_base[tile] :]

    def from_ipu(self, ipu: int) -> Bytes:
        """The memory of an IPU, and all that lies behind it."""
        return self.whole[self.ipu_base[ipu] :]

    def addresses(self, base: Int64s) -> Int64s:
        """Addresses of the host, of places in the block."""
        return base + self.whole.ctypes.data
