"""The interpreter: what the native driver does, said in plain Python. It is the specification that the driver answers to.

One vertex after the other, one piece after the other. Codelets run as Python functions with the user's line numbers, so
``breakpoint()`` and ``print`` work in them. Results, cycles and faults are those of the native engine, bit for bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar.codelet.python.python_form import Fault as CodeletFault
from pypoplar.codelet.python.python_form import PythonForm, VertexContext
from pypoplar.engine.debug_prints import DebugPrint
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.events import log_event
from pypoplar.engine.faults import Fault
from pypoplar.engine.services import Services
from pypoplar.executable.executable import Array, Executable
from pypoplar.interface import header_slots as at
from pypoplar.interface import opcodes


def schedule(prices: list[tuple[int, int]], workers: int) -> int:
    """Cycles of a tile whose vertices, in list order, are (kind, slots): 0 vertex, 1 MultiVertex, 2 SupervisorVertex."""
    free = [0] * workers
    for kind, slots in prices:
        if kind == 0:
            free[free.index(min(free))] += slots * workers
        else:
            free = [max(free) + (slots if kind == 2 else slots * workers)] * workers
    return max(free)


def python_forms(executable: Executable) -> list[PythonForm]:
    """The codelets as Python functions."""
    options = executable.options
    return [
        PythonForm(one.typed, record_touches=options.races == "elements", count_flops=options.flop_estimates)
        for one in executable.codelets
    ]


@define(eq=False)
class InterpretingRunner:
    """Runs programs with an interpreter."""

    state: EngineState
    services: Services
    forms: list[PythonForm] = field(init=False)
    prints: list[DebugPrint] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.forms = python_forms(self.state.executable)

    def run(self, entry: int, progress: Callable[[], None] | None = None) -> Fault | None:
        """Run the program from row `entry` on; the fault that ended it, if one did. What vertices print is written as it goes."""
        try:
            return Interpreter(self.state, self.forms, self._serve, self.prints, progress).run(entry)
        finally:
            self._write_prints()

    def _serve(self, number: int) -> None:
        if self.services.writes_prints(number):
            self._write_prints()
        else:
            self.services.serve(number)

    def _write_prints(self) -> None:
        prints = self.prints.copy()
        self.prints.clear()
        self.services.write_prints(prints)


@define(eq=False)
class Interpreter:
    """Walks the control program. `forms` are the codelets as Python functions, by codelet number."""

    state: EngineState
    forms: list[PythonForm]
    serve: Callable[[int], None]
    prints: list[DebugPrint]  # what vertices print is appended here
    progress: Callable[[], None] | None = None  # called after every step
    clock: int = 0
    fault: Fault | None = None
    _sequence: int = 0
    _start: int = 0  # of the running compute set's vertices

    def run(self, entry: int) -> Fault | None:
        """Run from row `entry` to the end; returns the fault that ended the program, if one did."""
        program, state = self.state.executable.program, self.state
        counters, clocks, stack = state.tables[at.COUNTERS], state.tables[at.CLOCKS], []
        shared = state.tables[at.SHARED]
        self.clock, self.fault = int(shared[at.CLOCK]), None
        pc = entry
        while True:
            code, a, b, c, d = (int(one) for one in program[pc])
            pc += 1
            if code == opcodes.END:
                break
            if code == opcodes.COMPUTE:
                lead = sum(int(state.tables[at.STEP_CYCLES][step]) for step in (b, c) if step >= 0)
                slowest = self._compute(a, c, self.clock + lead)
                if slowest is None:
                    break
                for step, computed in ((b, 0), (c, slowest), (d, 0)):
                    if step >= 0:
                        self._pass_step(step, computed)
            elif code == opcodes.MOVE:
                self._move(a, state.memory, state.memory)
                self._pass_step(b)
            elif code in (opcodes.STREAM_IN, opcodes.STREAM_OUT):
                self._stream(a, b, inward=code == opcodes.STREAM_IN)
                self._pass_step(c)
            elif code == opcodes.REPEAT:
                counters[a] = b
                pc = pc if b else c
            elif code == opcodes.REPEAT_END:
                counters[a] -= 1
                pc = b if counters[a] > 0 else pc
            elif code == opcodes.JUMP:
                pc = a
            elif code == opcodes.BRANCH:
                pc = c if self._value(a, b) == 0 else pc
            elif code == opcodes.UNLESS_EQUAL:
                pc = d if self._value(a, b) != c else pc
            elif code == opcodes.CALL:
                stack.append(pc)
                pc = a
            elif code == opcodes.RETURN:
                pc = stack.pop()
            elif code == opcodes.SERVICE:
                self.serve(a)
            elif code == opcodes.CALLBACK:
                if state.rows(at.STREAMS, at.STREAM_WORDS)[a, at.STREAM_CALLBACK]:
                    self.serve(b)
            elif code == opcodes.STAMP:
                clocks[a] = self.clock
            elif code in (opcodes.ELAPSED, opcodes.CLOCK):
                since = int(clocks[a]) if code == opcodes.ELAPSED else 0
                state.memory[b : b + 8].view(np.int64)[0] = self.clock - since
            elif code == opcodes.FLOATING_POINT:
                state.floating_point_mask = a
            elif code == opcodes.SYNC:
                self._pass_step(a)
        shared[at.CLOCK] = self.clock
        return self.fault

    def _pass_step(self, step: int, computed: int = 0) -> None:
        """A step has been executed, whose vertices took `computed` cycles."""
        tables = self.state.tables
        cycles = int(tables[at.STEP_CYCLES][step]) + computed
        tables[at.EXECUTIONS][step] += 1
        if self.state.header[at.EVENTS]:
            log_event(tables[at.EVENTS], step, self.clock, cycles)
        self.clock += cycles
        if self.progress is not None:
            tables[at.SHARED][at.CLOCK] = self.clock
            self.progress()

    def _value(self, address: int, size: int) -> int:
        kind = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64}[size]
        return int(self.state.memory[address : address + size].view(kind)[0])

    def _move(self, number: int, source: Array, target: Array) -> None:
        """A move list between two byte arrays; nothing for list -1."""
        if number < 0:
            return
        moves = self.state.executable.moves
        for r in range(int(moves.first[number]), int(moves.first[number + 1])):
            size = int(moves.bytes[r])
            for i in range(int(moves.count[r])):
                there, here = moves.source_of(r, i), moves.target_of(r, i)
                target[here : here + size] = source[there : there + size]

    def _stream(self, number: int, moves: int, *, inward: bool) -> None:
        row = self.state.rows(at.STREAMS, at.STREAM_WORDS)[number]
        begin, size = int(row[at.STREAM_POSITION]), int(row[at.STREAM_CHUNK])
        if size:
            place = (ctypes.c_uint8 * size).from_address(int(row[at.STREAM_ADDRESS]) + begin)
            chunk: Array = np.ctypeslib.as_array(place)
            memory = self.state.memory
            self._move(moves, chunk, memory) if inward else self._move(moves, memory, chunk)
        row[at.STREAM_POSITION] = (begin + size) % row[at.STREAM_BYTES]

    def _compute(self, compute: int, step: int, start: int) -> int | None:
        """One superstep: exchange, gather, compute, scatter, exchange. The slowest tile's cycles, None if a vertex faulted.

        Its vertices start when the clock is at `start`.
        """
        computes, memory = self.state.executable.computes, self.state.memory
        before, fan_out, gather, scatter, after = (int(one) for one in computes.moves[compute])
        for moves in (before, fan_out, gather):
            self._move(moves, memory, memory)
        self._sequence += 1
        self._start = start
        slowest, agreed = 0, True
        account = int(self.state.step_account[step] - computes.first_active[compute])
        for active in range(int(computes.first_active[compute]), int(computes.first_active[compute + 1])):
            cycles, slots, results = self._tile(active, step)
            self.state.tables[at.TILE_CYCLES][account + active] += cycles
            self.state.tables[at.TILE_SLOTS][account + active] += slots
            slowest, agreed = max(slowest, cycles), agreed and results
        self._move(scatter, memory, memory)
        self._move(after, memory, memory)
        if self.fault is not None:
            return None
        if computes.result[compute] >= 0:
            memory[int(computes.result[compute])] = agreed
        self.state.tables[at.COMPUTE_CYCLES][step] += slowest
        return slowest

    def _tile(self, active: int, step: int) -> tuple[int, int, bool]:
        """All vertices of a tile: its cycles, the slots of all vertices, and the AND of their results."""
        computes, executable = self.state.executable.computes, self.state.executable
        workers = executable.target.getNumWorkerContexts()
        first, last = int(computes.first_group[active]), int(computes.first_group[active + 1])
        base = int(computes.group_position[first])
        total = 0
        prices: list[tuple[int, int]] = []
        agreed = True
        for group in range(first, last):
            codelet, kind = int(computes.group_codelet[group]), int(computes.group_kind[group])
            words = int(computes.codelet_words[codelet])
            for i in range(int(computes.group_count[group])):
                row = int(computes.group_row[group]) + i * words
                position = int(computes.group_position[group]) + i
                slots, result = self._vertex(codelet, row, position, int(computes.active_tile[active]), step)
                if len(computes.estimate) and computes.estimate[position] >= 0:
                    slots = int(computes.estimate[position])
                prices.append((kind, slots))
                taken = slots * workers if kind == 1 else slots  # a MultiVertex takes all workers
                self.state.tables[at.CODELET_SLOTS][codelet] += taken
                total += taken
                agreed = agreed and result
        ordered = [prices[int(computes.list_order[base + i])] for i in range(len(prices))]
        return schedule(ordered, workers), total, agreed

    def _vertex(self, codelet: int, row: int, position: int, tile: int, step: int) -> tuple[int, bool]:
        """One vertex: its slots (of a MultiVertex the slowest worker's) and what compute returned."""
        tables, executable = self.state.tables, self.state.executable
        vertex = int(executable.computes.vertex[position])

        def debug_print(where: int, text: int, values: tuple[Any, ...]) -> None:
            self.prints.append(DebugPrint(self._sequence, vertex, executable.codelets[codelet].typed.texts[text], values))

        context = VertexContext(
            clock=self._start,
            cycle_limit=executable.slot_limit,
            random=tables[at.RANDOM][tile],
            floating_point_mask=self.state.floating_point_mask,
            uninitialised_is_fault=executable.options.uninitialised == "error",
            workers=executable.target.getNumWorkerContexts(),
            debug_print=debug_print,
        )
        try:
            outcome = self.forms[codelet].run(self.state.memory, tables[at.WORDS], row, tables[at.ROW_TABLE], context)
        except CodeletFault as fault:
            if self.fault is None or vertex < self.fault.vertex:
                self.fault = Fault(vertex, fault.code, fault.where, fault.value, fault.bound, codelet, step)
            return 0, True
        if executable.options.flop_estimates:
            given = executable.computes.flops
            flops = int(given[position]) if len(given) and given[position] >= 0 else context.flops
            for table, number in ((tables[at.STEP_FLOPS], step), (tables[at.CODELET_FLOPS], codelet)):
                table[2 * number : 2 * number + 2] += flops, context.bytes
        return outcome
