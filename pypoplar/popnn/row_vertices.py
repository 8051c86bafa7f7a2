"""Vertices that take rows of a matrix, on the tiles that hold most of what the rows are written to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poputil.cycles import ceiling


@frozen
class RowGroup:
    """Rows that one vertex takes, and its tile."""

    tile: int
    rows: tuple[int, ...]


def row_tiles(graph: Graph, matrix: Tensor) -> list[int]:
    """For each index of dimension 0 the tile that holds most elements of it, the lowest of equal ones."""
    return [_fullest(graph, row) for row in matrix]


def group_rows(graph: Graph, matrix: Tensor) -> list[RowGroup]:
    """The rows of a matrix that is written to, by tile and shared by its workers.

    Two rows of halves may lie in one word of memory, which two workers must not write: one worker takes all such rows of a tile.
    """
    target = graph.getTarget()
    whole_words = matrix.elementType().size >= target.getAtomicStoreGranularity()
    workers = target.getNumWorkerContexts() if whole_words else 1
    by_tile: dict[int, list[int]] = defaultdict(list)
    for row, tile in enumerate(row_tiles(graph, matrix)):
        by_tile[tile].append(row)
    groups = []
    for tile, rows in by_tile.items():
        size = ceiling(len(rows), workers)
        groups += [RowGroup(tile, tuple(rows[first : first + size])) for first in range(0, len(rows), size)]
    return groups


def add_row_vertices(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str,
    groups: Sequence[RowGroup],
    rows: Mapping[str, Tensor],
    by_group: Mapping[str, Tensor] | None = None,
    shared: Mapping[str, Tensor | float | bool] | None = None,
) -> None:
    """Add a vertex for each group; it is connected to the group's indices of dimension 0 of each tensor of `rows`.

    `by_group` holds tensors of which the vertex of group i gets element i, `shared` what every vertex gets.
    """
    for number, group in enumerate(groups):
        fields: dict[str, object] = {name: _rows(row, group.rows) for name, row in rows.items()}
        single = {name: values[number] for name, values in (by_group or {}).items()}
        vertex = graph.addVertex(computeSet, vertexType, {**fields, **single, **(shared or {})})
        graph.setTileMapping(vertex, group.tile)


def _rows(tensor: Tensor, rows: tuple[int, ...]) -> Tensor:
    """The rows of a tensor; a slice of it where they follow each other."""
    if rows[-1] - rows[0] == len(rows) - 1:
        return tensor.slice(rows[0], rows[-1] + 1)
    return concat(tensor.slices(rows))


def _fullest(graph: Graph, row: Tensor) -> int:
    held = [sum(region.size() for region in regions) for regions in graph.getTileMapping(row.flatten())]
    return max(range(len(held)), key=held.__getitem__)
