"""The plan of copies between tensors: which bytes go where, and the account of what crosses between tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import is_sorted, offsets, opens
from pypoplar.arrays.interval_algebra import ordered_strands, overlay
from pypoplar.compiler.exchange.message_account import Transfers, account, share_out
from pypoplar.compiler.exchange.pieces import chosen, continue_each_other, joined, joined_where, make_pieces
from pypoplar.compiler.exchange_plan import CopyPlan, CopyShares, Homes, Pieces
from pypoplar.errors import InvalidTileMapping, TensorShapeError
from pypoplar.graph.frozen import ElementRuns, FrozenGraph


@frozen(eq=False)
class Side:
    """One side of a copy: stretches of it, in order, that are contiguous in one tile's memory."""

    place: Int64s  # elements from the start of the view
    home: Int64s  # index into Homes
    offset: Int64s  # bytes in that tile's memory


@frozen(eq=False)
class CopyPieces:
    """What copies move, piece by piece in their order; pieces are contiguous on both sides."""

    pieces: Pieces
    home: Int64s  # of each piece's source, index into Homes
    copy: Int64s  # of each piece

    def chosen(self, which: Bools | Int64s) -> CopyPieces:
        """Some of them."""
        return CopyPieces(chosen(self.pieces, which), self.home[which], self.copy[which])


def copy_pieces(homes: Homes, sources: Sequence[ElementRuns], targets: Sequence[ElementRuns]) -> CopyPieces:
    """What copies of the elements of each source into those of its target move. An element that is its own target does not."""
    for source, target in zip(sources, targets, strict=True):
        if source.elements() != target.elements():
            raise TensorShapeError(f"cannot copy {source.elements()} elements into {target.elements()}")
    elements = offsets([source.elements() for source in sources])
    cut = _cut(lay_out_views(homes, sources), lay_out_views(homes, targets), homes, elements)
    moves = (cut.pieces.source_tile != cut.pieces.target_tile) | (cut.pieces.source_offset != cut.pieces.target_offset)
    return cut if bool(moves.all()) else cut.chosen(moves)


def plan_copies(
    graph: FrozenGraph,
    homes: Homes,
    sources: Sequence[ElementRuns],
    targets: Sequence[ElementRuns],
    machine: Int64s | None = None,
    *,
    shares: bool = True,
) -> CopyPlan:
    """Plan copies of the elements of each source into those of its target.

    The copies are planned as if each had a machine of its own: in the plan, tile t of the k-th copy is tile
    ``k * graph.tiles + t``. Where `machine` is given, it has the rising numbers of the copies' machines: those on one are one
    exchange, and no two of them may touch a byte that either writes. What each has in it is only said if `shares` are wanted.
    """
    tiles = graph.tiles
    number = np.arange(len(sources)) if machine is None else machine
    moved = copy_pieces(homes, sources, targets)
    transfers, sender = _transfers(homes, moved)
    shared = share_out(transfers, sender, len(sources)) if machine is not None and shares else None
    machines = int(number[-1]) + 1
    if machines > 1:
        moved = evolve(moved, pieces=_on_machines(moved.pieces, number[moved.copy] * tiles))
        shift = number[sender] * tiles
        transfers = evolve(transfers, source=transfers.source + shift, destination=transfers.destination + shift)
    accounted = account(tiles, transfers, machines)
    del transfers, sender
    order = _order_by_target_tile(moved.pieces, machines * tiles)
    moved = moved if order is None else moved.chosen(order)
    if machine is None:
        return CopyPlan(joined(moved.pieces), accounted.exchange, accounted.offset)
    pieces, arriving, copy = _joined_by_copy(moved)
    told = None if shared is None else CopyShares(*shared, arriving % tiles, copy)
    return CopyPlan(pieces, accounted.exchange, accounted.offset, told)


def _transfers(homes: Homes, moved: CopyPieces) -> tuple[Transfers, Int64s]:
    """What crosses between tiles, and the copy of each transfer."""
    pieces = moved.pieces
    crosses = pieces.source_tile != pieces.target_tile
    remote = slice(None) if bool(crosses.all()) else crosses
    transfers = Transfers(
        pieces.source_tile[remote],
        pieces.target_tile[remote],
        homes.variable[moved.home[remote]],
        pieces.source_offset[remote],
        pieces.bytes[remote],
    )
    return transfers, moved.copy[remote]


