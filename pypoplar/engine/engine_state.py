"""The state of an engine that the driver works on: simulated memory, tables, counters, and the header that names them all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray, Int64s, Integers, UInt64s
from pypoplar.arrays.splitmix import splitmix64
from pypoplar.engine.arena import Arena
from pypoplar.engine.block_tables import BlockTables, block_tables
from pypoplar.engine.branch_log import empty_branch_log
from pypoplar.engine.division import Division
from pypoplar.engine.element_marks import rows_with_marks
from pypoplar.engine.run_tables import RunTables, TileRecorder, empty_account, step_tiles
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.ipu_steps import IpuSteps
from pypoplar.executable.move_lists import Moves
from pypoplar.interface.context_words import CONTEXT_WORDS, RANDOM_WORDS, WORK_SUM_WORDS, WORK_WORDS, Context
from pypoplar.interface.debug_records import MARK_WORDS, NO_MARK
from pypoplar.interface.driver_records import FAULT_WORDS, STATE_WORDS, STREAM_WORDS, Shared, State, shared_words
from pypoplar.interface.fault_codes import EXCEPTIONS
from pypoplar.interface.header_slots import HEADER_WORDS, ONE_VERTEX, PRICED, Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind

UNINITIALISED = 0xFF  # every byte of memory that nothing has written: NaN as a float or half, -1 or the largest integer
DEFAULT_SEED = 42
DEBUG_BUFFER_WORDS = 1 << 18  # of each thread, where a codelet prints at all


@define(eq=False)
class EngineState:
    """Arrays by their place in the header, kept alive as long as the header is used."""

    executable: Executable
    division: Division
    memory: Arena
    header: Int64s
    like: EngineState | None = None  # another replica's, with which it shares what no run changes
    tables: dict[int, AnyArray] = field(factory=dict)
    blocks: BlockTables | None = field(init=False)  # where executions of blocks are counted, if they are
    account: RunTables = field(init=False)  # what is being counted into
    step_account: Int64s = field(init=False)  # [steps + 1]: where a step's tiles begin in the account's
    debug_buffers: Int64s = field(init=False)  # [threads, words]: what vertices print
    _program_slots: tuple[int, ...] = field(init=False)  # tables that no run changes

    def __attrs_post_init__(self) -> None:
        if self.like is None:
            self.blocks = block_tables(self.executable) if self.executable.options.counts_blocks else None
            self._add_program_tables()
        else:
            self._share_program_tables(self.like)
        self._program_slots = tuple(self.tables)
        self._add_run_tables()
        self.count_into(self.new_account())
        printing = any(codelet.typed.texts for codelet in self.executable.codelets)
        words = DEBUG_BUFFER_WORDS + MARK_WORDS if printing else 0
        self.debug_buffers = np.full((self.division.threads, words), NO_MARK, np.int64)
        self._hold(Slot.TILE_MEMORY, self.memory.addresses(self.memory.tile_base))
        self._hold(Slot.IPU_MEMORY, self.memory.addresses(self.memory.ipu_base))

    def _hold(self, which: int, array: AnyArray) -> None:
        assert array.flags.c_contiguous
        self.tables[which] = array
        self.header[which] = array.ctypes.data

    def _add_program_tables(self) -> None:
        executable = self.executable
        moves, computes, division = executable.moves, executable.computes, self.division
        self.step_account = step_tiles(executable)
        words, row_table = rows_with_marks(executable, self.memory)
        cycles, slots = estimated_tiles(computes, executable.target.getNumWorkerContexts())
        tables: Mapping[int, AnyArray] = {
            Slot.PROGRAM: executable.program,
            Slot.MOVE_FIRST_LIST: moves.first_list,
            Slot.MOVE_SERIAL: division.move_serial,
            Slot.LIST_SOURCE: moves.source_ipu,
            Slot.LIST_TARGET: moves.target_ipu,
            Slot.LIST_SPLIT: division.list_split,
            Slot.LIST_FIRST_SPLIT: division.list_first_split,
            Slot.COMPUTE_MOVES: computes.moves,
            Slot.COMPUTE_SPLIT: division.compute_split,
            Slot.COMPUTE_FIRST_SPLIT: division.compute_first_split,
            Slot.COMPUTE_BATCHES: division.compute_batches,
            Slot.COMPUTE_SERIAL: division.compute_serial,
            Slot.RESULT_TILE: computes.result_tile,
            Slot.RESULT_OFFSET: computes.result_offset,
            Slot.ACTIVE_SIMPLE: simple_tiles(computes),
            Slot.ACTIVE_CYCLES: cycles,
            Slot.ACTIVE_SLOTS: slots,
            Slot.ACTIVE_TILE: computes.active_tile,
            Slot.FIRST_ACTIVE: computes.first_active,
            Slot.FIRST_GROUP: computes.first_group,
            Slot.GROUP_CODELET: computes.group_codelet,
            Slot.GROUP_ROW: computes.group_row,
            Slot.GROUP_COUNT: computes.group_count,
            Slot.GROUP_POSITION: computes.group_position,
            Slot.GROUP_KIND: computes.group_kind,
            Slot.VERTEX: computes.vertex,
            Slot.LIST_ORDER: computes.list_order,
            Slot.WORDS: words,
            Slot.ROW_TABLE: row_table,
            Slot.STEP_CYCLES: np.array([step.fixed_cycles for step in executable.steps], np.int64),
            Slot.STEP_WAITS: np.array([step.waits for step in executable.steps], np.int64),
            Slot.STEP_ACCOUNT: self.step_account,
        }
        for which, array in tables.items():
            self._hold(which, np.ascontiguousarray(array, np.int64))
        self._hold_columns_of_moves(moves)
        if executable.ipu_steps is not None:
            for which, array in ipu_tables(executable.ipu_steps).items():
                self._hold(which, np.ascontiguousarray(array, np.int64))
        self._hold(Slot.MOVE_PLACES, np.ascontiguousarray(moves.places, np.uint32))
        if len(computes.estimate):
            self._hold(Slot.ESTIMATE, np.ascontiguousarray(computes.estimate, np.int64))

    def _hold_columns_of_moves(self, moves: Moves) -> None:
        """All of 32 bits, or all of 64."""
        columns: Mapping[int, Integers] = {
            Slot.MOVE_SOURCE: moves.source,
            Slot.MOVE_TARGET: moves.target,
            Slot.MOVE_BYTES: moves.bytes,
            Slot.MOVE_COUNT: moves.count,
            Slot.MOVE_SOURCE_STEP: moves.source_step,
            Slot.MOVE_TARGET_STEP: moves.target_step,
            Slot.MOVE_SOURCE_LIST: moves.source_list,
            Slot.MOVE_TARGET_LIST: moves.target_list,
        }
        compact = all(column.dtype == np.int32 for column in columns.values())
        for which, column in columns.items():
            self._hold(which, np.ascontiguousarray(column, np.int32 if compact else np.int64))
        self.header[Slot.MOVE_COMPACT] = compact

    def _share_program_tables(self, other: EngineState) -> None:
        self.blocks, self.step_account = other.blocks, other.step_account
        for which in other._program_slots:
            self._hold(which, other.tables[which])
        self.header[Slot.MOVE_COMPACT] = other.header[Slot.MOVE_COMPACT]

    def _add_run_tables(self) -> None:
        executable, threads = self.executable, self.division.threads
        workers = executable.target.getNumWorkerContexts()
        words = slot_words(executable, workers)
        sizes = {
            Slot.SHARED: shared_words(threads),
            Slot.STATE: threads * STATE_WORDS,
            Slot.COUNTERS: threads * executable.counters,
            Slot.STACK: threads * (executable.call_depth + 1),
            Slot.CLOCKS: threads * executable.clocks,
            Slot.STREAMS: len(executable.streams) * STREAM_WORDS,
            Slot.SLOTS: threads * words,
            Slot.FREE: threads * workers,
            Slot.RESULTS: threads * words,
            Slot.AGREED: threads,
            Slot.CONTEXTS: threads * CONTEXT_WORDS,
            Slot.FAULTS: threads * FAULT_WORDS,
            Slot.CODELETS: len(executable.codelets),
        }
        if executable.options.flop_estimates:
            self._hold(Slot.FLOPS, np.zeros(WORK_WORDS * threads * words, np.int64))
            self._hold(Slot.WORK_SUMS, np.zeros(WORK_SUM_WORDS * threads, np.int64))
            if len(executable.computes.flops):
                self._hold(Slot.GIVEN_FLOPS, np.ascontiguousarray(executable.computes.flops, np.int64))
        if self.blocks is not None:
            self._hold(Slot.GROUP_BLOCKS, self.blocks.of_group)
            self.header[Slot.BLOCK_WORDS] = self.blocks.words
            self.header[Slot.COMPUTE_COUNT] = self.blocks.computes
        for which, size in sizes.items():
            self._hold(which, np.zeros(size + 1, np.int64))
        if executable.ipu_steps is not None:
            ipus = self.header[Slot.IPUS] = executable.target.getNumIPUs()
            for which in (Slot.IPU_CLOCK, Slot.IPU_TOGETHER, Slot.IPU_START, Slot.IPU_COMPUTED):
                self._hold(which, np.zeros(threads * ipus, np.int64))
            self._hold(Slot.IPU_SLOWEST, np.zeros(2 * threads * ipus, np.int64))
            self._hold(Slot.IPU_MEETING, np.zeros(2 * ipus, np.int64))
        if executable.target.compute_set_start_cycles or not all(step.waits for step in executable.steps):
            self._hold(Slot.TILE_CLOCK, np.zeros(executable.target.getNumTiles(), np.int64))
        if executable.replication is not None:
            self._hold(Slot.BRANCHES, empty_branch_log())
        self._hold(Slot.RANDOM, seeded_generators(DEFAULT_SEED, 0, executable.target.getNumTiles(), workers))
        self.header[Slot.WORKERS] = workers
        self.header[Slot.SLOTS_WORDS] = words
        self.header[Slot.CODELET_COUNT] = len(executable.codelets)
        self.header[Slot.COUNTER_COUNT] = executable.counters
        self.header[Slot.STEP_COUNT] = len(executable.steps)
        self.header[Slot.STACK_DEPTH] = executable.call_depth + 1
        self.header[Slot.CLOCK_COUNT] = executable.clocks
        self.header[Slot.COMPUTE_START] = executable.target.compute_set_start_cycles

    @property
    def threads(self) -> int:
        """Host threads."""
        return self.division.threads

    @property
    def address(self) -> int:
        """The address of the header, the driver's first argument."""
        return int(self.header.ctypes.data)

    def rows(self, which: int, words: int) -> Int64s:
        """A table of the run as rows: ``state.rows(Slot.STREAMS, STREAM_WORDS)``."""
        flat = self.tables[which]
        return flat[: len(flat) // words * words].reshape(-1, words)

    def new_account(self) -> RunTables:
        """An empty account of runs of this executable."""
        return empty_account(self.executable, self.threads, self.step_account, self.blocks)

    def count_into(self, account: RunTables, events: Int64s | None = None, recorder: TileRecorder | None = None) -> None:
        """From now on count into this account; log executions in `events`, see `Slot.EVENTS`, and tiles' times, if given."""
        self.account = account
        self.tables.update(account.tables)
        self.header[account.places] = account.addresses
        if self.blocks is None:
            self.header[[Slot.BLOCKS, Slot.SLOWEST]] = 0
        self.header[Slot.EVENTS] = 0
        if events is not None:
            self._hold(Slot.EVENTS, events)
        self.header[Slot.RECORDS] = 0
        if recorder is not None and recorder.kept:
            self._hold(Slot.RECORDS, recorder.cycles)
            self._hold(Slot.RECORD_COUNT, recorder.counts)
            self.header[Slot.RECORDED] = recorder.kept

    def executed_steps(self) -> int:
        """Executions of steps in the present account, also while a program runs."""
        return int(self.tables[Slot.EXECUTIONS].sum())

    def cycles(self) -> int:
        """The machine's cycles, also while a program runs."""
        return max(self.clock, int(self.tables[Slot.STATE][State.LOCAL_CLOCK]))

    @property
    def clock(self) -> int:
        """The machine's cycles."""
        return int(self.tables[Slot.SHARED][Shared.CLOCK])

    @clock.setter
    def clock(self, cycles: int) -> None:
        self.tables[Slot.SHARED][Shared.CLOCK] = cycles

    def set_clocks(self, cycles: int) -> None:
        """Let all threads have all that happens from now on at a time."""
        self.rows(Slot.STATE, STATE_WORDS)[:, [State.LOCAL_CLOCK, State.TOGETHER]] = cycles
        for which in (Slot.IPU_CLOCK, Slot.IPU_TOGETHER):
            if which in self.tables:
                self.tables[which][:] = cycles

    def restart(self) -> None:
        """Clock, random numbers and floating-point behaviour as a machine has them that was just switched on."""
        self.clock = 0
        self.seed(DEFAULT_SEED)
        self.floating_point_mask = EXCEPTIONS if self.executable.options.floating_point_exceptions else 0

    @property
    def floating_point_mask(self) -> int:
        """How floating-point arithmetic behaves: bits of `FloatingPoint`."""
        return int(self.rows(Slot.CONTEXTS, CONTEXT_WORDS)[0, Context.FLOATING_POINT])

    @floating_point_mask.setter
    def floating_point_mask(self, bits: int) -> None:
        self.rows(Slot.CONTEXTS, CONTEXT_WORDS)[:, Context.FLOATING_POINT] = bits

    def seed(self, seed: int, modifier: int = 0) -> None:
        """Seed the random generators of all workers; the same seed and modifier give the same numbers on every machine."""
        target = self.executable.target
        self.tables[Slot.RANDOM][:] = seeded_generators(seed, modifier, target.getNumTiles(), target.getNumWorkerContexts())


def simple_tiles(computes: Computes) -> Int64s:
    """Which active tiles the driver's short way serves: one group, not of supervisors, whose results nobody wants."""
    groups = np.diff(computes.first_group)
    plain = np.append(computes.group_kind != VertexKind.SUPERVISOR, False)[computes.first_group[:-1]]
    wanted = np.repeat(computes.result_tile != NOTHING, np.diff(computes.first_active))
    simple: Int64s = ((groups == 1) & plain & ~wanted).astype(np.int64)
    return simple


def estimated_tiles(computes: Computes, workers: int) -> tuple[Int64s, Int64s]:
    """Cycles of the active tiles for which estimates alone decide, and slots of their vertices.

    That is one group whose vertices all have an estimate: of MultiVertices, or of plain vertices with equal estimates. For other
    tiles there are the values of `Slot.ACTIVE_CYCLES` that say how they are priced.
    """
    first = computes.first_group[:-1]
    count, kind = computes.group_count[first], computes.group_kind[first]
    alone = np.diff(computes.first_group) == 1
    if len(computes.estimate) == 0:
        priced = np.where(alone & (kind == VertexKind.VERTEX) & (count == 1), ONE_VERTEX, PRICED)
        return priced, priced
    padded = np.append(computes.estimate, 0)  # the last slice may begin where the estimates end
    begin = computes.group_position[first]
    bounds = np.stack((begin, begin + count), 1).ravel()
    least, most, total = (combine.reduceat(padded, bounds)[::2] for combine in (np.minimum, np.maximum, np.add))
    together = kind == VertexKind.MULTI
    cycles = np.where(together, total, -(-count // workers) * most) * workers
    known = alone & (least >= 0) & (together | (least == most))
    return np.where(known, cycles, PRICED), np.where(known, np.where(together, cycles, total), PRICED)


def ipu_tables(steps: IpuSteps) -> Mapping[int, Int64s]:
    """What the driver is told of the steps of several IPUs."""
    return {
        Slot.SHARE_FIRST: steps.first,
        Slot.SHARE_IPU: steps.ipu,
        Slot.SHARE_CYCLES: steps.fixed_cycles,
        Slot.SHARE_WAITS: steps.waits,
        Slot.ROW_FIRST: steps.row_first,
        Slot.ROW_IPU: steps.row_ipu,
        Slot.PART_FIRST: steps.part_first,
        Slot.PART_BEGIN: steps.part_begin,
        Slot.PART_END: steps.part_end,
        Slot.PART_IPU: steps.part_ipu,
    }


def slot_words(executable: Executable, workers: int) -> int:
    """Words that prices of one tile's vertices may need: one a vertex, and one a worker of each MultiVertex of a group."""
    computes = executable.computes
    if len(computes.group_count) == 0:
        return 1
    per_tile = np.add.reduceat(computes.group_count, computes.first_group[:-1])
    multi = np.where(computes.group_kind == VertexKind.MULTI, computes.group_count * workers, 0)
    return int(per_tile.max() + multi.max()) + 1


def make_state(executable: Executable, division: Division, like: EngineState | None = None) -> EngineState:
    """The state of an engine that has just been made: memory is there, and nothing is in it.

    Replicas but for the first are made `like` that one: they share all that no run changes.
    """
    return EngineState(executable, division, Arena.allocate(executable), np.zeros(HEADER_WORDS, np.int64), like)


def seeded_generators(seed: int, modifier: int, tiles: int, workers: int) -> UInt64s:
    """[tiles, workers, RANDOM_WORDS]: states of xoroshiro128aox.

    The first number of splitmix64 from `seed` is where a second one begins; its number `modifier` is where a third begins, which
    gives the words of all states, in the order of tiles and their workers.
    """
    start = seed
    for place in (0, modifier):
        start = int(splitmix64(np.array([place % 2**64], np.uint64), start)[0])
    return splitmix64(np.arange(tiles * workers * RANDOM_WORDS, dtype=np.uint64), start).reshape(tiles, workers, RANDOM_WORDS)
