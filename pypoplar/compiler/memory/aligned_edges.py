"""The alignment that vertices demand of the places of their edges, as far as it concerns the layout of variables."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import before_in_group, ragged
from pypoplar.arrays.interval_algebra import ordered_strands, overlay
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.field_table import TYPE_SIZES, field_table
from pypoplar.compiler.memory.memory_blocks import Demands
from pypoplar.graph.frozen import FrozenGraph


@frozen(eq=False)
class AlignedEdges:
    """The stretches of elements of edges whose places are aligned, on the tiles of their vertices."""

    owner: Int64s  # the edge; non-decreasing
    tile: Int64s
    begin: Int64s  # element ids
    end: Int64s
    before: Int64s  # bytes of the edge in front of the stretch
    alignment: Int64s  # bytes
    demanded: Bools  # whether by the user; else records lie so

    def demands(self, homes: Homes, block: Int64s) -> Demands:
        """What the edges demand of blocks; the offsets of homes count from the beginning of their block.

        An edge counts that has one stretch of memory on its tile; any other is copied together wherever its stretches lie. Blocks
        of which the user demands nothing are left as they are.
        """
        parts = overlay(self.begin, self.end, homes.begin, homes.end)
        local = np.flatnonzero(homes.tile[parts.right] == self.tile[parts.left])
        stretch, home = parts.left[local], parts.right[local]
        owner = self.owner[stretch]
        alone = np.bincount(owner)[owner] == 1
        kept = np.flatnonzero(alone & np.isin(block[home], block[home[alone & self.demanded[stretch]]]))
        stretch, home, begin, end = stretch[kept], home[kept], parts.begin[local[kept]], parts.end[local[kept]]
        width = homes.width[home]
        before = self.before[stretch] + (begin - self.begin[stretch]) * width
        place = homes.offset[home] + (begin - homes.begin[home]) * width - before
        return Demands(block[home], place, self.alignment[stretch], (end - begin) * width)


def aligned_edges(graph: FrozenGraph, used: Bools) -> AlignedEdges | None:
    """The edges of the vertices that `used` marks whose places are to be aligned; None where no user demands that."""
    fields = field_table(graph)
    if not (fields.demanded > 1).any():
        return None
    edges = graph.edges
    entry = fields.entries(graph.vertices.codelet[edges.vertex], edges.field)
    edge = np.flatnonzero(used[edges.vertex] & (fields.alignment[entry] > 1))
    runs = edges.first_run[edge + 1] - edges.first_run[edge]
    run = ragged(edges.first_run[edge], runs)
    owner = np.repeat(np.arange(len(edge)), runs)
    strands = ordered_strands(owner, edges.run_start[run], edges.run_count[run], edges.run_step[run])
    owner = edge[strands.owner]
    return AlignedEdges(
        strands.owner,
        graph.vertices.tile[edges.vertex[owner]].astype(np.int64),
        strands.begin,
        strands.begin + strands.length,
        before_in_group(strands.length, strands.owner) * TYPE_SIZES[edges.type[owner]],
        fields.alignment[entry[owner]],
        fields.demanded[entry[owner]] > 1,
    )
