"""A machine on which an example of each of some classes of vertices runs, many of them in one native call.

It has so many seats. What sits on one is a compute set, a step and a tile of its own, of one vertex, which has the places in memory
that it has in its program. Who sits there is written into the tables of the driver before each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from attrs import define, evolve, frozen

from pypoplar.arrays.dtypes import Bytes, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.codelet.ir.block_numbers import most_blocks
from pypoplar.engine.cost.vertex_classes import PlainFields, VertexClasses
from pypoplar.engine.division import divide
from pypoplar.engine.engine_state import DEFAULT_SEED, EngineState, estimated_tiles, make_state, seeded_generators, simple_tiles
from pypoplar.engine.faults import Fault, fault_error
from pypoplar.engine.native.machine_code import MachineCode, install_codelets, machine_code
from pypoplar.engine.native.runner import run_native
from pypoplar.errors import PoplarError
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.memory_image import Image
from pypoplar.executable.memory_layout import TILE_ALIGNMENT
from pypoplar.executable.move_lists import Moves
from pypoplar.executable.steps import StaticStep
from pypoplar.interface.context_words import WORK_WORDS
from pypoplar.interface.driver_records import PHASES, VertexCount
from pypoplar.interface.edge_rows import EdgeRow, RowEntry, edge_row, entry_words
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ROW_WORDS, ComputeOperand, Opcode, ProgramRow, program_row
from pypoplar.interface.vertex_kinds import VertexKind

SEATS = 64

Draws = Mapping[str, tuple[float, float]]
"""By field the least and the largest value that is drawn."""


@frozen(eq=False)
class ClassCost:
    """What a vertex of a class costs: slots of a worker (of a MultiVertex its busiest), and what it counts besides."""

    slots: int
    busy: int  # slots in which workers work: of a MultiVertex without those in which they wait for the busiest
    least_slots: int  # of all data that were drawn
    work: Int64s  # `Work`, empty where it is not counted
    blocks: Int64s  # executions by block, empty where they are not counted


@define(eq=False)
class ClassExamples:
    """The machine, and the classes whose examples it can run."""

    priced: Executable  # of which the classes are
    executable: Executable  # of what sits on the seats
    classes: VertexClasses
    vertex: Int64s  # [classes]
    codelet: Int64s  # [classes]: its number here
    kind: Int64s  # [codelets]
    blocks: Int64s  # [codelets]: how many each may have
    rows: tuple[EdgeRow, ...]  # [codelets]
    plain: PlainFields
    state: EngineState
    code: MachineCode

    @staticmethod
    def of(executable: Executable, classes: VertexClasses) -> ClassExamples:
        """A machine for the classes of an executable."""
        used = distinct(classes.codelet)
        seats = _seats(executable, used)
        state = make_state(seats, divide(seats, 1))
        state.restart()
        return ClassExamples(
            executable,
            seats,
            classes,
            executable.computes.vertex[classes.example],
            np.searchsorted(used, classes.codelet),
            np.array([VertexKind.of(codelet.kind) for codelet in seats.codelets], np.int64),
            np.array([most_blocks(codelet.typed) for codelet in seats.codelets], np.int64),
            tuple(edge_row(codelet.fields, record_touches=False) for codelet in seats.codelets),
            PlainFields.of(executable),
            state,
            machine_code(seats),
        )

    def run(self, number: int, given: Draws, seed: int) -> ClassCost | PoplarError:
        """What a class costs with values drawn for the fields that are `given`, and ones elsewhere; or its fault."""
        (cost,) = self._seated([number], given, seed)
        return cost

    def run_all(self, numbers: Sequence[int]) -> list[ClassCost | PoplarError]:
        """What each of some classes costs on ones, or its fault. None of them finds anything of one that ran before."""
        costs: list[ClassCost | PoplarError] = []
        for begin in range(0, len(numbers), SEATS):
            costs += self._seated(numbers[begin : begin + SEATS], {}, 0)
        return costs

    def _seated(self, numbers: Sequence[int], given: Draws, seed: int) -> list[ClassCost | PoplarError]:
        """Run examples that all have a seat. A fault ends a call of the driver; the next one begins with the next of them."""
        self._seat(np.array(numbers, np.int64))
        self._fill_plain(np.array(numbers, np.int64))
        for seat, number in enumerate(numbers):
            self._fill(seat, number, given, seed)
        self.state.count_into(self.state.new_account())
        faults: dict[int, PoplarError] = {}
        seat = 0
        while seat < len(numbers):
            fault = self._run_from(seat, seed)
            if fault is None:
                break
            seat = fault.step + 1
            faults[fault.step] = self._error(numbers, fault)
        return [faults[seat] if seat in faults else self._cost(seat, number) for seat, number in enumerate(numbers)]

    def _seat(self, numbers: Int64s) -> None:
        """Write who sits where, and a program that runs them one after the other."""
        tables, computes, seated = self.state.tables, self.executable.computes, slice(0, len(numbers))
        codelet = self.codelet[numbers]
        tables[Slot.GROUP_CODELET][seated] = computes.group_codelet[seated] = codelet
        tables[Slot.GROUP_KIND][seated] = computes.group_kind[seated] = self.kind[codelet]
        tables[Slot.GROUP_ROW][seated] = computes.group_row[seated] = self.classes.first_word[numbers]
        tables[Slot.VERTEX][seated] = computes.vertex[seated] = self.vertex[numbers]
        cycles, slots = estimated_tiles(computes, self.executable.target.getNumWorkerContexts())
        tables[Slot.ACTIVE_CYCLES][:], tables[Slot.ACTIVE_SLOTS][:] = cycles, slots
        tables[Slot.ACTIVE_SIMPLE][:] = simple_tiles(computes)
        operations = tables[Slot.PROGRAM].reshape(-1, ROW_WORDS)[:, ProgramRow.OPERATION]
        operations[seated], operations[len(numbers)] = Opcode.COMPUTE, Opcode.END

    def _run_from(self, seat: int, seed: int) -> Fault | None:
        """Each finds the random numbers that it finds when it runs alone."""
        state = self.state
        install_codelets(state, self.code)
        state.clock = 0
        workers = self.executable.target.getNumWorkerContexts()
        state.tables[Slot.RANDOM][:] = seeded_generators(DEFAULT_SEED + seed, 0, 1, workers)
        return run_native(state, seat, _no_service)

    def _error(self, numbers: Sequence[int], fault: Fault) -> PoplarError:
        step = _step(self._compute_set(numbers[fault.step]), fault.step)
        return fault_error(evolve(self.executable, steps=(step,) * len(numbers)), self.state.memory, fault)

    def _compute_set(self, number: int) -> str:
        """The name of the one that a class's example is in."""
        computes, place = self.priced.computes, int(self.classes.example[number])
        for first in (computes.first_vertex, computes.first_group, computes.first_active):
            place = int(np.searchsorted(first, place, "right")) - 1
        return next(step.name for step in self.priced.steps if step.compute == place)

    def _cost(self, seat: int, number: int) -> ClassCost:
        tables, codelet = self.state.account.tables, int(self.codelet[number])
        cycles = int(tables[Slot.TILE_CYCLES][seat])
        if Slot.TILE_CLOCK in self.state.tables:
            cycles -= self.executable.target.compute_set_start_cycles
        workers = 1 if self.kind[codelet] == VertexKind.SUPERVISOR else self.executable.target.getNumWorkerContexts()
        slots = cycles // workers
        work = tables[Slot.STEP_FLOPS][WORK_WORDS * seat : WORK_WORDS * (seat + 1)].copy()
        return ClassCost(slots, int(tables[Slot.TILE_SLOTS][seat]), slots, work, self._blocks(seat, codelet))

    def _blocks(self, seat: int, codelet: int) -> Int64s:
        blocks = self.state.blocks
        if blocks is None:
            return np.zeros(0, np.int64)
        first = int(blocks.of_group[seat]) + VertexCount.BLOCKS
        return self.state.account.tables[Slot.BLOCKS][first : first + int(self.blocks[codelet])].copy()

    # Data

    def _fill_plain(self, numbers: Int64s) -> None:
        """Put the values of plain fields where they lie."""
        memory, words, tile = self.state.memory, self.executable.computes.words, self.classes.tile[numbers]
        for codelet in distinct(self.codelet[numbers]).tolist():
            seats = np.flatnonzero(self.codelet[numbers] == codelet)
            row = self.classes.first_word[numbers[seats]]
            for described, place in zip(self.executable.codelets[codelet].fields, self.rows[codelet].fields, strict=True):
                if described.access != "state":
                    continue
                start, size = words[row + place.start], described.type.size
                if place.extent == NOTHING:
                    bits = self.plain.scalars(tile[seats], start, size).view(np.uint8).reshape(-1, 8)[:, :size]
                    memory.whole[(memory.tile_base[seats] + start)[:, None] + np.arange(size)] = bits
                    continue
                for seat, begin, length in zip(seats.tolist(), start.tolist(), words[row + place.extent].tolist(), strict=True):
                    own = memory.from_tile(seat)[begin : begin + length * size]
                    own[:] = self.plain.bytes(int(tile[seat]), begin, length * size)

    def _fill(self, seat: int, number: int, given: Draws, seed: int) -> None:
        """Put data where the fields of edges lie, and plain fields whose values are drawn, as they are written."""
        memory, words, codelet = self.state.memory.from_tile(seat), self.executable.computes.words, int(self.codelet[number])
        random = np.random.default_rng((seed, number)) if given else None
        row = int(self.classes.first_word[number])
        for described, place in zip(self.executable.codelets[codelet].fields, self.rows[codelet].fields, strict=True):
            if described.access == "state" and described.name not in given:
                continue
            start, extent = int(words[row + place.start]), 1 if place.extent == NOTHING else int(words[row + place.extent])
            spans = self._listed(start, extent) if described.form == "list" else [(start, extent)]
            for offset, length in spans:
                values = memory[offset : offset + length * described.type.size].view(described.type.dtype)
                if random is not None and described.name in given:
                    values[:] = _drawn(values.dtype, *given[described.name], length, random)
                else:
                    values[:] = 1

    def _listed(self, first: int, count: int) -> list[tuple[int, int]]:
        table = self.executable.computes.row_table.reshape(-1, entry_words(record_touches=False))
        rows = table[first : first + count]
        return list(zip(rows[:, RowEntry.ADDRESS].tolist(), rows[:, RowEntry.LENGTH].tolist(), strict=True))


