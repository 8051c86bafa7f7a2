"""Move lists: which bytes of memory go where."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]

LISTED_BYTES = 4  # pieces up to this size may be named by a list of places


@frozen(eq=False)
class Moves:
    """Lists of memory moves, each sorted by `tile`.

    A record moves `count` pieces of `bytes`. Piece i comes from ``source + i * source_step``, or where `source_list` is not -1 from
    ``source + places[source_list + i] * bytes``; the same goes for the target. At most one side has a list.
    """

    first: Array  # int64 [lists + 1]
    source: Array  # int64, byte address
    target: Array  # int64, byte address
    bytes: Array  # int64, of one piece
    count: Array  # int64, pieces
    source_step: Array  # int64
    target_step: Array  # int64
    source_list: Array  # int64
    target_list: Array  # int64
    places: Array  # uint32
    tile: Array  # int64: the tile whose thread does the move

    def source_of(self, record: int, piece: int) -> int:
        """Where a piece comes from."""
        return self._place(self.source, self.source_step, self.source_list, record, piece)

    def target_of(self, record: int, piece: int) -> int:
        """Where a piece goes."""
        return self._place(self.target, self.target_step, self.target_list, record, piece)

    def _place(self, base: Array, step: Array, listed: Array, record: int, piece: int) -> int:
        if listed[record] < 0:
            return int(base[record] + piece * step[record])
        return int(base[record]) + int(self.places[listed[record] + piece]) * int(self.bytes[record])
