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

from pypoplar.engine.native.barrier import wait
from pypoplar.engine.native.header_access import call_unit, get, put, table
from pypoplar.engine.native.memory_operations import (
    atomic_load,
    atomic_store,
    load_i32,
    load_i64,
    load_i64_invariant,
    load_u8,
    store_i64,
    store_u8,
    store_u32,
)
from pypoplar.engine.native.unit import entry, part
from pypoplar.interface import header_slots as at
from pypoplar.interface import opcodes

# What `drive` returns.
FINISHED, SERVICE, FAULT, STOPPED = at.FINISHED, at.SERVICE, at.FAULT, at.STOPPED


@part
def meet(header: int, thread: int, threads: int) -> bool:  # pragma: no cover
    """A barrier at which thread 0's clock and its SHARED_VALUE become everybody's; False if the program is given up."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    shared = table(header, at.SHARED)
    if threads > 1:
        if thread == 0:
            store_i64(shared + 8 * at.CLOCK, load_i64(state + 8 * at.LOCAL_CLOCK))
            store_i64(shared + 8 * at.VALUE, load_i64(state + 8 * at.SHARED_VALUE))
        if not wait(header, threads):
            return False
        store_i64(state + 8 * at.LOCAL_CLOCK, load_i64(shared + 8 * at.CLOCK))
        store_i64(state + 8 * at.SHARED_VALUE, load_i64(shared + 8 * at.VALUE))
        wait(header, threads)  # thread 0 may not write the next value before everybody has read this one
    store_i64(state + 8 * at.PENDING, 0)
    return True


@part
def pass_step(header: int, thread: int, step: int, computed: int) -> None:  # pragma: no cover
    """A step has been executed, whose vertices took `computed` cycles: the clock goes on, thread 0 counts and logs it."""
    clock = table(header, at.STATE) + 8 * (at.STATE_WORDS * thread + at.LOCAL_CLOCK)
    begin = load_i64(clock)
    cycles = get(header, at.STEP_CYCLES, step) + computed
    store_i64(clock, begin + cycles)
    if thread != 0:
        return
    put(header, at.EXECUTIONS, step, get(header, at.EXECUTIONS, step) + 1)
    events = table(header, at.EVENTS)
    if events != 0:
        number = load_i64(events + 8 * at.EVENT_COUNT)
        store_i64(events + 8 * at.EVENT_COUNT, number + 1)
        if number < load_i64(events + 8 * at.EVENT_LIMIT):
            event = events + 8 * (at.EVENT_HEAD + at.EVENT_WORDS * number)
            store_i64(event + 8 * at.EVENT_STEP, step)
            store_i64(event + 8 * at.EVENT_BEGIN, begin)
            store_i64(event + 8 * at.EVENT_CYCLES, cycles)


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
    if not wait(header, threads):
        return -2
    slowest = 0
    for other in range(threads):
        if load_i64(mine + 8 * other) < 0:
            return -1
        slowest = max(slowest, load_i64(mine + 8 * other))
    return slowest


@part
def run_compute(header: int, thread: int, threads: int, compute: int, step: int, lead: int) -> bool:  # pragma: no cover
    """Run a compute set; the slowest tile's cycles are left in SHARED_VALUE. False after a fault or when given up.

    Its vertices start `lead` cycles from now.
    """
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    result = get(header, at.COMPUTE_RESULT, compute)
    agreed = 1
    if threads == 1 or get(header, at.COMPUTE_SERIAL, compute) != 0:
        store_i64(state + 8 * at.PENDING, 1)
        if thread != 0:
            return True
        # A serial step's shares are all thread 0's: its splits give the other threads nothing.
        slowest = call_unit(table(header, at.SUPERSTEP_UNIT), header, thread, threads, compute, step, lead)
        store_i64(state + 8 * at.SHARED_VALUE, slowest)
        agreed = get(header, at.AGREED, 0)
        if load_i64(table(header, at.FAULTS)) != 0:
            return False
    else:
        if load_i64(state + 8 * at.PENDING) != 0 and not meet(header, thread, threads):
            return False
        slowest = call_unit(table(header, at.SUPERSTEP_UNIT), header, thread, threads, compute, step, lead)
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
    before, after = load_i64(row + 16), load_i64(row + 32)
    lead = get(header, at.STEP_CYCLES, step) + (get(header, at.STEP_CYCLES, before) if before >= 0 else 0)
    if not run_compute(header, thread, threads, load_i64(row + 8), step, lead):
        return False
    slowest = load_i64(table(header, at.STATE) + 8 * (at.STATE_WORDS * thread + at.SHARED_VALUE))
    if before >= 0:
        pass_step(header, thread, before, 0)
    pass_step(header, thread, step, slowest)
    if after >= 0:
        pass_step(header, thread, after, 0)
    if thread == 0:
        put(header, at.COMPUTE_CYCLES, step, get(header, at.COMPUTE_CYCLES, step) + slowest)
    return True


@part
def do_move(header: int, thread: int, threads: int, number: int, step: int, source: int, target: int) -> bool:  # pragma: no cover
    """One move list as a step of its own. False if the program is given up."""
    state = table(header, at.STATE) + 8 * at.STATE_WORDS * thread
    if threads == 1 or get(header, at.MOVE_SERIAL, number) != 0:
        store_i64(state + 8 * at.PENDING, 1)
        if thread != 0:
            return True
        call_unit(table(header, at.MOVE_UNIT), header, number, thread, threads, source, target)
    else:
        if load_i64(state + 8 * at.PENDING) != 0 and not meet(header, thread, threads):
            return False
        call_unit(table(header, at.MOVE_UNIT), header, number, thread, threads, source, target)
        if not wait(header, threads):
            return False
    pass_step(header, thread, step, 0)
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
        atomic_store(shared + 8 * at.ABANDON, atomic_load(shared + 8 * at.GENERATION) + 1)
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
    """Thread 0 looks whether Python wants it back."""
    if thread != 0 or atomic_load(table(header, at.SHARED) + 8 * at.STOP) == 0:
        return False
    store_i64(state + 8 * at.PENDING, 1)
    return True


@entry("int64(int64, int64, int64)")
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
            pass_step(header, thread, a, 0)
        else:
            if not meet(header, thread, threads):
                return STOPPED
            store_i64(state + 8 * at.PC, pc - 1)
            return FINISHED
