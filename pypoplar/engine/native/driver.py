"""The native driver: one function of machine code, which LLVM makes of what stands here, that walks the whole control program.

Every host thread runs `drive` on the same program. Each walks all of it, does its own share of every large step (tiles are
divided among the threads when the engine is made) and meets the others at a barrier when the step is done. Small steps are
done by thread 0 alone, and the others do not wait for it until they must (PENDING). Because no two vertices of a compute set
touch the same element with a write, a thread can run exchange, compute and write-back of its tiles without waiting in between:
one barrier a superstep.

`drive` returns to Python when the program ends, when a service is due (prints, callbacks), after a fault, and on request (Ctrl-C).

All tables are int64 arrays, known here by the addresses in a header (`pypoplar.engine.engine_state` makes it): the units that the
driver consists of (`unit.py`) know 64-bit words only, and nothing is unpacked at a call.
"""

from __future__ import annotations

from pypoplar.engine.native.barrier import wait
from pypoplar.engine.native.header_access import (
    add,
    call_unit,
    get,
    invariant_word,
    put_word,
    record,
    table,
    word,
    word_address,
)
from pypoplar.engine.native.ipu_clocks import (
    begin_superstep,
    end_superstep,
    log_event,
    meet_at_row,
    pass_moving_step,
    settle_computed,
    show_clocks,
    take_clocks,
)
from pypoplar.engine.native.memory_operations import atomic_load, atomic_store, load_i32, load_i64, load_u8, store_u8, store_u32
from pypoplar.engine.native.unit import entry, part, seldom
from pypoplar.interface.context_words import CONTEXT_WORDS, Context
from pypoplar.interface.driver_records import (
    BRANCH_HEAD_WORDS,
    BRANCH_WORDS,
    FAULT_WORDS,
    FAULTED,
    GIVEN_UP,
    STATE_WORDS,
    STREAM_WORDS,
    Branch,
    BranchLogHead,
    Ending,
    FaultRecord,
    Shared,
    State,
    Stream,
)
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    ROW_WORDS,
    BranchOperand,
    CallbackOperand,
    CallOperand,
    ClockOperand,
    ComputeOperand,
    ElapsedOperand,
    FloatingPointOperand,
    JumpOperand,
    MoveOperand,
    Opcode,
    ProgramRow,
    RepeatEndOperand,
    RepeatOperand,
    StampOperand,
    StreamOperand,
    SyncOperand,
    UnlessEqualOperand,
)


@part
def meet(header: int, thread: int, threads: int) -> bool:
    """A barrier at which thread 0's clocks and its SHARED_VALUE become everybody's; False if the program is given up."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    shared = table(header, Slot.SHARED)
    if threads > 1:
        if thread == 0:
            put_word(shared, Shared.CLOCK, word(state, State.LOCAL_CLOCK))
            put_word(shared, Shared.TOGETHER, word(state, State.TOGETHER))
            put_word(shared, Shared.VALUE, word(state, State.SHARED_VALUE))
            if table(header, Slot.IPU_CLOCK) != 0:
                show_clocks(header)
        if not wait(header, threads):
            return False
        put_word(state, State.LOCAL_CLOCK, word(shared, Shared.CLOCK))
        put_word(state, State.TOGETHER, word(shared, Shared.TOGETHER))
        put_word(state, State.SHARED_VALUE, word(shared, Shared.VALUE))
        if table(header, Slot.IPU_CLOCK) != 0:
            take_clocks(header, thread)
        wait(header, threads)  # thread 0 may not write the next value before everybody has read this one
    put_word(state, State.PENDING, 0)
    return True


@part
def gather_tiles(header: int, thread: int) -> None:
    """All tiles wait for the one that has come farthest."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    put_word(state, State.TOGETHER, word(state, State.LOCAL_CLOCK))


@part
def gather_at_row(header: int, thread: int, row: int) -> None:
    """All tiles wait for each other at a row; of several IPUs those that it concerns."""
    if table(header, Slot.IPU_CLOCK) != 0:
        meet_at_row(header, thread, row)
    else:
        gather_tiles(header, thread)


