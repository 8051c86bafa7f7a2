"""The plan of a compute set: where the fields of its vertices lie, and what moves before and after them.

A vertex reaches its own tile's memory only. An edge that lies there in one piece is used in place. What a tile's vertices touch
elsewhere has a place in the tile's *landing area*, once, in order of element ids; an edge that lies there in one piece points into
it. Every other edge gets a buffer in which its elements are *gathered*: one that is strided, of several runs, or partly here and
partly elsewhere; one of records, of halves that the workers of a MultiVertex write, or that is demanded to be aligned, which would
begin where it may not; one that is demanded to be apart from another that lies there. Landing area and gather buffers together are
the tile's exchange buffer.
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.exchange.alike_ipus import SpreadPlan, edges_of_leaders, find_alike
from pypoplar.compiler.exchange.compute_set_edges import LANDED, Edges, select_edges
from pypoplar.compiler.exchange.exchange_buffer import Landing, Parts, from_homes
from pypoplar.compiler.exchange.graph_index import Survey, survey_graph
from pypoplar.compiler.exchange.message_account import MessageAccount, Transfers, account
from pypoplar.compiler.exchange.pieces import appended, joined, nothing_moves, sorted_by_target_tile, turned
from pypoplar.compiler.exchange.vertex_side import VertexSide, plan_vertex_side
from pypoplar.compiler.exchange_plan import ComputePlan, Homes, Pieces
from pypoplar.graph.frozen import FrozenGraph


def plan_compute_set(graph: FrozenGraph, homes: Homes, number: int, survey: Survey | None = None) -> ComputePlan:
    """Plan compute set `number`. Pass the survey where several are planned: it is the same for all."""
    if survey is None:
        survey = survey_graph(graph, homes)
    edges = select_edges(graph, survey, number)
    side = _vertex_side(graph, homes, survey, edges)
    moves = side.moves
    if moves is None:
        return _plan_inplace_edges(graph, edges, side.offset, number)
    landing = moves.landing
    before, arrivals = _arrivals(graph.tiles, survey, homes, moves.incoming, landing)
    after, departures = _departures(graph.tiles, survey, homes, moves.outgoing, landing)
    return ComputePlan(
        compute_set=number,
        vertex=edges.vertex,
        tile=edges.vertex_tile,
        edge_position=edges.position,
        edge_field=edges.field,
        edge_row=edges.row,
        edge_offset=side.offset,
        edge_in_buffer=side.placement >= LANDED,
        edge_length=edges.length,
        exchange_before=before,
        gather=moves.gather,
        parted=moves.parted,
        preload=moves.preload,
        scatter=moves.scatter,
        exchange_after=after,
        before=arrivals.exchange,
        after=departures.exchange,
        before_offset=arrivals.offset,
        after_offset=departures.offset,
        before_stretches=arrivals.stretches,
        after_stretches=departures.stretches,
        copied_before=appended(moves.copied_gather, moves.copied_parted),
        copied_after=moves.copied_scatter,
        buffer_bytes=moves.buffer_bytes,
        buffer_alignment=moves.buffer_alignment,
    )


def _vertex_side(graph: FrozenGraph, homes: Homes, survey: Survey, edges: Edges) -> VertexSide:
    """Of IPUs that are alike, one is planned for all."""
    alike = find_alike(graph, edges, homes, survey)
    if alike is not None:
        led = edges_of_leaders(edges, alike)
        whole = SpreadPlan(alike, homes, survey).side(plan_vertex_side(graph, homes, survey, led), led)
        if whole is not None:
            return whole
    return plan_vertex_side(graph, homes, survey, edges)


def _plan_inplace_edges(graph: FrozenGraph, edges: Edges, offset: Int64s, number: int) -> ComputePlan:
    nothing = np.zeros(0, np.int64)
    silence = account(graph.tiles, Transfers(nothing, nothing, nothing, nothing, nothing))
    return ComputePlan(
        compute_set=number,
        vertex=edges.vertex,
        tile=edges.vertex_tile,
        edge_position=edges.position,
        edge_field=edges.field,
        edge_row=edges.row,
        edge_offset=offset,
        edge_in_buffer=np.zeros(len(offset), bool),
        edge_length=edges.length,
        before=silence.exchange,
        after=silence.exchange,
        before_offset=silence.offset,
        after_offset=silence.offset,
        before_stretches=silence.stretches,
        after_stretches=silence.stretches,
        buffer_bytes=np.zeros(graph.tiles, np.int64),
        buffer_alignment=np.ones(graph.tiles, np.int64),
        **nothing_moves(),
    )


def _arrivals(tiles: int, survey: Survey, homes: Homes, incoming: Parts, landing: Landing) -> tuple[Pieces, MessageAccount]:
    pieces = from_homes(survey, homes, incoming, landing)
    transfers = Transfers(pieces.source_tile, pieces.target_tile, homes.variable[incoming.home], pieces.source_offset, pieces.bytes)
    return joined(pieces), account(tiles, transfers)


def _departures(tiles: int, survey: Survey, homes: Homes, outgoing: Parts, landing: Landing) -> tuple[Pieces, MessageAccount]:
    back = from_homes(survey, homes, outgoing, landing)
    transfers = Transfers(back.target_tile, back.source_tile, homes.variable[outgoing.home], back.target_offset, back.bytes)
    return joined(sorted_by_target_tile(turned(back))), account(tiles, transfers)
