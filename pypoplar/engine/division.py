"""Divides the steps of a program among host threads, by a guess at the work of each tile.

A compute set's tiles are cut into contiguous ranges, one a thread, and what moves for a tile goes with it. A step that is done
sooner than threads can meet is thread 0's alone.

Where much moves for a compute set, each thread's range is cut again, into *batches*: a thread moves what the tiles of a batch need
and runs them before it goes on to the next, so that they find it in the processor's cache. This is no other order than several
threads might take. A *share* is a batch of a thread; share numbers count the batches of thread 0, then those of thread 1, and on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, offsets
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.move_lists import Moves
from pypoplar.interface.driver_records import Phase
from pypoplar.interface.layout import NOTHING

# Work is counted in units of about a third of a nanosecond; below SERIAL a step is done by one thread (about 15 us).
SERIAL = 45_000
PIECE_COST = 16
LISTED_COST = 2
BYTES_PER_UNIT = 4
BATCH_BYTES = 1 << 18  # moved for the tiles of a batch; with what they write it fits a processor's own cache
AT_ONCE = 1 << 16  # records that are looked at together, within a processor's cache
BATCH_LISTS = 16  # every batch looks at all lists: where there are more, as of many IPUs, batches are as much larger


@frozen(eq=False)
class Division:
    """Share s of a list are its records from entry ``list_first_split[list] + s`` of `list_split` to the next entry.

    The same goes for the active tiles of compute sets. A move that is a step of its own has one share a thread.
    """

    threads: int
    list_split: Int64s  # records
    list_first_split: Int64s  # [lists]
    move_serial: Int64s  # [moves]
    compute_split: Int64s  # active tiles
    compute_first_split: Int64s  # [computes]
    compute_batches: Int64s  # [computes]: shares of each thread
    compute_serial: Int64s  # [computes]


def available_processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def divide(executable: Executable, wanted: int) -> Division:
    """Divide among `wanted` threads, or one a processor for 0; fewer where nothing would be gained."""
    threads = wanted or available_processors()
    sums = MoveSums(executable.moves)
    division = _divide(executable, sums, threads)
    if threads > 1 and division.move_serial.all() and division.compute_serial.all():
        return _divide(executable, sums, 1)
    return division


class MoveSums:
    """Running sums over the records of a move, one move at a time: they are in memory that the next one uses again."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        records = moves.first[moves.first_list]  # where those of each move begin
        longest = int(np.diff(records).max(initial=0)) + 1
        self._work, self._moved = np.zeros(longest, np.int64), np.zeros(longest, np.int64)

    def of(self, begin: int, end: int) -> tuple[Int64s, Int64s]:
        """Of records from `begin` to `end`: what they take, in units of work, and the bytes that they move, until each of them."""
        work, moved = self._work[: end - begin + 1], self._moved[: end - begin + 1]
        for first in range(begin, end, AT_ONCE):
            part = slice(first, min(first + AT_ONCE, end))
            count, size = self.moves.count[part], self.moves.bytes[part]
            to = slice(first - begin + 1, part.stop - begin + 1)
            each = np.where(count > 1, LISTED_COST, PIECE_COST) + size // BYTES_PER_UNIT
            for sums, amount in ((work, each), (moved, size)):
                np.multiply(count, amount, out=sums[to], dtype=np.int64)
                np.cumsum(sums[to], out=sums[to])
                sums[to] += sums[to.start - 1]
        return work, moved


@define
class _Cuts:
    """What becomes a `Division`: the limits of the shares of each list and of each compute set."""

    threads: int
    moves: Moves
    computes: Computes
    sums: MoveSums
    lists: list[Int64s] = field(init=False)
    tiles: list[Int64s] = field(init=False)
    batches: Int64s = field(init=False)
    move_serial: Int64s = field(init=False)
    compute_serial: Int64s = field(init=False)

    def __attrs_post_init__(self) -> None:
        moves, computes = self.moves, len(self.computes.result_tile)
        self.lists = [np.zeros(0, np.int64)] * len(moves.source_ipu)
        self.tiles = [np.zeros(0, np.int64)] * computes
        self.batches = np.ones(computes, np.int64)
        self.move_serial = np.zeros(len(moves.first_list) - 1, np.int64)
        self.compute_serial = np.zeros(computes, np.int64)

    def is_left_to_one(self, move: int, work: Int64s) -> bool:
        """Whether a move with this running sum of work is one thread's, as it is noted then."""
        alone = self.threads == 1 or int(work[-1]) < SERIAL
        self.move_serial[move] = alone
        return alone

    def division(self) -> Division:
        return Division(
            self.threads,
            *_joined(self.lists),
            self.move_serial,
            *_joined(self.tiles),
            self.batches,
            self.compute_serial,
        )


def _joined(rows: list[Int64s]) -> tuple[Int64s, Int64s]:
    """Rows end to end, and where each begins."""
    return np.concatenate([np.zeros(0, np.int64), *rows]), offsets([len(row) for row in rows])[:-1]


