"""The driver's moves: move lists, piece by piece, between the memories of two IPUs or of one and the host."""

from __future__ import annotations

from pypoplar.engine.native.header_access import get, table, word
from pypoplar.engine.native.memory_operations import copy_memory, load_i32, load_i64, load_u32, store_i64, store_u32
from pypoplar.engine.native.unit import entry, part
from pypoplar.interface.header_slots import HOST, Slot
from pypoplar.interface.layout import NOTHING

PLACE_BYTES = 4  # a place of a list is a uint32
COMPACT_BYTES = 4  # what a number takes in columns that are int32


@part
def column_entry(column: int, record: int, compact: int) -> int:
    """An entry of a column of the moves."""
    return load_i32(column + COMPACT_BYTES * record) if compact != 0 else word(column, record)


@part
def move_many(header: int, record: int, source: int, target: int, size: int, count: int) -> None:
    """A record of several pieces, by equal steps or by a list of places on one side; words are loaded and stored by themselves."""
    compact = table(header, Slot.MOVE_COMPACT)
    listed = column_entry(table(header, Slot.MOVE_SOURCE_LIST), record, compact)
    spread = column_entry(table(header, Slot.MOVE_TARGET_LIST), record, compact)
    source_step = column_entry(table(header, Slot.MOVE_SOURCE_STEP), record, compact)
    target_step = column_entry(table(header, Slot.MOVE_TARGET_STEP), record, compact)
    places = table(header, Slot.MOVE_PLACES) + PLACE_BYTES * max(listed, spread)
    if size == 4 and listed != NOTHING:
        for i in range(count):
            store_u32(target + 4 * i, load_u32(source + 4 * load_u32(places + PLACE_BYTES * i)))
    elif size == 4 and spread != NOTHING:
        for i in range(count):
            store_u32(target + 4 * load_u32(places + PLACE_BYTES * i), load_u32(source + 4 * i))
    elif size == 4:
        for i in range(count):
            store_u32(target + i * target_step, load_u32(source + i * source_step))
    else:
        for i in range(count):
            piece = source + (i * source_step if listed == NOTHING else size * load_u32(places + PLACE_BYTES * i))
            place = target + (i * target_step if spread == NOTHING else size * load_u32(places + PLACE_BYTES * i))
            copy_memory(place, piece, size)


@part
def move_records(header: int, first: int, last: int, source: int, target: int) -> None:
    """Do the move records `first` to `last`; their places count from `source` and `target`."""
    compact = table(header, Slot.MOVE_COMPACT)
    sizes, counts = table(header, Slot.MOVE_BYTES), table(header, Slot.MOVE_COUNT)
    sources, targets = table(header, Slot.MOVE_SOURCE), table(header, Slot.MOVE_TARGET)
    for record in range(first, last):
        size = column_entry(sizes, record, compact)
        count = column_entry(counts, record, compact)
        piece = source + column_entry(sources, record, compact)
        place = target + column_entry(targets, record, compact)
        if count > 1:
            move_many(header, record, piece, place, size, count)
        elif size == 4:
            store_u32(place, load_u32(piece))
        elif size == 8:
            store_i64(place, load_i64(piece))
        elif size == 12:
            store_i64(place, load_i64(piece))
            store_u32(place + 8, load_u32(piece + 8))
        elif size == 16:
            store_i64(place, load_i64(piece))
            store_i64(place + 8, load_i64(piece + 8))
        else:
            copy_memory(place, piece, size)


@part
def memory_of(header: int, ipu: int, host: int) -> int:
    """The address of an IPU's memory, or of the host's chunk."""
    return host if ipu == HOST else int(get(header, Slot.IPU_MEMORY, ipu))


@entry
def move_share(header: int, number: int, share: int, host: int) -> int:
    """A share of a move, if there is one. `host` is the address of the chunk that a stream moves."""
    if number != NOTHING:
        for entry in range(get(header, Slot.MOVE_FIRST_LIST, number), get(header, Slot.MOVE_FIRST_LIST, number + 1)):
            source = memory_of(header, get(header, Slot.LIST_SOURCE, entry), host)
            target = memory_of(header, get(header, Slot.LIST_TARGET, entry), host)
            split = get(header, Slot.LIST_FIRST_SPLIT, entry) + share
            move_records(header, get(header, Slot.LIST_SPLIT, split), get(header, Slot.LIST_SPLIT, split + 1), source, target)
    return 0
