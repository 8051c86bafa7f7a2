"""The exchange behind a stream copy: the host has the elements in the stream's order, the tiles have them as they are mapped.

A stream lands in its own order, in equal parts on the tiles that hold the tensor, and is rearranged between them; on the way back
it is the other way round. Where every tile's elements follow each other in the stream and in its memory, there is nothing to do.
Only the cost of this is worked out: the simulator moves the elements to their places at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.columns import constant
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, offsets
from pypoplar.arrays.interval_algebra import overlay
from pypoplar.compiler.exchange.copy_plan import CUT_AT_ONCE, transfers_of
from pypoplar.compiler.exchange.exchange_costs import ExchangeCost, pieces_of_copies, pieces_within, price_exchanges
from pypoplar.compiler.exchange.host_copies import HostPieces, host_pieces
from pypoplar.compiler.exchange.message_account import MessageAccount, Transfers, account, joined_transfers, share_out
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
    """How one stream, which lands in its order, gets to where the elements of its tensor live, or comes from there."""

    tensor: int  # its number
    bytes: int  # that the stream takes on a tile where it lands
    local: Pieces  # what stays on its tile, from where it lands
    crossing: Transfers  # in the direction of the stream


def stream_exchange(tiles: int, homes: Homes, tensors: Sequence[ElementRuns], *, inward: bool) -> StreamExchange | None:
    """The exchange between streams' orders and the places of their tensors' elements; None where there is nothing to rearrange."""
    found = (_landing(homes, number, runs, inward=inward) for number, runs in enumerate(tensors))
    landings = [landing for landing in found if landing is not None]
    if not landings:
        return None
    numbers = tuple(landing.tensor for landing in landings)
    local = end_to_end([landing.local for landing in landings])
    sender = np.repeat(np.arange(len(landings)), [len(landing.crossing.bytes) for landing in landings])
    transfers = _together(landings, sender, inward=inward)
    landings.clear()  # the account of millions of pieces takes as much again
    holder = transfers.destination if inward else transfers.source
    shares = None if len(numbers) == 1 else CopyShares(*share_out(transfers, sender, len(numbers)), holder, sender)
    pieces = np.bincount(holder, minlength=tiles)
    return StreamExchange(account(tiles, transfers), pieces, local, numbers, shares)


def _together(landings: Sequence[_Landing], sender: Int64s, *, inward: bool) -> Transfers:
    """All that crosses; streams that come together land one behind the other."""
    if len(landings) == 1:
        return landings[0].crossing
    crossing = joined_transfers([landing.crossing for landing in landings])
    if not inward:
        return crossing
    return evolve(crossing, offset=crossing.offset + offsets([landing.bytes for landing in landings])[sender])


def _landing(homes: Homes, number: int, runs: ElementRuns, *, inward: bool) -> _Landing | None:
    """What is to be rearranged; None for a tensor whose tiles each have their elements in the stream's order."""
    live = host_pieces(homes, runs)
    holders = distinct(live.tile)
    if len(holders) == len(live.tile):
        return None
    variable = _variable_of_first(homes, runs)  # a stream's chunk is of one, whatever its tensor is of
    size = int(live.position[-1] + live.bytes[-1])
    share = -(-size // (len(holders) * PART_ALIGNMENT)) * PART_ALIGNMENT
    local, crossing = [], []
    for first in range(0, len(live.tile), CUT_AT_ONCE):
        landed = _landed(live.part(first, first + CUT_AT_ONCE), holders, share)
        stays = landed.source_tile == landed.target_tile
        local.append(chosen(landed, stays))
        leaves = chosen(landed, ~stays)
        moved = leaves if inward else turned(leaves)
        crossing.append(transfers_of(moved, np.broadcast_to(np.int64(variable), len(moved.bytes))))
    return _Landing(number, share, end_to_end(local), joined_transfers(crossing))


def _landed(live: HostPieces, holders: Int64s, share: int) -> Pieces:
    """Pieces of a stream from where they land, in shares on the tiles that hold the tensor, to where they live."""
    end = live.position + live.bytes
    part = np.arange(live.position[0] // share, -(-int(end[-1]) // share)) if len(end) else np.zeros(0, np.int64)
    cut = overlay(live.position, end, part * share, (part + 1) * share)
    landing = part[cut.right]
    return make_pieces(
        holders[landing],
        cut.begin - landing * share,
        live.tile[cut.left],
        live.offset[cut.left] + cut.begin - live.position[cut.left],
        constant(cut.end - cut.begin),
        source_in_buffer=True,
    )


def _variable_of_first(homes: Homes, runs: ElementRuns) -> int:
    """The variable of a view's first element."""
    first = runs.start[np.flatnonzero(runs.count)[0]]
    return int(homes.variable[np.searchsorted(homes.end, first, "right")])


def price_stream(target: Target, exchange: StreamExchange) -> ExchangeCost:
    """What the exchange costs."""
    messages = exchange.account.exchange.messages
    if exchange.shares is None:
        pieces = pieces_within(target, messages, exchange.pieces)
    else:
        pieces = pieces_of_copies(target, exchange.shares, np.zeros(len(exchange.shares.bytes_sent), np.int64), exchange.pieces)
    return price_exchanges(target, exchange.account.exchange, exchange.account.offset, pieces, 1)[0]
