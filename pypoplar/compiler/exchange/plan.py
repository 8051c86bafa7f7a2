"""What the compiler's passes hand to each other.

Places in tile memory are (tile, offset) pairs until every tile's size is known; a tile's memory is laid out as

    variables and constants | vertex state | exchange buffer (shared by all compute sets, as large as the largest needs)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.executable.exchange_account import Exchange

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class Homes:
    """Where elements live: sorted disjoint intervals of element ids, each contiguous in its tile's memory."""

    begin: Array  # int64, element ids
    end: Array  # int64
    tile: Array  # int64
    offset: Array  # int64, bytes from the start of the tile's memory to element `begin`
    width: Array  # int64, bytes per element
    variable: Array  # int64, variable number
    tile_bytes: Array  # int64 [tiles]: end of the variables on each tile, a multiple of 8


@frozen(eq=False)
class Pieces:
    """Pieces of memory to be moved, each contiguous on both sides. Sorted by target tile; order within is the order of copying."""

    source_tile: Array  # int64
    source_offset: Array  # int64, bytes
    target_tile: Array  # int64
    target_offset: Array  # int64, bytes
    bytes: Array  # int64
    source_in_buffer: Array  # bool: source_offset counts from the start of the source tile's exchange buffer
    target_in_buffer: Array  # bool: the same for target_offset


@frozen(eq=False)
class ComputePlan:
    """One compute set: its vertices by tile and in list order, where their fields lie, what moves before and after."""

    compute_set: int
    vertex: Array  # int64, graph vertex numbers
    tile: Array  # int64, of each vertex
    # one entry per edge, sorted by position of the vertex in `vertex`, field, row:
    edge_position: Array  # int64, index into `vertex`
    edge_field: Array  # int32
    edge_row: Array  # int32
    edge_offset: Array  # int64, bytes in the vertex's tile memory, or in the tile's exchange buffer:
    edge_in_buffer: Array  # bool: edge_offset counts from the start of the tile's exchange buffer instead of the tile's memory
    edge_length: Array  # int64, elements
    exchange_before: Pieces  # from other tiles into the exchange buffer
    gather: Pieces  # on the tile, after exchange_before: what must become contiguous
    preload: Pieces  # old values of outputs that lie in the buffer: not priced, not exchange
    scatter: Pieces  # on the tile, after compute: from gathered outputs back to where they live, or into the outgoing buffer
    exchange_after: Pieces  # from the exchange buffer to other tiles
    before: Exchange
    after: Exchange
    before_offset: Array  # int64 [messages of before], bytes in the memory of the message's source
    after_offset: Array  # int64 [messages of after]
    copied_before: Pieces  # of gather what a tile has to copy; the rest arrives in its place or can be laid beside what arrives
    copied_after: Pieces  # the same of scatter
    buffer_bytes: Array  # int64 [tiles]


@frozen(eq=False)
class CopyPlan:
    """A Copy between tensors: one exchange, then what stays on its tile."""

    pieces: Pieces  # all that moves, between tiles and on them; source is read in full before anything is written to it elsewhere
    account: Exchange
    offset: Array  # int64 [messages], bytes in the memory of the message's source
    on_tile_bytes: Array  # int64 [tiles]: bytes rearranged on the tile
