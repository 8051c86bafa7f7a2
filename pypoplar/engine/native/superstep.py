"""The driver's supersteps: exchange, compute and write-back of a thread's tiles, with the schedule of their workers."""

from __future__ import annotations

from pypoplar.engine.native.barrier import wait
from pypoplar.engine.native.header_access import add, call_unit, get, put, put_word, record, table, word, word_address
from pypoplar.engine.native.ipu_clocks import forget_slowest, slowest_place
from pypoplar.engine.native.memory_operations import call_codelet
from pypoplar.engine.native.tile_account import (
    account_run,
    account_work,
    begin_blocks,
    note_outcome,
    note_slowest,
    note_work,
    price_group,
    record_row,
)
from pypoplar.engine.native.unit import entry, inlined, part, seldom
from pypoplar.interface.context_words import CONTEXT_WORDS, RANDOM_BYTES, Context
from pypoplar.interface.driver_records import GIVEN_UP, PHASES, STATE_WORDS, Phase, State
from pypoplar.interface.fault_codes import NO_FAULT
from pypoplar.interface.header_slots import ONE_VERTEX, PRICED, Slot
from pypoplar.interface.layout import NOTHING


@inlined
def compute_tiles(  # noqa: PLR0913 - as of `run_tiles`
    header: int, thread: int, first: int, last: int, compute: int, step: int, times: int, records: int, counts_work: int
) -> int:
    """The active tiles `first` up to `last` of a compute set; returns the slowest one's cycles.

    Nearly all tiles have one group of vertices that are not supervisors. They take the short way here, on which everything that is
    the same for all tiles has been looked up beforehand. Their cycles are recorded in `times`, unless it is 0. Whether it `records`
    executions of blocks, and `counts_work`, are constants.
    """
    account = get(header, Slot.STEP_ACCOUNT, step) - get(header, Slot.FIRST_ACTIVE, compute)
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    slots = record(header, Slot.SLOTS, table(header, Slot.SLOTS_WORDS), thread)
    cycles_table, slots_table = (
        word_address(table(header, Slot.TILE_CYCLES), account),
        word_address(table(header, Slot.TILE_SLOTS), account),
    )
    simple, groups, tiles = table(header, Slot.ACTIVE_SIMPLE), table(header, Slot.FIRST_GROUP), table(header, Slot.ACTIVE_TILE)
    codelets, counts, rows = table(header, Slot.GROUP_CODELET), table(header, Slot.GROUP_COUNT), table(header, Slot.GROUP_ROW)
    memories, words, row_table = table(header, Slot.TILE_MEMORY), table(header, Slot.WORDS), table(header, Slot.ROW_TABLE)
    addresses, random = table(header, Slot.CODELETS), table(header, Slot.RANDOM)
    workers, fixed, fixed_slots = table(header, Slot.WORKERS), table(header, Slot.ACTIVE_CYCLES), table(header, Slot.ACTIVE_SLOTS)
    codelet, charged, whole, slowest = 0, 0, 0, 0
    for active in range(first, last):
        cycles, waited = 0, 0
        if word(simple, active) == 0:
            if counts_work != 0:
                account_work(header, thread, codelet, step)  # the general way counts that of other codelets
            cycles = call_unit(table(header, Slot.GENERAL_UNIT), header, thread, active, compute, step, 0)
            total, waited = word(context, Context.TILE_SLOTS), word(context, Context.TILE_WAITED)
        else:
            group = word(groups, active)
            count = word(counts, group)
            if word(codelets, group) != codelet:
                account_run(header, thread, codelet, step, charged, whole, records, counts_work)
                whole, codelet = 0, word(codelets, group)
            charged = group
            printed, tile = word(context, Context.DEBUG_USED), word(tiles, active)
            put_word(context, Context.RANDOM, random + RANDOM_BYTES * workers * tile)
            put_word(context, Context.FAULT, NO_FAULT)
            row = word_address(words, word(rows, group))
            begin_blocks(header, thread, group, records)
            call_codelet(word(addresses, codelet), word(memories, tile), row, row_table, count, slots, 0, context)
            note_outcome(header, thread, group, step, printed)
            if counts_work != 0:
                note_work(header, thread, group, count)
            cycles, total = word(fixed, active), word(fixed_slots, active)
            if cycles == ONE_VERTEX:
                total = word(slots, 0)
                cycles = total * workers
            elif cycles == PRICED:  # not known beforehand: by the code as it ran
                cycles = price_group(header, thread, group, slots, count)
                total, waited = word(context, Context.TILE_SLOTS), word(context, Context.TILE_WAITED)
            note_slowest(header, thread, compute, group, slots, count, cycles, records)
            whole += total
        put_word(cycles_table, active, word(cycles_table, active) + cycles)
        put_word(slots_table, active, word(slots_table, active) + total - waited)
        if times != 0:
            put_word(times, active, cycles)
        slowest = max(slowest, cycles)
    account_run(header, thread, codelet, step, charged, whole, records, counts_work)
    return slowest


