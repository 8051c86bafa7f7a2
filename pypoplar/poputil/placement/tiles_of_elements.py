"""The tile of each element of a tensor, as arrays."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import opens
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor


def mapped_pieces(graph: Graph, tensor: Tensor) -> tuple[Int64s, Int64s, Int64s]:
    """The pieces of the flattened tensor that lie on one tile each, in order, as arrays (begin, end, tile)."""
    begin, end, tile = graph.mapped_pieces(tensor)
    return begin, end, tile.astype(np.int64)


def tiles_of_elements(graph: Graph, tensor: Tensor) -> Int64s:
    """An array of the tensor's shape with the tile of each element."""
    begin, end, tile = mapped_pieces(graph, tensor)
    return np.repeat(tile, end - begin).reshape(tensor.shape())


def place_on(graph: Graph, tensor: Tensor, tiles: Int64s) -> None:
    """Map the elements of a tensor to tiles, an array of its shape."""
    flat = tiles.reshape(-1)
    begin = np.flatnonzero(opens(flat))
    mapping: dict[int, list[Interval]] = {}
    for low, high, tile in zip(begin.tolist(), [*begin[1:].tolist(), len(flat)], flat[begin].tolist(), strict=False):
        mapping.setdefault(tile, []).append(Interval(low, high))
    graph.setTileMapping(tensor, mapping)
