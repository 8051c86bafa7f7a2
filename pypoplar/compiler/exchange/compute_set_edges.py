"""The edges of one compute set: sorted by tile, and their elements resolved to strands."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray, Int8s, Int32s, Int64s, Integers
from pypoplar.arrays.groups import offsets, ragged, selection, sums_between
from pypoplar.arrays.interval_algebra import Strands, keys, ordered_strands
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.field_table import INOUT, INPUT, TYPE_SIZES
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.presets import STORE_BYTES

EMPTY, IN_PLACE, LANDED, GATHERED = 0, 1, 2, 3


@frozen(eq=False)
class Edges:
    """The edges of one compute set, by position of their vertex, field and row; and their elements as strands."""

    vertex: Int64s  # [vertices of the set]
    vertex_tile: Int64s
    position: Int64s  # [edges]
    tile: Int64s
    field: Int32s
    row: Int32s
    access: Int8s  # INOUT also of an Output that is the same tensor as an Input of the vertex
    place_of: Int64s  # the edge whose place each takes: its own, but of such an Input the Output's
    width: Int64s  # bytes per element
    alignment: Int64s  # bytes; what its place is a multiple of, and that of an edge that takes the same place
    demanded: Int64s  # bytes; what the user demands of that, or 1
    length: Int64s  # elements
    strands: Strands  # owner: index into the edges
    begin: Int64s  # keys of the strands on the tile of their vertex
    end: Int64s


def select_edges(graph: FrozenGraph, survey: Survey, number: int) -> Edges:
    vertex = survey.vertex_order[survey.first_vertex[number] : survey.first_vertex[number + 1]]
    tile = graph.vertices.tile[vertex].astype(np.int64)
    first = survey.first_edge[vertex]
    count = survey.first_edge[vertex + 1] - first
    number_of = ragged(first, count)
    edge = selection(number_of)
    position = np.repeat(np.arange(len(vertex)), count)
    field = graph.edges.field[edge]
    entry = survey.fields.entries(graph.vertices.codelet[vertex][position], field)

    first_run = graph.edges.first_run[:-1][edge]
    runs = graph.edges.first_run[1:][edge] - first_run
    run = selection(ragged(first_run, runs))
    elements = graph.edges.run_count[run]
    single = len(runs) > 0 and int(runs.min()) == 1 == int(runs.max())  # of each edge, as most are
    owner = np.arange(len(number_of)) if single else np.repeat(np.arange(len(number_of)), runs)
    strands = ordered_strands(owner, graph.edges.run_start[run], elements, graph.edges.run_step[run])
    edge_tile = tile[position]
    whole = single and len(strands.owner) == len(owner)  # a strand an edge
    begin = keys(edge_tile if whole else edge_tile[strands.owner], strands.begin, survey.span)
    shared = _of_each(survey.fields.several_workers, graph.vertices.codelet[vertex])
    alignment, demanded = (_of_each(column, entry) for column in (survey.fields.alignment, survey.fields.demanded))
    access = _of_each(survey.fields.access, entry)
    width = TYPE_SIZES[graph.edges.type[edge]]
    place_of = survey.in_place.places(number_of)
    own = alignment
    if bool(shared.any()):  # workers of a MultiVertex share it: each stores its own words
        from_word = shared[position] & (width < STORE_BYTES) & (access != INPUT)
        alignment = np.where(from_word, np.maximum(own, STORE_BYTES), own)
    if len(survey.in_place.input):
        access, alignment, demanded = access.copy(), alignment.copy(), demanded.copy()
        access[place_of[place_of != np.arange(len(number_of))]] = INOUT
        np.maximum.at(alignment, place_of, own)
        np.maximum.at(demanded, place_of, demanded.copy())
        alignment, demanded = alignment[place_of], demanded[place_of]
    return Edges(
        vertex,
        tile,
        position,
        edge_tile,
        field,
        graph.edges.row[edge],
        access,
        place_of,
        width,
        alignment,
        demanded,
        elements if single else sums_between(offsets(runs), elements),
        strands,
        begin,
        begin + strands.length,
    )


def _of_each(column: AnyArray, entry: Integers) -> AnyArray:
    """The entries of a table, without memory of their own (stride 0) where it has but one value."""
    if len(column) and bool((column == column[0]).all()):
        return np.broadcast_to(column[0], len(entry))
    return column[entry]


def place_edges(edges: Edges, homes: Homes, survey: Survey) -> tuple[Int8s, Int64s]:
    """What becomes of each edge, and the offsets of those used in place."""
    owner = edges.strands.owner
    placement = np.full(len(edges.position), EMPTY, np.int8)
    offset = np.zeros(len(edges.position), np.int64)
    if len(owner) == 0 or len(survey.resident_begin) == 0:
        placement[owner] = GATHERED
        return placement, offset
    resident = np.searchsorted(survey.resident_end, edges.begin, "right")
    exists = resident < len(survey.resident_begin)
    resident = np.minimum(resident, len(survey.resident_begin) - 1)
    starts = survey.resident_begin[resident]
    local = exists & (starts <= edges.begin) & (edges.end <= survey.resident_end[resident])
    foreign = ~exists | (edges.end <= starts)

    strands = np.bincount(owner, minlength=len(placement))
    placement[owner] = np.where(local, IN_PLACE, np.where(foreign, LANDED, GATHERED))
    placement[strands > 1] = GATHERED
    home = survey.resident_home[resident]
    offset[owner] = homes.offset[home] + (edges.strands.begin - homes.begin[home]) * homes.width[home]
    offset[placement != IN_PLACE] = 0  # these have no place yet
    placement[askew(edges, placement, offset)] = GATHERED
    offset[placement == GATHERED] = 0
    return placement, offset


def askew(edges: Edges, placement: Int8s, offset: Int64s) -> Int64s:
    """The edges that would begin where they may not."""
    return np.flatnonzero((placement != EMPTY) & (offset % edges.alignment != 0))
