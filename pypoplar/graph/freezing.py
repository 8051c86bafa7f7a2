"""From the tables of a graph that grows to the arrays that the compiler reads."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from pypoplar.codelet.codelet import Codelet
from pypoplar.graph.estimators import Estimator, RegisteredEstimator, estimate
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.mapping import MappingTable, joined
from pypoplar.graph.variables import Variables
from pypoplar.graph.vertices import VertexTable
from pypoplar.target import Target


def freeze(
    target: Target,
    variables: Variables,
    mapping: MappingTable,
    vertices: VertexTable,
    codelets: tuple[Codelet, ...],
    registered: Mapping[str, RegisteredEstimator],
) -> FrozenGraph:
    """The whole graph. Vertices refer to the lines they were added at by number; each line is listed once."""
    rows = vertices.freeze()
    lines, location = np.unique(rows.location, return_inverse=True)
    rows = attrs.evolve(rows, location=location.astype(np.int32))
    places = tuple(vertices.locations.location(number) for number in lines.tolist())
    whole, mapped, runs = variables.freeze(), mapping.freeze(variables.bounds()), None
    if len(vertices.constants):
        placed = vertices.constants.place(whole, rows.tile, places, rows.location)
        whole, mapped, runs = placed.variables, joined(mapped, placed.mapping), placed.runs
    edges, state = vertices.edges.freeze(runs), vertices.state.freeze(rows.codelet, codelets)
    return FrozenGraph(
        tiles=target.getNumTiles(),
        variables=whole,
        mapping=mapped,
        codelets=codelets,
        compute_sets=tuple(vertices.set_names),
        vertices=rows,
        edges=edges,
        state=state,
        estimates=estimate(_estimators(codelets, registered), codelets, target, rows, edges, state, vertices.estimates.freeze()),
        locations=places,
    )


def _estimators(codelets: tuple[Codelet, ...], registered: Mapping[str, RegisteredEstimator]) -> dict[int, Estimator]:
    """By codelet number the function that estimates: the one registered with the graph, else the codelet's own."""
    estimators: dict[int, Estimator] = {}
    for number, codelet in enumerate(codelets):
        estimator = registered.get(codelet.name)
        if estimator is not None:
            estimators[number] = estimator
        elif codelet.estimator is not None:
            estimators[number] = codelet.estimator
    return estimators
