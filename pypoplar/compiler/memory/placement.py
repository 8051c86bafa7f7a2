"""Where every element of the used variables lives: the layout of the variables in the tiles' memories.

On a tile, what is always live comes first, then the memory that the other variables share (see `sharing`). What a tile has of a
variable is a block (see `memory_blocks`), which begins where the most edges lie as their vertices demand.
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import before_in_group, opens, stable_order, sums
from pypoplar.arrays.interval_algebra import overlay
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.compiler.memory.aligned_edges import AlignedEdges
from pypoplar.compiler.memory.memory_blocks import Leads, choose_leads, packed, rounded_up, widest_on_tiles
from pypoplar.compiler.memory.sharing import share
from pypoplar.graph.frozen import FrozenGraph

PIECE_ALIGNMENT = 4  # of each interval: two intervals never share a 32-bit word


def place_variables(
    graph: FrozenGraph, used: Bools, liveness: Liveness | None = None, aligned: AlignedEdges | None = None
) -> Homes:
    """Lay out the variables and constants that `used` (bool per variable) marks, on the tiles of their mapping.

    On a tile, variables come in the order of their numbers and elements in theirs; with `liveness`, the variables that live only at
    times share memory behind the others. `aligned` are edges whose alignment is demanded: larger alignments come first. Elements
    without a tile get no home; the check of the mappings has refused them.
    """
    variables, mapping = graph.variables, graph.mapping
    parts = overlay(mapping.begin, mapping.end, variables.first[:-1], variables.first[1:])
    kept = np.flatnonzero(np.asarray(used, bool)[parts.right] & (parts.begin < parts.end))
    begin, end = parts.begin[kept], parts.end[kept]
    variable, tile = parts.right[kept], mapping.tile[parts.left[kept]].astype(np.int64)
    sizes = np.array([type.size for type in variables.types], np.int64)
    width = sizes[variable]

    order = stable_order(tile)
    size = rounded_up((end - begin) * width, PIECE_ALIGNMENT)[order]
    on_tile, of_variable = tile[order], variable[order]
    begins = opens(on_tile, of_variable)
    part = np.empty(len(order), np.int64)  # of each interval: what its tile has of its variable
    part[order] = np.cumsum(begins) - 1
    inside = np.empty(len(order), np.int64)
    inside[order] = before_in_group(size, part[order])
    part_tile, part_variable = on_tile[begins], of_variable[begins]
    leads = Leads.none(len(part_tile))
    if aligned is not None:
        homes = Homes(begin, end, tile, inside, width, variable, np.zeros(graph.tiles, np.int64))
        leads = choose_leads(sizes[part_variable], aligned.demands(homes, part))
    part_bytes = rounded_up(leads.lead + sums(size, part[order], len(part_tile)), leads.alignment)
    part_offset, tile_bytes = _place_parts(part_tile, part_variable, part_bytes, leads.alignment, graph.tiles, liveness)
    return Homes(begin, end, tile, (part_offset + leads.lead)[part] + inside, width, variable, tile_bytes)


def _place_parts(
    tile: Int64s, variable: Int64s, size: Int64s, alignment: Int64s, tiles: int, liveness: Liveness | None
) -> tuple[Int64s, Int64s]:
    """Where on its tile each part lies, and how far the parts of each tile reach."""
    if liveness is None:
        return packed(tile, size, alignment, tiles)
    shared = liveness.shared()[variable]
    offset, reach = packed(tile, np.where(shared, 0, size), alignment, tiles)
    part = np.flatnonzero(shared)
    base = rounded_up(reach, widest_on_tiles(tile[part], alignment[part], tiles))
    offset[part] = base[tile[part]] + share(tile[part], variable[part], size[part], alignment[part], liveness)
    np.maximum.at(reach, tile[part], offset[part] + size[part])
    return offset, reach
