"""The tile of each element of a tensor, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import opens, sorting_order
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor


@frozen(eq=False)
class TileRegions:
    """What tiles hold of a flattened tensor: pieces ``[begin, end)``, sorted by tile; a tile's own are in any order."""

    begin: Int64s
    end: Int64s
    tile: Int64s

    @staticmethod
    def of(graph: Graph, tensor: Tensor) -> TileRegions:
        """Those of a tensor whose every element has a tile, each tile's in order."""
        begin, end, tile = graph.mapped_pieces(tensor)
        order = sorting_order(tile)
        return TileRegions(begin, end, tile) if order is None else TileRegions(begin[order], end[order], tile[order])

    @staticmethod
    def listed(mapping: Sequence[Sequence[Interval]]) -> TileRegions:
        """Those of a mapping as users write it, for each tile from 0 on."""
        rows = np.array([(*region, tile) for tile, held in enumerate(mapping) for region in held], np.int64).reshape(-1, 3)
        return TileRegions(*rows.T)

    def __len__(self) -> int:
        return len(self.tile)

    @property
    def size(self) -> Int64s:
        """The elements of each piece."""
        return self.end - self.begin

    def elements(self) -> Int64s:
        """How many elements each tile holds, from tile 0 to the last that holds any."""
        return np.bincount(self.tile, self.size).astype(np.int64)

    def most(self) -> int:
        """How many elements the fullest tile holds."""
        return int(self.elements().max(initial=0))

    def by_tile(self) -> Iterator[tuple[int, Int64s, Int64s]]:
        """Each tile that holds something, with begins and ends of its pieces."""
        first = [*np.flatnonzero(opens(self.tile)).tolist(), len(self)]
        for low, high in pairwise(first):
            yield int(self.tile[low]), self.begin[low:high], self.end[low:high]


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
    graph.place_pieces(tensor, begin, np.append(begin[1:], len(flat)), flat[begin])


def place_parts(graph: Graph, tensor: Tensor, tiles: Int64s) -> None:
    """Map equal parts of a tensor, one behind the other, each to its tile."""
    begin = tensor.numElements() // max(tiles.size, 1) * np.arange(tiles.size + 1)
    graph.place_pieces(tensor.flatten(), begin[:-1], begin[1:], tiles.flatten())


def place_as(graph: Graph, tensor: Tensor, other: Tensor) -> None:
    """Map a tensor as another one with as many elements, which all have tiles."""
    graph.place_pieces(tensor, *graph.mapped_pieces(other))
