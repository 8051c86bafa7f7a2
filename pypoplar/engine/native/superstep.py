"""The driver's supersteps: exchange, compute and write-back of a thread's tiles, with the schedule of their workers."""

from __future__ import annotations

from pypoplar.engine.native.barrier import wait
from pypoplar.engine.native.header_access import call_unit, get, put, table
from pypoplar.engine.native.memory_operations import call_codelet, load_i64, store_i64
from pypoplar.engine.native.tile_account import account_slots, mark_debug_records, note_fault, price_group
from pypoplar.engine.native.unit import entry, part
from pypoplar.interface import header_slots as at


@part
def compute_tiles(header: int, thread: int, threads: int, compute: int, step: int) -> int:  # pragma: no cover
    """This thread's tiles of a compute set; returns the slowest one's cycles.

    Nearly all tiles have one group of vertices that are not supervisors. They take the short way here, on which everything that is
    the same for all tiles has been looked up beforehand.
    """
    split = compute * (threads + 1) + thread
    first, last = get(header, at.COMPUTE_SPLIT, split), get(header, at.COMPUTE_SPLIT, split + 1)
    account = get(header, at.STEP_ACCOUNT, step) - get(header, at.FIRST_ACTIVE, compute)
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    slots = table(header, at.SLOTS) + 8 * thread * table(header, at.SLOTS_WORDS)
    cycles_table, slots_table = table(header, at.TILE_CYCLES) + 8 * account, table(header, at.TILE_SLOTS) + 8 * account
    simple, groups, tiles = table(header, at.ACTIVE_SIMPLE), table(header, at.FIRST_GROUP), table(header, at.ACTIVE_TILE)
    codelets, counts, rows = table(header, at.GROUP_CODELET), table(header, at.GROUP_COUNT), table(header, at.GROUP_ROW)
    memory, words, row_table = table(header, at.MEMORY), table(header, at.WORDS), table(header, at.ROW_TABLE)
    addresses, random = table(header, at.CODELETS), table(header, at.RANDOM)
    workers, fixed, fixed_slots = table(header, at.WORKERS), table(header, at.ACTIVE_CYCLES), table(header, at.ACTIVE_SLOTS)
    codelet, whole, slowest = 0, 0, 0
    for active in range(8 * first, 8 * last, 8):
        cycles = 0
        if load_i64(simple + active) == 0:
            cycles = call_unit(table(header, at.GENERAL_UNIT), header, thread, active // 8, compute, step, 0)
            total = load_i64(context + 8 * at.CONTEXT_TILE_SLOTS)
        else:
            group = 8 * load_i64(groups + active)
            count = load_i64(counts + group)
            if load_i64(codelets + group) != codelet:
                account_slots(header, thread, codelet, whole)
                whole = 0
                codelet = load_i64(codelets + group)
            printed = load_i64(context + 8 * at.CONTEXT_DEBUG_USED)
            store_i64(context + 56, random + 16 * load_i64(tiles + active))
            store_i64(context, 0)
            row = words + 8 * load_i64(rows + group)
            call_codelet(load_i64(addresses + 8 * codelet), memory, row, row_table, count, slots, 0, context)
            if load_i64(context) != 0:
                note_fault(header, thread, group // 8, step)
            if load_i64(context + 8 * at.CONTEXT_DEBUG_USED) != printed:
                mark_debug_records(header, thread, group // 8)
            cycles = load_i64(fixed + active)
            total = load_i64(fixed_slots + active)
            if cycles == at.ONE_VERTEX:
                total = load_i64(slots)
                cycles = total * workers
            elif cycles < 0:  # not known beforehand: by the code as it ran
                cycles = price_group(header, thread, group // 8, slots, count)
                total = load_i64(context + 8 * at.CONTEXT_TILE_SLOTS)
            whole += total
        store_i64(cycles_table + active, load_i64(cycles_table + active) + cycles)
        store_i64(slots_table + active, load_i64(slots_table + active) + total)
        slowest = max(slowest, cycles)
    account_slots(header, thread, codelet, whole)
    return slowest


@entry("int64(int64, int64, int64, int64, int64, int64)")
def superstep(header: int, thread: int, threads: int, compute: int, step: int, lead: int) -> int:  # pragma: no cover
    """Exchange, gather, compute, scatter and exchange of this thread's tiles; returns the slowest tile's cycles, -2 if given up.

    `lead` is the cycles of sync and exchange before the vertices start.
    """
    memory = table(header, at.MEMORY)
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    start = load_i64(state + 8 * at.LOCAL_CLOCK) + lead
    store_i64(table(header, at.CONTEXTS) + 8 * (at.CONTEXT_WORDS * thread + 6), start)
    put(header, at.AGREED, thread, 1)
    slowest = 0
    for phase in range(5):
        moves = get(header, at.COMPUTE_MOVES, 5 * compute + phase)
        parallel = threads > 1 and get(header, at.COMPUTE_SERIAL, compute) == 0
        if phase == 1 and moves >= 0 and parallel and not wait(header, threads):
            return -2  # what is fanned out has to have arrived at its first receivers
        if phase == 3:
            slowest = compute_tiles(header, thread, threads, compute, step)
        call_unit(table(header, at.MOVE_UNIT), header, moves, thread, threads, memory, memory)
    return slowest