def _on_machines(pieces: Pieces, shift: Int64s) -> Pieces:
    """The pieces where the tiles of their machines are numbered from `shift` on."""
    return evolve(pieces, source_tile=pieces.source_tile + shift, target_tile=pieces.target_tile + shift)


def _joined_by_copy(moved: CopyPieces) -> tuple[Pieces, Int64s, Int64s]:
    """The pieces, joined; and tile and copy of each that arrives from elsewhere, joined within its copy alone.

    What stays on its tile is not joined across copies: each is a memcpy whose price depends on how it is aligned.
    """
    going_on = continue_each_other(moved.pieces)
    within = going_on & (moved.copy[1:] == moved.copy[:-1])
    leads = np.concatenate((np.ones(min(len(moved.copy), 1), bool), ~within))
    remote = moved.pieces.source_tile != moved.pieces.target_tile
    arrives = leads & remote
    return joined_where(moved.pieces, within | going_on & remote[1:]), moved.pieces.target_tile[arrives], moved.copy[arrives]


def lay_out(homes: Homes, runs: ElementRuns) -> Side:
    """The elements of a view in order, as stretches of memory; `InvalidTileMapping` where an element has no place."""
    return lay_out_views(homes, [runs])


def lay_out_views(homes: Homes, views: Sequence[ElementRuns]) -> Side:
    """The elements of views, one after the other; no stretch belongs to two of them."""
    view = np.repeat(np.arange(len(views)), [len(runs.start) for runs in views])
    start, count, step = (np.concatenate([getattr(runs, column) for runs in views]) for column in ("start", "count", "step"))
    strands = ordered_strands(view, start, count, step)
    place = offsets(strands.length)[:-1]
    parts = overlay(strands.begin, strands.begin + strands.length, homes.begin, homes.end)
    if int((parts.end - parts.begin).sum()) != int(strands.length.sum()):
        raise InvalidTileMapping("a copy touches elements that have no place in any tile's memory")
    if len(parts.left) == len(place):
        begin = strands.begin
    else:
        place = place[parts.left] + (parts.begin - strands.begin[parts.left])
        begin = parts.begin
    offset = begin - homes.begin[parts.right]
    offset *= homes.width[parts.right]
    offset += homes.offset[parts.right]
    return Side(place, parts.right, offset)


def _cut(source: Side, target: Side, homes: Homes, elements: Int64s) -> CopyPieces:
    """Cut both sides where either begins a new stretch.

    `elements` is where the elements of each copy begin, and last how many there are in all.
    """
    if len(source.place) == len(target.place) and bool((source.place == target.place).all()):
        place = source.place
        source_home, source_offset = source.home, source.offset
        target_home, target_offset = target.home, target.offset
        width = homes.width[source_home]
    else:
        place = np.concatenate((source.place, target.place))
        place.sort(kind="stable")
        place = place[opens(place)]
        at = np.searchsorted(source.place, place, "right") - 1
        source_home = source.home[at]
        width = homes.width[source_home]
        source_offset = source.offset[at] + (place - source.place[at]) * width
        at = np.searchsorted(target.place, place, "right") - 1
        target_home = target.home[at]
        target_offset = target.offset[at] + (place - target.place[at]) * width
    bytes = np.diff(place, append=elements[-1]) * width
    source_tile, target_tile = homes.tile[source_home], homes.tile[target_home]
    # one copy needs no memory to say that all is its own
    copy = np.searchsorted(elements, place, "right") - 1 if len(elements) > 2 else np.broadcast_to(np.int64(0), len(place))
    return CopyPieces(make_pieces(source_tile, source_offset, target_tile, target_offset, bytes), source_home, copy)


def _order_by_target_tile(pieces: Pieces, tiles: int) -> Int64s | None:
    if is_sorted(pieces.target_tile):
        return None
    # NumPy sorts 16-bit integers by radix, an order of magnitude faster than others
    tile = pieces.target_tile.astype(np.uint16) if tiles <= 65536 else pieces.target_tile
    return np.argsort(tile, kind="stable")
