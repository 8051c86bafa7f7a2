"""Matrices of which each tile holds one stretch of memory, whatever rows and columns it has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, offsets, opens, stable_order
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, concat_slices
from pypoplar.poputil.placement.layout import Layout
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
        _map_stretches(graph, matrix, begin, owner, self.cuts, self.step)

    def variable(self, graph: Graph, type: ElementType, name: str) -> LaidRows:
        """A new matrix, mapped and in the order of memory."""
        rows, columns = len(self.tile), self.cuts[-1]
        flat = graph.addVariable(type, [rows * columns], name)
        order = stable_order(self.tile)
        blocks = [flat.slice(rows * low, rows * high).reshape([rows, high - low]) for low, high in pairwise(self.cuts)]
        begin, owner = _stretches(self.tile[order])
        if bool((order[1:] < order[:-1]).any()):
            place = np.empty_like(order)
            place[order] = np.arange(rows)
            first = np.flatnonzero(np.append([True], place[1:] != place[:-1] + 1))
            last = np.append(first[1:], rows) - 1
            blocks = [concat_slices(block, place[first], place[last] + 1) for block in blocks]
        matrix = concat(blocks, 1)
        if matrix.numElements():
            graph.place_laid(matrix, flat, *self._pieces(begin, owner), self.parts())
        return LaidRows(self, flat, matrix, owner, begin)

    def _pieces(self, begin: Int64s, owner: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """What tiles have of the memory, of which rows from each `begin` on are on the tiles of an owner."""
        cuts, rows = np.array(self.cuts), len(self.tile)
        first = np.add.outer(cuts[:-1] * rows, np.zeros_like(begin)) + np.multiply.outer(np.diff(cuts), begin)
        tile = np.add.outer(np.arange(len(cuts) - 1) * self.step, owner)
        return first.reshape(-1), np.append(first.reshape(-1)[1:], rows * cuts[-1]), tile.reshape(-1)

    def parts(self) -> Layout:
        """The same as a layout of rows that follow each other on a tile, and of parts of the columns."""
        begin, owner = _stretches(self.tile)
        cuts, rows = np.array(self.cuts), len(self.tile)
        place = np.empty(rows, np.int64)
        place[stable_order(self.tile)] = np.arange(rows)
        width = np.diff(cuts)
        steps = np.ones((len(begin), len(width), 2), np.int64)
        steps[..., 0] = width
        first = np.multiply.outer(place[begin], width) + cuts[:-1] * rows
        tile = np.add.outer(owner, np.arange(len(width)) * self.step)
        return Layout((np.append(begin, rows), cuts), tile, first, steps)


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


def map_shared_runs(graph: Graph, matrix: Tensor, runs: BlockRuns, sharing: Int64s, cuts: list[int], step: int) -> None:
    """Map a matrix that lies anyhow as ``RowLayout(shared_rows(...), cuts, step)`` does, without a number for each row."""
    tile, count = shared_runs(runs, sharing)
    first = np.flatnonzero(opens(tile))
    _map_stretches(graph, matrix, offsets(count)[first], tile[first], cuts, step)


def _map_stretches(graph: Graph, matrix: Tensor, begin: Int64s, owner: Int64s, cuts: list[int], step: int) -> None:
    """Map rows from each `begin` on to its owner, and parts of the columns further on."""
    end = np.append(begin[1:], matrix.dim(0))
    for part, (low, high) in enumerate(pairwise(cuts)):
        width = high - low
        graph.place_pieces(matrix.slice(low, high, 1).flatten(), begin * width, end * width, owner + part * step)


@frozen(eq=False)
class BlockRuns:
    """The blocks of rows that follow each other: `count` rows of one, then those of the next."""

    block: Int64s
    count: Int64s  # 1 at least


def shared_runs(runs: BlockRuns, sharing: Int64s) -> tuple[Int64s, Int64s]:
    """What `shared_rows` gives of the rows, as tiles and how many rows each has, in their order; neighbours may have one tile."""
    order = np.argsort(runs.block, kind="stable")
    block, count = runs.block[order], runs.count[order]
    head = np.flatnonzero(opens(block))
    before = offsets(count)  # rows by block, and within it in their order
    first, rows = before[head], np.diff(np.append(before[head], before[-1]))
    few, more = np.divmod(rows, len(sharing))
    number = np.arange(len(sharing))
    shares = distinct((first[:, None] + number * few[:, None] + np.minimum(number, more[:, None])).ravel())
    begin = distinct(np.concatenate((before[:-1], shares[shares < before[-1]])))
    run = np.searchsorted(before, begin, "right") - 1
    place = np.searchsorted(head, run, "right") - 1
    rank = begin - first[place]
    beyond = rank - more[place] * (few[place] + 1)
    share = np.where(beyond < 0, rank // (few[place] + 1), more[place] + beyond // np.maximum(few[place], 1))
    row = offsets(runs.count)[order][run] + begin - before[run]
    back = np.argsort(row)
    return (block[run] + sharing[share])[back], np.diff(np.append(begin, before[-1]))[back]


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