@part
def pass_step(header: int, thread: int, step: int, computed: int) -> None:
    """A step has been executed, whose vertices added `computed` cycles: the clock goes on, thread 0 counts and logs it."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    begin = word(state, State.LOCAL_CLOCK)
    cycles = get(header, Slot.STEP_CYCLES, step) + computed
    put_word(state, State.LOCAL_CLOCK, begin + cycles)
    if thread != 0:
        return
    add(header, Slot.EXECUTIONS, step, 1)
    events = table(header, Slot.EVENTS)
    if events != 0:
        log_event(events, step, begin, cycles, 0)


@part
def pass_move(header: int, thread: int, step: int) -> None:
    """A step that moves something, or a sync, has been executed, behind which tiles are together."""
    if table(header, Slot.IPU_CLOCK) != 0:
        pass_moving_step(header, thread, step)
    else:
        pass_step(header, thread, step, 0)
        gather_tiles(header, thread)


@part
def slowest_of_all(header: int, thread: int, threads: int) -> int:
    """After the barrier of a parallel compute set: what the slowest tile of all threads adds, FAULTED or GIVEN_UP."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    shared = table(header, Slot.SHARED)
    slowest_tiles = word_address(shared, Shared.PARTIAL + (word(state, State.PARITY) & 1) * threads)
    put_word(state, State.PARITY, word(state, State.PARITY) + 1)
    faulted = get(header, Slot.FAULTS, FAULT_WORDS * thread + FaultRecord.SET) != 0
    put_word(slowest_tiles, thread, FAULTED if faulted else word(state, State.SHARED_VALUE))
    if not wait(header, threads):
        return GIVEN_UP
    slowest = 0
    for other in range(threads):
        if word(slowest_tiles, other) == FAULTED:
            return FAULTED
        slowest = max(slowest, word(slowest_tiles, other))
    return slowest


@part
def run_compute(header: int, thread: int, threads: int, compute: int, step: int, lead: int) -> bool:
    """Run a compute set; the cycles that its slowest tile adds are left in SHARED_VALUE. False after a fault or when given up.

    `lead` cycles pass before the tiles compute.
    """
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    result = get(header, Slot.RESULT_TILE, compute)
    agreed = 1
    if threads == 1 or get(header, Slot.COMPUTE_SERIAL, compute) != 0:
        put_word(state, State.PENDING, 1)
        if thread != 0:
            return True
        # A serial step's shares are all thread 0's: its splits give the other threads nothing.
        slowest = call_unit(table(header, Slot.SUPERSTEP_UNIT), header, thread, threads, compute, step, lead)
        put_word(state, State.SHARED_VALUE, slowest)
        if table(header, Slot.IPU_CLOCK) != 0:
            settle_computed(header, thread, threads, compute, 0, 0)
        agreed = get(header, Slot.AGREED, 0)
        if get(header, Slot.FAULTS, FaultRecord.SET) != 0:
            return False
    else:
        if word(state, State.PENDING) != 0 and not meet(header, thread, threads):
            return False
        slowest = call_unit(table(header, Slot.SUPERSTEP_UNIT), header, thread, threads, compute, step, lead)
        if slowest < 0:
            return False
        put_word(state, State.SHARED_VALUE, slowest)
        slowest = slowest_of_all(header, thread, threads)
        if slowest < 0:
            return False
        put_word(state, State.SHARED_VALUE, slowest)
        if table(header, Slot.IPU_CLOCK) != 0:
            settle_computed(header, thread, threads, compute, 1, 1)
        if result != NOTHING:
            put_word(state, State.PENDING, 1)
            for other in range(threads):
                agreed &= get(header, Slot.AGREED, other)
    if result != NOTHING and thread == 0:
        store_u8(get(header, Slot.TILE_MEMORY, result) + get(header, Slot.RESULT_OFFSET, compute), agreed)
    return True


