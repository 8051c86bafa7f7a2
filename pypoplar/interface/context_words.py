"""How native code of codelets is called, and the context that tells it what is around its vertices.

A call runs a group of vertices of one codelet on one tile: ``f(memory, rows, row_table, count, slots, results, context)``, see
`CallArgument`. All arguments are 64-bit integers, and nothing is returned.
"""

from __future__ import annotations

from enum import auto

from pypoplar.interface.layout import WORD_BYTES, Layout, whole_lines, words


class CallArgument(Layout):
    """Arguments of a call."""

    MEMORY = auto()  # address of the simulated memory's byte 0
    ROWS = auto()  # address of the group's first edge row
    ROW_TABLE = auto()  # address of the row table
    COUNT = auto()  # vertices
    SLOTS = auto()  # address of int64 [count] (of a MultiVertex [count * workers]) that gets each vertex's worker slots
    RESULTS = auto()  # 0, or address of uint8 [count] that gets what compute returned, 1 where it returns nothing
    CONTEXT = auto()  # address of the words below


class Context(Layout):
    """Words of a context."""

    FAULT = auto()  # `FaultCode` of the group's first fault; 0 before the call, and without a fault
    FAULT_VERTEX = auto()  # its row in the group
    FAULT_LOCATION = auto()
    FAULT_VALUE = auto()
    FAULT_BOUND = auto()
    CYCLE_LIMIT = auto()  # worker slots; a loop that runs longer is a fault. It is read anew at each look: it may become `STOPPED`
    SUPERVISOR_LIMIT = auto()  # the same of a SupervisorVertex, whose slots are cycles
    CLOCK = auto()  # the machine's cycles when the vertices start
    RANDOM = auto()  # address of the states of the tile's random generators, see `RANDOM_WORDS`
    DEBUG = auto()  # address of the debug buffer, 0 for none
    DEBUG_WORDS = auto()  # its size
    DEBUG_USED = auto()  # goes on counting when the buffer is full
    FIRST_WORKER = auto()  # of a MultiVertex
    WORKERS = auto()  # of a tile, also of a MultiVertex
    FLOATING_POINT = auto()  # `FloatingPoint` bits; they hold from run to run
    WORK = auto()  # where work is counted: address of rows of `Work`, one for each entry of the slots
    BLOCKS = auto()  # where blocks are counted: address of the words to which their executions are added, by number
    TILE_SLOTS = auto()  # the driver's own: slots of all vertices of the tile that was scheduled last
    TILE_WAITED = auto()  # likewise: those of them in which workers of a MultiVertex waited for its slowest one


class Work(Layout):
    """What a vertex has done, where it is counted."""

    FLOPS = auto()
    BYTES = auto()  # of the elements that it loaded and stored
    COMPILED = auto()  # slots of its code, also where an estimate is used instead
    BOUND = auto()  # those that hand-written code could reach, at most as many; 0 where nobody has said


# Values of CYCLE_LIMIT that are no limits.
UNLIMITED = 2**63 - 1
STOPPED = -1  # whoever started the run wants it to end: loops stop at their next look, with a fault that nobody is told

CALL_ARGUMENTS = words(CallArgument)
CONTEXT_WORDS = whole_lines(Context)
WORK_WORDS = words(Work)
WORK_SUM_WORDS = whole_lines(Work)
RECORDED_ENDS = 2  # of a step's executions, of which as many are recorded each: the first and the last

RANDOM_WORDS = 2  # of 64 bits: the state of a worker's xoroshiro128aox
RANDOM_BYTES = WORD_BYTES * RANDOM_WORDS
