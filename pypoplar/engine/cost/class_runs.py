"""Runs an example of each class of vertices, on data that nobody has given, to find what the class costs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Bytes, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.codelet.ir.deciding_loads import LOOP, DecidingLoad, deciding_loads
from pypoplar.engine.cost.vertex_classes import PlainFields, VertexClasses
from pypoplar.engine.division import divide
from pypoplar.engine.engine_state import DEFAULT_SEED, EngineState, make_state
from pypoplar.engine.faults import fault_error
from pypoplar.engine.native.machine_code import MachineCode, install_codelets, machine_code
from pypoplar.engine.native.runner import run_native
from pypoplar.errors import ControlProgramError, PoplarError
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.memory_image import Image
from pypoplar.executable.memory_layout import TILE_ALIGNMENT
from pypoplar.executable.move_lists import Moves
from pypoplar.executable.steps import StaticStep
from pypoplar.interface.context_words import WORK_WORDS
from pypoplar.interface.driver_records import PHASES, VertexCount
from pypoplar.interface.edge_rows import RowEntry, edge_row, entry_words
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ROW_WORDS, ComputeOperand, Opcode, ProgramRow, program_row
from pypoplar.interface.vertex_kinds import VertexKind
from pypoplar.report.cost_basis import SampledType

Samples = Mapping[str, Mapping[str, tuple[float, float]]]
"""By codelet and field the least and the largest value that is drawn."""

SEEDS = 3  # of the data of a class that is sampled


@frozen(eq=False)
class ClassCost:
    """What a vertex of a class costs: slots of a worker (of a MultiVertex its busiest), and what it counts besides."""

    slots: int
    busy: int  # slots in which workers work: of a MultiVertex without those in which they wait for the busiest
    least_slots: int  # of all data that were drawn
    work: Int64s  # `Work`, empty where it is not counted
    blocks: Int64s  # executions by block, empty where they are not counted


@define(eq=False)
class ClassRuns:
    """Finds the costs of classes, each when it is first asked for."""

    executable: Executable
    classes: VertexClasses
    samples: Samples
    _known: dict[int, ClassCost] = field(factory=dict)
    _counted: dict[int, ClassCost | None] = field(factory=dict)  # of classes that estimates price and data decide
    _examples: _Examples | None = None

    def of(self, number: int) -> ClassCost:
        """What a vertex of the class costs; `ControlProgramError` where data decide that and nobody has said which."""
        if number not in self._known:
            self._known[number] = self._found(number)
        return self._known[number]

    def counts_of(self, number: int) -> ClassCost | None:
        """What a vertex of a class counts beside its cycles, which an estimate gives; None where it is not known.

        Where data decide branches, it is what one vertex counts whose data are ones; of loops whose rounds data decide, and of what
        faults with ones, nothing is known.
        """
        if number in self._known or not self._unsaid(number):
            return self.of(number)
        if number not in self._counted:
            self._counted[number] = self._of_ones(number)
        return self._counted[number]

    def of_ones(self) -> tuple[str, ...]:
        """The codelets of which one vertex on ones was counted."""
        return self._names([number for number, counts in self._counted.items() if counts is not None])

    def uncounted(self) -> tuple[str, ...]:
        """The codelets of which it is not known what they count."""
        return self._names([number for number, counts in self._counted.items() if counts is None])

    def sampled(self) -> tuple[SampledType, ...]:
        """The codelets that were priced with data that were drawn."""
        found = []
        for name, fields in self.samples.items():
            codelets = self.executable.codelets
            costs = [cost for number, cost in self._known.items() if codelets[int(self.classes.codelet[number])].name == name]
            if costs:
                values = ", ".join(f"{field} from {low:g} to {high:g}" for field, (low, high) in fields.items())
                least, most = min(cost.least_slots for cost in costs), max(cost.slots for cost in costs)
                found.append(SampledType(name, values, least, most))
        return tuple(found)

    def _names(self, numbers: list[int]) -> tuple[str, ...]:
        return tuple(sorted({self.executable.codelets[int(self.classes.codelet[number])].name for number in numbers}))

    def _unsaid(self, number: int) -> list[DecidingLoad]:
        """What decides the cost of a class and no sample tells."""
        codelet = self.executable.codelets[int(self.classes.codelet[number])]
        given = self.samples.get(codelet.name)
        return [load for load in deciding_loads(codelet.typed) if not _is_said(load, given)]

    def _of_ones(self, number: int) -> ClassCost | None:
        if any(load.decides == LOOP for load in self._unsaid(number)):
            return None
        with suppress(PoplarError):
            return self._made_examples().run(number, {}, 0)
        return None

    def _made_examples(self) -> _Examples:
        if self._examples is None:
            self._examples = _Examples.of(self.executable, self.classes)
        return self._examples

    def _found(self, number: int) -> ClassCost:
        codelet = self.executable.codelets[int(self.classes.codelet[number])]
        given = self.samples.get(codelet.name)
        unsaid = self._unsaid(number)
        if unsaid:
            self._refuse(number, unsaid)
        seeds = SEEDS if given is not None and deciding_loads(codelet.typed) else 1
        costs, faults = [], []
        for seed in range(seeds):
            try:
                costs.append(self._made_examples().run(number, given or {}, seed))
            except PoplarError as fault:
                faults.append(fault)
        if not costs:
            raise faults[0]
        largest = max(costs, key=lambda cost: cost.slots)
        return evolve(largest, least_slots=min(cost.slots for cost in costs))

    def _refuse(self, number: int, unsaid: list[DecidingLoad]) -> NoReturn:
        codelet = self.executable.codelets[int(self.classes.codelet[number])].typed
        names, vertex = self.executable.vertex_names, self._vertex(number)
        file, line, _ = names.locations[int(names.location[vertex])]
        fields = {load.source: "(low, high)" for load in unsaid if load.is_field}
        drawn = ", ".join(f"{name!r}: {bounds}" for name, bounds in fields.items())
        told = []
        for load in unsaid:
            place = codelet.locations[load.where]
            what = f"the value of {load.source!r}" if load.is_field else load.source
            told.append(f"  {what} decides {load.decides} at {place.file}:{place.line}")
        raise ControlProgramError(
            f"mode='cost' does not know what codelet {codelet.name!r} costs, as data decide that:\n"
            + "\n".join(dict.fromkeys(told))
            + f"\n  vertex {vertex}, added at {file}:{line}\n"
            f"Give an estimate (Graph.setPerfEstimate, or a method cycles of the codelet), or values to draw: "
            f"sample={{{codelet.name!r}: {{{drawn}}}}}"
        )

    def _vertex(self, number: int) -> int:
        return int(self.executable.computes.vertex[self.classes.example[number]])


def _is_said(load: DecidingLoad, given: Mapping[str, Any] | None) -> bool:
    """Whether a sample tells what is loaded; of what is read of the tile, random numbers say, it is enough that there is one."""
    return given is not None and (not load.is_field or load.source in given)


@define(eq=False)
class _Examples:
    """An engine of the examples: a compute set for each class, all on tile 0, with the example's own places in memory."""

    executable: Executable  # of the examples
    classes: VertexClasses
    plain: PlainFields
    state: EngineState
    code: MachineCode

    @staticmethod
    def of(executable: Executable, classes: VertexClasses) -> _Examples:
        examples = _examples(executable, classes)
        state = make_state(examples, divide(examples, 1))
        return _Examples(examples, classes, PlainFields.of(executable), state, machine_code(examples))

    def run(self, number: int, given: Mapping[str, tuple[float, float]], seed: int) -> ClassCost:
        """One run of the example of a class, on ones where no values are `given` to draw."""
        state = self.state
        install_codelets(state, self.code)
        state.restart()
        state.seed(DEFAULT_SEED + seed)
        state.count_into(state.new_account())
        self._fill(number, given, np.random.default_rng((seed, number)))
        fault = run_native(state, 2 * number, _no_service)
        if fault is not None:
            raise fault_error(self.executable, state.memory, fault)
        tables = state.account.tables
        workers = self.executable.target.getNumWorkerContexts()
        together = self.executable.computes.group_kind[number] == VertexKind.MULTI
        slots = int(tables[Slot.CODELET_SLOTS].sum()) // (workers if together else 1)
        return ClassCost(slots, int(tables[Slot.TILE_SLOTS][number]), slots, self._work(number), self._blocks(number))

    def _work(self, number: int) -> Int64s:
        work = self.state.account.tables[Slot.STEP_FLOPS]
        return work[WORK_WORDS * number : WORK_WORDS * (number + 1)].copy()

    def _blocks(self, number: int) -> Int64s:
        blocks = self.state.blocks
        if blocks is None:
            return np.zeros(0, np.int64)
        first, end = blocks.first[number : number + 2].tolist()  # one codelet in each compute set: a row each
        return self.state.account.tables[Slot.BLOCKS][first + VertexCount.BLOCKS : end].copy()

    def _fill(self, number: int, given: Mapping[str, tuple[float, float]], random: np.random.Generator) -> None:
        """Put data where the example's fields lie."""
        computes, memory = self.executable.computes, self.state.memory.from_tile(0)
        codelet = self.executable.codelets[int(computes.group_codelet[number])]
        row = computes.words[int(computes.group_row[number]) :]
        layout = edge_row(codelet.fields, record_touches=False)
        for described, place in zip(codelet.fields, layout.fields, strict=True):
            start, extent = int(row[place.start]), 1 if place.extent == NOTHING else int(row[place.extent])
            if described.access == "state":
                size = extent * described.type.size
                memory[start : start + size] = self.plain.bytes(int(self.classes.tile[number]), start, size)
                continue
            spans = self._rows(start, extent) if described.form == "list" else [(start, extent)]
            for offset, length in spans:
                values = memory[offset : offset + length * described.type.size].view(described.type.dtype)
                if described.name in given:
                    values[:] = _drawn(values.dtype, *given[described.name], length, random)
                else:
                    values[:] = 1

    def _rows(self, first: int, count: int) -> list[tuple[int, int]]:
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


