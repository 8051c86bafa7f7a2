"""The clocks of several IPUs in the driver: each goes on by itself where nothing comes from another.

A thread has its own copies, as of the other clocks. Where there is one IPU, the driver asks for none of this.
"""

from __future__ import annotations

from pypoplar.engine.native.header_access import add, get, put, put_word, record, table, word, word_address
from pypoplar.engine.native.unit import part, seldom
from pypoplar.interface.driver_records import EVENT_HEAD_WORDS, EVENT_WORDS, STATE_WORDS, Event, EventLogHead, State
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING


@part
def log_event(events: int, step: int, begin: int, cycles: int, ipu: int) -> None:
    """Note the execution of a step, where there is room."""
    number = word(events, EventLogHead.COUNT)
    put_word(events, EventLogHead.COUNT, number + 1)
    if number < word(events, EventLogHead.LIMIT):
        event = word_address(events, EVENT_HEAD_WORDS + EVENT_WORDS * number)
        put_word(event, Event.STEP, step)
        put_word(event, Event.BEGIN, begin)
        put_word(event, Event.CYCLES, cycles)
        put_word(event, Event.IPU, ipu)


@seldom
def meet_at_row(header: int, thread: int, row: int) -> None:
    """The IPUs that wait for each other at a row go on when the last of them has come, and so do their tiles."""
    own = table(header, Slot.IPUS) * thread
    first, end = get(header, Slot.ROW_FIRST, row), get(header, Slot.ROW_FIRST, row + 1)
    latest = 0
    for place in range(first, end):
        latest = max(latest, get(header, Slot.IPU_CLOCK, own + get(header, Slot.ROW_IPU, place)))
    for place in range(first, end):
        ipu = get(header, Slot.ROW_IPU, place)
        if thread == 0:
            add(header, Slot.IPU_WAITED, ipu, latest - get(header, Slot.IPU_CLOCK, ipu))
        put(header, Slot.IPU_CLOCK, own + ipu, latest)
        put(header, Slot.IPU_TOGETHER, own + ipu, latest)


@part
def meet_in_step(header: int, thread: int, step: int) -> None:
    """The same of the IPUs that wait for each other before a step."""
    own = table(header, Slot.IPUS) * thread
    first, end = get(header, Slot.SHARE_FIRST, step), get(header, Slot.SHARE_FIRST, step + 1)
    latest = 0
    for share in range(first, end):
        if get(header, Slot.SHARE_WAITS, share) != 0:
            latest = max(latest, get(header, Slot.IPU_CLOCK, own + get(header, Slot.SHARE_IPU, share)))
    for share in range(first, end):
        if get(header, Slot.SHARE_WAITS, share) != 0:
            ipu = get(header, Slot.SHARE_IPU, share)
            if thread == 0:
                add(header, Slot.SHARE_WAITED, share, latest - get(header, Slot.IPU_CLOCK, ipu))
            put(header, Slot.IPU_CLOCK, own + ipu, latest)


@part
def pass_shares(header: int, thread: int, step: int, computes: int) -> None:
    """A step has been executed: the clocks of its IPUs go on. Whether it `computes`, what IPU_COMPUTED says passes too."""
    own = table(header, Slot.IPUS) * thread
    state = record(header, Slot.STATE, STATE_WORDS, thread)
    for share in range(get(header, Slot.SHARE_FIRST, step), get(header, Slot.SHARE_FIRST, step + 1)):
        ipu = get(header, Slot.SHARE_IPU, share)
        begin = get(header, Slot.IPU_CLOCK, own + ipu)
        computed = computes * get(header, Slot.IPU_COMPUTED, own + ipu)
        cycles = get(header, Slot.SHARE_CYCLES, share) + computed
        put(header, Slot.IPU_CLOCK, own + ipu, begin + cycles)
        put_word(state, State.LOCAL_CLOCK, max(word(state, State.LOCAL_CLOCK), begin + cycles))
        if thread == 0:
            add(header, Slot.SHARE_COMPUTED, share, computed)
            if table(header, Slot.EVENTS) != 0:
                log_event(table(header, Slot.EVENTS), step, begin, cycles, ipu)
    if thread == 0:
        add(header, Slot.EXECUTIONS, step, 1)


@part
def gather_shares(header: int, thread: int, step: int) -> None:
    """All tiles of the IPUs of a step wait for the one of their IPU that has come farthest."""
    own = table(header, Slot.IPUS) * thread
    for share in range(get(header, Slot.SHARE_FIRST, step), get(header, Slot.SHARE_FIRST, step + 1)):
        place = own + get(header, Slot.SHARE_IPU, share)
        put(header, Slot.IPU_TOGETHER, place, get(header, Slot.IPU_CLOCK, place))


