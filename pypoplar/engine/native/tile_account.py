"""What the driver notes of a tile's vertices: faults, slots, debug prints; and the schedule of a group of plain vertices."""

from __future__ import annotations

from pypoplar.engine.native.header_access import add, get, put, put_word, record, table, word, word_address
from pypoplar.engine.native.unit import inlined, part, seldom
from pypoplar.interface.context_words import CONTEXT_WORDS, RECORDED_ENDS, WORK_SUM_WORDS, WORK_WORDS, Context, Work
from pypoplar.interface.debug_records import GROUP_MARK, MARK_WORDS, NO_MARK, Mark
from pypoplar.interface.driver_records import (
    FAULT_WORDS,
    SLOWEST_WORDS,
    STATE_WORDS,
    FaultRecord,
    Slowest,
    State,
    VertexCount,
)
from pypoplar.interface.fault_codes import NO_FAULT
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind


@seldom
def note_fault(header: int, thread: int, group: int, step: int) -> None:
    """Keep the fault of the lowest vertex."""
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    fault = record(header, Slot.FAULTS, FAULT_WORDS, thread)
    vertex = get(header, Slot.VERTEX, get(header, Slot.GROUP_POSITION, group) + word(context, Context.FAULT_VERTEX))
    if word(fault, FaultRecord.SET) == 0 or vertex < word(fault, FaultRecord.VERTEX):
        put_word(fault, FaultRecord.SET, 1)
        put_word(fault, FaultRecord.VERTEX, vertex)
        put_word(fault, FaultRecord.CODE, word(context, Context.FAULT))
        put_word(fault, FaultRecord.LOCATION, word(context, Context.FAULT_LOCATION))
        put_word(fault, FaultRecord.VALUE, word(context, Context.FAULT_VALUE))
        put_word(fault, FaultRecord.BOUND, word(context, Context.FAULT_BOUND))
        put_word(fault, FaultRecord.CODELET, get(header, Slot.GROUP_CODELET, group))
        put_word(fault, FaultRecord.STEP, step)


@part
def record_row(header: int, thread: int, compute: int, step: int) -> int:
    """Where cycles of active tiles are recorded in this execution of a step, counted from the first of all; 0 for nowhere.

    Each thread counts by itself: thread 0 may be behind the others with what it counts for all.
    """
    records = table(header, Slot.RECORDS)
    if records == 0:
        return 0
    place, kept = thread * table(header, Slot.STEP_COUNT) + step, table(header, Slot.RECORDED)
    execution = get(header, Slot.RECORD_COUNT, place)
    put(header, Slot.RECORD_COUNT, place, execution + 1)
    row = execution if execution < kept else kept + (execution - kept) % kept
    first = get(header, Slot.STEP_ACCOUNT, step)
    tiles = get(header, Slot.STEP_ACCOUNT, step + 1) - first
    return word_address(records, RECORDED_ENDS * kept * first + row * tiles - get(header, Slot.FIRST_ACTIVE, compute))


@part
def account_slots(header: int, thread: int, codelet: int, slots: int) -> None:
    add(header, Slot.CODELET_SLOTS, thread * table(header, Slot.CODELET_COUNT) + codelet, slots)


@part
def fold_workers(prices: int, slots: int, count: int, workers: int, estimates: int) -> int:
    """A MultiVertex gives a price for each worker: the largest is the vertex's. `slots` may begin where `prices` do.

    Returns the slots that the other workers wait for it, of vertices without `estimates` (0 for none), of which nobody knows.
    """
    waited = 0
    for i in range(count):
        most = word(prices, i * workers)
        whole = most
        for w in range(1, workers):
            price = word(prices, i * workers + w)
            most = max(most, price)
            whole += price
        put_word(slots, i, most)
        if estimates == 0 or word(estimates, i) == NOTHING:
            waited += most * workers - whole
    return waited


@part
def estimates_from(header: int, position: int) -> int:
    """Where the cycles stand that were given for vertices, from a position on; 0 where there are none."""
    estimates = table(header, Slot.ESTIMATE)
    return word_address(estimates, position) if estimates != 0 else 0


@part
def use_estimates(estimates: int, slots: int, count: int) -> None:
    """Put the cycles that were given for vertices in the place of those of their code."""
    for i in range(count):
        given = word(estimates, i)
        if given != NOTHING:
            put_word(slots, i, given)


@part
def is_one_call(header: int, group: int, count: int) -> bool:
    """Whether a group is one vertex on one worker."""
    return count == 1 and get(header, Slot.GROUP_KIND, group) != VertexKind.MULTI


@part
def note_work(header: int, thread: int, group: int, count: int) -> None:
    """Add the work of a group that has just run to the thread's sums, of groups of one codelet."""
    if table(header, Slot.GIVEN_FLOPS) != 0 or not is_one_call(header, group, count):
        note_work_of_many(header, thread, group, count)
        return
    counted = record(header, Slot.FLOPS, WORK_WORDS * table(header, Slot.SLOTS_WORDS), thread)
    add_work(
        header,
        thread,
        word(counted, Work.FLOPS),
        word(counted, Work.BYTES),
        word(counted, Work.COMPILED),
        word(counted, Work.BOUND),
    )


