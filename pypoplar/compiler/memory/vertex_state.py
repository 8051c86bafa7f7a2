"""Where the plain fields of vertices live: after the variables, vertex by vertex, each vertex 8-byte aligned."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import before_in_group, sums
from pypoplar.codelet.codelet import Codelet
from pypoplar.compiler.exchange_plan import ComputePlan, Homes
from pypoplar.compiler.memory.memory_blocks import rounded_up
from pypoplar.graph.frozen import FrozenGraph


@frozen(eq=False)
class VertexState:
    """Offsets count from the start of the tile's memory."""

    vertex_offset: Int64s  # [vertices]: of the vertex's scalar fields; meaningless where it has none
    field_offset: Int64s  # [codelets, most fields]: of a scalar field within its vertex
    vectors: dict[tuple[int, int], tuple[int, int]]  # (vertex, field) -> offset in the tile, elements
    tile_bytes: Int64s  # [tiles]


def scalar_layout(codelet: Codelet) -> tuple[list[int], int]:
    """Offsets of a codelet's fields within its scalar state (0 for others), and the bytes of all."""
    offsets, end = [], 0
    for field in codelet.fields:
        if field.access != "state" or field.form != "scalar":
            offsets.append(0)
            continue
        end = -(-end // field.type.size) * field.type.size
        offsets.append(end)
        end += field.type.size
    return offsets, -(-end // 8) * 8


def place_state(graph: FrozenGraph, homes: Homes, used: Bools) -> VertexState:
    """Lay out the plain fields of the vertices that `used` (bool per vertex) marks."""
    layouts = [scalar_layout(codelet) for codelet in graph.codelets]
    most = max([len(offsets) for offsets, _ in layouts], default=0)
    field_offset = np.zeros((len(layouts), max(most, 1)), np.int64)
    for number, (offsets, _) in enumerate(layouts):
        field_offset[number, : len(offsets)] = offsets
    sizes = np.array([size for _, size in layouts] or [0], np.int64)
    size = np.where(used, sizes[graph.vertices.codelet] if len(layouts) else 0, 0).astype(np.int64)
    vectors = _vector_sizes(graph, used)
    for (vertex, _), (count, width) in vectors.items():
        size[vertex] += -(-count * width // 8) * 8
    tile = graph.vertices.tile.astype(np.int64)
    holder = np.flatnonzero(size)
    holder = holder[np.argsort(tile[holder], kind="stable")]
    offset = np.zeros(len(size), np.int64)
    offset[holder] = homes.tile_bytes[tile[holder]] + before_in_group(size[holder], tile[holder])
    return VertexState(
        offset, field_offset, _place_vectors(graph, vectors, offset, sizes), sums(size[holder], tile[holder], graph.tiles)
    )


def _vector_sizes(graph: FrozenGraph, used: Bools) -> dict[tuple[int, int], tuple[int, int]]:
    """(vertex, field) -> (elements, bytes of one) of the vector states that used vertices have."""
    sizes = {}
    for (vertex, field), values in graph.state.vectors.items():
        if used[vertex]:
            codelet = graph.codelets[int(graph.vertices.codelet[vertex])]
            sizes[vertex, field] = (len(values), codelet.fields[field].type.size)
    return sizes


def _place_vectors(
    graph: FrozenGraph, vectors: dict[tuple[int, int], tuple[int, int]], offset: Int64s, scalars: Int64s
) -> dict[tuple[int, int], tuple[int, int]]:
    """Vector states follow their vertex's scalars, in the order of the fields."""
    placed = {}
    ends: dict[int, int] = {}
    for (vertex, field), (count, width) in sorted(vectors.items()):
        begin = ends.get(vertex, int(offset[vertex] + scalars[graph.vertices.codelet[vertex]]))
        placed[vertex, field] = (begin, count)
        ends[vertex] = begin + -(-count * width // 8) * 8
    return placed


def place_buffers(homes: Homes, state: VertexState, plans: Iterable[ComputePlan]) -> Int64s:
    """int64 [tiles]: where exchange buffers begin, behind the plain fields and as all compute sets want them aligned."""
    begin = homes.tile_bytes + state.tile_bytes
    for plan in plans:
        begin = np.where(plan.buffer_bytes > 0, rounded_up(begin, plan.buffer_alignment), begin)
    return begin