@seldom
def pass_moving_step(header: int, thread: int, step: int) -> None:
    """A step that moves something, or a sync, has been executed."""
    meet_in_step(header, thread, step)
    pass_shares(header, thread, step, 0)
    gather_shares(header, thread, step)


@seldom
def begin_superstep(header: int, thread: int, before: int, step: int) -> None:
    """Find when the vertices of a compute set begin on each IPU: after the exchange `before` it, and its sync."""
    own = table(header, Slot.IPUS) * thread
    if before != NOTHING:
        meet_in_step(header, thread, before)
    first, end = get(header, Slot.SHARE_FIRST, step), get(header, Slot.SHARE_FIRST, step + 1)
    for share in range(first, end):
        place = own + get(header, Slot.SHARE_IPU, share)
        put(header, Slot.IPU_START, place, get(header, Slot.IPU_CLOCK, place) + get(header, Slot.SHARE_CYCLES, share))
        put(header, Slot.IPU_COMPUTED, place, 0)
    if before != NOTHING:
        for share in range(get(header, Slot.SHARE_FIRST, before), get(header, Slot.SHARE_FIRST, before + 1)):
            place = own + get(header, Slot.SHARE_IPU, share)
            add(header, Slot.IPU_START, place, get(header, Slot.SHARE_CYCLES, share))
    if before != NOTHING or get(header, Slot.STEP_WAITS, step) != 0:
        for share in range(first, end):
            place = own + get(header, Slot.SHARE_IPU, share)
            put(header, Slot.IPU_TOGETHER, place, get(header, Slot.IPU_START, place))


@seldom
def end_superstep(header: int, thread: int, before: int, step: int, after: int) -> None:
    """A compute set has been executed, with the exchanges before and after it."""
    if before != NOTHING:
        pass_shares(header, thread, before, 0)
    pass_shares(header, thread, step, 1)
    if after != NOTHING:
        meet_in_step(header, thread, after)
        pass_shares(header, thread, after, 0)
        gather_shares(header, thread, after)


@part
def slowest_place(header: int, thread: int, threads: int, ipus: int, turns: int) -> int:
    """Where in IPU_SLOWEST a thread has its words, one for each of the IPUs, or had them so many turns ago."""
    place = thread
    if get(header, Slot.STATE, STATE_WORDS * thread + State.PARITY) + turns & 1 != 0:
        place += threads
    return place * ipus


@seldom
def forget_slowest(header: int, thread: int, threads: int) -> None:
    """No tile of this thread has computed yet."""
    ipus = table(header, Slot.IPUS)
    own = slowest_place(header, thread, threads, ipus, 0)
    for ipu in range(ipus):
        put(header, Slot.IPU_SLOWEST, own + ipu, 0)


@seldom
def settle_computed(header: int, thread: int, threads: int, compute: int, turns: int, parallel: int) -> None:
    """What the slowest tile of each IPU took: of all threads where they worked in `parallel`, else of this one."""
    ipus = table(header, Slot.IPUS)
    place = slowest_place(header, thread, threads, ipus, turns)
    if parallel != 0:
        place = place - ipus * thread
    for number in range(get(header, Slot.PART_FIRST, compute), get(header, Slot.PART_FIRST, compute + 1)):
        ipu = get(header, Slot.PART_IPU, number)
        slowest = get(header, Slot.IPU_SLOWEST, place + ipu)
        if parallel != 0:
            for other in range(1, threads):
                slowest = max(slowest, get(header, Slot.IPU_SLOWEST, place + ipus * other + ipu))
        put(header, Slot.IPU_COMPUTED, ipus * thread + ipu, slowest)


@seldom
def show_clocks(header: int) -> None:
    """Thread 0 leaves its clocks for the others."""
    ipus = table(header, Slot.IPUS)
    for ipu in range(ipus):
        put(header, Slot.IPU_MEETING, ipu, get(header, Slot.IPU_CLOCK, ipu))
        put(header, Slot.IPU_MEETING, ipus + ipu, get(header, Slot.IPU_TOGETHER, ipu))


@seldom
def take_clocks(header: int, thread: int) -> None:
    """A thread takes the clocks that thread 0 has left."""
    ipus = table(header, Slot.IPUS)
    for ipu in range(ipus):
        put(header, Slot.IPU_CLOCK, ipus * thread + ipu, get(header, Slot.IPU_MEETING, ipu))
        put(header, Slot.IPU_TOGETHER, ipus * thread + ipu, get(header, Slot.IPU_MEETING, ipus + ipu))
