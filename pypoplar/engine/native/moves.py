"""The driver's moves: a move list, piece by piece, between addresses."""

from __future__ import annotations

from pypoplar.engine.native.header_access import get, table
from pypoplar.engine.native.memory_operations import copy_memory, load_i64, load_u32, store_i64, store_u32
from pypoplar.engine.native.unit import entry, part
from pypoplar.interface import header_slots as at


@part
def move_many(header: int, r: int, there: int, here: int, size: int, count: int) -> None:  # pragma: no cover
    """A record of several pieces, by equal steps or by a list of places on one side; words are loaded and stored by themselves."""
    listed, spread = get(header, at.MOVE_SOURCE_LIST, r), get(header, at.MOVE_TARGET_LIST, r)
    source_step, target_step = get(header, at.MOVE_SOURCE_STEP, r), get(header, at.MOVE_TARGET_STEP, r)
    places = table(header, at.MOVE_PLACES) + 4 * max(listed, spread)
    if size == 4 and listed >= 0:
        for i in range(count):
            store_u32(here + 4 * i, load_u32(there + 4 * load_u32(places + 4 * i)))
    elif size == 4 and spread >= 0:
        for i in range(count):
            store_u32(here + 4 * load_u32(places + 4 * i), load_u32(there + 4 * i))
    elif size == 4:
        for i in range(count):
            store_u32(here + i * target_step, load_u32(there + i * source_step))
    else:
        for i in range(count):
            source = there + i * source_step if listed < 0 else there + size * load_u32(places + 4 * i)
            target = here + i * target_step if spread < 0 else here + size * load_u32(places + 4 * i)
            copy_memory(target, source, size)


@part
def move_records(header: int, first: int, last: int, source: int, target: int) -> None:  # pragma: no cover
    """Do the move records `first` to `last`; their addresses count from `source` and `target`."""
    sizes, counts = table(header, at.MOVE_BYTES), table(header, at.MOVE_COUNT)
    sources, targets = table(header, at.MOVE_SOURCE), table(header, at.MOVE_TARGET)
    for r in range(8 * first, 8 * last, 8):
        size = load_i64(sizes + r)
        count = load_i64(counts + r)
        here = target + load_i64(targets + r)
        there = source + load_i64(sources + r)
        if count > 1:
            move_many(header, r // 8, there, here, size, count)
        elif size == 4:
            store_u32(here, load_u32(there))
        elif size == 8:
            store_i64(here, load_i64(there))
        elif size == 12:
            store_i64(here, load_i64(there))
            store_u32(here + 8, load_u32(there + 8))
        elif size == 16:
            store_i64(here, load_i64(there))
            store_i64(here + 8, load_i64(there + 8))
        else:
            copy_memory(here, there, size)


@entry("int64(int64, int64, int64, int64, int64, int64)")
def move_share(header: int, number: int, thread: int, threads: int, source: int, target: int) -> int:  # pragma: no cover
    """This thread's share of a move list; nothing for list -1."""
    if number >= 0:
        split = number * (threads + 1) + thread
        move_records(header, get(header, at.MOVE_SPLIT, split), get(header, at.MOVE_SPLIT, split + 1), source, target)
    return 0
