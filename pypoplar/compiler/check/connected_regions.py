"""The regions that vertices connect to: what the checks of connections and races judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s, Integers
from pypoplar.arrays.groups import ragged
from pypoplar.arrays.interval_algebra import Strands, keys, touched_strands
from pypoplar.compiler.check.overlaps import disjoint
from pypoplar.compiler.field_table import INPUT, FieldTable, field_table
from pypoplar.graph.frozen import FrozenGraph


@frozen(eq=False)
class Regions:
    """The edges of the vertices of some compute sets, and the elements they touch.

    `strands` are sets of elements: a broadcast element is there once, a reversed run is a stretch. Their owners index `edge`.
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
    run = ragged(first, count)
    owner = np.repeat(np.arange(len(edge)), count)
    strands = touched_strands(owner, edges.run_start[run], edges.run_count[run], edges.run_step[run])
    written = fields.access[entry][strands.owner] != INPUT
    span = int(graph.variables.first[-1]) + 1
    key = keys(graph.vertices.compute_set[vertex][strands.owner], strands.begin, span)
    apart = disjoint(key, key + strands.length, written)
    return Regions(span, fields, vertices, edge, entry, vertex, strands, key, written, apart)
