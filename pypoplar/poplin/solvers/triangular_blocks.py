"""The blocks of a triangular system: one compute set that solves for many columns, on the tiles where they lie."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import opens
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence


def tiles_of_rows(graph: Graph, rows: Tensor) -> Int64s:
    """The tile of the first element of each row of a matrix."""
    begin, end, tile = mapped_pieces(graph, rows.slice(0, 1, 1))
    return np.repeat(tile, end - begin)


def row_stretches(tiles: Int64s, groups: Int64s) -> list[tuple[int, int]]:
    """Where rows of one group on one tile follow each other: pairs of the first row and the one behind the last."""
    first = np.flatnonzero(opens(tiles, groups))
    return list(zip(first.tolist(), [*first[1:].tolist(), len(tiles)], strict=True))


def solve_rows(graph: Graph, a: Tensor, rows: Tensor, unit: bool, prog: Sequence, debug: str) -> None:
    """Each row [g, r, n] of group g becomes x with ``a[g] x = row``: `a` [g, n, n] is lower triangular, with ones if `unit`."""
    count, each, size = rows.shape()
    if 0 in (count, each, size):
        return
    flat, matrices = rows.flatten(0, 2), a.flatten(1, 3)
    tiles, groups = tiles_of_rows(graph, flat), np.repeat(np.arange(count), each)
    stretches = np.array(row_stretches(tiles, groups))
    cs = graph.addComputeSet(debug)
    name = templateVertex("poplin::TriangularSolve", unit)
    lengths = stretches[:, 1] - stretches[:, 0]
    for length in np.unique(lengths).tolist():
        chosen = stretches[lengths == length]
        own = concat(flat.slices(chosen.tolist())).reshape([len(chosen), length, size])
        of_group = concat([matrices.slice(group, group + 1) for group in groups[chosen[:, 0]].tolist()])
        graph.add_vertices(cs, name, {"a": of_group, "rows": own}, tiles[chosen[:, 0]])
    prog.add(Execute(cs))


def add_block_vertices(graph: Graph, name: str, matrices: Tensor, prog: Sequence, debug: str) -> None:
    """A compute set with a vertex for each matrix [g, n, n], where its first element lies, which replaces it."""
    size, flat = matrices.dim(1), matrices.flatten(1, 3)
    cs = graph.addComputeSet(debug)
    graph.add_vertices(cs, name, {"matrix": flat, "size": size}, tiles_of_rows(graph, flat))
    prog.add(Execute(cs))
