"""Where the elements of a tensor lie for a copy between tile memory and one dense host array."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.compiler.exchange.copy_plan import lay_out
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.graph.frozen import ElementRuns


@frozen(eq=False)
class HostPieces:
    """Pieces of a host array: where each lies there, and in a tile's memory."""

    position: Int64s  # bytes from the start of the host array
    tile: Int64s
    offset: Int64s  # bytes in the tile's memory
    bytes: Int64s


def host_pieces(homes: Homes, runs: ElementRuns) -> HostPieces:
    """The pieces of a view, each contiguous on both sides, in the view's order; neighbours are joined."""
    side = lay_out(homes, runs)
    if len(side.place) == 0:
        nothing = np.zeros(0, np.int64)
        return HostPieces(nothing, nothing, nothing, nothing)
    width = homes.width[side.home]
    size = np.diff(side.place, append=runs.elements()) * width
    tile = homes.tile[side.home]
    opens = np.ones(len(size), bool)
    opens[1:] = (side.offset[1:] != side.offset[:-1] + size[:-1]) | (tile[1:] != tile[:-1])
    first = np.flatnonzero(opens)
    joined = np.add.reduceat(size, first)
    position = offsets(joined)[:-1]
    return HostPieces(position, tile[first], side.offset[first], joined)
