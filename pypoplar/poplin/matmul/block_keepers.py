"""On which tiles the blocks of the operands of a product lie."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.matmul.block_cuts import BlockCuts

LEAST_STRETCH = 128  # bytes of a block that are worth a tile


@frozen(eq=False)
class BlockPlaces:
    """The blocks of an operand in a step, and the tiles of the machine."""

    users: Int64s  # [*blocks, users of each]: tiles
    owner: Int64s  # [blocks but for groups]: the number of the user on whose tile a block lies that is in one stretch
    tiles: int

    def most_stretches(self, bytes: int) -> int:
        """In how many stretches blocks of so many bytes can lie. What only one tile uses stays there."""
        users: int = self.users.shape[3]
        if users == 1:
            return 1
        others = users if self.users.size > users else self.tiles - users
        return max(1, min(others, bytes // LEAST_STRETCH))

    def keepers(self, stretches: int) -> Int64s:
        """The tiles on which the blocks lie: [*blocks, stretches].

        A block in one stretch lies on a tile that uses it. Several stretches lie on tiles that use other blocks, so that the block
        comes to each user in one piece: one that had some of it would have to copy that beside the rest.
        """
        if stretches == 1:
            own: Int64s = np.take_along_axis(self.users, self.owner[None, :, :, None], 3)
            return own
        blocks = self.users.reshape(-1, self.users.shape[3])
        others = np.roll(blocks, -1, axis=0) if len(blocks) > 1 else np.setdiff1d(np.arange(self.tiles), blocks)[None]
        chosen = others[:, np.arange(stretches) * others.shape[1] // stretches]
        return chosen.reshape(*self.users.shape[:3], stretches)


def left_places(cuts: BlockCuts, tiles: int) -> BlockPlaces:
    """Those of the left operand, by parts of the groups, of the rows of a step, and of the depth."""
    owner = (np.arange(cuts.row_parts)[:, None] + np.arange(cuts.depth_parts)) % cuts.column_parts
    return BlockPlaces(cuts.tiles(tiles), owner, tiles)


def right_places(cuts: BlockCuts, tiles: int) -> BlockPlaces:
    """Those of the right operand, by parts of the groups, of the depth, and of the columns of a step."""
    owner = (np.arange(cuts.column_parts) + 1 - np.arange(cuts.depth_parts)[:, None]) % cuts.row_parts
    return BlockPlaces(cuts.tiles(tiles).transpose(0, 2, 3, 1), owner, tiles)


def left_keepers(cuts: BlockCuts, tiles: int) -> Int64s:
    """The tiles on which the blocks of the left operand lie, by the plan."""
    return left_places(cuts, tiles).keepers(cuts.left_stretches)


def right_keepers(cuts: BlockCuts, tiles: int) -> Int64s:
    """Those of the right operand, likewise."""
    return right_places(cuts, tiles).keepers(cuts.right_stretches)
