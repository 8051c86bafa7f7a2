"""The compute graph as a networkx graph, for people who want to look at it or work on it with that library's algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pypoplar.graph.frozen import FrozenGraph

if TYPE_CHECKING:
    import networkx


def compute_network(graph: FrozenGraph) -> networkx.DiGraph[tuple[str, str]]:
    """Variables and compute sets as nodes, reads and writes as edges.

    A node is ``("variable", name)`` with `type`, `shape` and `constant`, or ``("compute set", name)`` with `vertices` and
    `codelets` (name to number of vertices). An edge from a variable to a compute set says that vertices read it, one in the other
    direction that they write it: `edges` counts the vertices' edges, `elements` what these touch, each element as often as it is
    touched.
    """
    import networkx  # 0.15 s that only users of this function pay

    network: networkx.DiGraph[tuple[str, str]] = networkx.DiGraph()
    variables = graph.variables
    for number, name in enumerate(variables.names):
        constant = number in variables.constants
        network.add_node(("variable", name), type=variables.types[number], shape=variables.shapes[number], constant=constant)
    vertices = graph.vertices
    for number, name in enumerate(graph.compute_sets):
        codelets = vertices.codelet[vertices.compute_set == number]
        counted = zip(*np.unique(codelets, return_counts=True), strict=True)
        counts = {graph.codelets[codelet].name: int(count) for codelet, count in counted}
        network.add_node(("compute set", name), vertices=len(codelets), codelets=counts)
    for access, reads in (("input", True), ("inout", True), ("output", False), ("inout", False)):
        for (variable, compute_set), (edges, elements) in _connections(graph, access).items():
            pair = ("variable", variables.names[variable]), ("compute set", graph.compute_sets[compute_set])
            source, target = pair if reads else pair[::-1]
            known = network.get_edge_data(source, target, {"edges": 0, "elements": 0})
            network.add_edge(source, target, edges=known["edges"] + edges, elements=known["elements"] + elements)
    return network


def _connections(graph: FrozenGraph, access: str) -> dict[tuple[int, int], tuple[int, int]]:
    """(variable, compute set) -> edges and elements of the vertex fields with this access."""
    most = max((len(codelet.fields) for codelet in graph.codelets), default=0)
    wanted = np.zeros((len(graph.codelets), most), bool)
    for number, codelet in enumerate(graph.codelets):
        wanted[number, : len(codelet.fields)] = [field.access == access for field in codelet.fields]
    edges = graph.edges
    if len(edges.vertex) == 0:
        return {}
    per_run = np.repeat(np.arange(len(edges.vertex)), np.diff(edges.first_run))
    chosen = wanted[graph.vertices.codelet[edges.vertex], edges.field][per_run] & (edges.run_count > 0)
    variable = np.searchsorted(graph.variables.first, edges.run_start[chosen], side="right") - 1
    compute_set = graph.vertices.compute_set[edges.vertex[per_run[chosen]]].astype(np.int64)
    key, group = np.unique(variable * (len(graph.compute_sets) + 1) + compute_set, return_inverse=True)
    elements = np.bincount(group, weights=edges.run_count[chosen], minlength=len(key))
    pairs = np.unique(np.stack((group, per_run[chosen])), axis=1)[0]
    count = np.bincount(pairs, minlength=len(key))
    names = zip(*np.divmod(key, len(graph.compute_sets) + 1), strict=True)
    return {(int(v), int(c)): (int(count[n]), int(elements[n])) for n, (v, c) in enumerate(names)}
