"""The exchange behind a stream copy: the host has the elements in the stream's order, the tiles have them as they are mapped.

A stream lands in its own order, in equal parts on the tiles that hold the tensor, and is rearranged between them; on the way back
it is the other way round. Where every tile's elements follow each other in the stream and in its memory, there is nothing to do.
Only the cost of this is worked out: the simulator moves the elements to their places at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, offsets, opens
from pypoplar.arrays.interval_algebra import overlay
from pypoplar.compiler.exchange.copy_plan import lay_out
from pypoplar.compiler.exchange.exchange_costs import ExchangeCost, pieces_of_copies, pieces_within, price_exchanges
from pypoplar.compiler.exchange.message_account import MessageAccount, Transfers, account, share_out
from pypoplar.compiler.exchange.pieces import chosen, end_to_end, make_pieces, turned
from pypoplar.compiler.exchange_plan import CopyShares, Homes, Pieces
from pypoplar.graph.frozen import ElementRuns
from pypoplar.target import Target

PART_ALIGNMENT = 8  # bytes: parts of a stream on a tile are whole words of the data path


@frozen(eq=False)
class StreamExchange:
    """What one transfer of streams, one or several together, has to exchange."""

    account: MessageAccount
    pieces: Int64s  # [tiles]: contiguous on both sides, that the tiles of the tensors put or take
    local: Pieces  # what stays on its tile, but has to move there
    tensors: tuple[int, ...]  # numbers of those that are rearranged
    shares: CopyShares | None  # of each of these, if there are several


@frozen(eq=False)
class _Landing:
    """Where one stream lands in its order, and where the elements of its tensor live."""

    tensor: int  # its number
    variable: int  # a stream's chunk is of one, whatever its tensor is of
    pieces: Pieces  # from the one to the other
    bytes: int  # that the stream takes on a tile where it lands


def stream_exchange(tiles: int, homes: Homes, tensors: Sequence[ElementRuns], *, inward: bool) -> StreamExchange | None:
    """The exchange between streams' orders and the places of their tensors' elements; None where there is nothing to rearrange."""
    landings = [landing for number, runs in enumerate(tensors) if (landing := _landing(homes, number, runs)) is not None]
    if not landings:
        return None
    variables = np.array([landing.variable for landing in landings])
    numbers = tuple(landing.tensor for landing in landings)
    local, holder, sender, crossing = _parted(landings, inward=inward)
    landings.clear()  # the account of millions of pieces takes as much again
    transfers = Transfers(crossing.source_tile, crossing.target_tile, variables[sender], crossing.source_offset, crossing.bytes)
    shares = None if len(numbers) == 1 else CopyShares(*share_out(transfers, sender, len(numbers)), holder, sender)
    pieces = np.bincount(holder, minlength=tiles)
    return StreamExchange(account(tiles, transfers), pieces, local, numbers, shares)


def _parted(landings: list[_Landing], *, inward: bool) -> tuple[Pieces, Int64s, Int64s, Pieces]:
    """What stays on its tile; of what does not, the tiles that hold it, whose it is, and the pieces as they are sent."""
    base = offsets([landing.bytes for landing in landings])  # streams that come together land one behind the other
    owner = np.repeat(np.arange(len(landings)), [len(landing.pieces.bytes) for landing in landings])
    landed = end_to_end([landing.pieces for landing in landings])
    stays = landed.source_tile == landed.target_tile
    local, holder = chosen(landed, stays), landed.target_tile[~stays]
    crossing, sender = chosen(landed, ~stays), owner[~stays]
    moved = evolve(crossing, source_offset=crossing.source_offset + base[sender])
    return local, holder, sender, moved if inward else turned(moved)


def _landing(homes: Homes, number: int, runs: ElementRuns) -> _Landing | None:
    """What is to be rearranged; None for a tensor whose tiles each have their elements in the stream's order."""
    owner, offset, stretch, variable = _stretches(homes, runs)
    holders = distinct(owner)
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
    return _Landing(number, variable, landed, share)


def _stretches(homes: Homes, runs: ElementRuns) -> tuple[Int64s, Int64s, Int64s, int]:
    """Tile, offset and bytes of what lies together in the stream's order and in memory; and the variable of the first."""
    side = lay_out(homes, runs)
    size = np.diff(side.place, append=runs.elements()) * homes.width[side.home]
    tile = homes.tile[side.home]
    first = np.flatnonzero(opens(side.offset - offsets(size)[:-1], tile))  # what lies behind what comes before it goes on
    stretch = np.add.reduceat(size, first) if len(first) else size
    return tile[first], side.offset[first], stretch, int(homes.variable[side.home[0]]) if len(first) else 0


def price_stream(target: Target, exchange: StreamExchange) -> ExchangeCost:
    """What the exchange costs."""
    messages = exchange.account.exchange.messages
    if exchange.shares is None:
        pieces = pieces_within(target, messages, exchange.pieces)
    else:
        pieces = pieces_of_copies(target, exchange.shares, np.zeros(len(exchange.shares.bytes_sent), np.int64), exchange.pieces)
    return price_exchanges(target, exchange.account.exchange, exchange.account.offset, pieces, 1)[0]
