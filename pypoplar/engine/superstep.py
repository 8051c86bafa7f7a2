"""The driver's supersteps: exchange, compute and write-back of a thread's tiles, with the schedule of their workers."""

from __future__ import annotations

from pypoplar.codelet.intrinsics import atomic_load, call_codelet, load_i64, load_u8, store_i64, store_u8
from pypoplar.engine import layout as at
from pypoplar.engine.barrier import wait
from pypoplar.engine.header import call_unit, get, put, table
from pypoplar.engine.unit import entry, part


@part
def note_fault(header: int, thread: int, group: int, step: int) -> None:  # pragma: no cover
    """Keep the fault of the lowest vertex."""
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    fault = table(header, at.FAULTS) + 8 * at.FAULT_WORDS * thread
    vertex = get(header, at.VERTEX, get(header, at.GROUP_POSITION, group) + load_i64(context + 8))
    if load_i64(fault) == 0 or vertex < load_i64(fault + 8 * at.FAULT_VERTEX):
        store_i64(fault, 1)
        store_i64(fault + 8 * at.FAULT_VERTEX, vertex)
        store_i64(fault + 8 * at.FAULT_CODE, load_i64(context))
        store_i64(fault + 8 * at.FAULT_WHERE, load_i64(context + 16))
        store_i64(fault + 8 * at.FAULT_VALUE, load_i64(context + 24))
        store_i64(fault + 8 * at.FAULT_BOUND, load_i64(context + 32))
        store_i64(fault + 8 * at.FAULT_CODELET, get(header, at.GROUP_CODELET, group))
        store_i64(fault + 8 * at.FAULT_STEP, step)


@part
def account_slots(header: int, thread: int, codelet: int, slots: int) -> None:  # pragma: no cover
    place = thread * table(header, at.CODELET_COUNT) + codelet
    put(header, at.CODELET_SLOTS, place, get(header, at.CODELET_SLOTS, place) + slots)


@part
def latest(free: int, workers: int) -> int:  # pragma: no cover
    """When the last worker is done."""
    best = load_i64(free)
    for w in range(1, workers):
        best = max(best, load_i64(free + 8 * w))
    return best


@part
def finish_simple(header: int, thread: int, slots: int, count: int) -> int:  # pragma: no cover
    """Cycles of a tile's one group of plain vertices; the slots of all are left in CONTEXT_TILE_SLOTS."""
    workers = table(header, at.WORKERS)
    one = load_i64(slots)
    most = one
    total = one
    for i in range(1, count):
        this = load_i64(slots + 8 * i)
        most = max(most, this)
        total += this
    put(header, at.CONTEXTS, at.CONTEXT_WORDS * thread + at.CONTEXT_TILE_SLOTS, total)
    if count <= workers:
        return most * workers
    if total == one * count and most == one:  # all equal
        return (count + workers - 1) // workers * most * workers
    free = table(header, at.FREE) + 8 * thread * workers
    for w in range(workers):
        store_i64(free + 8 * w, 0)
    for i in range(count):
        best = 0
        for w in range(1, workers):
            if load_i64(free + 8 * w) < load_i64(free + 8 * best):
                best = w
        store_i64(free + 8 * best, load_i64(free + 8 * best) + load_i64(slots + 8 * i) * workers)
    return latest(free, workers)


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
        whole += cost
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
            account_slots(header, thread, get(header, at.GROUP_CODELET, group), cost)
    put(header, at.CONTEXTS, at.CONTEXT_WORDS * thread + at.CONTEXT_TILE_SLOTS, whole)
    return latest(free, workers)


@part
def mark_debug_records(header: int, thread: int, group: int) -> None:  # pragma: no cover
    """Tell whoever reads the debug buffer which group has just printed, and when."""
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    used = load_i64(context + 8 * at.CONTEXT_DEBUG_USED)
    if used + at.MARK_WORDS <= load_i64(context + 72):
        place = load_i64(context + 64) + 8 * used
        store_i64(place, at.GROUP_MARK)
        store_i64(place + 8, group)
        store_i64(place + 16, load_i64(table(header, at.STATE) + 8 * (at.STATE_WORDS * thread + at.SEQUENCE)))
    store_i64(context + 8 * at.CONTEXT_DEBUG_USED, used + at.MARK_WORDS)


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
    if kind == 1:
        for i in range(count):
            most = load_i64(place + 8 * i * workers)
            for w in range(1, workers):
                most = max(most, load_i64(place + 8 * (i * workers + w)))
            store_i64(slots + 8 * (position - base + i), most)
    if results != 0:
        agreed = get(header, at.AGREED, thread)
        for i in range(count):
            agreed &= load_u8(results + i)
        put(header, at.AGREED, thread, agreed)
    if table(header, at.ESTIMATE) != 0:
        for i in range(count):
            given = get(header, at.ESTIMATE, position + i)
            if given >= 0:
                store_i64(slots + 8 * (position - base + i), given)


@part
def simple_tiles(header: int, thread: int, threads: int, compute: int, step: int) -> int:  # pragma: no cover
    """As `compute_tiles`, where every tile has one group of plain vertices, priced by their code, without results.

    It is by far the commonest case, and most of what `run_group` looks up is the same for all tiles.
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


@part
def compute_tiles(header: int, thread: int, threads: int, compute: int, step: int) -> int:  # pragma: no cover
    """This thread's tiles of a compute set; returns the slowest one's cycles."""
    if get(header, at.COMPUTE_SIMPLE, compute) != 0:
        return simple_tiles(header, thread, threads, compute, step)
    account = get(header, at.STEP_ACCOUNT, step) - get(header, at.FIRST_ACTIVE, compute)
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    split = compute * (threads + 1) + thread
    slowest = 0
    for active in range(get(header, at.COMPUTE_SPLIT, split), get(header, at.COMPUTE_SPLIT, split + 1)):
        first = get(header, at.FIRST_GROUP, active)
        last = get(header, at.FIRST_GROUP, active + 1)
        base = get(header, at.GROUP_POSITION, first)
        store_i64(context + 56, table(header, at.RANDOM) + 16 * get(header, at.ACTIVE_TILE, active))
        for group in range(first, last):
            run_group(header, thread, group, base, compute, step)
        cycles = schedule(header, thread, first, last)
        put(header, at.TILE_CYCLES, account + active, get(header, at.TILE_CYCLES, account + active) + cycles)
        slots = load_i64(context + 8 * at.CONTEXT_TILE_SLOTS)
        put(header, at.TILE_SLOTS, account + active, get(header, at.TILE_SLOTS, account + active) + slots)
        slowest = max(slowest, cycles)
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
            slowest = compute_tiles(header, thread, threads, compute, step)
        call_unit(table(header, at.MOVE_UNIT), header, moves, thread, threads, memory, memory)
    return slowest
