"""The driver's tiles with vertices of several kinds: groups of codelets, MultiVertex, supervisors, estimates, results, flops."""

from __future__ import annotations

from pypoplar.engine.native.header_access import get, put, table
from pypoplar.engine.native.memory_operations import call_codelet, load_i64, load_u8, store_i64, store_u8
from pypoplar.engine.native.tile_account import (
    account_flops,
    account_slots,
    finish_simple,
    fold_workers,
    latest,
    mark_debug_records,
    note_fault,
    use_estimates,
)
from pypoplar.engine.native.unit import entry, part
from pypoplar.interface import header_slots as at


@part
def schedule(header: int, thread: int, first: int, last: int) -> int:  # pragma: no cover
    """Cycles of a tile whose groups are `first` to `last`, in list order, each vertex to the next free worker.

    A worker issues one slot every `workers` cycles. A MultiVertex waits for all workers and takes them all; a SupervisorVertex
    issues a slot a cycle while the workers wait.
    """
    workers = table(header, at.WORKERS)
    slots = table(header, at.SLOTS) + 8 * thread * table(header, at.SLOTS_WORDS)
    base = get(header, at.GROUP_POSITION, first)
    count = get(header, at.GROUP_POSITION, last - 1) + get(header, at.GROUP_COUNT, last - 1) - base
    if last - first == 1 and get(header, at.GROUP_KIND, first) == 0:
        cycles = finish_simple(header, thread, slots, count)
        account_slots(
            header,
            thread,
            get(header, at.GROUP_CODELET, first),
            get(header, at.CONTEXTS, at.CONTEXT_WORDS * thread + at.CONTEXT_TILE_SLOTS),
        )
        return cycles
    free = table(header, at.FREE) + 8 * thread * workers
    for w in range(workers):
        store_i64(free + 8 * w, 0)
    whole = 0
    for i in range(count):
        position = get(header, at.LIST_ORDER, base + i)
        group = first
        while position >= get(header, at.GROUP_POSITION, group) - base + get(header, at.GROUP_COUNT, group):
            group += 1
        kind = get(header, at.GROUP_KIND, group)
        cost = load_i64(slots + 8 * position)
        taken = cost * workers if kind == 1 else cost  # a MultiVertex takes all workers
        whole += taken
        if kind == 0:
            best = 0
            for w in range(1, workers):
                if load_i64(free + 8 * w) < load_i64(free + 8 * best):
                    best = w
            store_i64(free + 8 * best, load_i64(free + 8 * best) + cost * workers)
        else:
            done = latest(free, workers) + (cost if kind == 2 else cost * workers)
            for w in range(workers):
                store_i64(free + 8 * w, done)
        if last - first > 1 or kind != 0:
            account_slots(header, thread, get(header, at.GROUP_CODELET, group), taken)
    put(header, at.CONTEXTS, at.CONTEXT_WORDS * thread + at.CONTEXT_TILE_SLOTS, whole)
    return latest(free, workers)


@part
def run_group(header: int, thread: int, group: int, base: int, compute: int, step: int) -> None:  # pragma: no cover
    """Call the codelet for a group; afterwards the tile's slots hold one price a vertex, at its position on the tile."""
    count = get(header, at.GROUP_COUNT, group)
    kind = get(header, at.GROUP_KIND, group)
    workers = table(header, at.WORKERS)
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    position = get(header, at.GROUP_POSITION, group)
    size = table(header, at.SLOTS_WORDS)
    slots = table(header, at.SLOTS) + 8 * thread * size
    results = 0
    if get(header, at.COMPUTE_RESULT, compute) >= 0:
        results = table(header, at.RESULTS) + thread * size
        for i in range(count):
            store_u8(results + i, 1)
    store_i64(context, 0)
    printed = load_i64(context + 8 * at.CONTEXT_DEBUG_USED)
    # A MultiVertex gives a price for each worker: those go behind the tile's own prices and are folded to the largest.
    place = slots + 8 * (size - count * workers) if kind == 1 else slots + 8 * (position - base)
    call_codelet(
        get(header, at.CODELETS, get(header, at.GROUP_CODELET, group)),
        table(header, at.MEMORY),
        table(header, at.WORDS) + 8 * get(header, at.GROUP_ROW, group),
        table(header, at.ROW_TABLE),
        count,
        place,
        results,
        context,
    )
    if load_i64(context) != 0:
        note_fault(header, thread, group, step)
    if load_i64(context + 8 * at.CONTEXT_DEBUG_USED) != printed:
        mark_debug_records(header, thread, group)
    if table(header, at.FLOPS) != 0:
        account_flops(header, thread, group, step)
    if kind == 1:
        fold_workers(place, slots + 8 * (position - base), count, workers)
    if results != 0:
        agreed = get(header, at.AGREED, thread)
        for i in range(count):
            agreed &= load_u8(results + i)
        put(header, at.AGREED, thread, agreed)
    if table(header, at.ESTIMATE) != 0:
        use_estimates(table(header, at.ESTIMATE) + 8 * position, slots + 8 * (position - base), count)


@entry("int64(int64, int64, int64, int64, int64, int64)")
def general_tile(header: int, thread: int, active: int, compute: int, step: int, unused: int) -> int:  # pragma: no cover
    """The vertices of an active tile; returns its cycles."""
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    first = get(header, at.FIRST_GROUP, active)
    last = get(header, at.FIRST_GROUP, active + 1)
    base = get(header, at.GROUP_POSITION, first)
    store_i64(context + 56, table(header, at.RANDOM) + 16 * get(header, at.ACTIVE_TILE, active))
    for group in range(first, last):
        run_group(header, thread, group, base, compute, step)
    return schedule(header, thread, first, last)
