"""Move lists: which bytes of memory go where."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, UInt32s

LISTED_BYTES = 4  # pieces up to this size may be named by a list of places


@frozen(eq=False)
class Moves:
    """Lists of memory moves, each sorted by `tile`.

    A record moves `count` pieces of `bytes`. Piece i comes from ``source + i * source_step``, or where `source_list` is not -1 from
    ``source + places[source_list + i] * bytes``; the same goes for the target. At most one side has a list.
    """

    first: Int64s  # [lists + 1]
    source: Int64s  # byte address
    target: Int64s  # byte address
    bytes: Int64s  # of one piece
    count: Int64s  # pieces
    source_step: Int64s
    target_step: Int64s
    source_list: Int64s
    target_list: Int64s
    places: UInt32s
    tile: Int64s  # the tile whose thread does the move

    def source_of(self, record: int, piece: int) -> int:
        """Where a piece comes from."""
        return self._place(self.source, self.source_step, self.source_list, record, piece)

    def target_of(self, record: int, piece: int) -> int:
        """Where a piece goes."""
        return self._place(self.target, self.target_step, self.target_list, record, piece)

    def _place(self, base: Int64s, step: Int64s, listed: Int64s, record: int, piece: int) -> int:
        if listed[record] < 0:
            return int(base[record] + piece * step[record])
        return int(base[record]) + int(self.places[listed[record] + piece]) * int(self.bytes[record])
