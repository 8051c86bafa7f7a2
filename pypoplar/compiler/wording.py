"""How messages name the user's objects: places in the source, vertices, fields, elements, tile ranges."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypoplar.arrays.groups import distinct
from pypoplar.arrays.number_ranges import MOST_RANGES, counted, tile_ranges
from pypoplar.codelet.ir.terms import line_text
from pypoplar.graph.frozen import FrozenGraph


def element_ranges(ranges: list[tuple[int, int]]) -> str:
    """``[0:4), [6:8)``; long lists are cut."""
    shown = ", ".join(f"[{begin}:{end})" for begin, end in ranges[:MOST_RANGES])
    return shown + (f" and {len(ranges) - MOST_RANGES} more ranges" if len(ranges) > MOST_RANGES else "")


def variable_of(graph: FrozenGraph, element: int) -> int:
    return int(np.searchsorted(graph.variables.first, element, "right")) - 1


def elements_of_variable(graph: FrozenGraph, begin: int, end: int) -> str:
    """``elements [3:4) of variable 'y'``: the part of the elements that lies in the first one's variable."""
    variable = variable_of(graph, begin)
    first, stop = int(graph.variables.first[variable]), int(graph.variables.first[variable + 1])
    return f"elements [{begin - first}:{min(end, stop) - first}) of variable '{graph.variables.names[variable]}'"


def variable_made(graph: FrozenGraph, variable: int) -> str:
    """``variable 'y' was made at model.py:12``."""
    return f"variable {graph.variables.names[variable]!r} was made at {line_text(graph.variables.locations[variable])}"


def vertex_location(graph: FrozenGraph, vertex: int) -> str:
    return line_text(graph.locations[int(graph.vertices.location[vertex])])


def vertex_name(graph: FrozenGraph, vertex: int) -> str:
    """``vertex 5 (Scale) on tile 2``."""
    vertices = graph.vertices
    tile = int(vertices.tile[vertex])
    return f"vertex {vertex} ({graph.codelets[int(vertices.codelet[vertex])].name}){f' on tile {tile}' if tile >= 0 else ''}"


def field_name(graph: FrozenGraph, vertex: int, field: int, row: int = -1) -> str:
    """``Scale.y``, or ``Stencil.rows[2]`` for a row of a list field."""
    codelet = graph.codelets[int(graph.vertices.codelet[vertex])]
    is_list = codelet.fields[field].form == "list" and row >= 0
    return f"{codelet.name}.{codelet.fields[field].name}{f'[{row}]' if is_list else ''}"


def compute_set_name(graph: FrozenGraph, vertex: int) -> str:
    return f"compute set '{graph.compute_sets[int(graph.vertices.compute_set[vertex])]}'"


def compute_set_made(graph: FrozenGraph, vertex: int) -> str:
    """``the compute set was made at model.py:20``: that of a vertex."""
    return f"the compute set was made at {line_text(graph.compute_set_locations[int(graph.vertices.compute_set[vertex])])}"


def and_others(graph: FrozenGraph, vertices: Iterable[int]) -> str:
    """What a message about the first of several vertices says of the rest; empty for one."""
    every = distinct(np.fromiter(vertices, np.int64))
    if len(every) <= 1:
        return ""
    tiles = graph.vertices.tile[every]
    where = f", on {tile_ranges(tiles[tiles >= 0])}" if bool((tiles >= 0).any()) else ""
    return f"; the same holds for {counted(len(every) - 1, 'more vertex', 'more vertices')} ({len(every):,} in all{where})"
