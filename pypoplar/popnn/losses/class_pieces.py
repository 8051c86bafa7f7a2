"""Rows of classes cut into pieces, where they are so long that several workers take fewer cycles than one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.losses.loss_cycles import best_slots
from pypoplar.popnn.row_vertices import RowGroups, grouped_by_tile, row_tiles
from pypoplar.popops.reduction.reduce_plan import MESSAGE, sync_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target

SHORT = 96  # classes up to which a second step alone takes longer
CROWDED = 2  # so many times an even share of pieces on a tile, they are spread over all tiles


@frozen
class ClassPieces:
    """The pieces of each row: `count` of `length` classes, the last one has what is left."""

    rows: int
    classes: int
    count: int
    length: int

    @property
    def whole(self) -> bool:
        """Whether rows are not cut."""
        return self.count == 1

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """The columns of each piece of a row."""
        return [(begin, min(begin + self.length, self.classes)) for begin in range(0, self.classes, self.length)]

    def alike(self) -> list[list[int]]:
        """The numbers of the pieces of a row by length: all, or all but the last and the last."""
        numbers = list(range(self.count))
        return [numbers] if self.classes % self.length == 0 else [numbers[:-1], numbers[-1:]]

    def first_columns(self, numbers: list[int]) -> Int64s:
        """Where these pieces of all rows begin in their row."""
        return np.tile(np.array(numbers) * self.length, self.rows)

    def cut(self, matrix: Tensor, numbers: list[int]) -> Tensor:
        """[rows * pieces, classes of a piece]: these pieces of a matrix."""
        bounds = self.bounds
        part = matrix.slice(bounds[numbers[0]][0], bounds[numbers[-1]][1], 1)
        return part.reshape([self.rows * len(numbers), part.dim(1) // len(numbers)])

    def of_rows(self, vector: Tensor, numbers: list[int]) -> Tensor:
        """An element of each row for each of its pieces."""
        return vector.expand([1]).broadcast(len(numbers), 1).flatten()

    def chosen(self, partial: Tensor, numbers: list[int]) -> Tensor:
        """The elements of these pieces of [rows, pieces]."""
        return partial.slice(numbers[0], numbers[-1] + 1, 1).flatten()

    def groups(self, graph: Graph, pieces: Tensor, workers: int) -> RowGroups:
        """The pieces by vertex: on the tiles that hold them, or on all where some hold too many."""
        tiles = graph.getTarget().getNumTiles()
        tile = row_tiles(graph, pieces)
        if np.bincount(tile).max() > CROWDED * ceiling(len(tile), tiles):
            tile = np.arange(len(tile)) * tiles // max(len(tile), tiles)
        return grouped_by_tile(tile, workers)


def plan_pieces(target: Target, rows: int, classes: int, size: int, slots: Callable[[Int64s], Int64s] = best_slots) -> ClassPieces:
    """The number of pieces that takes the fewest cycles: the pieces, and what the rows' pieces give together."""
    if classes <= SHORT:
        return ClassPieces(rows, classes, 1, classes)
    tiles, workers = target.getNumTiles(), target.getNumWorkerContexts()
    count = np.unique(np.minimum(np.arange(1, 8 * tiles // max(rows, 1) + 4 * int(classes**0.5) + 1), ceiling(classes, 8)))
    length = -(-classes // count)
    count = -(-classes // length)
    of_tile = -(-rows * count // tiles)
    first = workers * -(-of_tile // workers) * slots(length) + of_tile * length * size // target.getExchangeBytesPerCycle()
    second = np.minimum(_joined_cycles(target, rows, count, 1), _joined_cycles(target, rows, count, 2))
    best = int(np.argmin(first + np.where(count > 1, second, 0)))
    return ClassPieces(rows, classes, int(count[best]), int(length[best]))


def _joined_cycles(target: Target, rows: int, count: Int64s, levels: int) -> Int64s:
    """What the results of so many pieces of each row take to become one, in steps of equally many."""
    workers = target.getNumWorkerContexts()
    width = np.ceil(count ** (1 / levels)).astype(np.int64)
    cycles = np.zeros_like(count)
    left = count
    for _ in range(levels):
        left = -(-left // width)
        of_tile = -(-rows * left // target.getNumTiles())
        cycles = cycles + sync_cycles(target) + MESSAGE * of_tile * width + workers * -(-of_tile // workers) * best_slots(width)
    return cycles


def joined_width(target: Target, rows: int, count: int) -> int:
    """How many results of pieces become one in the next step."""
    both = np.array([count])
    cheaper = _joined_cycles(target, rows, both, 2) < _joined_cycles(target, rows, both, 1)
    return int(np.ceil(count**0.5)) if cheaper[0] else count
