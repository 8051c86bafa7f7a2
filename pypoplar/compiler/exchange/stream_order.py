"""The exchange behind a stream copy: the host has the elements in the stream's order, the tiles have them as they are mapped.

A stream lands in its own order, in equal parts on the tiles that hold the tensor, and is rearranged between them; on the way back
it is the other way round. Where every tile's elements follow each other in the stream and in its memory, there is nothing to do.
Only the cost of this is worked out: the simulator moves the elements to their places at once.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets, opens
from pypoplar.arrays.interval_algebra import overlay
from pypoplar.compiler.exchange.copy_plan import lay_out
from pypoplar.compiler.exchange.message_account import MessageAccount, Transfers, account
from pypoplar.compiler.exchange.pieces import chosen, make_pieces, turned
from pypoplar.compiler.exchange_plan import Homes, Pieces
from pypoplar.graph.frozen import ElementRuns

PART_ALIGNMENT = 8  # bytes: parts of a stream on a tile are whole words of the data path


@frozen(eq=False)
class StreamExchange:
    account: MessageAccount
    pieces: Int64s  # [tiles]: contiguous on both sides, that the tiles of the tensor put or take
    local: Pieces  # what stays on its tile, but has to move there


def stream_exchange(tiles: int, homes: Homes, runs: ElementRuns, *, inward: bool) -> StreamExchange | None:
    """The exchange between a stream's order and the places of a tensor's elements; None where there is nothing to rearrange."""
    side = lay_out(homes, runs)
    if len(side.place) == 0:
        return None
    width = homes.width[side.home]
    size = np.diff(side.place, append=runs.elements()) * width
    tile = homes.tile[side.home]
    first = np.flatnonzero(opens(side.offset - offsets(size)[:-1], tile))  # what lies behind what comes before it goes on
    stretch = np.add.reduceat(size, first)
    owner, offset = tile[first], side.offset[first]
    holders = np.unique(owner)
    if len(holders) == len(owner):
        return None

    end = np.cumsum(stretch)
    begin = end - stretch
    share = -(-int(end[-1]) // (len(holders) * PART_ALIGNMENT)) * PART_ALIGNMENT
    part = np.arange(-(-int(end[-1]) // share)) * share
    cut = overlay(begin, end, part, part + share)
    landed = make_pieces(
        holders[cut.right],
        cut.begin - part[cut.right],
        owner[cut.left],
        offset[cut.left] + cut.begin - begin[cut.left],
        cut.end - cut.begin,
        source_in_buffer=True,
    )
    moved = landed if inward else turned(landed)
    stays = landed.source_tile == landed.target_tile
    crossing = chosen(moved, ~stays)
    variable = np.full(len(crossing.bytes), homes.variable[side.home[0]])  # a stream's chunk is one, whatever the tensor is of
    transfers = Transfers(crossing.source_tile, crossing.target_tile, variable, crossing.source_offset, crossing.bytes)
    pieces = np.bincount(landed.target_tile[~stays], minlength=tiles)
    return StreamExchange(account(tiles, transfers), pieces, chosen(landed, stays))
