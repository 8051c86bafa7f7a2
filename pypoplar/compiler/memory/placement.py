"""Where every element of the used variables lives: the layout of the variables in the tiles' memories.

On a tile, what is always live comes first, then the memory that the other variables share (see `sharing`).
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import before_in_group, opens, sums
from pypoplar.arrays.interval_algebra import overlay
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.compiler.memory.sharing import share
from pypoplar.graph.frozen import FrozenGraph

PART_ALIGNMENT = 8  # of a variable's part on a tile: what the widest load of a worker needs
PIECE_ALIGNMENT = 4  # of each interval: two intervals never share a 32-bit word


def rounded_up(bytes: Int64s, alignment: int) -> Int64s:
    return (bytes + (alignment - 1)) & -alignment


def place_variables(graph: FrozenGraph, used: Bools, liveness: Liveness | None = None) -> Homes:
    """Lay out the variables and constants that `used` (bool per variable) marks, on the tiles of their mapping.

    On a tile, variables come in the order of their numbers and elements in theirs; with `liveness`, the variables that live only at
    times share memory behind the others. Elements without a tile get no home; the check of the mappings has refused them.
    """
    variables, mapping = graph.variables, graph.mapping
    parts = overlay(mapping.begin, mapping.end, variables.first[:-1], variables.first[1:])
    kept = np.flatnonzero(np.asarray(used, bool)[parts.right] & (parts.begin < parts.end))
    begin, end = parts.begin[kept], parts.end[kept]
    variable, tile = parts.right[kept], mapping.tile[parts.left[kept]].astype(np.int64)
    sizes = np.array([type.size for type in variables.types], np.int64)
    width = sizes[variable]

    order = np.argsort(tile, kind="stable")
    size = rounded_up((end - begin) * width, PIECE_ALIGNMENT)[order]
    on_tile, of_variable = tile[order], variable[order]
    begins = opens(on_tile, of_variable)
    part = np.cumsum(begins) - 1
    part_tile = on_tile[begins]
    part_bytes = rounded_up(sums(size, part, len(part_tile)), PART_ALIGNMENT)
    part_offset, tile_bytes = _place_parts(part_tile, of_variable[begins], part_bytes, graph.tiles, liveness)
    offset = np.empty(len(order), np.int64)
    offset[order] = part_offset[part] + before_in_group(size, part)
    return Homes(begin, end, tile, offset, width, variable, tile_bytes)


def _place_parts(tile: Int64s, variable: Int64s, size: Int64s, tiles: int, liveness: Liveness | None) -> tuple[Int64s, Int64s]:
    """Where on its tile each part lies, and how far the parts of each tile reach."""
    if liveness is None:
        return before_in_group(size, tile), sums(size, tile, tiles)
    shared = liveness.shared()[variable]
    alone = np.where(shared, 0, size)
    reach = sums(alone, tile, tiles)
    offset = before_in_group(alone, tile)
    part = np.flatnonzero(shared)
    offset[part] = reach[tile[part]] + share(tile[part], variable[part], size[part], liveness)
    np.maximum.at(reach, tile[part], offset[part] + size[part])
    return offset, reach
