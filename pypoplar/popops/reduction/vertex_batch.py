"""Vertices that are noted one by one and added together where they are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat

FEW = 4  # vertices that are added one by one


@frozen(eq=False)
class VertexBatch:
    """Vertices with rows of `partials`, an `out` and plain values; those of equal type, sizes and values are added at once.

    `edges` are connected to each vertex as they are.
    """

    graph: Graph
    edges: Mapping[str, Tensor]
    alike: dict[tuple[object, ...], list[tuple[Sequence[Tensor], Tensor, int]]] = field(factory=dict)
    sets: dict[int, ComputeSet] = field(factory=dict)

    def add(
        self, cs: ComputeSet, vertex_type: str, rows: Sequence[Tensor], out: Tensor, tile: int, values: Mapping[str, int]
    ) -> None:
        """Note a vertex on a tile."""
        self.sets[id(cs)] = cs
        sizes = tuple(row.numElements() for row in rows)
        key = (id(cs), vertex_type, sizes, out.numElements(), tuple(values.items()))
        self.alike.setdefault(key, []).append((rows, out, tile))

    def flush(self) -> None:
        """Add the vertices that were noted."""
        for (cs, vertex_type, sizes, size, values), vertices in self.alike.items():
            compute_set, plain = self.sets[cs], dict(values)  # type: ignore[index, call-overload]
            if len(sizes) == 1 and len(vertices) > FEW:  # type: ignore[arg-type]
                self._add_alike(compute_set, vertex_type, vertices, (*sizes, size), plain)  # type: ignore[arg-type, misc]
                continue
            for rows, out, tile in vertices:
                fields = {"partials": list(rows), "out": out, **plain, **self.edges}
                self.graph.setTileMapping(self.graph.addVertex(compute_set, vertex_type, fields), tile)
        self.alike.clear()

    def _add_alike(
        self,
        cs: ComputeSet,
        vertex_type: str,
        vertices: Sequence[tuple[Sequence[Tensor], Tensor, int]],
        sizes: tuple[int, int],
        values: Mapping[str, int],
    ) -> None:
        count = len(vertices)
        partials = concat([rows[0] for rows, _, _ in vertices]).reshape([count, 1, sizes[0]])
        out = concat([out for _, out, _ in vertices]).reshape([count, sizes[1]])
        edges = {name: edge.expand([0]).broadcast(count, 0) for name, edge in self.edges.items()}
        fields = {"partials": partials, "out": out, **values, **edges}
        self.graph.add_vertices(cs, vertex_type, fields, [tile for _, _, tile in vertices])
