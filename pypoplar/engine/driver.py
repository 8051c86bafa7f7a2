"""The native driver: one jitted function that walks the whole control program.

Every host thread runs `drive` on the same program. Each walks all of it, does its own share of every large step (tiles are
divided among the threads when the engine is made) and meets the others at a barrier when the step is done. Small steps are
done by thread 0 alone, and the others do not wait for it until they must (PENDING). Because no two vertices of a compute set
touch the same element with a write, a thread can run exchange, compute and write-back of its tiles without waiting in between:
one barrier a superstep.

`drive` returns to Python when the program ends, when a service is due (prints, callbacks), after a fault, and on request (Ctrl-C).

All tables are int64 arrays, known here by the addresses in a header (`pypoplar.engine.tables` makes it): few types keep the
driver's first compilation short, and nothing is unpacked at a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

from pypoplar.codelet.intrinsics import (
    atomic_add,
    atomic_load,
    atomic_store,
    call_codelet,
    copy_memory,
    load_i32,
    load_i64,
    load_i64_invariant,
    load_u8,
    load_u32,
    pause,
    store_i64,
    store_u8,
    store_u32,
    yield_processor,
)
from pypoplar.compiler import opcodes
from pypoplar.engine import layout as at
from pypoplar.engine.header import get, put, table

PART: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
Function = TypeVar("Function", bound=Callable[..., Any])


def part(function: Function) -> Function:
    """A part of the driver: compiled with it and kept in its cache entry, it needs no entry from Python."""
    return cast(Function, njit(**PART)(function))


def entry(function: Function) -> Function:
    """The driver itself, for three 64-bit integers; it lets go of the interpreter's lock."""
    return cast(Function, njit("int64(int64, int64, int64)", nogil=True, error_model="numpy", cache=True)(function))


# What `drive` returns.
FINISHED, SERVICE, FAULT, STOPPED = 0, 1, 2, 3
SPINS = 2000  # looks at the barrier before letting other threads of the system run


@part
def wait(header: int, threads: int) -> None:  # pragma: no cover
    """Meet the other threads."""
    shared = table(header, at.SHARED)
    generation = atomic_load(shared + 8 * at.GENERATION)
    if atomic_add(shared + 8 * at.ARRIVED, 1) == threads - 1:
        atomic_store(shared + 8 * at.ARRIVED, 0)
        atomic_store(shared + 8 * at.GENERATION, generation + 1)
        return
    looks = 0
    while atomic_load(shared + 8 * at.GENERATION) == generation:
        looks += 1
        if looks < SPINS:
            pause()
        else:
            yield_processor()


@part
def move_pieces(source: int, target: int, size: int, count: int, source_step: int, target_step: int) -> None:  # pragma: no cover
    """Copy `count` pieces of `size` bytes; the commonest sizes are single loads and stores."""
    if size == 4:
        for i in range(count):
            store_u32(target + i * target_step, load_u32(source + i * source_step))
    elif size == 8:
        for i in range(count):
            store_i64(target + i * target_step, load_i64(source + i * source_step))
    elif size == 1:
        for i in range(count):
            store_u8(target + i * target_step, load_u8(source + i * source_step))
    else:
        for i in range(count):
            copy_memory(target + i * target_step, source + i * source_step, size)


@part
def gather_pieces(source: int, target: int, size: int, count: int, places: int) -> None:  # pragma: no cover
    """Copy pieces from listed places to a contiguous target."""
    if size == 4:
        for i in range(count):
            store_u32(target + 4 * i, load_u32(source + 4 * load_u32(places + 4 * i)))
    else:
        for i in range(count):
            for k in range(size):
                store_u8(target + i * size + k, load_u8(source + size * load_u32(places + 4 * i) + k))


@part
def scatter_pieces(source: int, target: int, size: int, count: int, places: int) -> None:  # pragma: no cover
    """Copy contiguous pieces to listed places."""
    if size == 4:
        for i in range(count):
            store_u32(target + 4 * load_u32(places + 4 * i), load_u32(source + 4 * i))
    else:
        for i in range(count):
            for k in range(size):
                store_u8(target + size * load_u32(places + 4 * i) + k, load_u8(source + i * size + k))


@part
def move_records(header: int, first: int, last: int, source: int, target: int) -> None:  # pragma: no cover
    """Do the move records `first` to `last`; their addresses count from `source` and `target`."""
    for r in range(first, last):
        size = get(header, at.MOVE_BYTES, r)
        count = get(header, at.MOVE_COUNT, r)
        here = target + get(header, at.MOVE_TARGET, r)
        there = source + get(header, at.MOVE_SOURCE, r)
        listed = get(header, at.MOVE_SOURCE_LIST, r)
        spread = get(header, at.MOVE_TARGET_LIST, r)
        if count == 1:
            if size == 4:
                store_u32(here, load_u32(there))
            else:
                copy_memory(here, there, size)
        elif listed >= 0:
            gather_pieces(there, here, size, count, table(header, at.MOVE_PLACES) + 4 * listed)
        elif spread >= 0:
            scatter_pieces(there, here, size, count, table(header, at.MOVE_PLACES) + 4 * spread)
        else:
            move_pieces(there, here, size, count, get(header, at.MOVE_SOURCE_STEP, r), get(header, at.MOVE_TARGET_STEP, r))


