"""Tile mappings: everything that a program uses has a tile."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.interval_algebra import overlay
from pypoplar.arrays.number_ranges import counted
from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.wording import compute_set_name, element_ranges, vertex_location, vertex_name
from pypoplar.errors import InvalidTileMapping
from pypoplar.graph.frozen import FrozenGraph

MOST_VARIABLES = 5


def check_mappings(graph: FrozenGraph, used_variables: Bools, used_vertices: Bools) -> None:
    """Raise `InvalidTileMapping` if an element of a used variable (bool per variable) or a used vertex has no tile."""
    first = graph.variables.first
    parts = overlay(graph.mapping.begin, graph.mapping.end, first[:-1], first[1:])
    mapped = np.bincount(parts.right, weights=parts.end - parts.begin, minlength=len(first) - 1).astype(np.int64)
    missing = np.flatnonzero((np.diff(first) > mapped) & np.asarray(used_variables, bool))
    if len(missing):
        raise InvalidTileMapping(_about_variables(graph, missing, mapped))
    unplaced = np.flatnonzero(used_vertices & (graph.vertices.tile < 0))
    if len(unplaced):
        raise InvalidTileMapping(_about_vertices(graph, unplaced))


def _about_variables(graph: FrozenGraph, missing: Int64s, mapped: Int64s) -> str:
    lines = []
    for variable in missing[:MOST_VARIABLES].tolist():
        size = int(graph.variables.first[variable + 1] - graph.variables.first[variable])
        kind = "constant" if variable in graph.variables.constants else "variable"
        lines.append(
            f"{line_text(graph.variables.locations[variable])}: {kind} '{graph.variables.names[variable]}' has no tile for "
            f"{size - int(mapped[variable]):,} of its {counted(size, 'element')}: {element_ranges(_gaps(graph, variable))}"
        )
    if len(missing) > MOST_VARIABLES:
        lines.append(f"and {counted(len(missing) - MOST_VARIABLES, 'more variable')}")
    return "\n".join(lines) + "\nmap them with setTileMapping"


def _gaps(graph: FrozenGraph, variable: int) -> list[tuple[int, int]]:
    """The elements of a variable without a tile, as ranges within the variable."""
    first, end = int(graph.variables.first[variable]), int(graph.variables.first[variable + 1])
    mapping = graph.mapping
    touching = (mapping.end > first) & (mapping.begin < end)
    begins = np.append(mapping.begin[touching], end)
    ends = np.insert(mapping.end[touching], 0, first)
    return [(int(low) - first, int(high) - first) for low, high in zip(ends, begins, strict=True) if low < high]


def _about_vertices(graph: FrozenGraph, unplaced: Int64s) -> str:
    vertex = int(unplaced[0])
    more = f" (nor have {counted(len(unplaced) - 1, 'other')})" if len(unplaced) > 1 else ""
    return (
        f"{vertex_location(graph, vertex)}: {vertex_name(graph, vertex)} of {compute_set_name(graph, vertex)} has no tile{more}; "
        "map them with setTileMapping"
    )
