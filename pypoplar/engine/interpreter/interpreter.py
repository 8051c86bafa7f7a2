"""The interpreter: what the native driver does, said in plain Python. It is the specification that the driver answers to.

One vertex after the other, one piece after the other. Codelets run as Python functions with the user's line numbers, so
``breakpoint()`` and ``print`` work in them. Results, cycles and faults are those of the native engine, bit for bit.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Iterator
from typing import Any, assert_never

import numpy as np
from attrs import Factory, define, field

from pypoplar.arrays.dtypes import Bytes
from pypoplar.codelet.python.interpreted import VertexContext, VertexFault
from pypoplar.codelet.python.python_form import PythonForm
from pypoplar.engine.branch_log import log_branch
from pypoplar.engine.debug_prints import DebugRecord
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.faults import Fault, Stop, left_program, unknown_operation
from pypoplar.engine.interpreter.machine_clocks import MachineClocks
from pypoplar.engine.loaded_codelets import priced_codelets
from pypoplar.engine.run_tables import recorded_place
from pypoplar.engine.services import Services
from pypoplar.executable.executable import Executable
from pypoplar.executable.ipu_steps import IpuSteps, steps_of_ipus
from pypoplar.interface.context_words import WORK_WORDS, Work
from pypoplar.interface.driver_records import SLOWEST_WORDS, STREAM_WORDS, Phase, Shared, Slowest, Stream, VertexCount
from pypoplar.interface.header_slots import HOST, Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    CLOCK_BYTES,
    OPERANDS,
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
    ServiceOperand,
    StampOperand,
    StreamOperand,
    SyncOperand,
    UnlessEqualOperand,
)
from pypoplar.interface.vertex_kinds import VertexKind


def schedule(prices: list[tuple[int, int]], workers: int) -> int:
    """Cycles of a tile whose vertices, in list order, are (`VertexKind`, slots)."""
    free = [0] * workers
    for kind, slots in prices:
        if kind == VertexKind.VERTEX:
            free[free.index(min(free))] += slots * workers
        else:
            free = [max(free) + (slots * workers if kind == VertexKind.MULTI else slots)] * workers
    return max(free)


def python_forms(executable: Executable) -> list[PythonForm]:
    """The codelets as Python functions."""
    options = executable.options
    touches = options.races == "elements"
    flops, blocks = options.flop_estimates, options.counts_blocks
    return [
        PythonForm(codelet, record_touches=touches, count_flops=flops, count_blocks=blocks)
        for codelet in priced_codelets(executable)
    ]


@define(eq=False)
class InterpretingRunner:
    """Runs programs with an interpreter: a whole run at once, or one of several replicas piece by piece."""

    state: EngineState
    services: Services
    forms: list[PythonForm] = field(default=Factory(lambda self: python_forms(self.state.executable), takes_self=True))
    steps: IpuSteps = field(default=Factory(lambda self: steps_of_ipus(self.state.executable), takes_self=True))
    prints: list[DebugRecord] = field(factory=list)
    _walk: Interpreter | None = None
    _due: Iterator[int] = field(factory=lambda: iter(()))

    def run(self, entry: int, progress: Callable[[], None] | None = None) -> Fault | None:
        """Run the program from row `entry` on; the fault that ended it, if one did. What vertices print is written as it goes."""
        self.begin(entry, progress)
        try:
            while not (stop := self.go_on()).ends:
                self.serve(stop.service)
            return stop.fault
        finally:
            self.finish()

    def begin(self, entry: int, progress: Callable[[], None] | None) -> None:
        """Let `go_on` begin at row `entry`."""
        self._walk = Interpreter(self.state, self.forms, MachineClocks(self.state, self.steps), self.prints, progress)
        self._due = self._walk.walk(entry)

    def go_on(self) -> Stop:
        """Run up to the next service or to the end."""
        assert self._walk is not None
        number = next(self._due, NOTHING)
        return Stop(number, self._walk.fault)

    def request_stop(self) -> None:
        """Nothing: an interrupt comes where the interpreter is."""

    @property
    def clock(self) -> int:
        """The cycles of the run, where it has come back."""
        assert self._walk is not None
        return self._walk.clocks.latest

    def wait_until(self, cycles: int) -> None:
        """Let time pass, where the run has come back."""
        assert self._walk is not None
        self._walk.clocks.begin(cycles)

    def serve(self, number: int) -> None:
        """Do service `number` of the executable."""
        if self.services.writes_prints(number):
            self.finish()
        else:
            self.services.serve(number)

    def finish(self) -> None:
        """Write what vertices have printed so far."""
        prints = self.prints.copy()
        self.prints.clear()
        self.services.write_prints(prints)


@define(eq=False)
class Interpreter:
    """Walks the control program. `forms` are the codelets as Python functions, by codelet number."""

    state: EngineState
    forms: list[PythonForm]
    clocks: MachineClocks
    prints: list[DebugRecord]  # what vertices print is appended here
    progress: Callable[[], None] | None = None  # called after every step
    fault: Fault | None = None
    _sequence: int = 0
    _told: set[tuple[int, int, str]] = Factory(set)  # of what is undefined: codelet, location, and why
    _start: int = 0  # of the running tile's vertices

    def walk(self, entry: int) -> Iterator[int]:  # noqa: C901, PLR0912, PLR0915 - an arm for each opcode
        """Run from row `entry` to the end, with every service that comes up; `fault` ended the program, if one did."""
        program, state = self.state.executable.program, self.state
        counters, clocks, stack = state.tables[Slot.COUNTERS], state.tables[Slot.CLOCKS], []
        shared = state.tables[Slot.SHARED]
        self.clocks.begin(int(shared[Shared.CLOCK]))
        self.fault = None
        pc = entry
        while True:
            if not 0 <= pc < len(program):
                raise left_program(program, pc)
            row = program[pc].tolist()
            operation = row[ProgramRow.OPERATION]
            if operation not in OPERANDS:
                raise unknown_operation(program, pc)
            pc += 1
            match Opcode(operation):
                case Opcode.END:
                    self.clocks.meet_at_row(pc - 1)
                    break
                case Opcode.COMPUTE:
                    if not self._superstep(row):
                        break
                    self.clocks.meet_at_row(pc - 1)
                case Opcode.MOVE:
                    self._move(row[MoveOperand.MOVE])
                    self._pass_move(row[MoveOperand.STEP])
                case Opcode.STREAM_IN:
                    self._stream(row[StreamOperand.STREAM], row[StreamOperand.MOVE])
                    self._pass_move(row[StreamOperand.STEP])
                case Opcode.STREAM_OUT:
                    self._stream(row[StreamOperand.STREAM], row[StreamOperand.MOVE])
                    self._pass_move(row[StreamOperand.STEP])
                case Opcode.REPEAT:
                    counters[row[RepeatOperand.COUNTER]] = row[RepeatOperand.TIMES]
                    pc = pc if row[RepeatOperand.TIMES] else row[RepeatOperand.AFTER]
                case Opcode.REPEAT_END:
                    counter = row[RepeatEndOperand.COUNTER]
                    counters[counter] -= 1
                    pc = row[RepeatEndOperand.BODY] if counters[counter] > 0 else pc
                case Opcode.JUMP:
                    pc = row[JumpOperand.ROW]
                case Opcode.BRANCH:
                    self.clocks.meet_at_row(pc - 1)
                    value = self._value(row[BranchOperand.TILE], row[BranchOperand.OFFSET], row[BranchOperand.BYTES])
                    self._log_branch(pc - 1, value)
                    pc = pc if value else row[BranchOperand.ROW]
                case Opcode.UNLESS_EQUAL:
                    tile, offset = row[UnlessEqualOperand.TILE], row[UnlessEqualOperand.OFFSET]
                    self.clocks.meet_at_row(pc - 1)
                    value = self._value(tile, offset, row[UnlessEqualOperand.BYTES])
                    self._log_branch(pc - 1, value)
                    pc = pc if value == row[UnlessEqualOperand.VALUE] else row[UnlessEqualOperand.ROW]
                case Opcode.CALL:
                    stack.append(pc)
                    pc = row[CallOperand.ROW]
                case Opcode.RETURN:
                    pc = stack.pop()
                case Opcode.SERVICE:
                    self.clocks.meet_at_row(pc - 1)
                    yield row[ServiceOperand.SERVICE]
                case Opcode.CALLBACK:
                    if state.rows(Slot.STREAMS, STREAM_WORDS)[row[CallbackOperand.STREAM], Stream.CALLBACK]:
                        yield row[CallbackOperand.SERVICE]
                case Opcode.STAMP:
                    self.clocks.meet_at_row(pc - 1)
                    clocks[row[StampOperand.CLOCK]] = self.clocks.latest
                case Opcode.ELAPSED:
                    self.clocks.meet_at_row(pc - 1)
                    since = int(clocks[row[ElapsedOperand.CLOCK]])
                    self._store_clock(row[ElapsedOperand.TILE], row[ElapsedOperand.OFFSET], since=since)
                case Opcode.CLOCK:
                    self.clocks.meet_at_row(pc - 1)
                    self._store_clock(row[ClockOperand.TILE], row[ClockOperand.OFFSET], since=0)
                case Opcode.FLOATING_POINT:
                    kept = state.floating_point_mask & row[FloatingPointOperand.KEPT]
                    state.floating_point_mask = kept | row[FloatingPointOperand.SET]
                case Opcode.SYNC:
                    self._pass_move(row[SyncOperand.STEP])
                case forgotten:
                    assert_never(forgotten)
        shared[Shared.CLOCK] = self.clocks.latest

    def _superstep(self, row: list[int]) -> bool:
        """A compute set with the exchanges before and after it, and their account. False after a fault.

        Where it does not wait, and no step is before it, each tile goes on when it is done with what was before.
        """
        before, step, after = row[ComputeOperand.BEFORE], row[ComputeOperand.STEP], row[ComputeOperand.AFTER]
        clocks = self.clocks
        clocks.begin_superstep(before, step, waits=before != NOTHING or self.state.executable.steps[step].waits)
        computed = self._compute(row[ComputeOperand.COMPUTE], step)
        if computed is None:
            return False
        if before != NOTHING:
            clocks.pass_step(before)
            self._tell_progress()
        clocks.pass_step(step, computed)
        self._tell_progress()
        if after != NOTHING:
            self._pass_move(after)
        return True

    def _store_clock(self, tile: int, offset: int, *, since: int) -> None:
        """The cycles since a time, as two unsigned ints, the low one first."""
        place = self.state.memory.from_tile(tile)[offset : offset + CLOCK_BYTES]
        place.view(np.int64)[0] = self.clocks.latest - since

    def _pass_move(self, step: int) -> None:
        """A step that moves something, or a sync, has been executed."""
        self.clocks.meet_in_step(step)
        self.clocks.pass_step(step)
        self.clocks.gather(step)
        self._tell_progress()

    def _tell_progress(self) -> None:
        if self.progress is not None:
            self.state.tables[Slot.SHARED][Shared.CLOCK] = self.clocks.latest
            self.progress()

    def _value(self, tile: int, offset: int, size: int) -> int:
        kind = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64}[size]
        return int(self.state.memory.from_tile(tile)[offset : offset + size].view(kind)[0])

    def _log_branch(self, row: int, value: int) -> None:
        if self.state.header[Slot.BRANCHES]:
            log_branch(self.state.tables[Slot.BRANCHES], row, value)

    def _move(self, number: int, chunk: Bytes | None = None) -> None:
        """A move, list by list; nothing for the move NOTHING. A stream moves a `chunk` of the host's."""
        moves = self.state.executable.moves
        for entry in moves.lists_of(number):
            source = self._memory_of(int(moves.source_ipu[entry]), chunk)
            target = self._memory_of(int(moves.target_ipu[entry]), chunk)
            for record in moves.records_of(entry):
                size = int(moves.bytes[record])
                for i in range(int(moves.count[record])):
                    piece, place = moves.source_of(record, i), moves.target_of(record, i)
                    target[place : place + size] = source[piece : piece + size]

    def _memory_of(self, ipu: int, chunk: Bytes | None) -> Bytes:
        """An IPU's memory, or the host's chunk."""
        if ipu != HOST:
            return self.state.memory.from_ipu(ipu)
        assert chunk is not None
        return chunk

    def _stream(self, number: int, moves: int) -> None:
        row = self.state.rows(Slot.STREAMS, STREAM_WORDS)[number]
        begin, size = int(row[Stream.POSITION]), int(row[Stream.CHUNK])
        if size:
            place = (ctypes.c_uint8 * size).from_address(int(row[Stream.ADDRESS]) + begin)
            chunk: Bytes = np.ctypeslib.as_array(place)
            self._move(moves, chunk)
        row[Stream.POSITION] = (begin + size) % row[Stream.BYTES]

    def _compute(self, compute: int, step: int) -> dict[int, int] | None:
        """One superstep: exchange, gather, compute, scatter, exchange. None if a vertex faulted.

        Else by IPU how long after the beginning of its vertices the last tile is done, which begins with them, or when it is done
        with what was before.
        """
        computes = self.state.executable.computes
        moves = computes.moves[compute].tolist()
        for phase in (Phase.EXCHANGE_BEFORE, Phase.FAN_OUT, Phase.GATHER):
            self._move(moves[phase])
        self._sequence += 1
        starting = self.state.executable.target.compute_set_start_cycles
        computed: dict[int, int] = {}
        agreed = True
        account = int(self.state.step_account[step] - computes.first_active[compute])
        times = self._record(step) - int(computes.first_active[compute])
        for active in range(int(computes.first_active[compute]), int(computes.first_active[compute + 1])):
            tile = int(computes.active_tile[active])
            begin = self.clocks.begin_tile(tile)
            self._start = begin + starting
            scheduled, slots, results = self._tile(active, compute, step)
            cycles = starting + scheduled
            ipu, later = self.clocks.end_tile(tile, begin + cycles)
            self.state.tables[Slot.TILE_CYCLES][account + active] += cycles
            self.state.tables[Slot.TILE_SLOTS][account + active] += slots
            if self.state.header[Slot.RECORDS]:
                self.state.tables[Slot.RECORDS][times + active] = cycles
            computed[ipu], agreed = max(computed.get(ipu, 0), later), agreed and results
        for phase in (Phase.SCATTER, Phase.EXCHANGE_AFTER):
            self._move(moves[phase])
        if self.fault is not None:
            return None
        if computes.result_tile[compute] != NOTHING:
            memory = self.state.memory.from_tile(int(computes.result_tile[compute]))
            memory[int(computes.result_offset[compute])] = agreed
        self.state.tables[Slot.COMPUTE_CYCLES][step] += max(computed.values(), default=0)
        return computed

    def _record(self, step: int) -> int:
        """Where the cycles of the step's first tile are recorded in this execution, if they are."""
        if not self.state.header[Slot.RECORDS]:
            return 0
        counts = self.state.tables[Slot.RECORD_COUNT]
        counts[step] += 1
        return recorded_place(self.state.step_account, step, int(counts[step]) - 1, int(self.state.header[Slot.RECORDED]))

    def _tile(self, active: int, compute: int, step: int) -> tuple[int, int, bool]:
        """All vertices of a tile: its cycles, the slots in which its workers are busy, and the AND of the vertices' results."""
        computes, executable = self.state.executable.computes, self.state.executable
        workers = executable.target.getNumWorkerContexts()
        first, last = int(computes.first_group[active]), int(computes.first_group[active + 1])
        base = int(computes.group_position[first])
        busy = 0
        prices: list[tuple[int, int]] = []
        agreed = True
        for group in range(first, last):
            codelet, kind = int(computes.group_codelet[group]), int(computes.group_kind[group])
            words = int(computes.codelet_words[codelet])
            for i in range(int(computes.group_count[group])):
                row = int(computes.group_row[group]) + i * words
                position = int(computes.group_position[group]) + i
                slots, waited, result = self._vertex(codelet, row, position, group, int(computes.active_tile[active]), step)
                if len(computes.estimate) and computes.estimate[position] != NOTHING:
                    slots, waited = int(computes.estimate[position]), 0
                prices.append((kind, slots))
                taken = slots * workers if kind == VertexKind.MULTI else slots  # a MultiVertex takes all workers
                self.state.tables[Slot.CODELET_SLOTS][codelet] += taken
                self._note_vertex(compute, group, position, taken, slots if kind == VertexKind.SUPERVISOR else slots * workers)
                busy += taken - waited
                agreed = agreed and result
        ordered = [prices[int(computes.list_order[base + i])] for i in range(len(prices))]
        return schedule(ordered, workers), busy, agreed

    def _vertex(self, codelet: int, row: int, position: int, group: int, tile: int, step: int) -> tuple[int, int, bool]:
        """One vertex: its slots (of a MultiVertex the slowest worker's), those that others wait, and what compute returned."""
        tables, executable = self.state.tables, self.state.executable
        vertex = int(executable.computes.vertex[position])

        def debug_print(where: int, text: int, values: tuple[Any, ...]) -> None:
            self.prints.append(DebugRecord(self._sequence, vertex, executable.codelets[codelet].typed.texts[text], values))

        def undefined(where: int, text: str) -> None:
            place = executable.codelets[codelet].typed.locations[where]
            if (codelet, where, text.partition(" is ")[2]) not in self._told:
                self._told.add((codelet, where, text.partition(" is ")[2]))
                warnings.warn(f"{place.file}:{place.line}: {place.function}: {text}", RuntimeWarning, stacklevel=2)

        context = VertexContext(
            clock=self._start,
            cycle_limit=executable.slot_limit(executable.codelets[codelet].typed.kind),
            random=tables[Slot.RANDOM][tile],
            number=position - int(executable.computes.group_position[group]),
            floating_point_mask=self.state.floating_point_mask,
            uninitialised_is_fault=executable.options.uninitialised == "error",
            workers=executable.target.getNumWorkerContexts(),
            debug_print=debug_print,
            undefined=undefined,
        )
        try:
            memory = self.state.memory.from_tile(tile)
            outcome = self.forms[codelet].run(memory, tables[Slot.WORDS], row, tables[Slot.ROW_TABLE], context)
        except VertexFault as fault:
            if self.fault is None or vertex < self.fault.vertex:
                self.fault = Fault(vertex, fault.code, fault.where, fault.value, fault.bound, codelet, step)
            return 0, 0, True
        if self.state.blocks is not None:
            first = self.state.blocks.of_group[group] + VertexCount.BLOCKS
            for block, times in context.blocks.items():
                tables[Slot.BLOCKS][first + block] += times
        if executable.options.flop_estimates:
            given = executable.computes.flops
            flops = int(given[position]) if len(given) and given[position] != NOTHING else context.flops
            workers = context.workers if executable.codelets[codelet].typed.kind == "multi" else 1  # that it takes
            for table, number in ((tables[Slot.STEP_FLOPS], step), (tables[Slot.CODELET_FLOPS], codelet)):
                table[WORK_WORDS * number + Work.FLOPS] += flops
                table[WORK_WORDS * number + Work.BYTES] += context.bytes
                table[WORK_WORDS * number + Work.COMPILED] += outcome[0] * workers
                table[WORK_WORDS * number + Work.BOUND] += context.bound * workers
        slots, result = outcome
        return slots, context.waited, result

    def _note_vertex(self, compute: int, group: int, position: int, slots: int, cycles: int) -> None:
        """What a vertex has spent, and whether it is the slowest of its compute set, where executions of blocks are counted."""
        if self.state.blocks is None:
            return
        self.state.tables[Slot.BLOCKS][self.state.blocks.of_group[group] + VertexCount.SLOTS] += slots
        slowest = self.state.rows(Slot.SLOWEST, SLOWEST_WORDS)[compute]
        if (-cycles, position) < (-slowest[Slowest.CYCLES], slowest[Slowest.POSITION]):
            slowest[[Slowest.CYCLES, Slowest.POSITION]] = cycles, position