@part
def move_share(header: int, number: int, thread: int, threads: int, source: int, target: int) -> None:  # pragma: no cover
    """This thread's share of a move list; nothing for list -1."""
    if number >= 0:
        split = number * (threads + 1) + thread
        move_records(header, get(header, at.MOVE_SPLIT, split), get(header, at.MOVE_SPLIT, split + 1), source, target)


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


@part
def superstep(header: int, thread: int, threads: int, compute: int, step: int) -> int:  # pragma: no cover
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
        move_share(header, moves, thread, threads, memory, memory)
    return slowest


@part
def meet(header: int, thread: int, threads: int) -> bool:  # pragma: no cover
    """A barrier at which thread 0's clock and its SHARED_VALUE become everybody's; False if the program is given up."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    shared = table(header, at.SHARED)
    if threads > 1:
        if thread == 0:
            store_i64(shared + 8 * at.CLOCK, load_i64(state + 8 * at.LOCAL_CLOCK))
            store_i64(shared + 8 * at.VALUE, load_i64(state + 8 * at.SHARED_VALUE))
        wait(header, threads)
        if atomic_load(shared + 8 * at.ABANDON) != 0:
            return False
        store_i64(state + 8 * at.LOCAL_CLOCK, load_i64(shared + 8 * at.CLOCK))
        store_i64(state + 8 * at.SHARED_VALUE, load_i64(shared + 8 * at.VALUE))
        wait(header, threads)  # thread 0 may not write the next value before everybody has read this one
    store_i64(state + 8 * at.PENDING, 0)
    return True


@part
def count_step(header: int, step: int) -> None:  # pragma: no cover
    put(header, at.EXECUTIONS, step, get(header, at.EXECUTIONS, step) + 1)


@part
def slowest_of_all(header: int, thread: int, threads: int) -> int:  # pragma: no cover
    """After the barrier of a parallel compute set: the slowest tile of all threads, -1 if a vertex faulted, -2 if given up."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    shared = table(header, at.SHARED)
    mine = shared + 8 * (at.PARTIAL + (load_i64(state + 8 * at.PARITY) & 1) * threads)
    store_i64(state + 8 * at.PARITY, load_i64(state + 8 * at.PARITY) + 1)
    if load_i64(table(header, at.FAULTS) + 8 * at.FAULT_WORDS * thread) != 0:
        store_i64(mine + 8 * thread, -1)
    else:
        store_i64(mine + 8 * thread, load_i64(state + 8 * at.SHARED_VALUE))
    wait(header, threads)
    if atomic_load(shared + 8 * at.ABANDON) != 0:
        return -2
    slowest = 0
    for other in range(threads):
        if load_i64(mine + 8 * other) < 0:
            return -1
        slowest = max(slowest, load_i64(mine + 8 * other))
    return slowest


