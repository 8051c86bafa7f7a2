"""What the compiler's passes hand to each other.

Places in tile memory are (tile, offset) pairs until every tile's size is known; a tile's memory is laid out as

    variables and constants | vertex state | exchange buffer (shared by all compute sets, as large as the largest needs)
"""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int32s, Int64s, StructuredArray
from pypoplar.executable.exchange_account import Exchange


@frozen(eq=False)
class Homes:
    """Where elements live: sorted disjoint intervals of element ids, each contiguous in its tile's memory."""

    begin: Int64s  # element ids
    end: Int64s
    tile: Int64s
    offset: Int64s  # bytes from the start of the tile's memory to element `begin`
    width: Int64s  # bytes per element
    variable: Int64s  # variable number
    tile_bytes: Int64s  # [tiles]: end of the variables on each tile, a multiple of 8


@frozen(eq=False)
class Pieces:
    """Pieces of memory to be moved, each contiguous on both sides. Sorted by target tile; order within is the order of copying."""

    source_tile: Int64s
    source_offset: Int64s  # bytes
    target_tile: Int64s
    target_offset: Int64s  # bytes
    bytes: Int64s
    source_in_buffer: Bools  # source_offset counts from the start of the source tile's exchange buffer
    target_in_buffer: Bools  # the same for target_offset


@frozen(eq=False)
class ComputePlan:
    """One compute set: its vertices by tile and in list order, where their fields lie, what moves before and after."""

    compute_set: int
    vertex: Int64s  # graph vertex numbers
    tile: Int64s  # of each vertex
    # one entry per edge, sorted by position of the vertex in `vertex`, field, row:
    edge_position: Int64s  # index into `vertex`
    edge_field: Int32s
    edge_row: Int32s
    edge_offset: Int64s  # bytes in the vertex's tile memory, or in the tile's exchange buffer:
    edge_in_buffer: Bools  # edge_offset counts from the start of the tile's exchange buffer instead of the tile's memory
    edge_length: Int64s  # elements
    exchange_before: Pieces  # from other tiles into the exchange buffer
    gather: Pieces  # on the tile, after exchange_before: what must become contiguous
    parted: Pieces  # on the tile, beside gather: second copies, of Inputs that have to be apart from what has the same elements
    preload: Pieces  # old values of outputs that lie in the buffer: not priced, not exchange
    scatter: Pieces  # on the tile, after compute: from gathered outputs back to where they live, or into the outgoing buffer
    exchange_after: Pieces  # from the exchange buffer to other tiles
    before: Exchange
    after: Exchange
    before_offset: Int64s  # [messages of before], bytes in the memory of the message's source
    after_offset: Int64s  # [messages of after]
    before_stretches: Int64s  # [tiles]: of its memory that each sends before; what several tiles receive is one
    after_stretches: Int64s  # [tiles]
    copied_before: Pieces  # of gather what a tile has to copy (the rest arrives in its place or can be laid beside), and of parted
    copied_after: Pieces  # the same of scatter
    buffer_bytes: Int64s  # [tiles]
    buffer_alignment: Int64s  # [tiles]: bytes; what the exchange buffer begins at a multiple of


@frozen(eq=False)
class CopyShares:
    """What each of several copies has in the exchange of its machine, as if it were alone."""

    messages: StructuredArray  # of MESSAGE, sorted by copy
    copy: Int64s  # [messages]
    bytes_sent: Int64s  # [copies]; a multicast counts once
    arriving_tile: Int64s  # of each piece that comes from another tile: where it goes
    arriving_copy: Int64s


@frozen(eq=False)
class CopyPlan:
    """A Copy between tensors, or several of them (see `plan_copies`): one exchange, then what stays on its tile."""

    pieces: Pieces  # all that moves, between tiles and on them; source is read in full before anything is written to it elsewhere
    account: Exchange
    offset: Int64s  # [messages], bytes in the memory of the message's source
    stretches: Int64s  # [tiles]: of its memory that each sends; what several tiles receive is one
    shares: CopyShares | None = None  # where copies are on one machine
