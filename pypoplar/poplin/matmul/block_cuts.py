"""Where a product is cut into blocks, and which tile computes each."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.splitting import EqualParts, bounds, largest

Bounds = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # where the parts of each dimension begin, and the end


@frozen
class BlockCuts:
    """Sizes and numbers of parts. In each of ``row_steps * column_steps`` steps a tile has one block at most.

    The rows have `row_parts` parts in each step, the columns `column_parts`; depth and columns are cut at multiples of `grain`.
    Neighbouring tiles have blocks side by side: in the columns if `columns_inner`, else in the rows.
    """

    groups: int
    rows: int
    depth: int
    columns: int
    group_parts: int
    row_parts: int
    depth_parts: int
    column_parts: int
    row_steps: int
    column_steps: int
    padding: int  # columns that rows of the result have beyond those of the product
    grain: int
    columns_inner: bool
    left_stretches: int = 1  # in which a block of the left operand lies, each on a tile of its own
    right_stretches: int = 1

    @property
    def blocks(self) -> int:
        """Tiles at work."""
        return self.group_parts * self.row_parts * self.depth_parts * self.column_parts

    @property
    def steps(self) -> list[tuple[int, int]]:
        """The steps, each by its numbers among those of the rows and of the columns."""
        return [(row, column) for row in range(self.row_steps) for column in range(self.column_steps)]

    def largest_block(self) -> tuple[int, int, int, int]:
        """Groups, rows, depth and columns of the largest block."""
        return (
            largest(self.groups, self.group_parts),
            largest(self.rows, self.row_parts * self.row_steps),
            largest(self.depth, self.depth_parts, self.grain),
            largest(self.columns, self.column_parts * self.column_steps, self.grain),
        )

    def group_bounds(self) -> list[int]:
        return bounds(self.groups, self.group_parts)

    def row_bounds(self, step: int | None = None) -> list[int]:
        """Where the parts of the rows begin, and the end: of all steps, or of one."""
        return _of_step(bounds(self.rows, self.row_parts * self.row_steps), self.row_parts, step)

    def depth_bounds(self) -> list[int]:
        return bounds(self.depth, self.depth_parts, self.grain)

    def column_bounds(self, step: int | None = None) -> list[int]:
        return _of_step(bounds(self.columns, self.column_parts * self.column_steps, self.grain), self.column_parts, step)

    def left_bounds(self) -> Bounds:
        """Where the blocks of the left operand begin, of all steps."""
        return tuple(self.group_bounds()), tuple(self.row_bounds()), tuple(self.depth_bounds())

    def right_bounds(self) -> Bounds:
        return tuple(self.group_bounds()), tuple(self.depth_bounds()), tuple(self.column_bounds())

    def result_bounds(self) -> Bounds:
        """Those of the result, whose last column has the padding behind it."""
        *columns, end = self.column_bounds()
        return tuple(self.group_bounds()), tuple(self.row_bounds()), (*columns, end + self.padding)

    def padded(self, columns: EqualParts) -> EqualParts:
        """Columns of a result, with the padding if they are the last."""
        if self.padding and columns.begin + columns.count * columns.size == self.columns:
            return evolve(columns, size=columns.size + self.padding)  # the last part is alone: no other is uneven
        return columns

    def tiles(self, tiles: int) -> Int64s:
        """The tile of each block of a step: [parts of the groups, of the rows, of the depth, of the columns].

        The blocks are spread evenly over super tiles.
        """
        if self.columns_inner:
            order = np.arange(self.blocks).reshape(self.group_parts, self.row_parts, self.depth_parts, self.column_parts)
        else:
            order = np.arange(self.blocks).reshape(self.group_parts, self.column_parts, self.depth_parts, self.row_parts)
            order = order.transpose(0, 3, 2, 1)
        pairs, room = -(-self.blocks // 2), tiles // 2
        if pairs > room:
            return order
        places: Int64s = order // 2 * room // pairs * 2 + order % 2
        return places


def _of_step(places: list[int], parts: int, step: int | None) -> list[int]:
    return places if step is None else places[step * parts : (step + 1) * parts + 1]
