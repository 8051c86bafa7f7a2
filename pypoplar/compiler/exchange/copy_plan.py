"""The plan of copies between tensors: which bytes go where, and the account of what crosses between tiles."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.columns import as_one, constant
from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, offsets, sorting_order
from pypoplar.arrays.interval_algebra import ordered_strands, overlay
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.exchange.message_account import Transfers, account, share_out
from pypoplar.compiler.exchange.pieces import chosen, columns, continue_each_other, joined, joined_where, make_pieces
from pypoplar.compiler.exchange_plan import CopyPlan, CopyShares, Homes, Pieces
from pypoplar.errors import InvalidTileMapping, TensorShapeError
from pypoplar.graph.frozen import ElementRuns, FrozenGraph

CUT_AT_ONCE = 1 << 16  # stretches of both sides: about what the processor's caches hold


@frozen(eq=False)
class Side:
    """One side of a copy: stretches of it, in order, that are contiguous in one tile's memory."""

    place: Int64s  # elements from the start of the views
    home: Int64s  # index into Homes
    offset: Int64s  # bytes in that tile's memory
    end: int  # the place behind the last stretch

    def cut(self, place: Int64s, homes: Homes) -> Side:
        """The stretches that begin at `place`, where all of these begin among others."""
        if len(place) == len(self.place):
            return self
        at = np.repeat(np.arange(len(self.place)), np.diff(np.searchsorted(place, self.place), append=len(place)))
        home = self.home[at]
        return Side(place, home, self.offset[at] + (place - self.place[at]) * homes.width[home], self.end)


@frozen(eq=False)
class CopyPieces:
    """What copies move, piece by piece in their order; pieces are contiguous on both sides."""

    pieces: Pieces
    variable: Int64s  # of each piece
    copy: Int64s  # of each piece

    def chosen(self, which: Bools | Int64s) -> CopyPieces:
        """Some of them."""
        return CopyPieces(chosen(self.pieces, which), self.variable[which], self.copy[which])


def copy_pieces(homes: Homes, sources: ViewRuns, targets: ViewRuns) -> CopyPieces:
    """What copies of the elements of each source into those of its target move. An element that is its own target does not."""
    sides = sources, targets
    taken, given = (side.elements_of_each() for side in sides)
    uneven = np.flatnonzero(taken != given)
    if len(uneven):
        raise TensorShapeError(f"cannot copy {taken[uneven[0]]} elements into {given[uneven[0]]}")
    elements = offsets(taken)
    bounds = cut_bounds(int(elements[-1]), sum(side.strands() for side in sides))
    cuts = (
        _cut(lay_out(homes, *source), lay_out(homes, *target), homes, elements)
        for source, target in zip(*(side.parts(bounds) for side in sides), strict=True)
    )
    return _appended([_moving(cut) for cut in cuts])


def cut_bounds(elements: int, strands: int) -> Int64s:
    """Where so many elements are cut, which are in so many stretches, so that what is worked out of each part stays in caches."""
    return np.linspace(0, elements, max(1, strands // CUT_AT_ONCE) + 1).astype(np.int64)


def all_pieces(homes: Homes, source: ElementRuns, target: ElementRuns) -> CopyPieces:
    """What goes from the places of a view to those of another in other memories that are laid out alike: all of it moves."""
    elements = source.elements()
    taken, given = (lay_out(homes, ViewRuns.joined([runs]), 0, elements) for runs in (source, target))
    return _cut(taken, given, homes, np.array([0, elements]))


def _moving(cut: CopyPieces) -> CopyPieces:
    """The pieces that do not lie where they go."""
    pieces = cut.pieces
    moves = (pieces.source_tile != pieces.target_tile) | (pieces.source_offset != pieces.target_offset)
    return cut if bool(moves.all()) else cut.chosen(moves)


def _appended(parts: list[CopyPieces]) -> CopyPieces:
    if len(parts) == 1:
        return parts[0]
    pieces = Pieces(*(as_one(list(column)) for column in zip(*(columns(part.pieces) for part in parts), strict=True)))
    return CopyPieces(pieces, *(as_one([getattr(part, name) for part in parts]) for name in ("variable", "copy")))


def plan_copies(
    graph: FrozenGraph,
    homes: Homes,
    sources: ViewRuns,
    targets: ViewRuns,
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
    number = np.arange(sources.views) if machine is None else machine
    moved = copy_pieces(homes, sources, targets)
    shared = None
    if machine is not None and shares:
        remote = moved.chosen(moved.pieces.source_tile != moved.pieces.target_tile)
        shared = share_out(transfers_of(remote.pieces, remote.variable), remote.copy, sources.views)
    machines = int(number[-1]) + 1
    if machines > 1:
        moved = evolve(moved, pieces=_on_machines(moved.pieces, number[moved.copy] * tiles))
    accounted = account(tiles, transfers_of(moved.pieces, moved.variable), machines)
    order = sorting_order(moved.pieces.target_tile)
    moved = moved if order is None else moved.chosen(order)
    if machine is None:
        return CopyPlan(joined(moved.pieces), accounted.exchange, accounted.offset, accounted.stretches)
    pieces, arriving, copy = _joined_by_copy(moved)
    told = None if shared is None else CopyShares(*shared, arriving % tiles, copy)
    return CopyPlan(pieces, accounted.exchange, accounted.offset, accounted.stretches, told)


def transfers_of(pieces: Pieces, variable: Int64s) -> Transfers:
    """What pieces bring to other tiles, of a variable each."""
    return Transfers(pieces.source_tile, pieces.target_tile, variable, pieces.source_offset, pieces.bytes)


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


def lay_out(homes: Homes, views: ViewRuns, first: int, last: int) -> Side:
    """The elements of views, one after the other, which are those from `first` up to `last`, as stretches of memory.

    No stretch belongs to two views. `InvalidTileMapping` where an element has no place.
    """
    strands = ordered_strands(views.view, views.start, views.count, views.step)
    place = offsets(strands.length)[:-1]
    place += first
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
    return Side(place, parts.right, offset, last)


def _cut(source: Side, target: Side, homes: Homes, elements: Int64s) -> CopyPieces:
    """Cut both sides where either begins a new stretch.

    `elements` is where the elements of each copy begin, and last how many there are in all.
    """
    place = _common_places(source.place, target.place)
    source, target = source.cut(place, homes), target.cut(place, homes)
    bytes = np.diff(place, append=source.end) * homes.width[source.home]
    # one copy needs no memory to say that all is its own
    copy = np.searchsorted(elements, place, "right") - 1 if len(elements) > 2 else np.broadcast_to(np.int64(0), len(place))
    pieces = make_pieces(homes.tile[source.home], source.offset, homes.tile[target.home], target.offset, constant(bytes))
    return CopyPieces(pieces, constant(homes.variable[source.home]), copy)


def _common_places(first: Int64s, second: Int64s) -> Int64s:
    """Where either of two sides begins a new stretch, in order; where one does at all places of the other, they are its own."""
    few, many = sorted((first, second), key=len)
    at = np.searchsorted(many, few)
    if len(many) and at[-1] < len(many) and bool((many[at] == few).all()):
        return many
    return distinct(np.concatenate((first, second)))
