"""Vertices that take a row of a matrix each, on the tile that holds most of what the row is written to."""

from __future__ import annotations

from collections.abc import Mapping

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet


def row_tiles(graph: Graph, matrix: Tensor) -> list[int]:
    """For each index of dimension 0 the tile that holds most elements of it, the lowest of equal ones."""
    return [_fullest(graph, row) for row in matrix]


def add_row_vertices(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str,
    tiles: list[int],
    rows: Mapping[str, Tensor],
    shared: Mapping[str, Tensor] | None = None,
    values: Mapping[str, float | bool] | None = None,
) -> None:
    """Add a vertex on each of `tiles`; vertex i is connected to index i of each tensor of `rows`, and to those of `shared`."""
    for index, tile in enumerate(tiles):
        fields: dict[str, object] = {name: one[index] for name, one in rows.items()}
        vertex = graph.addVertex(computeSet, vertexType, {**fields, **(shared or {}), **(values or {})})
        graph.setTileMapping(vertex, tile)


def _fullest(graph: Graph, row: Tensor) -> int:
    held = [sum(one.size() for one in regions) for regions in graph.getTileMapping(row.flatten())]
    return max(range(len(held)), key=held.__getitem__)
