"""Lets variables whose lives do not overlap share memory: where the parts of such variables lie on each tile.

On every tile the largest part comes first, and each part takes the lowest place that is free for as long as it lives. All tiles
take their steps at the same time, and tiles with the same parts take them as one.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import group_positions, offsets, opens, ragged
from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.compiler.memory.memory_blocks import rounded_up
from pypoplar.compiler.memory.sharing_sweeps import place_parts

MOST_RANGES = 4  # of a life, that are looked at one by one; the last covers all that follow
MOST_PLACES = 1 << 22  # parts of tiles that are placed together


@frozen(eq=False)
class LifeRanges:
    """The ranges of each variable's life in columns, int64 [variables, ranges]; those that are not there are empty."""

    begin: Int64s
    end: Int64s

    def overlap(self, left: Int64s, right: Int64s) -> Bools:
        """Whether the life of each of some variables overlaps that of the variable at the same place in the other array."""
        clash = np.zeros(np.broadcast_shapes(left.shape, right.shape), bool)
        for i in range(self.begin.shape[1]):
            for j in range(self.begin.shape[1]):
                clash |= (self.begin[:, i][left] < self.end[:, j][right]) & (self.begin[:, j][right] < self.end[:, i][left])
        return clash


def life_ranges(liveness: Liveness) -> LifeRanges:
    first, count = liveness.first[:-1], np.diff(liveness.first)
    columns = min(int(count.max(initial=1)), MOST_RANGES)
    begin, end = (np.zeros((len(count), columns), np.int64) for _ in range(2))
    for column in range(columns):
        has = np.flatnonzero(count > column)
        begin[has, column] = liveness.begin[first[has] + column]
        end[has, column] = liveness.end[first[has] + column]
    more = np.flatnonzero(count > columns)
    if len(more):
        covered = count[more] - columns + 1
        rest = ragged(first[more] + columns - 1, covered)
        opens = np.cumsum(covered) - covered
        begin[more, columns - 1] = np.minimum.reduceat(liveness.begin[rest], opens)
        end[more, columns - 1] = np.maximum.reduceat(liveness.end[rest], opens)
    return LifeRanges(begin, end)


def share(tile: Int64s, variable: Int64s, size: Int64s, alignment: Int64s, liveness: Liveness) -> Int64s:
    """The offset of each part within the shared memory of its tile.

    `tile` must be sorted; a part is what a tile has of a variable, a multiple of its alignment in size.
    """
    offset = np.zeros(len(tile), np.int64)
    if len(tile) == 0:
        return offset
    order = np.lexsort((variable, liveness.begin[liveness.first[variable]], -size, tile))
    first = np.flatnonzero(opens(tile))
    count = np.diff(np.append(first, len(tile)))
    leader = _leaders(first, count, variable[order], size[order], alignment[order])
    alone = np.flatnonzero(leader == np.arange(len(first)))
    entry = order[ragged(first[alone], count[alone])]
    offset[entry] = _placed(count[alone], variable[entry], size[entry], alignment[entry], life_ranges(liveness))
    follower = np.flatnonzero(leader != np.arange(len(first)))
    mine = ragged(first[follower], count[follower])
    offset[order[mine]] = offset[order[ragged(first[leader[follower]], count[follower])]]
    return offset


def _leaders(begins: Int64s, count: Int64s, variable: Int64s, size: Int64s, alignment: Int64s) -> Int64s:
    """The first tile, as far as is easily seen, with the same variables, sizes and alignments as each tile, which may be itself."""
    inside = np.arange(len(variable)) - np.repeat(begins, count)
    mixed = (variable * 0x9E3779B97F4A7C1 + size).astype(np.uint64) * (inside * 2 + 1).astype(np.uint64)
    key = np.add.reduceat((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9), begins)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    leader = first[group]
    # equal keys are a good guess only: every part is compared with the leader's
    alike = count[leader] == count
    twin = np.where(np.repeat(alike, count), np.repeat(begins[leader], count) + inside, 0)
    same = (variable[twin] == variable) & (size[twin] == size) & (alignment[twin] == alignment)
    alike &= np.logical_and.reduceat(same, begins)
    leaders: Int64s = np.where(alike, leader, np.arange(len(begins)))
    return leaders


def _placed(count: Int64s, variable: Int64s, size: Int64s, alignment: Int64s, lives: LifeRanges) -> Int64s:
    """Offsets of the parts of tiles in the order in which they get their places, `count` of each tile."""
    code = place_parts.code(len(variable))
    if code is None:
        return placed_by_table(count, variable, size, alignment, lives)
    offset, behind = np.empty(len(variable), np.int64), np.empty(len(variable), np.int64)
    begin, end = lives.begin.ravel(), lives.end.ravel()
    code(offsets(count), variable, size, alignment, begin, end, lives.begin.shape[1], offset, behind)
    return offset


def placed_by_table(count: Int64s, variable: Int64s, size: Int64s, alignment: Int64s, lives: LifeRanges) -> Int64s:
    """The same without a sweep: tiles are the rows of a table, which take their steps as one."""
    offset = np.zeros(len(variable), np.int64)
    first = offsets(count)
    tiles = np.argsort(-count, kind="stable")
    begin = 0
    while begin < len(tiles):
        most = int(count[tiles[begin]])
        together = tiles[begin : begin + max(MOST_PLACES // most, 1)]
        inside = group_positions(count[together])
        entry = ragged(first[together], count[together])
        row = np.repeat(np.arange(len(together)), count[together])
        variables, sizes, alignments = (np.zeros((len(together), most), np.int64) for _ in range(3))
        variables[row, inside], sizes[row, inside], alignments[row, inside] = variable[entry], size[entry], alignment[entry]
        offset[entry] = _place(variables, sizes, alignments, count[together], lives)[row, inside]
        begin += len(together)
    return offset


def _place(variable: Int64s, size: Int64s, alignment: Int64s, count: Int64s, lives: LifeRanges) -> Int64s:
    """Offsets of the parts in the rows of a table, in their order; `count` parts in each row, which does not rise."""
    start = np.zeros(variable.shape, np.int64)
    for number in range(variable.shape[1]):
        rows = int(np.searchsorted(-count, -number, "left"))
        clash = lives.overlap(variable[:rows, number : number + 1], variable[:rows, :number])
        row, column = np.nonzero(clash)
        begin = start[row, column]
        end = begin + size[row, column]
        start[:rows, number] = _first_gaps(row, begin, end, size[:rows, number], alignment[:rows, number])
    return start


def _first_gaps(row: Int64s, begin: Int64s, end: Int64s, size: Int64s, alignment: Int64s) -> Int64s:
    """The lowest aligned offset in each row at which `size` bytes are free, where the stretches `begin, end` are taken."""
    gap = np.zeros(len(size), np.int64)
    if len(row) == 0:
        return gap
    span = int(end.max()) + 1
    order = np.argsort(row * span + begin)
    row, begin, end = row[order], begin[order], end[order]
    reach = np.maximum.accumulate(row * span + end) - row * span
    before = np.concatenate(([0], reach[:-1]))
    before[1:][row[1:] != row[:-1]] = 0
    before, reach = rounded_up(before, alignment[row]), rounded_up(reach, alignment[row])
    gap[row] = reach  # of several values for a row the last one stays: what all of them reach
    free = np.flatnonzero(begin - before >= size[row])[::-1]
    gap[row[free]] = before[free]
    return gap