@part
def do_compute(header: int, thread: int, threads: int, row: int, number: int) -> bool:
    """One superstep with its account; its row is the program's row `number`. False if the program ends here.

    Where it does not wait, and no step is before it, each tile goes on when it is done; `LOCAL_CLOCK` is that of the farthest.
    """
    step, compute = invariant_word(row, ComputeOperand.STEP), invariant_word(row, ComputeOperand.COMPUTE)
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    put_word(state, State.SEQUENCE, word(state, State.SEQUENCE) + 1)
    before, after = invariant_word(row, ComputeOperand.BEFORE), invariant_word(row, ComputeOperand.AFTER)
    lead = get(header, Slot.STEP_CYCLES, step) + (get(header, Slot.STEP_CYCLES, before) if before != NOTHING else 0)
    several = table(header, Slot.IPU_CLOCK) != 0
    if several:
        begin_superstep(header, thread, before, step)
    elif before != NOTHING or get(header, Slot.STEP_WAITS, step) != 0:
        put_word(state, State.TOGETHER, word(state, State.LOCAL_CLOCK) + lead)
    if not run_compute(header, thread, threads, compute, step, lead):
        return False
    slowest = word(state, State.SHARED_VALUE)
    if thread == 0:
        add(header, Slot.COMPUTE_CYCLES, step, slowest)
    if several:
        end_superstep(header, thread, before, step, after)
        meet_at_row(header, thread, number)
        return True
    if before != NOTHING:
        pass_step(header, thread, before, 0)
    pass_step(header, thread, step, slowest)
    if after != NOTHING:
        pass_step(header, thread, after, 0)
    if after != NOTHING or get(header, Slot.RESULT_TILE, compute) != NOTHING:
        gather_tiles(header, thread)
    return True


@part
def do_move(header: int, thread: int, threads: int, number: int, step: int, host: int) -> bool:
    """One move as a step of its own, with the chunk at address `host` for a stream's. False if the program is given up."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    if threads == 1 or get(header, Slot.MOVE_SERIAL, number) != 0:
        put_word(state, State.PENDING, 1)
        if thread != 0:
            return True
        call_unit(table(header, Slot.MOVE_UNIT), header, number, thread, host)
    else:
        if word(state, State.PENDING) != 0 and not meet(header, thread, threads):
            return False
        call_unit(table(header, Slot.MOVE_UNIT), header, number, thread, host)
        if not wait(header, threads):
            return False
    pass_move(header, thread, step)
    return True


@part
def do_stream(header: int, thread: int, threads: int, row: int) -> bool:
    """A chunk of a stream; its host memory is the connected array, or a buffer of the engine's."""
    stream = record(header, Slot.STREAMS, STREAM_WORDS, invariant_word(row, StreamOperand.STREAM))
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    number = invariant_word(row, StreamOperand.MOVE)
    # The chunk before may be thread 0's serial work: its end has to be known.
    alone = threads == 1 or get(header, Slot.MOVE_SERIAL, number) != 0 or word(state, State.PENDING) == 0
    if not alone and not meet(header, thread, threads):
        return False
    position = word(stream, Stream.POSITION)
    host = word(stream, Stream.ADDRESS) + position
    if not do_move(header, thread, threads, number, invariant_word(row, StreamOperand.STEP), host):
        return False
    if thread == 0:
        position += word(stream, Stream.CHUNK)
        put_word(stream, Stream.POSITION, position % word(stream, Stream.BYTES))
    put_word(state, State.PENDING, 1)
    return True


@part
def give_up(header: int, thread: int, threads: int) -> None:
    """Leave the program. Where thread 0 alone knows why, it tells the others at the barrier at which they wait for it."""
    shared = table(header, Slot.SHARED)
    abandon = word_address(shared, Shared.ABANDON)
    pending = get(header, Slot.STATE, STATE_WORDS * thread + State.PENDING)
    if threads > 1 and thread == 0 and pending != 0 and atomic_load(abandon) == 0:
        atomic_store(abandon, atomic_load(word_address(shared, Shared.GENERATION)) + 1)
        wait(header, threads)


@part
def read_value(header: int, tile: int, offset: int, size: int) -> int:
    """An integer or bool of a tile's memory."""
    place = get(header, Slot.TILE_MEMORY, tile) + offset
    if size == 1:
        return load_u8(place)
    if size == 2:
        return load_u8(place) | load_u8(place + 1) << 8
    if size == 4:
        return load_i32(place)
    return load_i64(place)


