"""Where the elements of a tensor lie for a copy between tile memory and one dense host array."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.columns import as_one, constant
from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.exchange.copy_plan import Side, cut_bounds, lay_out
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.graph.frozen import ElementRuns


@frozen(eq=False)
class HostPieces:
    """Pieces of a host array: where each lies there, and in a tile's memory."""

    position: Int64s  # bytes from the start of the host array
    tile: Int64s
    offset: Int64s  # bytes in the tile's memory
    bytes: Int64s

    def part(self, first: int, last: int) -> HostPieces:
        """Some of them."""
        return HostPieces(*(column[first:last] for column in (self.position, self.tile, self.offset, self.bytes)))


def host_pieces(homes: Homes, runs: ElementRuns) -> HostPieces:
    """The pieces of a view, each contiguous on both sides, in the view's order; neighbours are joined."""
    views = ViewRuns.joined([runs])
    bounds = cut_bounds(views.elements, views.strands())
    parts = [_pieces_of(homes, lay_out(homes, *part)) for part in views.parts(bounds)]
    names = ("position", "tile", "offset", "bytes")
    pieces = HostPieces(*(as_one([getattr(part, name) for part in parts]) for name in names))
    return _joined_at(pieces, np.cumsum([len(part.bytes) for part in parts[:-1]], dtype=np.int64))


def _pieces_of(homes: Homes, side: Side) -> HostPieces:
    """What lies together in the order of a part of a view and in memory."""
    width, tile = homes.width[side.home], homes.tile[side.home]
    size = np.diff(side.place, append=side.end) * width
    goes_on = np.zeros(len(size), bool)
    goes_on[1:] = (side.offset[1:] == side.offset[:-1] + size[:-1]) & (tile[1:] == tile[:-1])
    if goes_on.any():
        first = np.flatnonzero(~goes_on)
        size = np.add.reduceat(size, first)
        return HostPieces((side.place * width)[first], tile[first], side.offset[first], constant(size))
    return HostPieces(side.place * width, tile, side.offset, constant(size))


def _joined_at(pieces: HostPieces, seams: Int64s) -> HostPieces:
    """The pieces, where those at some places that go on where the one before ends become one with it."""
    before = seams - 1
    goes_on = (pieces.offset[seams] == pieces.offset[before] + pieces.bytes[before]) & (pieces.tile[seams] == pieces.tile[before])
    if not goes_on.any():
        return pieces
    first = np.delete(np.arange(len(pieces.bytes)), seams[goes_on])
    return HostPieces(pieces.position[first], pieces.tile[first], pieces.offset[first], np.add.reduceat(pieces.bytes, first))
