"""Fills the tables of a profile file from a report."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import Any

import numpy as np
from attrs import astuple

from pypoplar.arrays.dtypes import Int64s
from pypoplar.report.cost_basis import cost_text
from pypoplar.report.escaping import escaped
from pypoplar.report.execution import COSTS, Execution, Run, Step, summed_runs
from pypoplar.report.failed_runs import failed_text
from pypoplar.report.file.line_tables import line_rows
from pypoplar.report.file.tile_profile_table import BY_TILE, MessageTable, TileProfileTable
from pypoplar.report.program_table import ProgramTable
from pypoplar.report.report import Compilation, Report
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices, VerticesByTile
from pypoplar.report.trace import RecordedTiles

ALL_RUNS = -1  # in the place of a run's number, for all runs together


class ProfileWriter:
    """Writes one report into empty tables."""

    def __init__(self, database: sqlite3.Connection, report: Report) -> None:
        self._database = database
        self._report = report
        self._tiles = report.compilation.target.numTiles
        self._programs = ProgramTable()
        self._profiles = TileProfileTable(self._tiles)

    def write(self) -> None:
        """Write the rows of all tables."""
        report = self._report
        about = {"name": report.name, "created": report.created, "poplar_version": report.poplarVersion.string}
        if report.failed_runs:
            about["failed_runs"] = failed_text(report.failed_runs)
        if report.cost is not None:
            about["cost"] = cost_text(report.cost)
        self._rows("meta", sorted(about.items()))
        self._compilation(report.compilation)
        if report.execution is not None:
            self._execution(report.execution)
        self._program_tables()

    def _rows(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows of whole tables: one value for each column, in the schema's order."""
        kinds = [kind for _, _, kind, *_ in self._database.execute(f"PRAGMA table_info({table})")]
        if "TEXT" in kinds:
            rows = [[escaped(value) if isinstance(value, str) else value for value in row] for row in rows]
        self._database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(kinds))})", rows)

    def _compilation(self, compilation: Compilation) -> None:
        target, graph, memory = compilation.target, compilation.graph, compilation.memory
        ipus = target.numIPUs * target.numReplicas
        machine = (target.architecture, target.system, target.timing, ipus, target.tilesPerIpu, target.bytesPerTile)
        speed = (target.clockFrequency, target.numWorkerContexts, target.numReplicas, target.memory_bytes_per_cycle)
        self._rows("target", [(*machine, *speed, target.link_bytes_per_cycle)])
        wiring = target.link_topology, target.link_domain_size, target.gateway_bytes_per_cycle, target.gateway_link_bytes_per_cycle
        self._rows("wiring", [wiring])
        host = target.host_link
        self._rows("host_link", [(host.write_bytes_per_cycle, host.read_bytes_per_cycle, host.sync_cycles)] if host else [])
        self._rows("peak_flops", target.peak_flops_per_cycle.items())
        self._rows("engine_option", compilation.options.items())
        self._rows("graph", [(graph.numVertices, graph.numEdges, graph.numVars, graph.numComputeSets)])
        gaps = self._by_tile("memory.gaps", memory.gaps).tolist()
        live = (
            self._known("memory.always_live", memory.always_live),
            self._known("memory.not_always_live", memory.not_always_live),
        )
        self._rows("tile", zip(count(), gaps, *live, strict=False))
        self._rows("memory_category", enumerate(memory.categories))
        for number, (name, sizes) in enumerate(memory.categories.items()):
            tiles = np.flatnonzero(self._by_tile(name, sizes))
            self._rows("tile_memory", zip(repeat(number), tiles.tolist(), sizes[tiles].tolist(), strict=False))
        self._rows("vertex_memory_by_category", memory.vertex_data.items())
        self._rows("vertex_memory_by_type", memory.vertex_data_by_type.items())
        types = compilation.vertex_types
        self._rows(
            "vertex_type",
            [(number, kind.name, kind.instances, kind.memory, kind.precision) for number, kind in enumerate(types)],
        )
        self._tile_vertices(memory.vertices, tuple(kind.name for kind in types))
        pricing = [(number, *entry) for number, vertex_type in enumerate(types) for entry in vertex_type.priced_by.items()]
        self._rows("vertex_type_pricing", pricing)
        elements = ((number, element) for number, vertex_type in enumerate(types) for element in vertex_type.elements)
        self._rows("vertex_type_element", elements)
        self._variables(compilation)
        self._rows("entry", [(number, self._programs.add(root)) for number, root in enumerate(compilation.programs)])
        self._rows("static_step", [(number, self._programs.add(leaf)) for number, leaf in enumerate(compilation.step_programs)])
        self._exchanges(compilation)

    def _tile_vertices(self, vertices: VerticesByTile, types: tuple[str, ...]) -> None:
        if len(vertices.tile) and vertices.names != types:
            raise ValueError(f"memory.vertices has other types than vertex_types: {vertices.names} and {types}")
        columns = (vertices.tile.tolist(), vertices.vertex_type.tolist(), vertices.count.tolist(), vertices.bytes.tolist())
        self._rows("tile_vertex", zip(*columns, strict=True))

    def _exchanges(self, compilation: Compilation) -> None:
        rows, lists = [], MessageTable()
        for number, exchange in enumerate(compilation.exchanges):
            messages, new = lists.add(exchange)
            rows.append((number, exchange.name, exchange.phase, exchange.step, messages))
            if new:
                columns = (exchange.source.tolist(), exchange.destination.tolist(), exchange.bytes.tolist())
                self._rows("exchange_message", zip(repeat(messages), *columns, strict=False))
        self._rows("exchange", rows)

    def _variables(self, compilation: Compilation) -> None:
        variables = compilation.loweredVariables
        self._rows("variable", zip(range(len(variables)), variables.names, variables.always.astype(int).tolist(), strict=True))
        self._places("variable", variables.made_at)
        lives = (variables.life_owner().tolist(), variables.life_begin.tolist(), variables.life_end.tolist())
        self._rows("variable_life", zip(*lives, strict=True))
        known = (values.tolist() if len(values) else repeat(None) for values in (variables.offset, variables.span))
        places = zip(variables.owner().tolist(), variables.tile.tolist(), variables.bytes.tolist(), *known, strict=False)
        self._rows("variable_tile", places)

    def _execution(self, execution: Execution) -> None:
        trace = execution.trace
        about = (execution.tiles, execution.clockFrequency, trace.missed, trace.recorded, trace.unrecorded)
        self._rows("execution", [about])
        self._rows("executed_program", [(name,) for name in execution.programs])
        self._rows("vertex_type_cycles", [(name, *astuple(costs)) for name, costs in execution.cycles_by_vertex_type.items()])
        self._rows("slowest_vertex", slowest_rows(execution.slowest_vertices))
        self._rows("run", [(number, run.name, run.count) for number, run in enumerate(execution.runs)])
        together = [(number, step) for number, run in enumerate(execution.runs) for step in run.steps]
        if not is_sum_of_runs(execution):
            together = [(ALL_RUNS, step) for step in execution.steps] + together
        described: dict[int, tuple[Any, ...]] = {}
        known = [name for name in COSTS if name != "copy_cycles" or execution.copies_known]
        self._rows("run_step", [self._step(run, step, described, known) for run, step in together])
        self._rows("step", sorted(described.values()))
        limits = {step.number: step.host_limit for _, step in together if step.host_limit}
        self._rows("host_limit", sorted(limits.items()))
        self._rows("recorded_execution", self._recorded(trace.tiles))
        self._rows("tile_profile", enumerate(self._profiles.columns))
        for number, run in enumerate(execution.runs):
            self._ipus(number, run)
        columns = (trace.run.tolist(), trace.step.tolist(), trace.begin.tolist(), trace.cycles.tolist(), trace.ipu.tolist())
        self._rows("trace_event", zip(range(len(trace)), *columns, strict=True))
        for table, rows in line_rows(execution.lines) if execution.lines is not None else ():
            self._rows(table, rows)

    def _ipus(self, number: int, run: Run) -> None:
        """What the IPUs of a run spend, each by itself."""
        self._rows("run_ipu", zip(repeat(number), count(), run.waiting_by_ipu.tolist(), strict=False))
        for step in run.steps:  # the columns of the table are in the order of BY_IPU
            columns = step.cycles_by_ipu.T.tolist() if len(step.cycles_by_ipu) else []
            rows = ((number, step.number, ipu, *column) for ipu, column in enumerate(columns) if any(column))
            self._rows("run_step_ipu", rows)

    def _step(self, run: int, step: Step, described: dict[int, tuple[Any, ...]], known: Sequence[str]) -> tuple[Any, ...]:
        """The step's row in run_step, with the costs that are known. Its profile is written, if it is new, what it is described."""
        program = None if step.program is None else self._programs.add(step.program)
        about = (step.number, step.name, step.type, step.depth, step.num_ipus, program)
        if described.setdefault(step.number, about) != about:
            raise ValueError(f"two different steps have the number {step.number}: {described[step.number]} and {about}")
        profile, times, new = self._profiles.add(step)
        if profile is not None and new is not None:
            self._tile_profile(profile, new)
        costs = (int(getattr(step, name)) if name in known else None for name in COSTS)
        return (run, step.number, *costs, profile, times)

    def _tile_profile(self, number: int, arrays: Mapping[str, Int64s]) -> None:
        """The rows of a profile that is new."""
        tiles = np.flatnonzero(np.logical_or.reduce([array != 0 for array in arrays.values()]))
        columns = [arrays[name][tiles].tolist() if name in arrays else repeat(0) for name in BY_TILE]
        self._rows("tile_profile_tile", zip(repeat(number), tiles.tolist(), *columns, strict=False))

    def _recorded(self, recorded: RecordedTiles) -> Iterator[tuple[int, ...]]:
        """A row for each recorded execution; what tiles did in it is written, if it is new."""
        columns = (recorded.run.tolist(), recorded.step.tolist(), recorded.execution.tolist())
        for place, about in enumerate(zip(*columns, strict=True)):
            cycles = recorded.by_tile(place, self._tiles)
            number, new = self._profiles.add_cycles(cycles)
            if new:
                self._tile_profile(number, {"cycles": cycles})
            yield (*about, number)

    def _places(self, kind: str, places: Iterable[str]) -> None:
        """The lines that made what a table has, by its number there."""
        self._rows("made_at", [(kind, number, place) for number, place in enumerate(places) if place])

    def _by_tile(self, name: str, values: Int64s) -> Int64s:
        if len(values) != self._tiles:
            raise ValueError(f"{name} has {len(values)} entries for {self._tiles} tiles")
        return values

    def _known(self, name: str, values: Int64s) -> Iterable[int | None]:
        """Values by tile, which may not be known."""
        return self._by_tile(name, values).tolist() if len(values) else repeat(None)

    def _program_tables(self) -> None:
        table = self._programs
        self._rows("compute_set", [(number, name) for number, (name, *_) in enumerate(table.compute_sets)])
        self._places("compute_set", [place for _, place, _ in table.compute_sets])
        vertices = [(number, *entry) for number, (*_, entries) in enumerate(table.compute_sets) for entry in entries]
        self._rows("compute_set_vertex", vertices)
        self._rows("program", [(number, *program[:5]) for number, program in enumerate(table.programs)])
        self._places("program", [program[5] for program in table.programs])
        children = [
            (number, place, child) for number, program in enumerate(table.programs) for place, child in enumerate(program[-1])
        ]
        self._rows("program_child", children)


