"""What the plans of all compute sets have in common, worked out once: who belongs where."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import opens, sorting_order
from pypoplar.arrays.interval_algebra import keys
from pypoplar.compiler.check.in_place import NONE, InPlaceEdges
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.field_table import FieldTable, field_table
from pypoplar.graph.frozen import FrozenGraph

MEMORY_SPAN = 1 << 32  # bytes: more than a tile's memory has, also one that is predicted beyond it


@frozen(eq=False)
class ConstantPlaces:
    """Where constants lie in the memories of tiles: the ends of their pieces as keys, each in order.

    They are looked for in every compute set, and are sorted once for all.
    """

    low: Int64s
    high: Int64s

    @staticmethod
    def of(homes: Homes, constant: Bools) -> ConstantPlaces:
        """Those of the homes that are of constants."""
        tile, offset = homes.tile[constant], homes.offset[constant]
        end = offset + (homes.end[constant] - homes.begin[constant]) * homes.width[constant]
        return ConstantPlaces(np.sort(keys(tile, offset, MEMORY_SPAN)), np.sort(keys(tile, end, MEMORY_SPAN)))

    def have(self, tile: Int64s, offset: Int64s) -> Bools:
        """Which of these places are within one."""
        if len(self.low) == 0 or len(tile) == 0:
            return np.zeros(len(tile), bool)
        place = keys(tile, offset, MEMORY_SPAN)
        inside: Bools = np.searchsorted(self.low, place, "right") > np.searchsorted(self.high, place, "right")
        return inside


@frozen(eq=False)
class Survey:
    """Indices over the graph and its homes. `span` makes composite keys ``tile * span + element``."""

    span: int
    fields: FieldTable
    vertex_order: Int64s  # vertices by compute set, tile, order of adding
    first_vertex: Int64s  # [compute sets + 1], into vertex_order
    first_edge: Int64s  # [vertices + 1], into the graph's edges
    resident_begin: Int64s  # keys: what lives on each tile, sorted by tile and element
    resident_end: Int64s
    resident_home: Int64s  # index into Homes
    constant: Bools  # [homes]: what lives there never changes
    constants: ConstantPlaces
    width_begin: Int64s  # element ids: stretches of elements of one width, over variables
    width_end: Int64s
    width: Int64s  # bytes
    in_place: InPlaceEdges
    ipus: int  # which have equally many tiles


def survey_graph(graph: FrozenGraph, homes: Homes, in_place: InPlaceEdges = NONE, ipus: int = 1) -> Survey:
    span = int(graph.variables.first[-1]) + 1
    vertices = graph.vertices
    group = vertices.compute_set.astype(np.int64) * (graph.tiles + 1) + vertices.tile + 1
    order = sorting_order(group)
    if order is None:
        order = np.arange(len(group))
    bounds = np.searchsorted(group[order], np.arange(len(graph.compute_sets) + 1) * (graph.tiles + 1))

    resident = keys(homes.tile, homes.begin, span)
    by_tile = np.argsort(resident, kind="stable")
    resident_begin = resident[by_tile]
    resident_end = resident_begin + (homes.end - homes.begin)[by_tile]
    constant = _constants(graph)[homes.variable]
    return Survey(
        span,
        field_table(graph),
        order,
        bounds,
        edges_of_vertices(graph),
        resident_begin,
        resident_end,
        by_tile,
        constant,
        ConstantPlaces.of(homes, constant),
        *_widths(graph),
        in_place,
        ipus,
    )


def _constants(graph: FrozenGraph) -> Bools:
    constant = np.zeros(len(graph.variables.names), bool)
    constant[list(graph.variables.constants)] = True
    return constant


def edges_of_vertices(graph: FrozenGraph) -> Int64s:
    """int64 [vertices + 1]: the edges of vertex v are those from entry v to entry v + 1."""
    return np.searchsorted(graph.edges.vertex, np.arange(len(graph.vertices.codelet) + 1))


def _widths(graph: FrozenGraph) -> tuple[Int64s, Int64s, Int64s]:
    first = graph.variables.first.astype(np.int64)
    width = np.array([type.size for type in graph.variables.types], np.int64)
    filled = first[1:] > first[:-1]
    begin, width = first[:-1][filled], width[filled]
    begins = opens(width)
    begin = begin[begins]
    return begin, np.append(begin[1:], first[-1:])[: len(begin)], width[begins]
