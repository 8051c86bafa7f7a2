"""The vertices' side of a compute set's plan: all that is known without looking at who else receives the same.

What lies on the tiles of one IPU here follows from its own vertices and from the homes of what they touch, so that it can be worked
out for some IPUs alone.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int8s, Int64s
from pypoplar.arrays.interval_algebra import keys, overlay, subtract, union
from pypoplar.compiler.exchange.compute_set_edges import GATHERED, LANDED, Edges, askew, place_edges
from pypoplar.compiler.exchange.exchange_buffer import Landing, Parts, from_homes, land, remote_parts
from pypoplar.compiler.exchange.gathers import plan_gathers
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.exchange.halo_copies import copied_pieces, varying_pieces
from pypoplar.compiler.exchange.parted_edges import part_edges
from pypoplar.compiler.exchange.pieces import appended, joined, sorted_by_target_tile, turned
from pypoplar.compiler.exchange_plan import Homes, Pieces
from pypoplar.compiler.field_table import INPUT, OUTPUT
from pypoplar.graph.frozen import FrozenGraph


@frozen(eq=False)
class VertexSide:
    """Where the edges of a compute set lie, what lands on the tiles of its vertices, and what moves there on the tile."""

    placement: Int8s  # [edges]
    offset: Int64s  # [edges]: bytes, in the tile's memory or its exchange buffer
    moves: Moving | None  # None where every edge is used in place


@frozen(eq=False)
class Moving:
    """What of a compute set does not lie where its vertices need it; all pieces are sorted by target tile."""

    incoming: Parts
    outgoing: Parts
    landing: Landing
    buffer_bytes: Int64s  # [tiles]: of the exchange buffer, what lands and what is gathered
    buffer_alignment: Int64s  # [tiles]: what it begins at a multiple of
    gather: Pieces
    parted: Pieces
    scatter: Pieces
    preload: Pieces
    copied_gather: Pieces
    copied_parted: Pieces
    copied_scatter: Pieces


def plan_vertex_side(graph: FrozenGraph, homes: Homes, survey: Survey, edges: Edges) -> VertexSide:
    """Plan it for these edges, which are all of some tiles."""
    placement, offset = place_edges(edges, homes, survey)
    moving = np.flatnonzero(placement[edges.strands.owner] >= LANDED)
    if len(moving) == 0 and len(survey.fields.distinct) == 0:
        return VertexSide(placement, offset, None)

    access = edges.access[edges.strands.owner[moving]]
    incoming = remote_parts(survey, homes, edges, moving[access != OUTPUT])
    outgoing = remote_parts(survey, homes, edges, moving[access != INPUT])
    one_piece = moving[placement[edges.strands.owner[moving]] == LANDED]
    landing = land(graph.tiles, survey, incoming, outgoing, edges, one_piece)
    offset[edges.strands.owner[one_piece]] = landing.place(edges.begin[one_piece])
    placement[askew(edges, placement, offset)] = GATHERED
    apart = part_edges(graph, survey, edges, placement)
    landed = placement[edges.strands.owner[moving]] == LANDED

    gathers = plan_gathers(edges, np.flatnonzero(placement == GATHERED), apart, homes, survey, landing)
    offset[gathers.edge] = gathers.offset
    old = _old_values(survey, homes, edges, moving[landed & (access == OUTPUT)], incoming, landing)
    constants = survey.constants
    return VertexSide(
        placement,
        offset,
        Moving(
            incoming,
            outgoing,
            landing,
            landing.bytes + gathers.bytes,
            gathers.alignment,
            gather=gathers.gather,
            parted=gathers.parted,
            scatter=gathers.scatter,
            preload=sorted_by_target_tile(appended(old, gathers.preload)),
            copied_gather=copied_pieces(edges, placement, offset, gathers.gather, constants),
            copied_parted=varying_pieces(gathers.parted, constants),
            copied_scatter=turned(copied_pieces(edges, placement, offset, turned(gathers.scatter), constants)),
        ),
    )


def _old_values(survey: Survey, homes: Homes, edges: Edges, strands: Int64s, incoming: Parts, landing: Landing) -> Pieces:
    """What an Output that landed holds before its vertex writes it, but for what arrives anyway."""
    written = union(edges.begin[strands], edges.end[strands])
    arriving = keys(incoming.tile, incoming.begin, survey.span)
    begin, end = subtract(*written, arriving, arriving + (incoming.end - incoming.begin))
    tile = begin // survey.span
    parts = overlay(begin - tile * survey.span, end - tile * survey.span, homes.begin, homes.end)
    return joined(from_homes(survey, homes, Parts(tile[parts.left], parts.begin, parts.end, parts.right), landing))
