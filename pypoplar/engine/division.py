"""Divides the steps of a program among host threads, by a guess at the work of each tile.

A compute set's tiles are cut into contiguous ranges, one a thread, and what moves for a tile goes with it. A step that is done
sooner than threads can meet is thread 0's alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.move_lists import Moves

# Work is counted in units of about a third of a nanosecond; below SERIAL a step is done by one thread (about 15 us).
SERIAL = 45_000
PIECE_COST = 16
LISTED_COST = 2
BYTES_PER_UNIT = 4


@frozen(eq=False)
class Division:
    threads: int
    list_split: Int64s  # [lists, threads + 1], records
    move_serial: Int64s  # [moves]
    compute_split: Int64s  # [computes, threads + 1], active tiles
    compute_serial: Int64s  # [computes]


def available_processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def divide(executable: Executable, wanted: int) -> Division:
    """Divide among `wanted` threads, or one a processor for 0; fewer where nothing would be gained."""
    threads = wanted or available_processors()
    work = record_work(executable.moves)
    division = _divide(executable, work, threads)
    if threads > 1 and division.move_serial.all() and division.compute_serial.all():
        return _divide(executable, work, 1)
    return division


def record_work(moves: Moves) -> Int64s:
    """Running sum of the work of all move records."""
    each: Int64s = np.where(moves.count > 1, LISTED_COST, PIECE_COST)
    return offsets(moves.count * (each + moves.bytes // BYTES_PER_UNIT))


def _divide(executable: Executable, work: Int64s, threads: int) -> Division:
    moves, computes = executable.moves, executable.computes
    division = Division(
        threads,
        np.zeros((len(moves.source_ipu), threads + 1), np.int64),
        np.zeros(len(moves.first_list) - 1, np.int64),
        np.zeros((len(computes.result_tile), threads + 1), np.int64),
        np.zeros(len(computes.result_tile), np.int64),
    )
    for move in range(len(division.move_serial)):
        _divide_move(division, moves, work, move)
    for compute in range(len(division.compute_serial)):
        _divide_compute(division, moves, computes, work, compute)
    return division


def _serial_split(first: int, last: int, threads: int) -> Int64s:
    split = np.full(threads + 1, last, np.int64)
    split[0] = first
    return split


def _divide_move(division: Division, moves: Moves, work: Int64s, move: int) -> None:
    """A move on its own is cut anywhere, into parts of equal work."""
    entries = moves.lists_of(move)
    first, last = int(moves.first[entries.start]), int(moves.first[entries.stop])
    whole = int(work[last] - work[first])
    if division.threads == 1 or whole < SERIAL:
        division.move_serial[move] = 1
        _leave_to_one(division, moves, entries)
        return
    shares = work[first] + whole * np.arange(1, division.threads) // division.threads
    cuts = np.searchsorted(work[first:last], shares) + first
    for entry in entries:
        records = moves.records_of(entry)
        inside = np.clip(cuts, records.start, records.stop)
        division.list_split[entry] = np.concatenate(([records.start], inside, [records.stop]))


def _leave_to_one(division: Division, moves: Moves, entries: Iterable[int]) -> None:
    """Give lists to thread 0."""
    for entry in entries:
        records = moves.records_of(entry)
        division.list_split[entry] = _serial_split(records.start, records.stop, division.threads)


def _divide_compute(division: Division, moves: Moves, computes: Computes, work: Int64s, compute: int) -> None:
    first, last = int(computes.first_active[compute]), int(computes.first_active[compute + 1])
    tiles = computes.active_tile[first:last]
    cost = computes.cost[first:last].copy()
    entries = [entry for move in computes.moves[compute] for entry in moves.lists_of(int(move))]
    for entry in entries:
        begin, end = int(moves.first[entry]), int(moves.first[entry + 1])
        tile_begin = np.searchsorted(moves.tile[begin:end], tiles) + begin
        tile_end = np.searchsorted(moves.tile[begin:end], tiles, side="right") + begin
        cost += work[tile_end] - work[tile_begin]
    whole = int(cost.sum())
    if division.threads == 1 or whole < SERIAL:
        division.compute_serial[compute] = 1
        division.compute_split[compute] = _serial_split(first, last, division.threads)
        _leave_to_one(division, moves, entries)
        return
    running = np.cumsum(cost)
    cuts = np.searchsorted(running, whole * np.arange(1, division.threads) / division.threads) + 1
    cuts = np.minimum(cuts, len(tiles))
    division.compute_split[compute] = np.concatenate(([first], cuts + first, [last]))
    for entry in entries:
        begin, end = int(moves.first[entry]), int(moves.first[entry + 1])
        # what moves for a tile is done by the tile's thread: cut where the tiles are cut
        limits = np.where(cuts < len(tiles), tiles[np.minimum(cuts, len(tiles) - 1)], np.iinfo(np.int64).max)
        division.list_split[entry] = np.concatenate(([begin], np.searchsorted(moves.tile[begin:end], limits) + begin, [end]))
