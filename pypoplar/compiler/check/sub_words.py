"""Stores narrower than a word: two workers of a tile must not write into one 32-bit word of its memory.

A worker stores a half, a bool or a char by reading the word around it and writing it back, so two at once lose one of the stores.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypoplar.arrays.dtypes import Int64s, Integers
from pypoplar.arrays.interval_algebra import keys
from pypoplar.arrays.number_ranges import counted
from pypoplar.compiler.check.overlaps import Claims, Overlap, find_overlap
from pypoplar.compiler.exchange_plan import ComputePlan, Homes
from pypoplar.compiler.field_table import INPUT, TYPE_SIZES, FieldTable, field_table
from pypoplar.compiler.wording import (
    compute_set_made,
    compute_set_name,
    elements_of_variable,
    field_name,
    vertex_location,
    vertex_name,
)
from pypoplar.errors import AtomicStoreError
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.presets import STORE_BYTES


def find_sub_word_stores(graph: FrozenGraph, plans: Iterable[ComputePlan], homes: Homes) -> None:
    """Raise `AtomicStoreError` if two vertices of a compute set that run beside each other write into one word of their tile.

    Judged on the places that the plans give the fields. A MultiVertex or SupervisorVertex has the tile for itself.
    """
    if not bool((homes.width < STORE_BYTES).any()):
        return
    fields = field_table(graph)
    for plan in plans:
        narrow = _narrow_stores(graph, fields, plan)
        if len(narrow) == 0:
            continue
        claims, span = _words(graph, fields, plan, narrow)
        overlap = find_overlap(claims, span)
        if overlap is not None:
            raise AtomicStoreError(_message(graph, plan, overlap))


def _entries(graph: FrozenGraph, fields: FieldTable, plan: ComputePlan, edge: Int64s) -> Integers:
    return fields.entries(graph.vertices.codelet[plan.vertex[plan.edge_position[edge]]], plan.edge_field[edge])


def _narrow_stores(graph: FrozenGraph, fields: FieldTable, plan: ComputePlan) -> Int64s:
    """The plan's edges through which workers store parts of words."""
    entry = _entries(graph, fields, plan, np.arange(len(plan.edge_position)))
    narrow = (fields.access[entry] != INPUT) & (TYPE_SIZES[fields.type[entry]] < STORE_BYTES) & (plan.edge_length > 0)
    narrow &= fields.shared_worker[graph.vertices.codelet[plan.vertex]][plan.edge_position]
    return np.flatnonzero(narrow)


def _words(graph: FrozenGraph, fields: FieldTable, plan: ComputePlan, edge: Int64s) -> tuple[Claims, int]:
    """The words that each vertex writes into. A group is a tile's memory or its exchange buffer.

    A vertex that writes into both is a party to each, and twice the vertex's number, plus 1 in the buffer, names it.
    """
    position = plan.edge_position[edge]
    size = plan.edge_length[edge] * TYPE_SIZES[fields.type[_entries(graph, fields, plan, edge)]]
    begin = plan.edge_offset[edge] // STORE_BYTES
    end = (plan.edge_offset[edge] + size + (STORE_BYTES - 1)) // STORE_BYTES
    in_buffer = plan.edge_in_buffer[edge].astype(np.int64)
    group, party = keys(plan.tile[position], in_buffer, 2), keys(plan.vertex[position], in_buffer, 2)
    return Claims(group, party, begin, end, np.ones(len(edge), bool)), int(end.max()) + 1


REMEDY = (
    "let each vertex write whole words, an even number of HALFs or four CHARs from a multiple of it on, have elements of 32 bits, "
    "such as INT for BOOL, or give all of a word to one vertex"
)


def _message(graph: FrozenGraph, plan: ComputePlan, overlap: Overlap) -> str:
    writer, rival = overlap.writer // 2, overlap.other // 2
    field, what = _store(graph, plan, writer, overlap)
    other, other_what = _store(graph, plan, rival, overlap)
    more = f"; {counted(overlap.parties, 'vertex', 'vertices')} of this tile do so" if overlap.parties > 2 else ""
    return (
        f"{vertex_location(graph, writer)}: Field {field} writes to {what} into the same 32-bit word of tile "
        f"{overlap.group // 2} as field {other} to {other_what} in same {compute_set_name(graph, writer)}: "
        f"{vertex_name(graph, writer)} and {vertex_name(graph, rival)}, added at "
        f"{vertex_location(graph, rival)}, run on different workers, and one of the stores would be lost{more}; "
        f"{compute_set_made(graph, writer)}; {REMEDY}"
    )


def _store(graph: FrozenGraph, plan: ComputePlan, vertex: int, overlap: Overlap) -> tuple[str, str]:
    """The field through which a vertex writes into the first shared word, and the elements in that word."""
    in_buffer = bool(overlap.group % 2)
    codelet = graph.codelets[int(graph.vertices.codelet[vertex])]
    position = int(np.flatnonzero(plan.vertex == vertex)[0])
    for k in np.flatnonzero(plan.edge_position == position).tolist():
        field, row = int(plan.edge_field[k]), int(plan.edge_row[k])
        size = codelet.fields[field].type.size
        begin = int(plan.edge_offset[k])
        end = begin + int(plan.edge_length[k]) * size
        if codelet.fields[field].access == "input" or size >= STORE_BYTES or bool(plan.edge_in_buffer[k]) != in_buffer:
            continue
        low, high = max(overlap.begin * STORE_BYTES, begin), min((overlap.begin + 1) * STORE_BYTES, end)
        if low < high:
            # what shares a word lies in one piece, so the edge's elements have consecutive ids
            start = _first_element(graph, vertex, field, row)
            elements = elements_of_variable(graph, start + (low - begin) // size, start + (high - begin) // size)
            return field_name(graph, vertex, field, row), elements
    raise LookupError(f"vertex {vertex} does not write into word {overlap.begin}")


def _first_element(graph: FrozenGraph, vertex: int, field: int, row: int) -> int:
    edges = graph.edges
    edge = np.flatnonzero((edges.vertex == vertex) & (edges.field == field) & (edges.row == row))[0]
    return int(edges.run_start[edges.first_run[edge]])