@seldom
def log_branch(log: int, row: int, value: int) -> None:
    """Note the value by which a row decides what runs next, in the log of a replica."""
    count = word(log, BranchLogHead.COUNT)
    last = word_address(log, BRANCH_HEAD_WORDS + BRANCH_WORDS * (count - 1))
    if word(log, BranchLogHead.FULL) != 0:
        return
    if count > 0 and word(last, Branch.ROW) == row and word(last, Branch.VALUE) == value:
        put_word(last, Branch.TIMES, word(last, Branch.TIMES) + 1)
    elif count == word(log, BranchLogHead.LIMIT):
        put_word(log, BranchLogHead.FULL, 1)
    else:
        put_word(log, BranchLogHead.COUNT, count + 1)
        entry = word_address(last, BRANCH_WORDS)
        put_word(entry, Branch.ROW, row)
        put_word(entry, Branch.VALUE, value)
        put_word(entry, Branch.TIMES, 1)


@part
def share_value(header: int, thread: int, threads: int, row: int, tile: int, offset: int, size: int) -> bool:
    """Thread 0 reads a value of a tile's memory, by which a row of the program decides: it becomes everybody's SHARED_VALUE.

    False if the program is given up.
    """
    if thread == 0:
        value = read_value(header, tile, offset, size)
        put_word(record(header, Slot.STATE, STATE_WORDS, thread), State.SHARED_VALUE, value)
        if table(header, Slot.BRANCHES) != 0:
            log_branch(table(header, Slot.BRANCHES), row, value)
    gather_at_row(header, thread, row)
    return bool(meet(header, thread, threads))


@part
def has_callback(header: int, stream: int) -> bool:
    """Whether Python fills or empties a stream's buffer."""
    return bool(word(record(header, Slot.STREAMS, STREAM_WORDS, stream), Stream.CALLBACK) != 0)


