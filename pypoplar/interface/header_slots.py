"""The driver's header: which of its words holds what, and how the rows of the small tables are laid out.

The first group are addresses of int64 tables (RANDOM: uint32, RESULTS and MEMORY: bytes), the second plain numbers.
"""

from __future__ import annotations

# Tables of the executable (see pypoplar.executable.executable), and how its steps are divided among threads.
PROGRAM = 0
MOVE_SOURCE = 1
MOVE_TARGET = 2
MOVE_BYTES = 3
MOVE_COUNT = 4
MOVE_SOURCE_STEP = 5
MOVE_TARGET_STEP = 6
MOVE_SPLIT = 7  # [lists, threads + 1]; all records of a serial list are thread 0's
MOVE_SERIAL = 8  # [lists]
COMPUTE_MOVES = 9  # [computes, 5]
COMPUTE_SPLIT = 10  # [computes, threads + 1], active tiles
COMPUTE_SERIAL = 11  # [computes]
COMPUTE_RESULT = 12
ACTIVE_TILE = 13
FIRST_ACTIVE = 14
FIRST_GROUP = 15
GROUP_CODELET = 16
GROUP_ROW = 17
GROUP_COUNT = 18
GROUP_POSITION = 19
GROUP_KIND = 20
VERTEX = 21
LIST_ORDER = 22
ESTIMATE = 23  # 0 where no vertex has an estimate
WORDS = 24
ROW_TABLE = 25
STEP_CYCLES = 26  # [steps]: sync and exchange, known beforehand
STEP_ACCOUNT = 27  # [steps]: where the step's tiles begin in TILE_CYCLES, for compute steps
CODELETS = 28  # [codelets]: addresses of native code
# What changes while programs run.
MEMORY = 29  # the simulated memory
SHARED = 30  # words below
STATE = 31  # [threads, STATE_WORDS]
COUNTERS = 32  # [threads, COUNTER_COUNT]
STACK = 33  # [threads, STACK_DEPTH]
CLOCKS = 34  # [threads, CLOCK_COUNT]
STREAMS = 35  # [streams, STREAM_WORDS]
EXECUTIONS = 36  # [steps]
COMPUTE_CYCLES = 37  # [steps]: the slowest tile's cycles, summed over executions
TILE_CYCLES = 38  # cycles of every active tile of every compute step, summed over executions
CODELET_SLOTS = 39  # [threads, CODELET_COUNT]: worker slots of all vertices of a codelet
SLOTS = 40  # [threads, SLOTS_WORDS]
FREE = 41  # [threads, WORKERS]: when each worker is free
RESULTS = 42  # bytes [threads, SLOTS_WORDS]
AGREED = 43  # [threads]: the AND of compute's results
CONTEXTS = 44  # [threads, CONTEXT_WORDS]
FAULTS = 45  # [threads, FAULT_WORDS]
RANDOM = 46  # uint32 [tiles, 4]
MOVE_SOURCE_LIST = 54
MOVE_TARGET_LIST = 55
MOVE_PLACES = 56  # uint32
ACTIVE_SIMPLE = 57  # [active tiles]: one group, not of supervisors, no results: the short way
TILE_SLOTS = 47  # as TILE_CYCLES: worker slots of all vertices
# Numbers.
WORKERS = 48
SLOTS_WORDS = 49
CODELET_COUNT = 50
COUNTER_COUNT = 51
STACK_DEPTH = 52
CLOCK_COUNT = 53
MOVE_UNIT = 58  # addresses of the driver's units
SUPERSTEP_UNIT = 59
ACTIVE_CYCLES = 61  # [active tiles]: where all vertices have estimates, the tile's cycles; else as below
ACTIVE_SLOTS = 62  # [active tiles]: and the slots of its vertices
GENERAL_UNIT = 60  # 0 where all tiles take the short way
FLOPS = 63  # [threads, 2 * SLOTS_WORDS]: flops and bytes of a group's vertices; 0 where they are not counted
GIVEN_FLOPS = 64  # as ESTIMATE
STEP_FLOPS = 65  # [threads, STEP_COUNT, 2]: flops and bytes, summed over executions
CODELET_FLOPS = 66  # [threads, CODELET_COUNT, 2]: the same
STEP_COUNT = 67
EVENTS = 68  # a log of executed steps, or 0: EVENT_HEAD words, then EVENT_WORDS an event
HEADER_WORDS = 69

# Values of ACTIVE_CYCLES that are not cycles.
PRICED = -1  # by the code as it runs
ONE_VERTEX = -2  # the same, of one plain vertex

# What the driver returns.
FINISHED = 0
SERVICE = 1
FAULT = 2
STOPPED = 3

# Words of SHARED; what different threads write often is a cache line apart. From PARTIAL on, each thread leaves its slowest tile
# (-1: a fault) for the others, in turn in one of two sets of words: nobody overwrites what another thread is still reading.
ARRIVED = 0
GENERATION = 8
STOP = 16
ABANDON = 24  # the number of the meeting (GENERATION after it) at which thread 0 gives the program up
CLOCK = 32
VALUE = 33
PARTIAL = 40

# Words of a thread's STATE.
PC = 0
DEPTH = 1
LOCAL_CLOCK = 2
PENDING = 3  # thread 0 may have done something that the others have not waited for
PARITY = 4
SHARED_VALUE = 5
SEQUENCE = 6  # compute sets that the program has come to
STATE_WORDS = 8

# Words of a thread's FAULTS.
FAULT_SET = 0
FAULT_VERTEX = 1
FAULT_CODE = 2
FAULT_WHERE = 3
FAULT_VALUE = 4
FAULT_BOUND = 5
FAULT_CODELET = 6
FAULT_STEP = 7
FAULT_WORDS = 8

# Words of a stream's row.
STREAM_ADDRESS = 0
STREAM_BYTES = 1
STREAM_CHUNK = 2
STREAM_POSITION = 3
STREAM_CALLBACK = 4  # 1: Python fills or empties its buffer, chunk by chunk
STREAM_WORDS = 5

# Words of EVENTS: how many steps have been executed and how many events there is room for; then of each event.
EVENT_COUNT = 0
EVENT_LIMIT = 1
EVENT_HEAD = 2
EVENT_STEP = 0
EVENT_BEGIN = 1  # cycles of the machine
EVENT_CYCLES = 2
EVENT_WORDS = 3

CONTEXT_WORDS = 16  # see pypoplar.codelet.llvm.codelet_code; the last is the driver's own:
CONTEXT_DEBUG_USED = 10
CONTEXT_FLOATING_POINT = 13  # holds from run to run
CONTEXT_FLOPS = 14
CONTEXT_TILE_SLOTS = 15  # slots of all vertices of the tile that was scheduled last

# Behind the debug records of a group of vertices the driver puts a record of its own.
GROUP_MARK = -1
NO_MARK = -2  # where nothing has been recorded
MARK_WORDS = 3  # GROUP_MARK, the group, SEQUENCE
