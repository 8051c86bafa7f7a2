"""What the driver notes of a tile's vertices: faults, slots, debug prints; and the schedule of a group of plain vertices."""

from __future__ import annotations

from pypoplar.engine.native.header_access import get, put, table
from pypoplar.engine.native.memory_operations import load_i64, store_i64
from pypoplar.engine.native.unit import part
from pypoplar.interface import header_slots as at


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
def fold_workers(prices: int, slots: int, count: int, workers: int) -> None:  # pragma: no cover
    """A MultiVertex gives a price for each worker: the largest is the vertex's. `slots` may begin where `prices` do."""
    for i in range(count):
        most = load_i64(prices + 8 * i * workers)
        for w in range(1, workers):
            most = max(most, load_i64(prices + 8 * (i * workers + w)))
        store_i64(slots + 8 * i, most)


@part
def use_estimates(estimates: int, slots: int, count: int) -> None:  # pragma: no cover
    """Put the cycles that were given for vertices in the place of those of their code."""
    for i in range(count):
        given = load_i64(estimates + 8 * i)
        if given >= 0:
            store_i64(slots + 8 * i, given)


@part
def account_flops(header: int, thread: int, group: int, step: int) -> None:  # pragma: no cover
    """Add up the work of a group that has just run. Flops that were given for a vertex take the place of those of its code."""
    size = table(header, at.SLOTS_WORDS)
    counted = table(header, at.FLOPS) + 16 * thread * size
    workers = table(header, at.WORKERS) if get(header, at.GROUP_KIND, group) == 1 else 1
    given = table(header, at.GIVEN_FLOPS)
    position = get(header, at.GROUP_POSITION, group)
    flops, moved = 0, 0
    for i in range(get(header, at.GROUP_COUNT, group)):
        of_vertex = 0
        for w in range(i * workers, (i + 1) * workers):
            of_vertex += load_i64(counted + 16 * w)
            moved += load_i64(counted + 16 * w + 8)
        if given != 0 and load_i64(given + 8 * (position + i)) >= 0:
            of_vertex = load_i64(given + 8 * (position + i))
        flops += of_vertex
    of_step = 2 * (thread * table(header, at.STEP_COUNT) + step)
    of_codelet = 2 * (thread * table(header, at.CODELET_COUNT) + get(header, at.GROUP_CODELET, group))
    put(header, at.STEP_FLOPS, of_step, get(header, at.STEP_FLOPS, of_step) + flops)
    put(header, at.STEP_FLOPS, of_step + 1, get(header, at.STEP_FLOPS, of_step + 1) + moved)
    put(header, at.CODELET_FLOPS, of_codelet, get(header, at.CODELET_FLOPS, of_codelet) + flops)
    put(header, at.CODELET_FLOPS, of_codelet + 1, get(header, at.CODELET_FLOPS, of_codelet + 1) + moved)


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
def mark_debug_records(header: int, thread: int, group: int) -> None:  # pragma: no cover
    """Tell whoever reads the debug buffer which group has just printed, and when.

    The first group that printed more than the buffer holds has its mark behind the buffer.
    """
    context = table(header, at.CONTEXTS) + 8 * at.CONTEXT_WORDS * thread
    used = load_i64(context + 8 * at.CONTEXT_DEBUG_USED)
    capacity = load_i64(context + 72)
    place = load_i64(context + 64) + 8 * (used if used + at.MARK_WORDS <= capacity else capacity)
    if load_i64(place) == at.NO_MARK:
        store_i64(place, at.GROUP_MARK)
        store_i64(place + 8, group)
        store_i64(place + 16, load_i64(table(header, at.STATE) + 8 * (at.STATE_WORDS * thread + at.SEQUENCE)))
    store_i64(context + 8 * at.CONTEXT_DEBUG_USED, used + at.MARK_WORDS)


@part
def price_group(header: int, thread: int, group: int, slots: int, count: int) -> int:  # pragma: no cover
    """Cycles of a tile whose one group has just run; the slots of its vertices are left in CONTEXT_TILE_SLOTS."""
    workers = table(header, at.WORKERS)
    together = get(header, at.GROUP_KIND, group) == 1
    if together:
        fold_workers(slots, slots, count, workers)
    if table(header, at.ESTIMATE) != 0:
        use_estimates(table(header, at.ESTIMATE) + 8 * get(header, at.GROUP_POSITION, group), slots, count)
    if not together and count > 1:
        return finish_simple(header, thread, slots, count)
    total = load_i64(slots)
    for i in range(1, count):
        total += load_i64(slots + 8 * i)
    cycles = total * workers  # MultiVertices run one after the other, each on all workers
    put(header, at.CONTEXTS, at.CONTEXT_WORDS * thread + at.CONTEXT_TILE_SLOTS, cycles if together else total)
    return cycles
