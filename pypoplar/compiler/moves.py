"""Collects the move lists of an executable, and folds regular rows of pieces into single records."""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen

from pypoplar.compiler.executable import Moves
from pypoplar.compiler.plan import Array, Pieces


@frozen(eq=False)
class TileAddresses:
    """Byte addresses in the simulated memory: of every tile, and of its exchange buffer."""

    base: Array  # int64 [tiles + 1]
    buffer: Array  # int64 [tiles]

    def sources(self, pieces: Pieces) -> Array:
        return self._resolve(pieces.source_tile, pieces.source_offset, pieces.source_in_buffer)

    def targets(self, pieces: Pieces) -> Array:
        return self._resolve(pieces.target_tile, pieces.target_offset, pieces.target_in_buffer)

    def _resolve(self, tile: Array, offset: Array, in_buffer: Array) -> Array:
        resolved: Array = np.where(in_buffer, self.buffer[tile], self.base[tile]) + offset
        return resolved


@frozen(eq=False)
class Records:
    """Pieces to move, in columns; see `Moves`."""

    source: Array
    target: Array
    bytes: Array
    count: Array
    source_step: Array
    target_step: Array
    tile: Array


def fold(source: Array, target: Array, bytes: Array, tile: Array) -> Records:
    """Records for pieces in the order given: three or more that follow each other in equal steps become one record.

    >>> fold(np.arange(0, 40, 8), np.arange(0, 20, 4), np.full(5, 4), np.zeros(5, int)).count
    array([5])
    """
    size = len(source)
    if size == 0:
        nothing = np.zeros(0, np.int64)
        return Records(nothing, nothing, nothing, nothing, nothing, nothing, nothing)
    source_step, target_step = np.diff(source), np.diff(target)
    alike = (bytes[1:] == bytes[:-1]) & (tile[1:] == tile[:-1])
    continues = alike[1:] & alike[:-1] & (source_step[1:] == source_step[:-1]) & (target_step[1:] == target_step[:-1])
    # A group is a maximal row of equal steps; neighbouring groups share a piece, which the earlier of two folded groups takes.
    group_start = np.flatnonzero(np.concatenate(([True], ~continues))) if size > 1 else np.zeros(0, np.int64)
    group_steps = np.diff(np.append(group_start, size - 1)) if size > 1 else np.zeros(0, np.int64)
    folded = (group_steps >= 2) & alike[group_start] if size > 1 else np.zeros(0, bool)
    taken = np.zeros(len(group_start), np.int64)
    if size > 1:
        taken[1:] = folded[:-1]
    run_first = (group_start + taken)[folded]
    run_count = (group_steps + 1 - taken)[folded]
    owner = np.ones(size, bool)
    covered = np.zeros(size + 1, np.int64)
    np.add.at(covered, run_first, 1)
    np.add.at(covered, run_first + run_count, -1)
    inside = np.cumsum(covered[:-1]) > 0
    owner[inside] = False
    owner[run_first] = True
    count = np.ones(size, np.int64)
    count[run_first] = run_count
    kept = np.flatnonzero(owner)
    steps = np.minimum(kept, max(size - 2, 0))
    many = count[kept] > 1
    zero = np.zeros(len(kept), np.int64)
    return Records(
        source[kept],
        target[kept],
        bytes[kept],
        count[kept],
        np.where(many, source_step[steps], 0) if size > 1 else zero,
        np.where(many, target_step[steps], 0) if size > 1 else zero,
        tile[kept],
    )


@define(eq=False)
class MoveLists:
    """The move lists of an executable while it is made. A list is named by its number; -1 is the empty list."""

    _lists: list[Records] = field(factory=list)

    def add(self, source: Array, target: Array, bytes: Array, tile: Array) -> int:
        """Add a list, sorted by the tile whose thread moves the piece; order within a tile is kept."""
        order = np.argsort(tile, kind="stable")
        self._lists.append(fold(source[order], target[order], bytes[order], tile[order]))
        return len(self._lists) - 1

    def add_pieces(self, pieces: Pieces, addresses: TileAddresses, *, by_source: bool = False) -> int:
        """Add planned pieces, moved by the target tile's thread or by the source tile's; -1 if there are none."""
        if len(pieces.bytes) == 0:
            return -1
        tile = pieces.source_tile if by_source else pieces.target_tile
        return self.add(addresses.sources(pieces), addresses.targets(pieces), pieces.bytes, tile)

    def finish(self) -> Moves:
        lengths = [len(one.source) for one in self._lists]

        def column(name: str) -> Array:
            parts = [getattr(one, name) for one in self._lists]
            return np.ascontiguousarray(np.concatenate(parts) if parts else np.zeros(0), np.int64)

        return Moves(
            first=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64),
            source=column("source"),
            target=column("target"),
            bytes=column("bytes"),
            count=column("count"),
            source_step=column("source_step"),
            target_step=column("target_step"),
            tile=column("tile"),
        )
