"""What it takes to bring the blocks of both operands to the tiles that use them, by how the blocks lie."""

from __future__ import annotations

from itertools import product

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.block_keepers import left_places, right_places
from pypoplar.poplin.splitting import SHARE
from pypoplar.poputil.cost_conventions import MESSAGE
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target

Sizes = tuple[Int64s, Int64s, Int64s, Int64s]  # of the parts of groups, rows, depth and columns


@frozen(eq=False)
class _Side:
    """An operand whose blocks lie in so many stretches, and the tiles of each block: [*blocks, users] and [*blocks, stretches]."""

    stretches: int
    users: Int64s
    keepers: Int64s


@frozen(eq=False)
class _Traffic:
    """Bytes and messages by tile."""

    received: Int64s
    sent: Int64s
    messages: Int64s


@frozen(eq=False)
class OperandExchange:
    """The exchange before each step, for blocks that lie in one stretch each, or in as many as their users can have."""

    target: Target
    size: int  # of an element, in bytes
    left: list[_Side]
    right: list[_Side]

    @staticmethod
    def of(target: Target, cuts: BlockCuts, size: int) -> OperandExchange:
        places = [of(cuts, target.getNumTiles()) for of in (left_places, right_places)]
        groups, rows, depth, columns = cuts.largest_block()
        bytes = [groups * rows * depth * size, groups * depth * columns * size]
        most = [operand.most_stretches(of_block) for operand, of_block in zip(places, bytes, strict=True)]
        few_own = 2 * (cuts.row_parts + cuts.column_parts) < cuts.row_parts * cuts.column_parts
        # where few tiles have a block whole, two of a super tile have none and wait for both: stretches take no longer
        also = () if few_own and min(most) > 1 else (1,)
        left, right = (
            [_Side(count, operand.users, operand.keepers(count)) for count in sorted({stretches, *also}, reverse=True)]
            for operand, stretches in zip(places, most, strict=True)
        )
        return OperandExchange(target, size, left, right)

    @property
    def layouts(self) -> list[tuple[int, int]]:
        """Stretches of blocks of the left and of the right operand; those on most tiles first."""
        return [(left.stretches, right.stretches) for left, right in product(self.left, self.right)]

    def cycles(self, sizes: Sizes) -> list[int]:
        """Those of a step whose blocks have these sizes, for each layout."""
        groups, rows, depth, columns = sizes
        left = np.multiply.outer(np.multiply.outer(groups, rows), depth)
        right = np.multiply.outer(np.multiply.outer(groups, depth), columns)
        of_left = [self._traffic(side, left) for side in self.left]
        of_right = [self._traffic(side, right) for side in self.right]
        return [self._cycles(*pair) for pair in product(of_left, of_right)]

    def _traffic(self, side: _Side, elements: Int64s) -> _Traffic:
        """Of blocks of so many elements."""
        count, elements = self.target.getNumTiles(), elements[..., None]
        received, sent, messages = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
        stretches = np.minimum(side.stretches, ceiling(elements, SHARE))
        foreign = side.users != side.keepers[..., :1]
        arriving = foreign * elements * self.size
        received[side.users] = arriving
        messages[side.users] = foreign * stretches
        if side.users.shape[3] > 1:
            sent[side.keepers] = -(-ceiling(elements, SHARE) // stretches) * SHARE * self.size
        shares = shares_of_bus(self.target)
        if shares > 1:
            block = np.arange(elements.size).reshape(elements.shape)
            number = np.full(-(-count // shares) * shares, -1)
            number[side.users] = np.where(foreign, block, -1)
            together = number.reshape(-1, shares)
            alike = (together == together[:, :1]).all(axis=1) & (together[:, 0] >= 0)
            received -= np.where(np.repeat(alike, shares)[:count], received - -(-received // shares), 0)
        return _Traffic(received, sent, messages)

    def _cycles(self, left: _Traffic, right: _Traffic) -> int:
        """Of the busiest tile."""
        moved = np.maximum(left.received + right.received, left.sent + right.sent)
        rate = self.target.getExchangeBytesPerCycle()
        return int(np.maximum(-(-moved // rate), MESSAGE * (left.messages + right.messages)).max())


def shares_of_bus(target: Target) -> int:
    """Tiles that share the buses on which they receive the same."""
    return target.getTilesPerSharedExchangeBus() if target.supportsExchangeBusSharing() else 1
