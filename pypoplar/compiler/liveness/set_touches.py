"""Which parts of all elements, such as the variables, each compute set of a graph reads and writes.

This is told run by run, without a look at the elements, which are many times as many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, stepped
from pypoplar.arrays.run_sweeps import name_parts
from pypoplar.arrays.swept import filled
from pypoplar.codelet.ir.kept_analyses import kept
from pypoplar.compiler.field_table import INPUT, OUTPUT, field_table
from pypoplar.graph.frozen import FrozenEdges, FrozenGraph

_KINDS = 4  # of edges: two to the power 0 where they read, and to the power 1 where they write


@frozen(eq=False)
class SetTouches:
    """The numbers of the parts of which the vertices of each compute set read something, and may write something."""

    read: dict[int, frozenset[int]]
    written: dict[int, frozenset[int]]


@kept
def touches_of_variables(graph: FrozenGraph) -> SetTouches:
    """The variables that compute sets touch, by number."""
    return touches_of_parts(graph, graph.variables.first[:-1])


def touches_of_parts(graph: FrozenGraph, part_first: Int64s) -> SetTouches:
    """The parts that compute sets touch, which begin at these elements: rising, the first at 0."""
    edges, vertices = graph.edges, graph.vertices
    if not len(edges.vertex) or not len(part_first):
        return SetTouches({}, {})
    access = field_table(graph).access[field_table(graph).entries(vertices.codelet[edges.vertex], edges.field)]
    group = vertices.compute_set[edges.vertex].astype(np.int64) * _KINDS
    group += (access != OUTPUT) + 2 * (access != INPUT)
    group, part = np.divmod(distinct(_named(edges, group, part_first.astype(np.int64))), len(part_first))
    read, written = (dict(_by_set(group, part, bit)) for bit in (1, 2))
    return SetTouches(read, written)


def _by_set(group: Int64s, part: Int64s, bit: int) -> Iterator[tuple[int, frozenset[int]]]:
    found: dict[int, set[int]] = defaultdict(set)
    chosen = (group & bit) > 0
    for one, number in zip((group[chosen] // _KINDS).tolist(), part[chosen].tolist(), strict=True):
        found[one].add(number)
    for one, numbers in found.items():
        yield one, frozenset(numbers)


def _named(edges: FrozenEdges, group: Int64s, part_first: Int64s) -> Int64s:
    """The keys ``group * parts + part`` of all edges, in any order, some of them again and again."""
    code = name_parts.code(len(edges.run_start))
    if code is None:
        return named_by_search(edges, group, part_first)
    given = group, edges.first_run, edges.run_start, edges.run_count, edges.run_step, part_first
    (keys,) = filled(code, given, len(group), 1)
    return keys


def named_by_search(edges: FrozenEdges, group: Int64s, part_first: Int64s) -> Int64s:
    """The same, of short lists, or where there is no machine code."""
    start, count, step = edges.run_start, edges.run_count, edges.run_step
    place = np.searchsorted(part_first, start, "right")
    several = np.flatnonzero(place != np.searchsorted(part_first, start + (count - 1) * step, "right"))
    within = stepped(start[several], count[several], step[several])
    key = np.repeat(group, np.diff(edges.first_run)) * len(part_first) - 1
    others = np.repeat(key[several], count[several]) + np.searchsorted(part_first, within, "right")
    return np.concatenate((key + place, others))