@seldom
def clocked_tiles(  # noqa: PLR0913 - as of `run_tiles`
    header: int, thread: int, first: int, last: int, compute: int, step: int, times: int, start: int, together: int
) -> int:
    """As `compute_tiles`, where tiles have clocks of their own; returns how long after `start` the last one is done.

    Each begins when all were last `together`, or when it is done with what was before.
    """
    account = get(header, Slot.STEP_ACCOUNT, step) - get(header, Slot.FIRST_ACTIVE, compute)
    context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
    starting = table(header, Slot.COMPUTE_START)
    slowest = 0
    for active in range(first, last):
        tile = get(header, Slot.ACTIVE_TILE, active)
        begin = max(get(header, Slot.TILE_CLOCK, tile), together)
        put_word(context, Context.CLOCK, begin + starting)
        cycles = starting + call_unit(table(header, Slot.GENERAL_UNIT), header, thread, active, compute, step, 0)
        put(header, Slot.TILE_CLOCK, tile, begin + cycles)
        add(header, Slot.TILE_CYCLES, account + active, cycles)
        busy = word(context, Context.TILE_SLOTS) - word(context, Context.TILE_WAITED)
        add(header, Slot.TILE_SLOTS, account + active, busy)
        if times != 0:
            put_word(times, active, cycles)
        slowest = max(slowest, begin + cycles - start)
    return slowest


@part
def run_tiles(  # noqa: PLR0913 - what a share has been asked for, and when
    header: int, thread: int, first: int, last: int, compute: int, step: int, times: int, start: int, together: int
) -> int:
    """The vertices of some active tiles, which begin at `start`, or by themselves where tiles have clocks; how long they take."""
    if table(header, Slot.TILE_CLOCK) != 0:
        return clocked_tiles(header, thread, first, last, compute, step, times, start, together)
    if table(header, Slot.BLOCKS) == 0:
        return compute_tiles(header, thread, first, last, compute, step, times, 0, 0)
    if table(header, Slot.FLOPS) == 0:
        return compute_tiles(header, thread, first, last, compute, step, times, 1, 0)
    return compute_tiles(header, thread, first, last, compute, step, times, 1, 1)


@seldom
def tiles_by_ipu(header: int, thread: int, threads: int, first: int, last: int, compute: int, step: int, times: int) -> int:
    """The same of several IPUs, each of which begins at a time of its own."""
    ipus, slowest = table(header, Slot.IPUS), 0
    for number in range(get(header, Slot.PART_FIRST, compute), get(header, Slot.PART_FIRST, compute + 1)):
        begin, end = max(first, get(header, Slot.PART_BEGIN, number)), min(last, get(header, Slot.PART_END, number))
        if begin < end:
            ipu = get(header, Slot.PART_IPU, number)
            start, together = get(header, Slot.IPU_START, ipus * thread + ipu), get(header, Slot.IPU_TOGETHER, ipus * thread + ipu)
            put(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.CLOCK, start)
            cycles = run_tiles(header, thread, begin, end, compute, step, times, start, together)
            place = slowest_place(header, thread, threads, ipus, 0) + ipu
            put(header, Slot.IPU_SLOWEST, place, max(get(header, Slot.IPU_SLOWEST, place), cycles))
            slowest = max(slowest, cycles)
    return slowest


@part
def move_phase(header: int, share: int, compute: int, phase: int) -> None:
    """A share of one of the moves of a compute set."""
    moves = get(header, Slot.COMPUTE_MOVES, PHASES * compute + phase)
    call_unit(table(header, Slot.MOVE_UNIT), header, moves, share, 0)


@part
def superstep_share(header: int, thread: int, threads: int, share: int, compute: int, step: int, times: int, start: int) -> int:
    """Exchange, gather, compute, scatter and exchange of the tiles of a share; returns how long they compute, or GIVEN_UP."""
    move_phase(header, share, compute, Phase.EXCHANGE_BEFORE)
    if get(header, Slot.COMPUTE_MOVES, PHASES * compute + Phase.FAN_OUT) != NOTHING:
        parallel = threads > 1 and get(header, Slot.COMPUTE_SERIAL, compute) == 0
        if parallel and not wait(header, threads):  # what is fanned out has to have arrived at its first receivers
            return GIVEN_UP
        move_phase(header, share, compute, Phase.FAN_OUT)
    move_phase(header, share, compute, Phase.GATHER)
    split = get(header, Slot.COMPUTE_FIRST_SPLIT, compute) + share
    first, last = get(header, Slot.COMPUTE_SPLIT, split), get(header, Slot.COMPUTE_SPLIT, split + 1)
    if table(header, Slot.IPU_CLOCK) != 0:
        slowest = tiles_by_ipu(header, thread, threads, first, last, compute, step, times)
    else:
        together = get(header, Slot.STATE, STATE_WORDS * thread + State.TOGETHER)
        slowest = run_tiles(header, thread, first, last, compute, step, times, start, together)
    move_phase(header, share, compute, Phase.SCATTER)
    move_phase(header, share, compute, Phase.EXCHANGE_AFTER)
    return slowest


@entry
def superstep(header: int, thread: int, threads: int, compute: int, step: int, lead: int) -> int:
    """Exchange, gather, compute, scatter and exchange of this thread's tiles.

    `lead` is the cycles of sync and exchange before the tiles compute. Returns how long they compute, or GIVEN_UP.
    """
    start = get(header, Slot.STATE, STATE_WORDS * thread + State.LOCAL_CLOCK) + lead
    put(header, Slot.CONTEXTS, CONTEXT_WORDS * thread + Context.CLOCK, start)
    put(header, Slot.AGREED, thread, 1)
    batches, longest = get(header, Slot.COMPUTE_BATCHES, compute), 0
    if table(header, Slot.IPU_CLOCK) != 0:
        forget_slowest(header, thread, threads)
    times = record_row(header, thread, compute, step)
    for share in range(thread * batches, (thread + 1) * batches):
        cycles = superstep_share(header, thread, threads, share, compute, step, times, start)
        if cycles < 0:
            return GIVEN_UP
        longest = max(longest, cycles)
    return longest