@part
def add_work(header: int, thread: int, flops: int, moved: int, compiled: int, bound: int) -> None:
    """Add to the thread's sums."""
    sums = record(header, Slot.WORK_SUMS, WORK_SUM_WORDS, thread)
    put_word(sums, Work.FLOPS, word(sums, Work.FLOPS) + flops)
    put_word(sums, Work.BYTES, word(sums, Work.BYTES) + moved)
    put_word(sums, Work.COMPILED, word(sums, Work.COMPILED) + compiled)
    put_word(sums, Work.BOUND, word(sums, Work.BOUND) + bound)


@seldom
def note_work_of_many(header: int, thread: int, group: int, count: int) -> None:
    """As `note_work`, of any number of vertices.

    Flops that were given for a vertex take the place of what its code did. A MultiVertex takes all workers for as long as its
    busiest one: compiled and bound are those of the busiest worker each.
    """
    counted = record(header, Slot.FLOPS, WORK_WORDS * table(header, Slot.SLOTS_WORDS), thread)
    given = table(header, Slot.GIVEN_FLOPS)
    workers = table(header, Slot.WORKERS) if get(header, Slot.GROUP_KIND, group) == VertexKind.MULTI else 1
    position = get(header, Slot.GROUP_POSITION, group)
    flops, moved, compiled, bound = 0, 0, 0, 0
    for i in range(count):
        of_vertex, longest, longest_bound = 0, 0, 0
        for w in range(i * workers, (i + 1) * workers):
            of_worker = word_address(counted, WORK_WORDS * w)
            of_vertex += word(of_worker, Work.FLOPS)
            moved += word(of_worker, Work.BYTES)
            longest = max(longest, word(of_worker, Work.COMPILED))
            longest_bound = max(longest_bound, word(of_worker, Work.BOUND))
        if given != 0 and word(given, position + i) != NOTHING:
            of_vertex = word(given, position + i)
        flops += of_vertex
        compiled += longest * workers
        bound += longest_bound * workers
    add_work(header, thread, flops, moved, compiled, bound)


@seldom
def account_work(header: int, thread: int, codelet: int, step: int) -> None:
    """Add the thread's sums to the work of a codelet in a step; they begin anew."""
    sums = record(header, Slot.WORK_SUMS, WORK_SUM_WORDS, thread)
    of_step = WORK_WORDS * (thread * table(header, Slot.STEP_COUNT) + step)
    of_codelet = WORK_WORDS * (thread * table(header, Slot.CODELET_COUNT) + codelet)
    for column in range(WORK_WORDS):
        add(header, Slot.STEP_FLOPS, of_step + column, word(sums, column))
        add(header, Slot.CODELET_FLOPS, of_codelet + column, word(sums, column))
        put_word(sums, column, 0)


@part
def latest(free: int, workers: int) -> int:
    """When the last worker is done."""
    best = word(free, 0)
    for w in range(1, workers):
        best = max(best, word(free, w))
    return best


@part
def next_free(free: int, workers: int) -> int:
    """The worker that is done first."""
    best = 0
    for w in range(1, workers):
        if word(free, w) < word(free, best):
            best = w
    return best


@part
def finish_simple(header: int, thread: int, slots: int, count: int) -> int:
    """Cycles of a tile's one group of plain vertices; the slots of all are left in the context's TILE_SLOTS."""
    workers = table(header, Slot.WORKERS)
    first = word(slots, 0)
    most = first
    total = first
    for i in range(1, count):
        price = word(slots, i)
        most = max(most, price)
        total += price
    put(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.TILE_SLOTS, total)
    if count <= workers:
        return most * workers
    if total == first * count and most == first:  # all equal
        return (count + workers - 1) // workers * most * workers
    free = record(header, Slot.FREE, workers, thread)
    for w in range(workers):
        put_word(free, w, 0)
    for i in range(count):
        worker = next_free(free, workers)
        put_word(free, worker, word(free, worker) + word(slots, i) * workers)
    return latest(free, workers)


@seldom
def mark_debug_records(header: int, thread: int, group: int) -> None:
    """Tell whoever reads the debug buffer which group has just printed, and when.

    The first group that printed more than the buffer holds has its mark behind the buffer.
    """
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    used = word(context, Context.DEBUG_USED)
    capacity = word(context, Context.DEBUG_WORDS)
    mark = word_address(word(context, Context.DEBUG), used if used + MARK_WORDS <= capacity else capacity)
    if word(mark, Mark.MARK) == NO_MARK:
        put_word(mark, Mark.MARK, GROUP_MARK)
        put_word(mark, Mark.GROUP, group)
        put_word(mark, Mark.SEQUENCE, get(header, Slot.STATE, STATE_WORDS * thread + State.SEQUENCE))
    put_word(context, Context.DEBUG_USED, used + MARK_WORDS)


