"""The driver's tiles with vertices of several kinds: groups of codelets, MultiVertex, supervisors, estimates, results, flops."""

from __future__ import annotations

from pypoplar.engine.native.header_access import get, put, put_word, record, table, word, word_address
from pypoplar.engine.native.memory_operations import call_codelet, load_u8, store_u8
from pypoplar.engine.native.tile_account import (
    account_slots,
    account_work,
    begin_blocks,
    estimates_from,
    finish_simple,
    fold_workers,
    latest,
    next_free,
    note_outcome,
    note_vertices,
    note_work,
    use_estimates,
)
from pypoplar.engine.native.unit import entry, part
from pypoplar.interface.context_words import CONTEXT_WORDS, RANDOM_BYTES, Context
from pypoplar.interface.fault_codes import NO_FAULT
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind


@part
def schedule(header: int, thread: int, first: int, last: int) -> int:
    """Cycles of a tile whose groups are `first` to `last`, in list order, each vertex to the next free worker.

    A worker issues one slot every `workers` cycles. A MultiVertex waits for all workers and takes them all; a SupervisorVertex
    issues a slot a cycle while the workers wait.
    """
    workers = table(header, Slot.WORKERS)
    slots = record(header, Slot.SLOTS, table(header, Slot.SLOTS_WORDS), thread)
    base = get(header, Slot.GROUP_POSITION, first)
    count = get(header, Slot.GROUP_POSITION, last - 1) + get(header, Slot.GROUP_COUNT, last - 1) - base
    if last - first == 1 and get(header, Slot.GROUP_KIND, first) == VertexKind.VERTEX:
        cycles = finish_simple(header, thread, slots, count)
        account_slots(
            header,
            thread,
            get(header, Slot.GROUP_CODELET, first),
            get(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.TILE_SLOTS),
        )
        return cycles
    free = record(header, Slot.FREE, workers, thread)
    for w in range(workers):
        put_word(free, w, 0)
    whole = 0
    for i in range(count):
        position = get(header, Slot.LIST_ORDER, base + i)
        group = first
        while position >= get(header, Slot.GROUP_POSITION, group) - base + get(header, Slot.GROUP_COUNT, group):
            group += 1
        kind = get(header, Slot.GROUP_KIND, group)
        cost = word(slots, position)
        taken = cost * workers if kind == VertexKind.MULTI else cost  # a MultiVertex takes all workers
        whole += taken
        if kind == VertexKind.VERTEX:
            worker = next_free(free, workers)
            put_word(free, worker, word(free, worker) + cost * workers)
        else:
            done = latest(free, workers) + taken
            for w in range(workers):
                put_word(free, w, done)
        if last - first > 1 or kind != VertexKind.VERTEX:
            account_slots(header, thread, get(header, Slot.GROUP_CODELET, group), taken)
    put(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.TILE_SLOTS, whole)
    return latest(free, workers)


@part
def run_group(header: int, thread: int, active: int, group: int, base: int, compute: int, step: int) -> None:
    """Call the codelet for a group; afterwards the tile's slots hold one price a vertex, at its position on the tile."""
    count = get(header, Slot.GROUP_COUNT, group)
    kind = get(header, Slot.GROUP_KIND, group)
    workers = table(header, Slot.WORKERS)
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    position = get(header, Slot.GROUP_POSITION, group)
    size = table(header, Slot.SLOTS_WORDS)
    slots = record(header, Slot.SLOTS, size, thread)
    results = 0
    if get(header, Slot.RESULT_TILE, compute) != NOTHING:
        results = table(header, Slot.RESULTS) + thread * size
        for i in range(count):
            store_u8(results + i, 1)
    put_word(context, Context.FAULT, NO_FAULT)
    printed = word(context, Context.DEBUG_USED)
    begin_blocks(header, thread, group, table(header, Slot.BLOCKS))
    # A MultiVertex gives a price for each worker: those go behind the tile's own prices and are folded to the largest.
    prices = word_address(slots, size - count * workers if kind == VertexKind.MULTI else position - base)
    call_codelet(
        get(header, Slot.CODELETS, get(header, Slot.GROUP_CODELET, group)),
        get(header, Slot.TILE_MEMORY, get(header, Slot.ACTIVE_TILE, active)),
        word_address(table(header, Slot.WORDS), get(header, Slot.GROUP_ROW, group)),
        table(header, Slot.ROW_TABLE),
        count,
        prices,
        results,
        context,
    )
    note_outcome(header, thread, group, step, printed)
    if table(header, Slot.FLOPS) != 0:
        note_work(header, thread, group, count)
        account_work(header, thread, get(header, Slot.GROUP_CODELET, group), step)
    estimates = estimates_from(header, position)
    if kind == VertexKind.MULTI:
        waited = fold_workers(prices, word_address(slots, position - base), count, workers, estimates)
        put_word(context, Context.TILE_WAITED, word(context, Context.TILE_WAITED) + waited)
    if results != 0:
        agreed = get(header, Slot.AGREED, thread)
        for i in range(count):
            agreed &= load_u8(results + i)
        put(header, Slot.AGREED, thread, agreed)
    if estimates != 0:
        use_estimates(estimates, word_address(slots, position - base), count)
    if table(header, Slot.BLOCKS) != 0:
        note_vertices(header, thread, compute, group, word_address(slots, position - base), count)


@entry
def general_tile(header: int, thread: int, active: int, compute: int, step: int, unused: int) -> int:
    """The vertices of an active tile; returns its cycles."""
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    put_word(context, Context.TILE_WAITED, 0)
    first = get(header, Slot.FIRST_GROUP, active)
    last = get(header, Slot.FIRST_GROUP, active + 1)
    base = get(header, Slot.GROUP_POSITION, first)
    random = RANDOM_BYTES * table(header, Slot.WORKERS) * get(header, Slot.ACTIVE_TILE, active)
    put_word(context, Context.RANDOM, table(header, Slot.RANDOM) + random)
    for group in range(first, last):
        run_group(header, thread, active, group, base, compute, step)
    return schedule(header, thread, first, last)
