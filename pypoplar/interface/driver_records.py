"""Records of the driver's small tables, and what it returns."""

from __future__ import annotations

from enum import auto
from typing import Any

from pypoplar.interface.layout import CACHE_LINE_WORDS, Code, Layout, whole_lines, words


class Ending(Code):
    """Why the driver returned."""

    FINISHED = auto()
    SERVICE = auto()  # Python is needed
    FAULT = auto()
    STOPPED = auto()
    UNKNOWN = auto()  # the program has a row that is no operation


class Shared(Layout):
    """Words that all threads see, each in a cache line of its own.

    From PARTIAL on, each thread leaves its slowest tile (`FAULTED` after a fault) for the others, in turn in one of two sets of
    words: nobody overwrites what another thread is still reading.
    """

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return CACHE_LINE_WORDS * Layout._generate_next_value_(name, start, count, last_values)

    ARRIVED = auto()
    GENERATION = auto()
    STOP = auto()
    ABANDON = auto()  # the number of the meeting (GENERATION after it) at which thread 0 gives the program up
    CLOCK = auto()
    TOGETHER = auto()
    VALUE = auto()
    PARTIAL = auto()


class State(Layout):
    """Words of a thread."""

    PC = auto()
    DEPTH = auto()
    LOCAL_CLOCK = auto()  # of the tile that has come farthest
    TOGETHER = auto()  # the clock when all tiles were last together
    PENDING = auto()  # thread 0 may have done something that the others have not waited for
    PARITY = auto()
    SHARED_VALUE = auto()
    SEQUENCE = auto()  # compute sets that the program has come to


class FaultRecord(Layout):
    """The fault of the lowest vertex that a thread has seen in a step."""

    SET = auto()  # 0 for none
    VERTEX = auto()
    CODE = auto()  # `FaultCode`
    LOCATION = auto()
    VALUE = auto()
    BOUND = auto()
    CODELET = auto()
    STEP = auto()


class Stream(Layout):
    """A stream of the host."""

    ADDRESS = auto()
    BYTES = auto()
    CHUNK = auto()  # bytes
    POSITION = auto()
    CALLBACK = auto()  # 1: Python fills or empties its buffer, chunk by chunk


class EventLogHead(Layout):
    """The beginning of the log of executed steps."""

    COUNT = auto()  # of executed steps
    LIMIT = auto()  # of events for which there is room


class Event(Layout):
    """The execution of a step."""

    STEP = auto()
    BEGIN = auto()  # cycles of the machine
    CYCLES = auto()
    IPU = auto()  # of several, each of which has an event


class BranchLogHead(Layout):
    """The beginning of the log of values by which a replica has decided what runs next, since it has met others."""

    COUNT = auto()  # of entries
    LIMIT = auto()  # of entries for which there is room
    FULL = auto()  # 1: what came later is not logged


class Branch(Layout):
    """A row that decided by a value, several times in a row by the same."""

    ROW = auto()
    VALUE = auto()
    TIMES = auto()


class Phase(Layout):
    """Columns of a compute set's moves, in the order in which they are done; `NOTHING` for none."""

    EXCHANGE_BEFORE = auto()
    FAN_OUT = auto()  # of what has been fetched
    GATHER = auto()  # behind it the vertices run
    SCATTER = auto()
    EXCHANGE_AFTER = auto()


STATE_WORDS = whole_lines(State)
FAULT_WORDS = whole_lines(FaultRecord)
STREAM_WORDS = words(Stream)
EVENT_HEAD_WORDS = words(EventLogHead)
EVENT_WORDS = words(Event)
BRANCH_HEAD_WORDS = words(BranchLogHead)
BRANCH_WORDS = words(Branch)
PHASES = words(Phase)

# In the place of the slowest tile's cycles.
FAULTED = -1
GIVEN_UP = -2


def shared_words(threads: int) -> int:
    """Words of `Shared`, with those of all threads behind it."""
    return Shared.PARTIAL + 2 * threads + CACHE_LINE_WORDS


class VertexCount(Layout):
    """Words of a row that counts the vertices of a codelet in a compute set, where executions of blocks are counted."""

    SLOTS = auto()  # worker slots of their executions, by estimates where there are any
    BLOCKS = auto()  # executions of block 0; those of the other blocks follow


class Slowest(Layout):
    """The vertex of a compute set that took the most cycles in one execution; of several the one at the lowest position."""

    CYCLES = auto()  # 0 where none took any
    POSITION = auto()  # on the list of all vertices


SLOWEST_WORDS = words(Slowest)