def _drawn(dtype: np.dtype[Any], low: float, high: float, length: int, random: np.random.Generator) -> Any:
    """Values of a type, from `low` to `high`, both among them where they are whole numbers."""
    if dtype.kind == "f":
        return random.uniform(low, high, length)
    return random.integers(int(low), int(high), length, dtype=np.int64, endpoint=True)


def _no_service(number: int) -> NoReturn:
    raise AssertionError(f"examples have no services, service {number} was asked for")


def _seats(executable: Executable, used: Int64s) -> Executable:
    """An executable of so many compute sets, each of one vertex on a tile of its own, which has room for any class.

    Of its codelets, those of an executable that are `used`, all seats have the one with the most blocks: its rows are the widest.
    """
    nothing, each = np.zeros(0, np.int64), np.arange(SEATS + 1)
    codelets = tuple(executable.codelets[int(number)] for number in used)
    widest = int(np.argmax([most_blocks(codelet.typed) for codelet in codelets]))
    among = np.isin(executable.in_place[:, 0], used)
    in_place = executable.in_place[among].copy()
    in_place[:, 0] = np.searchsorted(used, in_place[:, 0])
    options = executable.options
    if options.uninitialised == "error":
        options = evolve(options, uninitialised="poison")
    return evolve(
        executable,
        options=options,
        codelets=codelets,
        in_place=in_place,
        target=evolve(executable.target, num_ipus=1, tiles_per_ipu=SEATS),
        tile_bytes=np.full(SEATS, executable.tile_bytes.max(initial=TILE_ALIGNMENT)),
        image=Image(nothing, nothing, nothing, _no_bytes()),
        program=_program(),
        entries=np.zeros(1, np.int64),
        entry_streams=((),),
        counters=0,
        call_depth=0,
        clocks=0,
        moves=_no_moves(),
        computes=Computes(
            first_active=each,
            active_tile=each[:-1].copy(),
            first_group=each,
            group_codelet=np.full(SEATS, widest),
            group_row=np.zeros(SEATS, np.int64),
            group_count=np.ones(SEATS, np.int64),
            group_position=each[:-1].copy(),
            group_kind=np.full(SEATS, VertexKind.MULTI, np.int64),  # it needs the most words for its prices
            first_vertex=each,
            vertex=np.zeros(SEATS, np.int64),
            list_order=np.zeros(SEATS, np.int64),
            estimate=nothing,
            flops=nothing,
            words=executable.computes.words,
            row_table=executable.computes.row_table,
            moves=np.full((SEATS, PHASES), NOTHING, np.int64),
            result_tile=np.full(SEATS, NOTHING, np.int64),
            result_offset=np.zeros(SEATS, np.int64),
            codelet_words=executable.computes.codelet_words[used],
            cost=np.zeros(SEATS, np.int64),
            first_buffer=np.zeros(SEATS + 1, np.int64),
            buffer_tile=nothing,
            buffer_bytes=nothing,
        ),
        steps=tuple(_step("", seat) for seat in range(SEATS)),
        services=(),
        streams=(),
        floating_point_checks=False,
        cost=None,
    )


def _step(name: str, seat: int) -> StaticStep:
    return StaticStep(name, "compute", 0, np.zeros(0, np.int64), compute=seat)


def _program() -> Int64s:
    """A row that runs the compute set of each seat, and one behind them."""
    row = {ComputeOperand.COMPUTE: 0, ComputeOperand.BEFORE: NOTHING, ComputeOperand.STEP: 0, ComputeOperand.AFTER: NOTHING}
    program = np.tile(np.array(program_row(Opcode.COMPUTE, row), np.int64), (SEATS + 1, 1))
    for operand in (ComputeOperand.COMPUTE, ComputeOperand.STEP):
        program[:, operand] = np.arange(SEATS + 1)
    return program


def _no_moves() -> Moves:
    nothing, first = np.zeros(0, np.int64), np.zeros(1, np.int64)
    return Moves(first, nothing, nothing, first, *(nothing,) * 9, places=np.zeros(0, np.uint32))


def _no_bytes() -> Bytes:
    return np.zeros(0, np.uint8)