def _divide(executable: Executable, sums: MoveSums, threads: int) -> Division:
    cuts = _Cuts(threads, executable.moves, executable.computes, sums)
    for compute in range(len(cuts.tiles)):
        _divide_compute(cuts, compute)
    of_computes = {int(move) for move in distinct(executable.computes.moves.reshape(-1))}
    for move in range(len(cuts.move_serial)):
        if move not in of_computes:
            _divide_move(cuts, move)
    return cuts.division()


def _serial_split(first: int, last: int, threads: int) -> Int64s:
    split = np.full(threads + 1, last, np.int64)
    split[0] = first
    return split


def _divide_move(cuts: _Cuts, move: int) -> None:
    """A move on its own is cut anywhere, into shares of equal work."""
    moves = cuts.moves
    entries = moves.lists_of(move)
    first, last = int(moves.first[entries.start]), int(moves.first[entries.stop])
    work, _ = cuts.sums.of(first, last if cuts.threads > 1 else first)
    if cuts.is_left_to_one(move, work):
        _leave_to_one(cuts, entries)
        return
    shares = int(work[-1]) * np.arange(1, cuts.threads) // cuts.threads
    places = np.searchsorted(work[:-1], shares) + first
    for entry in entries:
        records = moves.records_of(entry)
        inside = np.clip(places, records.start, records.stop)
        cuts.lists[entry] = np.concatenate(([records.start], inside, [records.stop]))


def _leave_to_one(cuts: _Cuts, entries: Iterable[int]) -> None:
    """Give lists to thread 0, as one share."""
    for entry in entries:
        records = cuts.moves.records_of(entry)
        cuts.lists[entry] = _serial_split(records.start, records.stop, cuts.threads)


def _divide_compute(cuts: _Cuts, compute: int) -> None:
    moves, computes = cuts.moves, cuts.computes
    first, last = int(computes.first_active[compute]), int(computes.first_active[compute + 1])
    tiles = computes.active_tile[first:last]
    parts = [(int(move), moves.lists_of(int(move))) for move in computes.moves[compute] if move != NOTHING]
    entries = [entry for _, lists in parts for entry in lists]
    cost, moved = computes.cost[first:last].copy(), np.zeros(last - first, np.int64)
    for move, lists in parts:
        whole = int(moves.first[lists.start])
        work, sizes = cuts.sums.of(whole, int(moves.first[lists.stop]))
        cuts.is_left_to_one(move, work)
        for entry in lists:
            begin, end = int(moves.first[entry]), int(moves.first[entry + 1])
            records = moves.tile[begin:end]
            if len(records) == 0:
                continue
            # a list is of one pair of IPUs: its tiles are a few of all
            mine = slice(np.searchsorted(tiles, records[0]), np.searchsorted(tiles, records[-1], side="right"))
            sought = tiles[mine].astype(records.dtype)  # else NumPy would widen the records
            low, high = (np.searchsorted(records, sought, side=side) + (begin - whole) for side in ("left", "right"))
            cost[mine] += work[high] - work[low]
            moved[mine] += sizes[high] - sizes[low]
    threads = cuts.threads
    serial = threads == 1 or first == last or int(cost.sum()) < SERIAL
    cuts.compute_serial[compute] = serial
    limits = _serial_split(0, last - first, threads) if serial else _shared_evenly(cost, threads)
    # What is fanned out has to have arrived at the first receivers of all tiles.
    if computes.moves[compute, Phase.FAN_OUT] == NOTHING and (threads == 1 or not serial):
        limits = _cut_into_batches(limits, moved, BATCH_BYTES * max(1, len(entries) // BATCH_LISTS))
    cuts.batches[compute] = (len(limits) - 1) // threads
    cuts.tiles[compute] = limits + first
    # What moves for a tile is done in the tile's share: cut where the tiles are cut.
    inner = limits[1:-1]
    ends = np.append(tiles, np.iinfo(moves.tile.dtype).max)[inner].astype(moves.tile.dtype)
    for entry in entries:
        begin, end = int(moves.first[entry]), int(moves.first[entry + 1])
        cuts.lists[entry] = np.concatenate(([begin], np.searchsorted(moves.tile[begin:end], ends) + begin, [end]))


def _shared_evenly(cost: Int64s, threads: int) -> Int64s:
    """Where each thread's tiles begin and end."""
    running = np.cumsum(cost)
    inner = np.searchsorted(running, running[-1] * np.arange(1, threads) / threads) + 1
    return np.concatenate(([0], np.minimum(inner, len(cost)), [len(cost)]))


def _cut_into_batches(limits: Int64s, moved: Int64s, most: int) -> Int64s:
    """As many batches a thread as the one for which most is moved needs; for each `most` bytes are moved."""
    running = offsets(moved)
    begin, end = running[limits[:-1]], running[limits[1:]]
    count = -(-int((end - begin).max()) // most)
    if count <= 1:
        return limits
    bounds = begin[:, None] + (end - begin)[:, None] * np.arange(1, count) // count
    inner = np.clip(np.searchsorted(running, bounds), limits[:-1, None], limits[1:, None])
    return np.append(np.column_stack([limits[:-1], inner]).ravel(), limits[-1])
