"""Moves: which bytes of memory go where."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, Integers, UInt32s
from pypoplar.interface.layout import NOTHING

LISTED_BYTES = 4  # pieces up to this size may be named by a list of places


@frozen(eq=False)
class Moves:
    """Moves, each as one list of records for every pair of IPUs between which it moves anything, in any order of the pairs.

    The places of a list are offsets in the memories of its two IPUs (see `MemoryLayout`), or in a chunk of a stream where the
    other side is the host. A process that holds an IPU needs the lists that name it, and no others.

    A record moves `count` pieces of `bytes`. Piece i comes from ``source + i * source_step``, or where `source_list` is not -1 from
    ``source + places[source_list + i] * bytes``; the same goes for the target. At most one side has a list of places. The records
    of a list are sorted by `tile`.

    There are many records: their columns are of 32 bits, or of 64 where a number asks for it.
    """

    first_list: Int64s  # [moves + 1]: the move's entries in the next three
    source_ipu: Int64s  # [lists]: `pypoplar.interface.header_slots.HOST` for a chunk of a stream
    target_ipu: Int64s  # [lists]: the same
    first: Int64s  # [lists + 1]: the list's records, which are the entries of all that follow but `places`
    source: Integers  # bytes from the start of the source's memory
    target: Integers  # bytes from the start of the target's memory
    bytes: Integers  # of one piece
    count: Integers  # pieces
    source_step: Integers  # bytes
    target_step: Integers  # bytes
    source_list: Integers  # index into `places`, or `NOTHING`
    target_list: Integers  # index into `places`, or `NOTHING`
    tile: Integers  # the tile whose thread does the move
    places: UInt32s  # in units of the record's `bytes`

    def lists_of(self, move: int) -> range:
        """The lists of a move; none for move `NOTHING`."""
        return range(int(self.first_list[move]), int(self.first_list[move + 1])) if move != NOTHING else range(0)

    def records_of(self, entry: int) -> range:
        """The records of a list."""
        return range(int(self.first[entry]), int(self.first[entry + 1]))

    def source_of(self, record: int, piece: int) -> int:
        """Where a piece comes from."""
        return self._place(self.source, self.source_step, self.source_list, record, piece)

    def target_of(self, record: int, piece: int) -> int:
        """Where a piece goes."""
        return self._place(self.target, self.target_step, self.target_list, record, piece)

    def _place(self, base: Integers, step: Integers, listed: Integers, record: int, piece: int) -> int:
        if listed[record] == NOTHING:
            return int(base[record]) + piece * int(step[record])
        return int(base[record]) + int(self.places[listed[record] + piece]) * int(self.bytes[record])
