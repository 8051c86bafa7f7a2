"""The driver's supersteps: exchange, compute and write-back of a thread's tiles, with the schedule of their workers."""

from __future__ import annotations

from pypoplar.codelet.intrinsics import atomic_load, call_codelet, load_i64, store_i64
from pypoplar.engine import layout as at
from pypoplar.engine.barrier import wait
from pypoplar.engine.header import call_unit, get, put, table
from pypoplar.engine.tile_account import account_slots, finish_simple, mark_debug_records, note_fault
from pypoplar.engine.unit import entry, part


@part
def simple_tiles(header: int, thread: int, threads: int, compute: int, step: int) -> int:  # pragma: no cover
    """As `general_tiles`, where every tile has one group of plain vertices, priced by their code, without results.

    It is by far the commonest case, and most of what is looked up there is the same for all tiles.
    """
    split = compute * (threads + 1) + thread
    first, last = get(header, at.COMPUTE_SPLIT, split), get(header, at.COMPUTE_SPLIT, split + 1)
    group = get(header, at.FIRST_GROUP, first) - first
    workers = table(header, at.WORKERS)
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    slots = table(header, at.SLOTS) + 8 * thread * table(header, at.SLOTS_WORDS)
    account = 8 * (get(header, at.STEP_ACCOUNT, step) - get(header, at.FIRST_ACTIVE, compute))
    cycles_table, slots_table = table(header, at.TILE_CYCLES) + account, table(header, at.TILE_SLOTS) + account
    codelets, counts = table(header, at.GROUP_CODELET) + 8 * group, table(header, at.GROUP_COUNT) + 8 * group
    rows, tiles = table(header, at.GROUP_ROW) + 8 * group, table(header, at.ACTIVE_TILE)
    memory, words, row_table = table(header, at.MEMORY), table(header, at.WORDS), table(header, at.ROW_TABLE)
    addresses, random = table(header, at.CODELETS), table(header, at.RANDOM)
    printed = load_i64(context + 8 * at.CONTEXT_DEBUG_USED)
    codelet = 0
    whole = 0
    slowest = 0
    for active in range(8 * first, 8 * last, 8):
        count = load_i64(counts + active)
        if load_i64(codelets + active) != codelet:
            account_slots(header, thread, codelet, whole)
            whole = 0
            codelet = load_i64(codelets + active)
        store_i64(context + 56, random + 16 * load_i64(tiles + active))
        store_i64(context, 0)
        row = words + 8 * load_i64(rows + active)
        call_codelet(load_i64(addresses + 8 * codelet), memory, row, row_table, count, slots, 0, context)
        if load_i64(context) != 0:
            note_fault(header, thread, group + active // 8, step)
        if load_i64(context + 8 * at.CONTEXT_DEBUG_USED) != printed:
            mark_debug_records(header, thread, group + active // 8)
            printed = load_i64(context + 8 * at.CONTEXT_DEBUG_USED)
        total = load_i64(slots)
        cycles = total * workers
        if count > 1:
            cycles = finish_simple(header, thread, slots, count)
            total = load_i64(context + 8 * at.CONTEXT_TILE_SLOTS)
        whole += total
        store_i64(cycles_table + active, load_i64(cycles_table + active) + cycles)
        store_i64(slots_table + active, load_i64(slots_table + active) + total)
        slowest = max(slowest, cycles)
    account_slots(header, thread, codelet, whole)
    return slowest


@entry("int64(int64, int64, int64, int64, int64, int64)")
def superstep(header: int, thread: int, threads: int, compute: int, step: int, unused: int) -> int:  # pragma: no cover
    """Exchange, gather, compute, scatter and exchange of this thread's tiles; returns the slowest tile's cycles, -2 if given up."""
    memory = table(header, at.MEMORY)
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    store_i64(table(header, at.CONTEXTS) + 8 * (at.CONTEXT_WORDS * thread + 6), load_i64(state + 8 * at.LOCAL_CLOCK))
    put(header, at.AGREED, thread, 1)
    slowest = 0
    for phase in range(5):
        moves = get(header, at.COMPUTE_MOVES, 5 * compute + phase)
        if phase == 1 and moves >= 0 and threads > 1 and get(header, at.COMPUTE_SERIAL, compute) == 0:
            wait(header, threads)  # what is fanned out has to have arrived at its first receivers
            if atomic_load(table(header, at.SHARED) + 8 * at.ABANDON) != 0:
                return -2
        if phase == 3:
            if get(header, at.COMPUTE_SIMPLE, compute) != 0:
                slowest = simple_tiles(header, thread, threads, compute, step)
            else:
                slowest = call_unit(table(header, at.GENERAL_UNIT), header, thread, threads, compute, step, 0)
        call_unit(table(header, at.MOVE_UNIT), header, moves, thread, threads, memory, memory)
    return slowest
