"""Which of many owners, in their order, touch the same keys, at least one of them with a write."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import opens, ragged


@frozen(eq=False)
class KeyAccesses:
    """Intervals of keys that owners read or write, in any order; those of one owner share no key."""

    owner: Int64s
    begin: Int64s
    end: Int64s
    writes: Bools

    def chosen(self, which: Bools | Int64s) -> KeyAccesses:
        """Some of them."""
        return KeyAccesses(self.owner[which], self.begin[which], self.end[which], self.writes[which])


MOST_CELLS = 8  # for each interval: where there are more, sweeping is less work


def nearest_conflicts(accesses: KeyAccesses) -> tuple[Int64s, Int64s]:
    """Pairs of owners ``earlier < later`` that conflict: both touch a key, and one of them writes it.

    Not all pairs, but enough: whatever two owners conflict, there is a pair that does not reach beyond them on either side.
    O(n log n).
    """
    accesses = accesses.chosen(np.argsort(accesses.begin, kind="stable"))
    reach = np.maximum.accumulate(accesses.end)
    # A heap is a maximal row of intervals that overlap from one to the next; owners in different heaps do not meet.
    starts = np.flatnonzero(np.concatenate((np.ones(min(len(reach), 1), bool), accesses.begin[1:] >= reach[:-1])))
    if len(starts) == 0:
        return accesses.owner, accesses.owner
    lowest, highest = (choose.reduceat(accesses.owner, starts) for choose in (np.minimum, np.maximum))
    contested = np.logical_or.reduceat(accesses.writes, starts) & (lowest < highest)
    heap = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(reach))))
    kept = contested[heap]
    accesses, heap = accesses.chosen(kept), heap[kept]

    bounds = np.sort(np.concatenate((accesses.begin, accesses.end)))
    bounds = bounds[opens(bounds)]
    first = np.searchsorted(bounds, accesses.begin)
    cells = np.searchsorted(bounds, accesses.end) - first  # stretches of keys that no interval cuts
    many = np.bincount(heap, cells) > MOST_CELLS * np.bincount(heap)
    few = ~many[heap]
    pairs = (_cell_by_cell(accesses.chosen(few), first[few], cells[few]), _by_sweeping(accesses.chosen(~few)))
    earlier, later = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return earlier, later


def _cell_by_cell(accesses: KeyAccesses, first: Int64s, cells: Int64s) -> tuple[Int64s, Int64s]:
    """In each cell the pairs of an owner and the next one there, if one of the two writes it."""
    cell, owner, writes = ragged(first, cells), np.repeat(accesses.owner, cells), np.repeat(accesses.writes, cells)
    order = np.lexsort((owner, cell))
    cell, owner, writes = cell[order], owner[order], writes[order]
    pair = (cell[1:] == cell[:-1]) & (writes[1:] | writes[:-1])
    return owner[:-1][pair], owner[1:][pair]


def _by_sweeping(accesses: KeyAccesses) -> tuple[Int64s, Int64s]:
    """The pairs of any intervals: at each key those of owners beside each other among all that touch it."""
    kinds = accesses.owner * 2 + accesses.writes
    key = np.concatenate((accesses.begin, accesses.end))
    change = np.concatenate((kinds, ~kinds))  # of what touches the keys from here on; ends come before begins
    order = np.lexsort((change, key))
    touching: list[int] = []
    pairs: set[tuple[int, int]] = set()
    for kind in change[order].tolist():
        if kind < 0:
            place = bisect_left(touching, ~kind)
            del touching[place]
            beside = touching[place - 1 : place + 1] if place else []
        else:
            place = bisect_left(touching, kind)
            touching.insert(place, kind)
            beside = touching[max(place - 1, 0) : place + 2]
        pairs.update((left // 2, right // 2) for left, right in pairwise(beside) if (left | right) & 1)
    columns = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
