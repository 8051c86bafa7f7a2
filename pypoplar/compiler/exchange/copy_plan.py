"""The plan of a copy between tensors: which bytes go where, and the account of what crosses between tiles."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import before_in_group, is_sorted, opens
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


def plan_copy(graph: FrozenGraph, homes: Homes, source: ElementRuns, target: ElementRuns) -> CopyPlan:
    """Plan a copy of the elements of `source` into those of `target`, one by one in order.

    An element that is its own target does not move.
    """
    elements = source.elements()
    if elements != target.elements():
        raise TensorShapeError(f"cannot copy {elements} elements into {target.elements()}")
    pieces, home = _cut(lay_out(homes, source), lay_out(homes, target), homes, elements)
    moves = (pieces.source_tile != pieces.target_tile) | (pieces.source_offset != pieces.target_offset)
    if not bool(moves.all()):
        pieces, home = chosen(pieces, moves), home[moves]

    crosses = pieces.source_tile != pieces.target_tile
    remote = slice(None) if bool(crosses.all()) else crosses
    accounted = account(
        graph.tiles,
        Transfers(
            pieces.source_tile[remote],
            pieces.target_tile[remote],
            homes.variable[home[remote]],
            pieces.source_offset[remote],
            pieces.bytes[remote],
        ),
    )
    del home, crosses, remote
    moved = joined(_by_target_tile(pieces, graph.tiles))
    return CopyPlan(moved, accounted.exchange, accounted.offset)


def lay_out(homes: Homes, runs: ElementRuns) -> Side:
    """The elements of a view in order, as stretches of memory; `InvalidTileMapping` where an element has no place."""
    strands = ordered_strands(np.zeros(len(runs.start), np.int64), runs.start, runs.count, runs.step)
    place = before_in_group(strands.length, strands.owner)
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


def _cut(source: Side, target: Side, homes: Homes, elements: int) -> tuple[Pieces, Int64s]:
    """Cut both sides where either begins a new stretch; and the source's home of each piece."""
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
    bytes = np.diff(place, append=elements) * width
    pieces = make_pieces(homes.tile[source_home], source_offset, homes.tile[target_home], target_offset, bytes)
    return pieces, source_home


def _by_target_tile(pieces: Pieces, tiles: int) -> Pieces:
    if is_sorted(pieces.target_tile):
        return pieces
    # NumPy sorts 16-bit integers by radix, an order of magnitude faster than others
    tile = pieces.target_tile.astype(np.uint16) if tiles <= 65536 else pieces.target_tile
    return chosen(pieces, np.argsort(tile, kind="stable"))