def slowest_rows(steps: Mapping[int, Sequence[SizedVertices]]) -> Iterator[tuple[int | str, ...]]:
    """A row for each size of the vertices of each step."""
    for step, types in steps.items():
        for vertices in types:
            for size in vertices.sizes or (FieldSizes("", 0, 0),):
                yield (step, vertices.name, vertices.count, *astuple(size))


def is_sum_of_runs(execution: Execution) -> bool:
    """Whether `steps` says no more than the runs' steps do."""
    steps = summed_runs(execution.runs)
    return len(steps) == len(execution.steps) and _same(steps, execution.steps)


def _same(steps: Sequence[Step], others: Sequence[Step]) -> bool:
    """Whether steps are the same, one by one."""
    equal: dict[tuple[int, int], bool] = {}  # arrays that many steps share are compared once

    def same_array(array: Int64s, other: Int64s) -> bool:
        key = (id(array), id(other))
        if key not in equal:
            equal[key] = np.array_equal(array, other)
        return equal[key]

    return all(
        step.program is other.program
        and all(getattr(step, name) == getattr(other, name) for name in ("number", "name", "type", "depth", "num_ipus", *COSTS))
        and all(same_array(getattr(step, name), getattr(other, name)) for name in (*BY_TILE.values(), "cycles_by_ipu"))
        for step, other in zip(steps, others, strict=True)
    )