def _examples(executable: Executable, classes: VertexClasses) -> Executable:
    """The executable of the examples: class i is compute set, step and program i, of one vertex."""
    count, computes = len(classes.example), executable.computes
    used = distinct(classes.codelet)
    own = np.searchsorted(used, classes.codelet)
    codelets = tuple(executable.codelets[int(number)] for number in used)
    vertex, nothing = computes.vertex[classes.example], np.zeros(0, np.int64)
    each = np.arange(count + 1)
    kinds = np.array([VertexKind.of(codelet.kind) for codelet in codelets], np.int64)
    names = [executable.codelets[int(number)].name for number in classes.codelet]
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
        target=executable.target.evolve(ipus=1, tiles=1),  # each run seeds the generators of all tiles
        tile_bytes=executable.tile_bytes.max(keepdims=True, initial=TILE_ALIGNMENT),
        image=Image(nothing, nothing, nothing, _no_bytes()),
        program=_programs(count),
        entries=2 * np.arange(count),
        entry_streams=((),) * count,
        counters=0,
        call_depth=0,
        clocks=0,
        moves=_no_moves(),
        computes=Computes(
            first_active=each,
            active_tile=np.zeros(count, np.int64),
            first_group=each,
            group_codelet=own,
            group_row=classes.first_word,
            group_count=np.ones(count, np.int64),
            group_position=each[:-1],
            group_kind=kinds[own],
            first_vertex=each,
            vertex=vertex,
            list_order=np.zeros(count, np.int64),
            estimate=nothing,
            flops=nothing,
            words=computes.words,
            row_table=computes.row_table,
            moves=np.full((count, PHASES), NOTHING, np.int64),
            result_tile=np.full(count, NOTHING, np.int64),
            result_offset=np.zeros(count, np.int64),
            codelet_words=computes.codelet_words[used],
            cost=np.zeros(count, np.int64),
            first_buffer=np.zeros(count + 1, np.int64),
            buffer_tile=nothing,
            buffer_bytes=nothing,
        ),
        steps=tuple(StaticStep(name, "compute", 0, nothing, compute=number) for number, name in enumerate(names)),
        services=(),
        streams=(),
        floating_point_checks=False,
        cost=None,
    )


def _programs(count: int) -> Int64s:
    """A row that runs a compute set, for each, and the end behind it."""
    program = np.zeros((2 * count, ROW_WORDS), np.int64)
    program[1::2, ProgramRow.OPERATION] = Opcode.END
    row = {ComputeOperand.COMPUTE: 0, ComputeOperand.BEFORE: NOTHING, ComputeOperand.STEP: 0, ComputeOperand.AFTER: NOTHING}
    program[0::2] = program_row(Opcode.COMPUTE, row)
    for operand in (ComputeOperand.COMPUTE, ComputeOperand.STEP):
        program[0::2, operand] = np.arange(count)
    return program


def _no_moves() -> Moves:
    nothing, first = np.zeros(0, np.int64), np.zeros(1, np.int64)
    return Moves(first, nothing, nothing, first, *(nothing,) * 9, places=np.zeros(0, np.uint32))


def _no_bytes() -> Bytes:
    return np.zeros(0, np.uint8)