@part
def note_outcome(header: int, thread: int, group: int, step: int, printed: int) -> None:
    """After a group's call: its fault, and that it printed if the debug buffer is fuller than the `printed` words of before."""
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    if word(context, Context.FAULT) != NO_FAULT:
        note_fault(header, thread, group, step)
    if word(context, Context.DEBUG_USED) != printed:
        mark_debug_records(header, thread, group)


@seldom
def price_group(header: int, thread: int, group: int, slots: int, count: int) -> int:
    """Cycles of a tile whose one group has just run.

    The slots of its vertices are left in the context's TILE_SLOTS, those in which workers wait in TILE_WAITED.
    """
    workers = table(header, Slot.WORKERS)
    together = get(header, Slot.GROUP_KIND, group) == VertexKind.MULTI
    estimates = estimates_from(header, get(header, Slot.GROUP_POSITION, group))
    waited = fold_workers(slots, slots, count, workers, estimates) if together else 0
    put(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.TILE_WAITED, waited)
    if estimates != 0:
        use_estimates(estimates, slots, count)
    if not together and count > 1:
        return finish_simple(header, thread, slots, count)
    total = word(slots, 0)
    for i in range(1, count):
        total += word(slots, i)
    cycles = total * workers  # MultiVertices run one after the other, each on all workers
    put(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.TILE_SLOTS, cycles if together else total)
    return cycles


@inlined
def begin_blocks(header: int, thread: int, group: int, records: int) -> None:
    """Before a group's call, where executions of blocks are counted, `records`: tell where."""
    if records == 0:
        return
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    rows = record(header, Slot.BLOCKS, table(header, Slot.BLOCK_WORDS), thread)
    put_word(context, Context.BLOCKS, word_address(rows, get(header, Slot.GROUP_BLOCKS, group) + VertexCount.BLOCKS))


@inlined
def note_slowest(header: int, thread: int, compute: int, group: int, slots: int, count: int, cycles: int, records: int) -> None:
    """After the one group of a tile, where executions of blocks are counted: whether it has its compute set's slowest vertex.

    `slots` has what its vertices have spent, `cycles` are those of the tile.
    """
    if records == 0:
        return
    if count == 1:
        compare_slowest(header, thread, compute, get(header, Slot.GROUP_POSITION, group), cycles)
    else:
        compare_vertices(header, thread, compute, group, slots, count)


@part
def compare_slowest(header: int, thread: int, compute: int, position: int, cycles: int) -> None:
    """Keep the vertex with the most cycles, of several the one at the lowest position."""
    slowest = record(header, Slot.SLOWEST, SLOWEST_WORDS, thread * table(header, Slot.COMPUTE_COUNT) + compute)
    most = word(slowest, Slowest.CYCLES)
    if cycles > most or (cycles == most and position < word(slowest, Slowest.POSITION)):
        put_word(slowest, Slowest.CYCLES, cycles)
        put_word(slowest, Slowest.POSITION, position)


@seldom
def compare_vertices(header: int, thread: int, compute: int, group: int, slots: int, count: int) -> int:
    """Compare each vertex of a group; returns the slots of all, by estimates where there are any."""
    supervises = get(header, Slot.GROUP_KIND, group) == VertexKind.SUPERVISOR
    workers = 1 if supervises else table(header, Slot.WORKERS)
    position, estimates, total = get(header, Slot.GROUP_POSITION, group), table(header, Slot.ESTIMATE), 0
    for i in range(count):
        spent = word(slots, i)
        if estimates != 0 and word(estimates, position + i) != NOTHING:
            spent = word(estimates, position + i)
        total += spent
        compare_slowest(header, thread, compute, position + i, spent * workers)
    return total


@part
def note_vertices(header: int, thread: int, compute: int, group: int, slots: int, count: int) -> None:
    """After a group of a tile of several: what it has spent, and its slowest vertex."""
    total = compare_vertices(header, thread, compute, group, slots, count)
    if get(header, Slot.GROUP_KIND, group) == VertexKind.MULTI:  # it takes all workers
        total = total * table(header, Slot.WORKERS)
    charge_vertices(header, thread, group, total)


@part
def charge_vertices(header: int, thread: int, group: int, slots: int) -> None:
    """Add slots to the row of a group's codelet in its compute set. Without any, `group` may be none of it."""
    if slots != 0:
        rows = record(header, Slot.BLOCKS, table(header, Slot.BLOCK_WORDS), thread)
        place = get(header, Slot.GROUP_BLOCKS, group) + VertexCount.SLOTS
        put_word(rows, place, word(rows, place) + slots)


@inlined
def account_run(header: int, thread: int, codelet: int, step: int, group: int, slots: int, records: int, counts_work: int) -> None:
    """Add up slots of a codelet's groups in a step, of which `group` is one, and work where it is counted."""
    account_slots(header, thread, codelet, slots)
    if records != 0:
        charge_vertices(header, thread, group, slots)
    if counts_work != 0:
        account_work(header, thread, codelet, step)
