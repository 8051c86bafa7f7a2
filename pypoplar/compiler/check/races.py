"""Races: vertices of one compute set that touch the same elements, at least one of them writing.

All vertices of a compute set run at once, so what such vertices read or leave behind would depend on their timing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypoplar.arrays.number_ranges import counted
from pypoplar.compiler.check.connected_regions import Regions, collect_regions
from pypoplar.compiler.check.overlaps import Claims, Overlap, find_overlap
from pypoplar.compiler.wording import (
    compute_set_made,
    compute_set_name,
    elements_of_variable,
    field_name,
    variable_made,
    variable_of,
    vertex_location,
    vertex_name,
)
from pypoplar.errors import GraphCycleError
from pypoplar.graph.frozen import FrozenGraph


def find_races(graph: FrozenGraph, compute_sets: Sequence[int], regions: Regions | None = None) -> None:
    """Raise `GraphCycleError` if two vertices of one of the compute sets race; the message is about the first race.

    Exact for the declared regions, whatever their strides. Pass the regions if they have been collected already.
    """
    overlap = first_race(graph, compute_sets, regions)
    if overlap is not None:
        raise GraphCycleError(_message(graph, overlap))


def first_race(graph: FrozenGraph, compute_sets: Sequence[int], regions: Regions | None = None) -> Overlap | None:
    """The race of the lowest compute set and element, or None. Parties are vertices, groups compute sets."""
    if regions is None:
        regions = collect_regions(graph, compute_sets)
    if regions.disjoint:
        return None
    vertex = regions.vertex[regions.strands.owner]
    begin = regions.strands.begin
    claims = Claims(
        graph.vertices.compute_set[vertex].astype(np.int64), vertex, begin, begin + regions.strands.length, regions.written
    )
    return find_overlap(claims, regions.span)


def edge_at(graph: FrozenGraph, vertex: int, element: int, *, written: bool) -> str:
    """The name of the field of a vertex that touches an element; with `written`, of the one that writes it."""
    edges = graph.edges
    codelet = graph.codelets[int(graph.vertices.codelet[vertex])]
    for edge in range(*np.searchsorted(edges.vertex, [vertex, vertex + 1]).tolist()):
        field = int(edges.field[edge])
        if written and codelet.fields[field].access == "input":
            continue
        for run in range(int(edges.first_run[edge]), int(edges.first_run[edge + 1])):
            start, count, step = int(edges.run_start[run]), int(edges.run_count[run]), int(edges.run_step[run])
            reached = start == element if step == 0 else (element - start) % step == 0 and 0 <= (element - start) // step < count
            if count > 0 and reached:
                return field_name(graph, vertex, field, int(edges.row[edge]))
    raise LookupError(f"vertex {vertex} does not touch element {element}")


def _message(graph: FrozenGraph, race: Overlap) -> str:
    """The first words are those of Poplar's own message."""
    writer, other = race.writer, race.other
    mine = edge_at(graph, writer, race.begin, written=True)
    theirs = edge_at(graph, other, race.begin, written=race.both_write)
    elements = elements_of_variable(graph, race.begin, race.end)
    done, does = ("written to", "writes") if race.both_write else ("read", "reads")
    extent = ""
    if race.parties > 2 or race.elements > race.end - race.begin:
        parties = counted(race.parties, "vertex", "vertices")
        extent = f"; {parties} of this compute set race in {counted(race.elements, 'element')}"
    if race.end - race.begin > 1:
        extent += (
            '; {"pypoplar.races": "elements"} judges as it runs by the elements that vertices touch, and not by what they connect'
        )
    made = f"{compute_set_made(graph, writer)}, {variable_made(graph, variable_of(graph, race.begin))}"
    return (
        f"{vertex_location(graph, writer)}: Field {mine} writes to {elements} that are {done} elsewhere in same "
        f"{compute_set_name(graph, writer)}: {vertex_name(graph, writer)} writes them, and field {theirs} of "
        f"{vertex_name(graph, other)}, added at {vertex_location(graph, other)}, {does} them{extent}; {made}"
    )
