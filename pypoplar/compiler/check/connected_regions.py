"""The regions that vertices connect to: what the checks of connections and races judge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from attrs import astuple, frozen

from pypoplar.arrays.dtypes import Bools, Int64s, Integers
from pypoplar.arrays.groups import distinct, offsets, ragged
from pypoplar.arrays.interval_algebra import Strands, keys, touched_strands, union
from pypoplar.compiler.check.overlaps import disjoint
from pypoplar.compiler.field_table import INPUT, FieldTable, field_table
from pypoplar.graph.frozen import FrozenGraph

AT_ONCE = 1 << 20  # strands
FEW_STRANDS = 4  # of an edge


@frozen(eq=False)
class Regions:
    """The edges of the vertices of some compute sets, and the elements they touch.

    `strands` are sets of elements: a broadcast element is there once, a reversed run is a stretch; they come in any order, and each
    may be there again. Their owners index `edge`.
    Where `disjoint` is set, no strand of a compute set that is written overlaps another of the same compute set.
    """

    span: int
    fields: FieldTable
    vertices: Bools  # of the graph: those of the compute sets
    edge: Int64s  # the graph's edge numbers, ascending
    entry: Integers  # of the edge's field in the field table
    vertex: Int64s  # of each edge
    strands: Strands
    key: Int64s  # of each strand: its first element in its compute set, ``compute set * span + element``
    written: Bools  # of each strand
    disjoint: bool


def used_vertices(graph: FrozenGraph, compute_sets: Sequence[int]) -> Bools:
    """bool [vertices]: those of the compute sets."""
    used = np.zeros(len(graph.compute_sets), bool)
    used[list(compute_sets)] = True
    marked: Bools = used[graph.vertices.compute_set]
    return marked


def collect_regions(graph: FrozenGraph, compute_sets: Sequence[int]) -> Regions:
    """The regions of all vertices of the given compute sets."""
    edges = graph.edges
    vertices = used_vertices(graph, compute_sets)
    used = vertices[edges.vertex]
    edge = np.flatnonzero(used)
    whole = len(edge) == len(used)
    vertex = edges.vertex if whole else edges.vertex[edge]
    fields = field_table(graph)
    entry = fields.entries(graph.vertices.codelet[vertex], edges.field if whole else edges.field[edge])

    first = edges.first_run[:-1] if whole else edges.first_run[edge]
    count = np.diff(edges.first_run) if whole else edges.first_run[edge + 1] - first
    strands = _strands(graph, first, count)
    written = fields.access[entry][strands.owner] != INPUT
    span = int(graph.variables.first[-1]) + 1
    key = keys(graph.vertices.compute_set[vertex][strands.owner], strands.begin, span)
    apart = disjoint(key, key + strands.length, written)
    return Regions(span, fields, vertices, edge, entry, vertex, strands, key, written, apart)


def _strands(graph: FrozenGraph, first: Int64s, count: Int64s) -> Strands:
    """What edges touch that have so many runs from their first on. Many are looked at part by part, which takes less memory.

    Where strands are many more than edges, those of an edge are sorted and joined, as views in another order than that of memory
    touch stretches element by element.
    """
    edges, span = graph.edges, int(graph.variables.first[-1]) + 1
    elements = offsets(np.where(edges.run_step == 1, 1, edges.run_count))
    most = elements[first + count] - elements[first]
    del elements
    parts = []
    for part in _parts(most):
        runs = ragged(first[part], count[part])
        owner = np.repeat(np.arange(len(count[part])), count[part])
        found = touched_strands(owner, edges.run_start[runs], edges.run_count[runs], edges.run_step[runs])
        if len(found.owner) > FEW_STRANDS * len(count[part]):
            begin = keys(found.owner, found.begin, span)
            begin, end = union(begin, begin + found.length)
            number = begin // span
            found = Strands(number, begin - number * span, end - begin)
        parts.append(Strands(found.owner + part.start, found.begin, found.length))
    if len(parts) == 1:
        return parts[0]
    columns = [list(column) for column in zip(*(astuple(one, recurse=False) for one in parts), strict=True)]
    del parts
    whole = []
    for column in columns:  # each leaves its parts free for the next
        whole.append(np.concatenate(column))
        column.clear()
    return Strands(*whole)


def _parts(most: Int64s) -> list[slice]:
    """Cuts edges that have at most so many strands each into parts of about as many as are looked at at once."""
    before = offsets(most)
    cuts = distinct(np.searchsorted(before, np.arange(AT_ONCE, int(before[-1]), AT_ONCE)))
    bounds = [0, *cuts[(cuts > 0) & (cuts < len(most))].tolist(), len(most)]
    return [slice(begin, end) for begin, end in pairwise(bounds)]
