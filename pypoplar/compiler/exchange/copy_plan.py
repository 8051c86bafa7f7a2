"""The plan of copies between tensors: which bytes go where, and the account of what crosses between tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import is_sorted, offsets, opens
from pypoplar.arrays.interval_algebra import ordered_strands, overlay
from pypoplar.compiler.exchange.message_account import Transfers, account
from pypoplar.compiler.exchange.pieces import chosen, joined, make_pieces
from pypoplar.compiler.exchange_plan import CopyPlan, Homes, Pieces
from pypoplar.errors import InvalidTileMapping, TensorShapeError
from pypoplar.graph.frozen import ElementRuns, FrozenGraph


@frozen(eq=False)
class Side:
    """One side of a copy: stretches of it, in order, that are contiguous in one tile's memory."""

    place: Int64s  # elements from the start of the view
    home: Int64s  # index into Homes
    offset: Int64s  # bytes in that tile's memory


def plan_copies(graph: FrozenGraph, homes: Homes, sources: Sequence[ElementRuns], targets: Sequence[ElementRuns]) -> CopyPlan:
    """Plan copies of the elements of each source into those of its target, one by one in order.

    An element that is its own target does not move. The copies are planned as if each had a machine of its own: in the plan, tile t
    of the k-th copy is tile ``k * graph.tiles + t``.
    """
    for source, target in zip(sources, targets, strict=True):
        if source.elements() != target.elements():
            raise TensorShapeError(f"cannot copy {source.elements()} elements into {target.elements()}")
    elements = offsets([source.elements() for source in sources])
    pieces, home = _cut(_laid_out(homes, sources), _laid_out(homes, targets), homes, elements, graph.tiles)
    moves = (pieces.source_tile != pieces.target_tile) | (pieces.source_offset != pieces.target_offset)
    if not bool(moves.all()):
        pieces, home = chosen(pieces, moves), home[moves]

    crosses = pieces.source_tile != pieces.target_tile
    remote = slice(None) if bool(crosses.all()) else crosses
    transfers = Transfers(
        pieces.source_tile[remote],
        pieces.target_tile[remote],
        homes.variable[home[remote]],
        pieces.source_offset[remote],
        pieces.bytes[remote],
    )
    accounted = account(graph.tiles, transfers, len(sources))
    del home, crosses, remote, transfers
    moved = joined(_by_target_tile(pieces, len(sources) * graph.tiles))
    return CopyPlan(moved, accounted.exchange, accounted.offset)


def lay_out(homes: Homes, runs: ElementRuns) -> Side:
    """The elements of a view in order, as stretches of memory; `InvalidTileMapping` where an element has no place."""
    return _laid_out(homes, [runs])


def _laid_out(homes: Homes, views: Sequence[ElementRuns]) -> Side:
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


def _cut(source: Side, target: Side, homes: Homes, elements: Int64s, tiles: int) -> tuple[Pieces, Int64s]:
    """Cut both sides where either begins a new stretch; and the source's home of each piece.

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
    if len(elements) > 2:
        machine = (np.searchsorted(elements, place, "right") - 1) * tiles
        source_tile, target_tile = source_tile + machine, target_tile + machine
    return make_pieces(source_tile, source_offset, target_tile, target_offset, bytes), source_home


def _by_target_tile(pieces: Pieces, tiles: int) -> Pieces:
    if is_sorted(pieces.target_tile):
        return pieces
    # NumPy sorts 16-bit integers by radix, an order of magnitude faster than others
    tile = pieces.target_tile.astype(np.uint16) if tiles <= 65536 else pieces.target_tile
    return chosen(pieces, np.argsort(tile, kind="stable"))