@part
def store_clock(header: int, thread: int, row: int, since: int, tile: int, offset: int) -> None:
    """Thread 0 stores the cycles since a time, as two unsigned ints, the low one first."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    put_word(state, State.PENDING, 1)
    gather_at_row(header, thread, row)
    if thread == 0:
        cycles = word(state, State.LOCAL_CLOCK) - since
        place = get(header, Slot.TILE_MEMORY, tile) + offset
        store_u32(place, cycles & 0xFFFFFFFF)
        store_u32(place + 4, (cycles >> 32) & 0xFFFFFFFF)


@part
def stop_requested(header: int, thread: int, state: int) -> bool:
    """Thread 0 looks whether Python wants it back."""
    if thread != 0 or atomic_load(word_address(table(header, Slot.SHARED), Shared.STOP)) == 0:
        return False
    put_word(state, State.PENDING, 1)
    return True


@entry
def drive(header: int, thread: int, threads: int) -> int:  # noqa: C901, PLR0912, PLR0915 - an arm for each opcode
    """Walk the control program from this thread's state until it ends or Python is needed."""
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    counters = record(header, Slot.COUNTERS, table(header, Slot.COUNTER_COUNT), thread)
    stack = record(header, Slot.STACK, table(header, Slot.STACK_DEPTH), thread)
    clocks = record(header, Slot.CLOCKS, table(header, Slot.CLOCK_COUNT), thread)
    pc = word(state, State.PC)
    while True:
        row = record(header, Slot.PROGRAM, ROW_WORDS, pc)
        code = invariant_word(row, ProgramRow.OPERATION)
        pc += 1
        if stop_requested(header, thread, state):
            give_up(header, thread, threads)
            return Ending.STOPPED
        if code == Opcode.COMPUTE:
            if not do_compute(header, thread, threads, row, pc - 1):
                give_up(header, thread, threads)
                return Ending.FAULT
        elif code == Opcode.MOVE:
            if not do_move(
                header, thread, threads, invariant_word(row, MoveOperand.MOVE), invariant_word(row, MoveOperand.STEP), 0
            ):
                return Ending.STOPPED
        elif code == Opcode.REPEAT:
            times = invariant_word(row, RepeatOperand.TIMES)
            put_word(counters, invariant_word(row, RepeatOperand.COUNTER), times)
            if times == 0:
                pc = invariant_word(row, RepeatOperand.AFTER)
        elif code == Opcode.REPEAT_END:
            counter = invariant_word(row, RepeatEndOperand.COUNTER)
            left = word(counters, counter) - 1
            put_word(counters, counter, left)
            if left > 0:
                pc = invariant_word(row, RepeatEndOperand.BODY)
        elif code == Opcode.JUMP:
            pc = invariant_word(row, JumpOperand.ROW)
        elif code == Opcode.BRANCH:
            tile, offset = invariant_word(row, BranchOperand.TILE), invariant_word(row, BranchOperand.OFFSET)
            if not share_value(header, thread, threads, pc - 1, tile, offset, invariant_word(row, BranchOperand.BYTES)):
                return Ending.STOPPED
            if word(state, State.SHARED_VALUE) == 0:
                pc = invariant_word(row, BranchOperand.ROW)
        elif code == Opcode.UNLESS_EQUAL:
            tile, offset = invariant_word(row, UnlessEqualOperand.TILE), invariant_word(row, UnlessEqualOperand.OFFSET)
            if not share_value(header, thread, threads, pc - 1, tile, offset, invariant_word(row, UnlessEqualOperand.BYTES)):
                return Ending.STOPPED
            if word(state, State.SHARED_VALUE) != invariant_word(row, UnlessEqualOperand.VALUE):
                pc = invariant_word(row, UnlessEqualOperand.ROW)
        elif code == Opcode.CALL:
            depth = word(state, State.DEPTH)
            put_word(stack, depth, pc)
            put_word(state, State.DEPTH, depth + 1)
            pc = invariant_word(row, CallOperand.ROW)
        elif code == Opcode.RETURN:
            depth = word(state, State.DEPTH) - 1
            put_word(state, State.DEPTH, depth)
            pc = word(stack, depth)
        elif code == Opcode.STREAM_IN or code == Opcode.STREAM_OUT:
            if not do_stream(header, thread, threads, row):
                return Ending.STOPPED
        elif code == Opcode.SERVICE or code == Opcode.CALLBACK:
            if code == Opcode.SERVICE or has_callback(header, invariant_word(row, CallbackOperand.STREAM)):
                if table(header, Slot.IPU_CLOCK) != 0:
                    meet_at_row(header, thread, pc - 1)
                if not meet(header, thread, threads):
                    return Ending.STOPPED
                put_word(state, State.PC, pc)
                return Ending.SERVICE
        elif code == Opcode.STAMP:
            put_word(clocks, invariant_word(row, StampOperand.CLOCK), word(state, State.LOCAL_CLOCK))
            gather_at_row(header, thread, pc - 1)
        elif code == Opcode.ELAPSED:
            since = word(clocks, invariant_word(row, ElapsedOperand.CLOCK))
            tile, offset = invariant_word(row, ElapsedOperand.TILE), invariant_word(row, ElapsedOperand.OFFSET)
            store_clock(header, thread, pc - 1, since, tile, offset)
        elif code == Opcode.CLOCK:
            tile, offset = invariant_word(row, ClockOperand.TILE), invariant_word(row, ClockOperand.OFFSET)
            store_clock(header, thread, pc - 1, 0, tile, offset)
        elif code == Opcode.FLOATING_POINT:
            context = record(header, Slot.CONTEXTS, CONTEXT_WORDS, thread)
            kept = word(context, Context.FLOATING_POINT) & invariant_word(row, FloatingPointOperand.KEPT)
            put_word(context, Context.FLOATING_POINT, kept | invariant_word(row, FloatingPointOperand.SET))
        elif code == Opcode.SYNC:
            pass_move(header, thread, invariant_word(row, SyncOperand.STEP))
        else:
            if table(header, Slot.IPU_CLOCK) != 0 and code == Opcode.END:
                meet_at_row(header, thread, pc - 1)
            if not meet(header, thread, threads):
                return Ending.STOPPED
            put_word(state, State.PC, pc - 1)
            return Ending.FINISHED if code == Opcode.END else Ending.UNKNOWN
