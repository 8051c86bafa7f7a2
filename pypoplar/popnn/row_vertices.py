"""Vertices that take rows of a matrix, on the tiles that hold most of what the rows are written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import group_positions, opens
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces


@frozen(eq=False)
class RowGroups:
    """Rows by the vertices that take them: vertex k, on ``tile[k]``, has ``rows[first[k] : first[k + 1]]``."""

    tile: Int64s
    first: Int64s
    rows: Int64s

    def __len__(self) -> int:
        return len(self.tile)

    @property
    def sizes(self) -> Int64s:
        """How many rows each group has."""
        return np.diff(self.first)

    def tile_of_rows(self) -> Int64s:
        """The tile of each row, by its number."""
        tiles: Int64s = np.repeat(self.tile, self.sizes)[np.argsort(self.rows)]
        return tiles

    def alike(self) -> Iterator[tuple[Int64s, Int64s]]:
        """The vertices with equally many rows: their numbers, and their rows as a matrix."""
        for size in np.unique(self.sizes).tolist():
            own = np.flatnonzero(self.sizes == size)
            yield own, self.rows[self.first[own][:, None] + np.arange(size)]


def row_tiles(graph: Graph, matrix: Tensor) -> Int64s:
    """For each index of dimension 0 the tile that holds most elements of it, the lowest of equal ones."""
    rows, length = matrix.dim(0), matrix.numElements() // max(matrix.dim(0), 1)
    if length == 0:
        return np.zeros(rows, np.int64)
    begin, end, tile = mapped_pieces(graph, matrix)
    first, last = begin // length, (end - 1) // length
    row = np.repeat(first, last - first + 1) + group_positions(last - first + 1)
    place = np.repeat(np.arange(len(begin)), last - first + 1)
    held = np.minimum(end[place], (row + 1) * length) - np.maximum(begin[place], row * length)
    order = np.lexsort((tile[place], row))
    row, tile, held = row[order], tile[place][order], held[order]
    starts = np.flatnonzero(opens(row, tile))
    held = np.add.reduceat(held, starts)
    order = np.lexsort((tile[starts], -held, row[starts]))
    fullest: Int64s = tile[starts][order][opens(row[starts][order])]
    return fullest


def group_rows(graph: Graph, matrix: Tensor) -> RowGroups:
    """The rows of a matrix that is written to, by tile and shared by its workers.

    Two rows of halves may lie in one word of memory, which two workers must not write: one worker takes all such rows of a tile.
    """
    target = graph.getTarget()
    whole_words = matrix.elementType().size >= target.getAtomicStoreGranularity()
    return grouped_by_tile(row_tiles(graph, matrix), target.getNumWorkerContexts() if whole_words else 1)


def grouped_by_tile(tile: Int64s, workers: int) -> RowGroups:
    """Rows by the tile of each, shared by so many workers."""
    rows = np.argsort(tile, kind="stable")
    tile = tile[rows]
    starts = np.flatnonzero(opens(tile))
    count = np.diff(np.append(starts, len(rows)))
    share = -(-count // workers)
    worker = group_positions(count) // np.repeat(share, count)
    first = np.flatnonzero(opens(tile, worker))
    return RowGroups(tile[first], np.append(first, len(rows)), rows)


def add_row_vertices(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str,
    groups: RowGroups,
    rows: Mapping[str, Tensor],
    by_group: Mapping[str, Tensor] | None = None,
    shared: Mapping[str, Tensor | float | bool] | None = None,
    numbers: Mapping[str, Int64s] | None = None,
) -> None:
    """Add a vertex for each group; it is connected to the group's indices of dimension 0 of each tensor of `rows`.

    `by_group` holds tensors of which the vertex of group i gets element i, `shared` what every vertex gets, `numbers` plain vectors
    with a number for each row.
    """
    for own, places in groups.alike():
        fields: dict[str, object] = {name: _rows(tensor, places) for name, tensor in rows.items()}
        fields |= {name: values[places] for name, values in (numbers or {}).items()}
        fields |= {name: _chosen(values, own) for name, values in (by_group or {}).items()}
        for name, value in (shared or {}).items():
            fields[name] = value.flatten()[0].expand([0]).broadcast(len(own), 0) if isinstance(value, Tensor) else value
        graph.add_vertices(computeSet, vertexType, fields, groups.tile[own])


def _rows(tensor: Tensor, numbers: Int64s) -> Tensor:
    """[vertices, rows of each, ...]: the rows of a tensor."""
    return _chosen(tensor, numbers.ravel()).reshape([*numbers.shape, *tensor.shape()[1:]])


def _chosen(tensor: Tensor, numbers: Int64s) -> Tensor:
    """These indices of dimension 0; slices of it where they follow each other."""
    jumps = np.flatnonzero(np.diff(numbers) != 1) + 1
    begin = numbers[np.append(0, jumps)]
    end = numbers[np.append(jumps, len(numbers)) - 1] + 1
    parts = tensor.slices(list(zip(begin.tolist(), end.tolist(), strict=True)))
    return parts[0] if len(parts) == 1 else concat(parts)
