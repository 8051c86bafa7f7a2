"""Vertices that are noted one by one and added together where they are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import field, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat_slices
from pypoplar.popops.reduction.held_row import HeldRow
from pypoplar.poputil.placement.tiles_of_elements import place_on


@frozen(eq=False)
class NotedVertex:
    """Rows of `partials`, an `out` and a tile."""

    rows: Sequence[HeldRow]
    out: HeldRow
    tile: int


@frozen(eq=False)
class VertexBatch:
    """Vertices with rows of `partials`, an `out` and plain values; those of equal type, sizes and values are added at once.

    `edges` are connected to each vertex as they are. Unless results are `placed`, they are mapped to the vertices' tiles.
    """

    graph: Graph
    edges: Mapping[str, Tensor]
    placed: bool = True
    alike: dict[tuple[object, ...], list[NotedVertex]] = field(factory=dict)
    sets: dict[int, ComputeSet] = field(factory=dict)

    def add(
        self, cs: ComputeSet, vertex_type: str, rows: Sequence[HeldRow], out: HeldRow, tile: int, values: Mapping[str, int]
    ) -> None:
        """Note a vertex on a tile."""
        self.sets[id(cs)] = cs
        key = (id(cs), vertex_type, tuple(row.size for row in rows), out.size, tuple(values.items()))
        self.alike.setdefault(key, []).append(NotedVertex(rows, out, tile))

    def flush(self) -> None:
        """Add the vertices that were noted."""
        for (cs, vertex_type, _, _, values), vertices in self.alike.items():
            partials = [views([vertex.rows[row] for vertex in vertices]) for row in range(len(vertices[0].rows))]
            out, tiles = views([vertex.out for vertex in vertices]), np.array([vertex.tile for vertex in vertices])
            if not self.placed:
                place_on(self.graph, out, np.repeat(tiles, out.dim(1)))
            edges = {name: edge.expand([0]).broadcast(len(vertices), 0) for name, edge in self.edges.items()}
            fields = {"partials": partials, "out": out, **dict(values), **edges}  # type: ignore[call-overload]
            self.graph.add_vertices(self.sets[cs], vertex_type, fields, tiles)  # type: ignore[index, arg-type]
        self.alike.clear()


def views(rows: Sequence[HeldRow]) -> Tensor:
    """Rows of one size and one vector, as a matrix."""
    begin, end = np.array([(row.begin, row.end) for row in rows], np.int64).T
    return concat_slices(rows[0].vector, begin, end).reshape([len(rows), rows[0].size])
