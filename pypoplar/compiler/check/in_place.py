"""Inputs and Outputs of a vertex that are one tensor: the same elements in the same order. The vertex works on them in place."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, offsets, ragged
from pypoplar.arrays.interval_algebra import keys, ordered_strands, same_strands
from pypoplar.compiler.check.connected_regions import Regions
from pypoplar.compiler.field_table import INPUT, OUTPUT
from pypoplar.graph.frozen import FrozenGraph


@frozen(eq=False)
class InPlaceEdges:
    """Edges by their numbers in the graph: each Input that is the same tensor as an Output of its vertex, and that Output."""

    input: Int64s  # ascending
    output: Int64s
    apart: Int64s  # Inputs that are one tensor with an Output, too, but are demanded to be apart from it, or from an Input there

    def places(self, edge: Int64s) -> Int64s:
        """For each of some edges the one of them whose place it takes: its own, but of an Input that is in place its Output's.

        `edge` are numbers in the graph, of all edges of some vertices, those of a vertex in their order.
        """
        places = np.arange(len(edge))
        if len(self.input):
            pair = np.minimum(np.searchsorted(self.input, edge), len(self.input) - 1)
            inputs = np.flatnonzero(self.input[pair] == edge)
            places[inputs] += self.output[pair[inputs]] - edge[inputs]
        return places

    def fields(self, graph: FrozenGraph) -> Int64s:
        """int64 [pairs, 3]: codelet, and positions of an Input and an Output that are one tensor in some vertex."""
        if not len(self.input):
            return np.zeros((0, 3), np.int64)
        edges = graph.edges
        codelet = graph.vertices.codelet[edges.vertex[self.input]]
        columns = (codelet, edges.field[self.input], edges.field[self.output])
        pairs: Int64s = np.unique(np.stack(columns, 1).astype(np.int64).reshape(-1, 3), axis=0)
        return pairs


NONE = InPlaceEdges(*(np.zeros(0, np.int64) for _ in range(3)))


def find_in_place(graph: FrozenGraph, regions: Regions) -> InPlaceEdges:
    """The Inputs that are one tensor with an Output of their vertex. Of views that are cut into runs otherwise, too."""
    access = regions.fields.access[regions.entry]
    if regions.disjoint or not (access == OUTPUT).any() or not (access == INPUT).any():
        return NONE
    first, length = _first_elements(graph, regions.edge)
    some = length > 0
    inputs, outputs = np.flatnonzero((access == INPUT) & some), np.flatnonzero((access == OUTPUT) & some)
    if not (len(inputs) and len(outputs)):
        return NONE
    key = keys(regions.vertex, first, regions.span)
    outputs = outputs[np.argsort(key[outputs], kind="stable")]
    place = np.searchsorted(key[outputs], key[inputs])
    known = np.minimum(place, len(outputs) - 1)
    alike = (key[outputs[known]] == key[inputs]) & (length[outputs[known]] == length[inputs])
    inputs, outputs = inputs[alike], outputs[known[alike]]

    candidates = distinct(np.concatenate((inputs, outputs)))
    edge, edges = regions.edge[candidates], graph.edges
    count = edges.first_run[edge + 1] - edges.first_run[edge]
    run = ragged(edges.first_run[edge], count)
    owner = np.repeat(np.arange(len(edge)), count)
    strands = ordered_strands(owner, edges.run_start[run], edges.run_count[run], edges.run_step[run])
    same = same_strands(strands, np.searchsorted(candidates, inputs), np.searchsorted(candidates, outputs))
    given, target = regions.edge[inputs[same]], regions.edge[outputs[same]]
    kept = _kept(graph, given, target, regions.fields.distinct)
    return InPlaceEdges(given[kept], target[kept], given[~kept])


def _kept(graph: FrozenGraph, inputs: Int64s, outputs: Int64s, distinct: Int64s) -> Bools:
    """Which Inputs may be where their Output is; `distinct` are pairs of fields as a `FieldTable` has them."""
    edges = graph.edges
    codelet, given, target = graph.vertices.codelet[edges.vertex[inputs]], edges.field[inputs], edges.field[outputs]
    kept = np.ones(len(inputs), bool)
    for number, first, second in distinct.tolist():
        kept[(codelet == number) & (np.minimum(given, target) == first) & (np.maximum(given, target) == second)] = False
    for number, first, second in distinct.tolist():
        taken = outputs[kept & (codelet == number) & (given == first)]
        kept[(codelet == number) & (given == second) & np.isin(outputs, taken)] = False
    return kept


def _first_elements(graph: FrozenGraph, edge: Int64s) -> tuple[Int64s, Int64s]:
    """The first element of each edge (any, of an empty one), and its length."""
    edges = graph.edges
    counts = offsets(edges.run_count)
    length = counts[edges.first_run[edge + 1]] - counts[edges.first_run[edge]]
    filled = np.append(np.flatnonzero(edges.run_count > 0), 0)
    place = np.searchsorted(filled[:-1], edges.first_run[edge])
    return np.append(edges.run_start, 0)[filled[place]], length
