"""From the tables of a graph that grows to the arrays that the compiler reads."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import attrs
import numpy as np

from pypoplar.codelet.codelet import Codelet
from pypoplar.graph.estimators import RegisteredEstimator, estimate, estimators_of
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.mapping import MappingTable, appended_mapping
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
    whole, mapped, runs = variables.freeze(), mapping.freeze(), None
    if len(vertices.constants):
        placed = vertices.constants.place(whole, rows.tile, places, rows.location)
        whole, mapped, runs = placed.variables, appended_mapping(mapped, placed.mapping), placed.runs
    edges, state = vertices.edges.freeze(runs), vertices.state.freeze(rows.codelet, codelets)
    return FrozenGraph(
        tiles=target.getNumTiles(),
        variables=whole,
        mapping=mapped,
        codelets=codelets,
        compute_sets=tuple(vertices.set_names),
        compute_set_locations=vertices.locations.all_of(vertices.set_locations),
        vertices=rows,
        edges=edges,
        state=state,
        estimated=functools.partial(estimate, estimators_of(codelets, registered), target, vertices.estimates.freeze()),
        locations=places,
    )
