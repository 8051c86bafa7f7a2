"""Matrices of which each tile holds one stretch of memory, whatever rows and columns it has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import opens, stable_order
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, concat_slices
from pypoplar.types import ElementType


@frozen(eq=False)
class RowLayout:
    """The tile of each row of a matrix [rows, columns], and where its columns are cut: part k lies `step` * k tiles further on.

    In memory a part of the columns follows the other; within it, the rows of a tile lie behind each other.
    """

    tile: Int64s  # of the first part of each row
    cuts: list[int]
    step: int

    def map(self, graph: Graph, matrix: Tensor) -> None:
        """Map a matrix that lies anyhow in memory."""
        begin, owner = _stretches(self.tile)
        for part, (low, high) in enumerate(pairwise(self.cuts)):
            self._place(graph, matrix.slice(low, high, 1), begin, owner, part)

    def variable(self, graph: Graph, type: ElementType, name: str) -> LaidRows:
        """A new matrix, mapped and in the order of memory."""
        rows, columns = len(self.tile), self.cuts[-1]
        flat = graph.addVariable(type, [rows * columns], name)
        order = stable_order(self.tile)
        blocks = [flat.slice(rows * low, rows * high).reshape([rows, high - low]) for low, high in pairwise(self.cuts)]
        begin, owner = _stretches(self.tile[order])
        for part, block in enumerate(blocks):
            self._place(graph, block, begin, owner, part)
        if bool((order[1:] < order[:-1]).any()):
            place = np.empty_like(order)
            place[order] = np.arange(rows)
            first = np.flatnonzero(np.append([True], place[1:] != place[:-1] + 1))
            last = np.append(first[1:], rows) - 1
            blocks = [concat_slices(block, place[first], place[last] + 1) for block in blocks]
        return LaidRows(self, flat, concat(blocks, 1), owner, begin)

    def _place(self, graph: Graph, block: Tensor, begin: Int64s, owner: Int64s, part: int) -> None:
        """Map a part of the columns, of which rows from each `begin` on are on the tiles of an owner."""
        width, end = block.dim(1), np.append(begin[1:], len(self.tile))
        graph.place_pieces(block.flatten(), begin * width, end * width, owner + part * self.step)


@frozen(eq=False)
class LaidRows:
    """A matrix that was made by a layout: as memory has it, flat, and as its rows and columns have it."""

    layout: RowLayout
    memory: Tensor
    matrix: Tensor
    _owner: Int64s  # tiles, ascending
    _begin: Int64s  # the first row of each, in the order of memory

    def rows_of_tiles(self, tile: Int64s, part: Int64s | int, first: Int64s, count: int) -> Tensor:
        """So many rows that tiles have of a part of the columns: for each tile a row, of elements that follow each other.

        `tile` is that of the first part of the columns, `first` the number of the first row among those of the tile. All parts
        that are asked for have one size.
        """
        cuts = np.array(self.layout.cuts)
        width = np.diff(cuts)[part]
        row = self._begin[np.searchsorted(self._owner, tile)] + first
        begin = cuts[part] * len(self.layout.tile) + row * width
        return concat_slices(self.memory, begin, begin + count * width).reshape([len(tile), int(count * np.max(width))])


def _stretches(tile: Int64s) -> tuple[Int64s, Int64s]:
    """Where rows on another tile begin, and these tiles."""
    begin = np.flatnonzero(opens(tile))
    return begin, tile[begin]


def shared_rows(block: Int64s, sharing: Int64s) -> Int64s:
    """The tile of each row: the rows of a block, which is a tile's number, in equal parts on the tiles that share the block."""
    order = np.argsort(block, kind="stable")
    _, start, number, count = np.unique(block[order], return_index=True, return_inverse=True, return_counts=True)
    rank = np.arange(len(block)) - start[number]
    tile = np.empty_like(block)
    few, more = np.divmod(count[number], len(sharing))  # rows of each tile; so many tiles have one more
    beyond = rank - more * (few + 1)
    share = np.where(beyond < 0, rank // (few + 1), more + beyond // np.maximum(few, 1))
    tile[order] = block[order] + sharing[share]
    return tile