@part
def run_compute(header: int, thread: int, threads: int, compute: int, step: int) -> bool:  # pragma: no cover
    """Run a compute set; the slowest tile's cycles are left in SHARED_VALUE. False after a fault or when given up."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    result = get(header, at.COMPUTE_RESULT, compute)
    agreed = 1
    if threads == 1 or get(header, at.COMPUTE_SERIAL, compute) != 0:
        store_i64(state + 8 * at.PENDING, 1)
        if thread != 0:
            return True
        # A serial step's shares are all thread 0's: its splits give the other threads nothing.
        store_i64(state + 8 * at.SHARED_VALUE, superstep(header, thread, threads, compute, step))
        agreed = get(header, at.AGREED, 0)
        if load_i64(table(header, at.FAULTS)) != 0:
            return False
    else:
        if load_i64(state + 8 * at.PENDING) != 0 and not meet(header, thread, threads):
            return False
        slowest = superstep(header, thread, threads, compute, step)
        if slowest < 0:
            return False
        store_i64(state + 8 * at.SHARED_VALUE, slowest)
        slowest = slowest_of_all(header, thread, threads)
        if slowest < 0:
            return False
        store_i64(state + 8 * at.SHARED_VALUE, slowest)
        if result >= 0:
            store_i64(state + 8 * at.PENDING, 1)
            for other in range(threads):
                agreed &= get(header, at.AGREED, other)
    if result >= 0 and thread == 0:
        store_u8(table(header, at.MEMORY) + result, agreed)
    return True


@part
def do_compute(header: int, thread: int, threads: int, row: int) -> bool:  # pragma: no cover
    """One superstep with its account. False if the program ends here."""
    step = load_i64(row + 24)
    sequence = table(header, at.STATE) + 8 * (at.STATE_WORDS * thread + at.SEQUENCE)
    store_i64(sequence, load_i64(sequence) + 1)
    if not run_compute(header, thread, threads, load_i64(row + 8), step):
        return False
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    slowest = load_i64(state + 8 * at.SHARED_VALUE)
    cycles = slowest + get(header, at.STEP_CYCLES, step)
    before, after = load_i64(row + 16), load_i64(row + 32)
    if before >= 0:
        cycles += get(header, at.STEP_CYCLES, before)
    if after >= 0:
        cycles += get(header, at.STEP_CYCLES, after)
    store_i64(state + 8 * at.LOCAL_CLOCK, load_i64(state + 8 * at.LOCAL_CLOCK) + cycles)
    if thread == 0:
        count_step(header, step)
        put(header, at.COMPUTE_CYCLES, step, get(header, at.COMPUTE_CYCLES, step) + slowest)
        if before >= 0:
            count_step(header, before)
        if after >= 0:
            count_step(header, after)
    return True


@part
def do_move(header: int, thread: int, threads: int, number: int, step: int, source: int, target: int) -> bool:  # pragma: no cover
    """One move list as a step of its own. False if the program is given up."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    if threads == 1 or get(header, at.MOVE_SERIAL, number) != 0:
        store_i64(state + 8 * at.PENDING, 1)
        if thread != 0:
            return True
        move_share(header, number, thread, threads, source, target)
    else:
        if load_i64(state + 8 * at.PENDING) != 0 and not meet(header, thread, threads):
            return False
        move_share(header, number, thread, threads, source, target)
        wait(header, threads)
        if atomic_load(table(header, at.SHARED) + 8 * at.ABANDON) != 0:
            return False
    store_i64(state + 8 * at.LOCAL_CLOCK, load_i64(state + 8 * at.LOCAL_CLOCK) + get(header, at.STEP_CYCLES, step))
    if thread == 0:
        count_step(header, step)
    return True


@part
def do_stream(header: int, thread: int, threads: int, row: int, inward: bool) -> bool:  # pragma: no cover
    """A chunk of a stream; its host memory is the connected array, or a buffer of the engine's."""
    stream = table(header, at.STREAMS) + 8 * at.STREAM_WORDS * load_i64(row + 8)
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    number = load_i64(row + 16)
    memory = table(header, at.MEMORY)
    # The chunk before may be thread 0's serial work: its end has to be known.
    alone = threads == 1 or get(header, at.MOVE_SERIAL, number) != 0 or load_i64(state + 8 * at.PENDING) == 0
    if not alone and not meet(header, thread, threads):
        return False
    position = load_i64(stream + 8 * at.STREAM_POSITION)
    host = load_i64(stream + 8 * at.STREAM_ADDRESS) + position
    source = host if inward else memory
    target = memory if inward else host
    if not do_move(header, thread, threads, number, load_i64(row + 24), source, target):
        return False
    if thread == 0:
        position += load_i64(stream + 8 * at.STREAM_CHUNK)
        store_i64(stream + 8 * at.STREAM_POSITION, position % load_i64(stream + 8 * at.STREAM_BYTES))
    store_i64(state + 8 * at.PENDING, 1)
    return True


@part
def give_up(header: int, thread: int, threads: int) -> None:  # pragma: no cover
    """Leave the program. Where thread 0 alone knows why, it tells the others at the barrier at which they wait for it."""
    shared = table(header, at.SHARED)
    pending = load_i64(table(header, at.STATE) + 8 * (at.STATE_WORDS * thread + at.PENDING))
    if threads > 1 and thread == 0 and pending != 0 and atomic_load(shared + 8 * at.ABANDON) == 0:
        atomic_store(shared + 8 * at.ABANDON, 1)
        wait(header, threads)


@part
def read_value(header: int, address: int, size: int) -> int:  # pragma: no cover
    """An integer or bool of the simulated memory."""
    place = table(header, at.MEMORY) + address
    if size == 1:
        return load_u8(place)
    if size == 2:
        return load_u8(place) | load_u8(place + 1) << 8
    if size == 4:
        return load_i32(place)
    return load_i64(place)


@part
def store_clock(header: int, state: int, since: int, address: int) -> None:  # pragma: no cover
    """The cycles since a time, as two unsigned ints, the low one first."""
    cycles = load_i64(state + 8 * at.LOCAL_CLOCK) - since
    place = table(header, at.MEMORY) + address
    store_u32(place, cycles & 0xFFFFFFFF)
    store_u32(place + 4, (cycles >> 32) & 0xFFFFFFFF)


