"""Divides the steps of a program among host threads, by a guess at the work of each tile.

A compute set's tiles are cut into contiguous ranges, one a thread, and what moves for a tile goes with it. A step that is done
sooner than threads can meet is thread 0's alone.
"""

from __future__ import annotations

import os

import numpy as np
from attrs import frozen

from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Array, Executable
from pypoplar.executable.move_lists import Moves

# Work is counted in units of about a third of a nanosecond; below SERIAL a step is done by one thread (about 15 us).
SERIAL = 45_000
PIECE_COST = 16
LISTED_COST = 2
BYTES_PER_UNIT = 4


@frozen(eq=False)
class Division:
    threads: int
    move_split: Array  # int64 [lists, threads + 1], records
    move_serial: Array  # int64 [lists]
    compute_split: Array  # int64 [computes, threads + 1], active tiles
    compute_serial: Array  # int64 [computes]


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


def record_work(moves: Moves) -> Array:
    """Running sum of the work of all move records."""
    each = moves.count * (np.where(moves.count > 1, LISTED_COST, PIECE_COST) + moves.bytes // BYTES_PER_UNIT)
    return np.concatenate(([0], np.cumsum(each))).astype(np.int64)


def _divide(executable: Executable, work: Array, threads: int) -> Division:
    moves, computes = executable.moves, executable.computes
    lists = len(moves.first) - 1
    made = Division(
        threads,
        np.zeros((lists, threads + 1), np.int64),
        np.zeros(lists, np.int64),
        np.zeros((len(computes.result), threads + 1), np.int64),
        np.zeros(len(computes.result), np.int64),
    )
    for number in range(lists):
        _divide_moves(made, moves, work, number)
    for number in range(len(computes.result)):
        _divide_compute(made, moves, computes, work, number)
    return made


def _serial_split(first: int, last: int, threads: int) -> Array:
    split = np.full(threads + 1, last, np.int64)
    split[0] = first
    return split


def _divide_moves(made: Division, moves: Moves, work: Array, number: int) -> None:
    first, last = int(moves.first[number]), int(moves.first[number + 1])
    whole = int(work[last] - work[first])
    if made.threads == 1 or whole < SERIAL:
        made.move_serial[number] = 1
        made.move_split[number] = _serial_split(first, last, made.threads)
        return
    shares = work[first] + whole * np.arange(1, made.threads) // made.threads
    made.move_split[number] = np.concatenate(([first], np.searchsorted(work[first:last], shares) + first, [last]))


def _divide_compute(made: Division, moves: Moves, computes: Computes, work: Array, number: int) -> None:
    first, last = int(computes.first_active[number]), int(computes.first_active[number + 1])
    tiles = computes.active_tile[first:last]
    cost = computes.cost[first:last].copy()
    lists = [int(one) for one in computes.moves[number] if one >= 0]
    for one in lists:
        begin, end = int(moves.first[one]), int(moves.first[one + 1])
        tile_begin = np.searchsorted(moves.tile[begin:end], tiles) + begin
        tile_end = np.searchsorted(moves.tile[begin:end], tiles, side="right") + begin
        cost += work[tile_end] - work[tile_begin]
    whole = int(cost.sum())
    if made.threads == 1 or whole < SERIAL:
        made.compute_serial[number] = 1
        made.compute_split[number] = _serial_split(first, last, made.threads)
        for one in lists:
            made.move_split[one] = _serial_split(int(moves.first[one]), int(moves.first[one + 1]), made.threads)
        return
    running = np.cumsum(cost)
    cuts = np.searchsorted(running, whole * np.arange(1, made.threads) / made.threads) + 1
    cuts = np.minimum(cuts, len(tiles))
    made.compute_split[number] = np.concatenate(([first], cuts + first, [last]))
    for one in lists:
        begin, end = int(moves.first[one]), int(moves.first[one + 1])
        # what moves for a tile is done by the tile's thread: cut where the tiles are cut
        limits = np.where(cuts < len(tiles), tiles[np.minimum(cuts, len(tiles) - 1)], np.iinfo(np.int64).max)
        made.move_split[one] = np.concatenate(([begin], np.searchsorted(moves.tile[begin:end], limits) + begin, [end]))
