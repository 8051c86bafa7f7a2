"""The driver's header: which of its words holds what.

The words of the first group are addresses of tables of int64 unless it is said otherwise, those of the second are plain numbers.
"""

from __future__ import annotations

from enum import auto

from pypoplar.interface.layout import NOTHING, Layout, words

HOST = NOTHING
"""In the place of an IPU: the host's side of a stream."""


class Slot(Layout):
    """Words of the header."""

    # Tables of the executable (see `pypoplar.executable`), and how its steps are divided among threads.
    PROGRAM = auto()
    MOVE_COMPACT = auto()  # 1: the next eight are int32; 0: they are words
    MOVE_SOURCE = auto()
    MOVE_TARGET = auto()
    MOVE_BYTES = auto()
    MOVE_COUNT = auto()
    MOVE_SOURCE_STEP = auto()
    MOVE_TARGET_STEP = auto()
    MOVE_SOURCE_LIST = auto()
    MOVE_TARGET_LIST = auto()
    MOVE_PLACES = auto()  # uint32
    MOVE_FIRST_LIST = auto()  # [moves + 1]: the move's entries in the tables of lists
    MOVE_SERIAL = auto()  # [moves]
    LIST_SOURCE = auto()  # [lists]: the IPU from which a list moves, or HOST
    LIST_TARGET = auto()  # [lists]: the IPU to which it moves, or HOST
    LIST_SPLIT = auto()  # where the shares of lists begin and end, of each list in turn; see `pypoplar.engine.division`
    LIST_FIRST_SPLIT = auto()  # [lists]: where those of a list begin in LIST_SPLIT
    COMPUTE_MOVES = auto()  # [computes] of `Phase`
    COMPUTE_SPLIT = auto()  # where the shares of compute sets begin and end, of each in turn, active tiles
    COMPUTE_FIRST_SPLIT = auto()  # [computes]: where those of a compute set begin in COMPUTE_SPLIT
    COMPUTE_BATCHES = auto()  # [computes]: how many shares each thread has
    COMPUTE_SERIAL = auto()  # [computes]
    RESULT_TILE = auto()  # [computes]: where the AND of compute's results goes, or NOTHING
    RESULT_OFFSET = auto()
    ACTIVE_TILE = auto()
    ACTIVE_SIMPLE = auto()  # [active tiles]: one group, not of supervisors, no results: the short way
    ACTIVE_CYCLES = auto()  # [active tiles]: where all vertices have estimates, the tile's cycles; else PRICED or ONE_VERTEX
    ACTIVE_SLOTS = auto()  # [active tiles]: and the slots of its vertices
    FIRST_ACTIVE = auto()
    FIRST_GROUP = auto()
    GROUP_CODELET = auto()
    GROUP_ROW = auto()
    GROUP_COUNT = auto()
    GROUP_POSITION = auto()
    GROUP_KIND = auto()
    VERTEX = auto()
    LIST_ORDER = auto()
    GROUP_BLOCKS = auto()  # [groups]: where their row begins in BLOCKS
    ESTIMATE = auto()  # 0 where no vertex has an estimate
    GIVEN_FLOPS = auto()  # as ESTIMATE
    WORDS = auto()
    ROW_TABLE = auto()
    STEP_CYCLES = auto()  # [steps]: sync and exchange, known beforehand
    STEP_WAITS = auto()  # [steps]: 1 if the step begins when all tiles have come to it, 0 if each tile goes on by itself
    STEP_ACCOUNT = auto()  # [steps]: where the step's tiles begin in TILE_CYCLES, for compute steps
    SHARE_FIRST = auto()  # [steps + 1]: where what IPUs have of a step begins in the next three; all 0 where there is one IPU
    SHARE_IPU = auto()  # [shares]
    SHARE_CYCLES = auto()  # [shares]: sync and exchange, known beforehand
    SHARE_WAITS = auto()  # [shares]: 1 if it begins together with the others of its step that have 1
    ROW_FIRST = auto()  # [rows + 1]: where the IPUs that wait for each other at a row begin in ROW_IPU
    ROW_IPU = auto()
    PART_FIRST = auto()  # [computes + 1]: where the active tiles of an IPU are told of in the next three
    PART_BEGIN = auto()  # [parts]: the first of them
    PART_END = auto()  # [parts]
    PART_IPU = auto()  # [parts]
    CODELETS = auto()  # [codelets]: addresses of native code
    MOVE_UNIT = auto()  # the addresses themselves of the driver's units
    SUPERSTEP_UNIT = auto()
    GENERAL_UNIT = auto()  # 0 where all tiles take the short way
    # What changes while programs run.
    TILE_MEMORY = auto()  # [tiles]: addresses of their memories
    IPU_MEMORY = auto()  # [IPUs]: addresses of theirs, in which their tiles' lie end to end
    SHARED = auto()  # words of `Shared`
    STATE = auto()  # [threads] of `State`
    COUNTERS = auto()  # [threads, COUNTER_COUNT]
    STACK = auto()  # [threads, STACK_DEPTH]
    CLOCKS = auto()  # [threads, CLOCK_COUNT]
    STREAMS = auto()  # [streams] of `Stream`
    EXECUTIONS = auto()  # [steps]
    COMPUTE_CYCLES = auto()  # [steps]: cycles by which the slowest tile came later, summed over executions
    TILE_CLOCK = auto()  # [tiles]: when each was done with its last compute set; 0 where all steps wait and sets have no start
    IPU_CLOCK = auto()  # [threads, IPUS]: of the tile that has come farthest; 0 where there is one IPU
    IPU_TOGETHER = auto()  # [threads, IPUS]: the clock when its tiles were last together
    IPU_START = auto()  # [threads, IPUS]: when its vertices of a compute set begin
    IPU_COMPUTED = auto()  # [threads, IPUS]: cycles that they take
    IPU_SLOWEST = auto()  # [2, threads, IPUS]: the same, of each thread's tiles; in turn, as `Shared.PARTIAL`
    IPU_MEETING = auto()  # [2, IPUS]: thread 0's IPU_CLOCK and IPU_TOGETHER at a barrier
    SHARE_COMPUTED = auto()  # [shares]: IPU_COMPUTED, summed over executions
    SHARE_WAITED = auto()  # [shares]: cycles that the IPU waits for others before, summed over executions
    IPU_WAITED = auto()  # [IPUS]: cycles that each waits for others at rows that are no steps
    TILE_CYCLES = auto()  # cycles of every active tile of every compute step, summed over executions
    TILE_SLOTS = auto()  # the same of worker slots of all vertices, without those in which workers of a MultiVertex wait
    CODELET_SLOTS = auto()  # [threads, CODELET_COUNT]: worker slots of all vertices of a codelet
    SLOTS = auto()  # [threads, SLOTS_WORDS]
    FREE = auto()  # [threads, WORKERS]: when each worker is free
    RESULTS = auto()  # bytes [threads, SLOTS_WORDS]
    AGREED = auto()  # [threads]: the AND of compute's results
    CONTEXTS = auto()  # [threads] of `Context`
    FAULTS = auto()  # [threads] of `FaultRecord`
    RANDOM = auto()  # [tiles, workers] states of RANDOM_BYTES
    FLOPS = auto()  # [threads, SLOTS_WORDS] of `Work`, of a group's vertices; 0 where it is not counted
    WORK_SUMS = auto()  # [threads, WORK_SUM_WORDS]: `Work` of groups of a codelet, until it is added to the next two
    STEP_FLOPS = auto()  # [threads, STEP_COUNT] of `Work`, summed over executions
    CODELET_FLOPS = auto()  # [threads, CODELET_COUNT] of `Work`, the same
    BLOCKS = auto()  # [threads, BLOCK_WORDS]: rows of `VertexCount`; 0 where executions of blocks are not counted
    SLOWEST = auto()  # [threads, COMPUTE_COUNT] of `Slowest`, the same
    EVENTS = auto()  # a log of executed steps, or 0: `EventLogHead`, then `Event` by `Event`
    RECORDS = auto()  # times of tiles in single executions of compute steps, or 0: see `pypoplar.engine.run_tables`
    RECORD_COUNT = auto()  # [threads, STEP_COUNT]: executions that each thread has recorded
    BRANCHES = auto()  # a log of what branches decided by, or 0: `BranchLogHead`, then `Branch` by `Branch`
    # Numbers.
    WORKERS = auto()
    SLOTS_WORDS = auto()
    CODELET_COUNT = auto()
    COUNTER_COUNT = auto()
    STEP_COUNT = auto()
    STACK_DEPTH = auto()
    CLOCK_COUNT = auto()
    BLOCK_WORDS = auto()
    COMPUTE_COUNT = auto()
    RECORDED = auto()  # how many executions of a step are recorded from its first on, and as many up to its last
    IPUS = auto()
    COMPUTE_START = auto()  # cycles that pass on a tile with vertices before they start


HEADER_WORDS = words(Slot)

# Values of ACTIVE_CYCLES that are not cycles.
PRICED = -1  # by the code as it runs
ONE_VERTEX = -2  # the same, of one plain vertex