@part
def stop_requested(header: int, thread: int, state: int) -> bool:  # pragma: no cover
    """Thread 0 counts the rows of the program that it passes, for progress bars, and looks whether Python wants it back."""
    if thread != 0:
        return False
    shared = table(header, at.SHARED)
    store_i64(shared + 8 * at.ROWS_DONE, load_i64(shared + 8 * at.ROWS_DONE) + 1)
    if atomic_load(shared + 8 * at.STOP) == 0:
        return False
    store_i64(state + 8 * at.PENDING, 1)
    return True


@entry
def drive(header: int, thread: int, threads: int) -> int:  # pragma: no cover
    """Walk the control program from this thread's state until it ends or Python is needed."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    counters = table(header, at.COUNTERS) + 8 * thread * table(header, at.COUNTER_COUNT)
    stack = table(header, at.STACK) + 8 * thread * table(header, at.STACK_DEPTH)
    clocks = table(header, at.CLOCKS) + 8 * thread * table(header, at.CLOCK_COUNT)
    memory = table(header, at.MEMORY)
    pc = load_i64(state + 8 * at.PC)
    while True:
        row = table(header, at.PROGRAM) + 40 * pc
        code = load_i64_invariant(row)
        a, b, c = load_i64_invariant(row + 8), load_i64_invariant(row + 16), load_i64_invariant(row + 24)
        pc += 1
        if stop_requested(header, thread, state):
            give_up(header, thread, threads)
            return STOPPED
        if code == opcodes.COMPUTE:
            if not do_compute(header, thread, threads, row):
                give_up(header, thread, threads)
                return FAULT
        elif code == opcodes.MOVE:
            if not do_move(header, thread, threads, a, b, memory, memory):
                return STOPPED
        elif code == opcodes.REPEAT:
            store_i64(counters + 8 * a, b)
            if b == 0:
                pc = c
        elif code == opcodes.REPEAT_END:
            left = load_i64(counters + 8 * a) - 1
            store_i64(counters + 8 * a, left)
            if left > 0:
                pc = b
        elif code == opcodes.JUMP:
            pc = a
        elif code == opcodes.BRANCH or code == opcodes.UNLESS_EQUAL:
            if thread == 0:
                store_i64(state + 8 * at.SHARED_VALUE, read_value(header, a, b))
            if not meet(header, thread, threads):
                return STOPPED
            value = load_i64(state + 8 * at.SHARED_VALUE)
            if code == opcodes.BRANCH:
                if value == 0:
                    pc = c
            elif value != c:
                pc = load_i64_invariant(row + 32)
        elif code == opcodes.CALL:
            depth = load_i64(state + 8 * at.DEPTH)
            store_i64(stack + 8 * depth, pc)
            store_i64(state + 8 * at.DEPTH, depth + 1)
            pc = a
        elif code == opcodes.RETURN:
            depth = load_i64(state + 8 * at.DEPTH) - 1
            store_i64(state + 8 * at.DEPTH, depth)
            pc = load_i64(stack + 8 * depth)
        elif code == opcodes.STREAM_IN or code == opcodes.STREAM_OUT:
            if not do_stream(header, thread, threads, row, code == opcodes.STREAM_IN):
                return STOPPED
        elif code == opcodes.SERVICE or code == opcodes.CALLBACK:
            if code == opcodes.SERVICE or get(header, at.STREAMS, at.STREAM_WORDS * a + at.STREAM_CALLBACK) != 0:
                if not meet(header, thread, threads):
                    return STOPPED
                store_i64(state + 8 * at.PC, pc)
                return SERVICE
        elif code == opcodes.STAMP:
            store_i64(clocks + 8 * a, load_i64(state + 8 * at.LOCAL_CLOCK))
        elif code == opcodes.ELAPSED or code == opcodes.CLOCK:
            store_i64(state + 8 * at.PENDING, 1)
            if thread == 0:
                store_clock(header, state, load_i64(clocks + 8 * a) if code == opcodes.ELAPSED else 0, b)
        elif code == opcodes.FLOATING_POINT:
            store_i64(table(header, at.CONTEXTS) + 8 * (at.CONTEXT_WORDS * thread + 13), a)
        elif code == opcodes.SYNC:
            store_i64(state + 8 * at.LOCAL_CLOCK, load_i64(state + 8 * at.LOCAL_CLOCK) + get(header, at.STEP_CYCLES, a))
            if thread == 0:
                count_step(header, a)
        else:
            if not meet(header, thread, threads):
                return STOPPED
            store_i64(state + 8 * at.PC, pc - 1)
            return FINISHED
