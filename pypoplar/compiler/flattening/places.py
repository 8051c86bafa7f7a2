"""Places as move lists name them: an IPU and an offset in its memory."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.columns import rows_of
from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.compiler.exchange_plan import Pieces
from pypoplar.executable.memory_layout import MemoryLayout
from pypoplar.interface.header_slots import HOST


@frozen(eq=False)
class Places:
    """One side of pieces that move."""

    ipu: Int64s  # or HOST
    offset: Int64s  # bytes in the memory of the IPU, or in a chunk of a stream

    def __getitem__(self, which: Int64s) -> Places:
        return Places(*rows_of((self.ipu, self.offset), which))

    @staticmethod
    def on_host(offset: Int64s) -> Places:
        """Places in a chunk of a stream."""
        return Places(np.broadcast_to(np.int64(HOST), len(offset)), offset)


@frozen(eq=False)
class TilePlaces:
    """Where the tiles' memories and their exchange buffers lie, once every tile's size is known."""

    layout: MemoryLayout
    ipu: Int64s  # [tiles]
    offset: Int64s  # [tiles]: of the tile's memory in that of its IPU
    buffer: Int64s  # [tiles]: of the exchange buffer in the tile's memory

    @staticmethod
    def of(layout: MemoryLayout, buffer: Int64s) -> TilePlaces:
        return TilePlaces(layout, layout.ipu, layout.offset, buffer)

    def sources(self, pieces: Pieces) -> Places:
        """Where pieces come from."""
        return self._resolved(pieces.source_tile, pieces.source_offset, pieces.source_in_buffer)

    def targets(self, pieces: Pieces) -> Places:
        """Where pieces go."""
        return self._resolved(pieces.target_tile, pieces.target_offset, pieces.target_in_buffer)

    def on_tiles(self, tile: Int64s, offset: Int64s) -> Places:
        """Places that are known by tile, and by offset in its memory."""
        alike = bool((self.ipu == self.ipu[:1]).all())  # one number does for all then
        return Places(np.broadcast_to(self.ipu[0], len(tile)) if alike else self.ipu[tile], self.offset[tile] + offset)

    def _resolved(self, tile: Int64s, offset: Int64s, in_buffer: Bools) -> Places:
        if bool(in_buffer.any()):
            offset = np.where(in_buffer, self.buffer[tile], 0) + offset
        return self.on_tiles(tile, offset)
