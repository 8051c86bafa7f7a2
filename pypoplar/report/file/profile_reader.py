"""Makes a report of the tables of a profile file. Every value is checked: `FileLoadError` says which one is wrong."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import KeysView, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, assert_never

import numpy as np
from attrs import evolve, fields

from pypoplar.arrays.dtypes import Int64s
from pypoplar.errors import FileLoadError
from pypoplar.executable.claims import claim, claim_each, claim_number, claim_range
from pypoplar.presets import LINK_TOPOLOGIES, MOST_OF_DOMAIN, TIMINGS
from pypoplar.report.cost_basis import read_cost
from pypoplar.report.execution import (
    BY_IPU,
    COSTS,
    STEP_TYPES,
    Execution,
    Run,
    Step,
    VertexTypeCycles,
    no_tiles,
    summed_runs,
)
from pypoplar.report.failed_runs import read_failed
from pypoplar.report.file.column_kinds import COUNT, MAYBE, PLACE, REAL, TEXT, ColumnKind
from pypoplar.report.file.line_tables import read_lines
from pypoplar.report.file.profile_writer import ALL_RUNS
from pypoplar.report.file.tile_profile_table import BY_TILE
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile, nothing
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import Compilation, ExchangeReport, HostLink, Report, ReportGraph, ReportTarget, Version, VertexType
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices, VerticesByTile
from pypoplar.report.trace import RecordedTiles, Trace

ENDLESS = 1 << 62
"""No count, size or number of cycles is as large."""
COUNTS = re.compile("[0-9,]+")


class ProfileReader:
    """Reads one report from tables that have the schema's columns, whatever is in them."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._target = self._read_target()
        self._tiles, self._ipus = self._target.numTiles, self._target.numIPUs
        self._made_at = self._read_places()
        self._programs = self._read_programs()
        self._leaves = self._program_list("static_step", "step")
        self._steps = len(self._leaves) or ENDLESS  # steps have lower numbers

    def report(self) -> Report:
        """The report that the file's rows make up; what they refer to is checked."""
        about = dict(self.rows("meta", "key", key=TEXT, value=TEXT))
        for key in ("created", "name", "poplar_version"):
            claim(key in about, f"meta has no row {key}")
        try:
            failed = read_failed(about.get("failed_runs", "[]"))
        except ValueError as problem:
            raise FileLoadError(f"meta.failed_runs: {problem}") from problem
        try:
            cost = read_cost(about["cost"]) if "cost" in about else None
        except ValueError as problem:
            raise FileLoadError(f"meta.cost: {problem}") from problem
        compilation = evolve(self._compilation(), mode="run" if cost is None else "cost")
        version = Version(about["poplar_version"])
        return Report(compilation, self._execution(), version, about["name"], about["created"], failed, cost)

    # Reading tables

    def rows(self, table: str, order: str = "rowid", /, **kinds: ColumnKind) -> list[tuple[Any, ...]]:
        """All rows of a table that is never large, in the order in which they were written."""
        rows = self._database.execute(f"SELECT {', '.join(kinds)} FROM {table} ORDER BY {order}").fetchall()
        for (column, kind), values in zip(kinds.items(), zip(*rows, strict=True), strict=False):
            self._check(f"{table}.{column}", kind, values)
        return rows

    def _check(self, name: str, kind: ColumnKind, values: Sequence[Any]) -> None:
        types = set(map(type, values))
        match kind:
            case ColumnKind.TEXT:
                claim(types <= {str}, f"{name} has a value that is not text")
            case ColumnKind.REAL:
                fine = types <= {float} and all(map(math.isfinite, values)) and min(values) >= 0
                claim(fine, f"{name} is not a number of 0 or more")
            case ColumnKind.COUNT | ColumnKind.PLACE | ColumnKind.MAYBE:
                allowed = {int, type(None)} if kind is ColumnKind.MAYBE else {int}
                claim(types <= allowed, f"{name} has a value that is not an integer")
                numbers = np.array([value for value in values if value is not None], np.int64)
                claim_range(name, numbers, -1 if kind is ColumnKind.PLACE else 0, ENDLESS)
            case _:
                assert_never(kind)

    def _one(self, table: str, /, **kinds: ColumnKind) -> tuple[Any, ...]:
        """The row of a table that has one."""
        rows = self.rows(table, **kinds)
        claim(len(rows) == 1, f"{table} has {len(rows)} rows: expected 1")
        return rows[0]

    def _integers(self, table: str, columns: Sequence[str], order: str = "rowid", where: str = "") -> list[Int64s]:
        """Columns of a table that may be large, each as an array; every value 0 or more.

        SQLite joins a column's values to one text, which NumPy reads: half the time of a Python object for each value.
        """
        joined = ", ".join(f"GROUP_CONCAT({column})" for column in columns)
        source = f"(SELECT {', '.join(columns)} FROM {table} {where} ORDER BY {order})"
        rows, *texts = self._database.execute(f"SELECT COUNT(*), {joined} FROM {source}").fetchone()
        return [self._parse(f"{table}.{name}", rows, text or "") for name, text in zip(columns, texts, strict=True)]

    def _parse(self, name: str, rows: int, text: str) -> Int64s:
        fine = COUNTS.fullmatch(text) is not None and ",," not in f",{text}," and text.count(",") == max(rows - 1, 0)
        claim(fine or rows == 0, f"{name} has a value that is not a count")
        values = np.fromstring(text, np.int64, sep=",")
        claim_range(name, values, 0, ENDLESS)
        return values

    def numbered(self, table: str, key: str, rows: Sequence[Any]) -> None:
        """Rows of a table whose key is a row's place: the last one tells, as SQLite keeps them in order, each once."""
        if rows:
            last = self._database.execute(f"SELECT MIN({key}), MAX({key}) FROM {table}").fetchone()
            claim(last == (0, len(rows) - 1), f"{table}.{key} goes from {last[0]} to {last[1]}: expected 0 to {len(rows) - 1}")

    def _read_places(self) -> dict[str, dict[int, str]]:
        """By kind and number: the line that made it."""
        made_at: dict[str, dict[int, str]] = {"variable": {}, "compute_set": {}, "program": {}}
        for kind, number, place in self.rows("made_at", "kind, number", kind=TEXT, number=COUNT, place=TEXT):
            claim(kind in made_at, f"made_at.kind is {kind!r}: expected {', '.join(made_at)}")
            made_at[kind][number] = place
        return made_at

    def _places(self, kind: str, many: int) -> tuple[str, ...]:
        """The lines that made what a table of so many rows has."""
        made_at = self._made_at[kind]
        claim(not made_at or max(made_at) < many, f"made_at.number is {max(made_at, default=0)}: {kind} has {many} rows")
        return tuple(made_at.get(number, "") for number in range(many))

    # Compilation

    def _read_target(self) -> ReportTarget:
        names = {"architecture": TEXT, "system": TEXT, "timing": TEXT}
        machine = {"ipus": COUNT, "tiles_per_ipu": COUNT, "bytes_per_tile": COUNT}
        speed = {"clock_frequency": REAL, "worker_contexts": COUNT, "replicas": COUNT, "memory_bytes_per_cycle": COUNT}
        row = self._one("target", **names, **machine, **speed, link_bytes_per_cycle=REAL)
        architecture, system, timing, ipus, tiles, memory, clock, workers, replicas, loads, link = row
        claim(timing in TIMINGS, f"target.timing is {timing!r}: expected {', '.join(TIMINGS)}")
        claim_number("target.replicas", replicas, 1, ENDLESS)
        claim(ipus % replicas == 0, f"target.ipus is {ipus}: expected a multiple of the {replicas} replicas")
        peak = dict(self.rows("peak_flops", unit=TEXT, flops_per_cycle=REAL))
        rates = {"write_bytes_per_cycle": REAL, "read_bytes_per_cycle": REAL, "sync_cycles": REAL}
        links = [HostLink(*figures) for figures in self.rows("host_link", **rates)]
        claim(len(links) < 2, f"host_link has {len(links)} rows: expected at most 1")
        host, own = links[0] if links else None, ipus // replicas
        made = ReportTarget(architecture, own, tiles, memory, clock, workers, replicas, system, peak, loads, timing, link, host)
        return evolve(made, **self._wiring())

    def _wiring(self) -> dict[str, Any]:
        """How IPUs are linked; nothing in older files, whose machines had one ladder."""
        rates = {"gateway_bytes_per_cycle": REAL, "gateway_link_bytes_per_cycle": REAL}
        rows = list(self.rows("wiring", topology=TEXT, domain_size=COUNT, **rates))
        claim(len(rows) < 2, f"wiring has {len(rows)} rows: expected at most 1")
        if not rows:
            return {}
        topology, size, *figures = rows[0]
        claim(topology in LINK_TOPOLOGIES, f"wiring.topology is {topology!r}: expected {', '.join(LINK_TOPOLOGIES)}")
        claim_number("wiring.domain_size", size, 1, MOST_OF_DOMAIN + 1)
        return {"link_topology": topology, "link_domain_size": size, **dict(zip(rates, figures, strict=True))}

    def _compilation(self) -> Compilation:
        types = self.rows("vertex_type", name=TEXT, instances=COUNT, memory=COUNT, precision=TEXT)
        self.numbered("vertex_type", "vertex_type", types)
        priced: list[dict[str, int]] = [{} for _ in types]
        for number, source, vertices in self.rows("vertex_type_pricing", vertex_type=COUNT, priced_by=TEXT, vertices=COUNT):
            claim_number("vertex_type_pricing.vertex_type", number, 0, len(types))
            priced[number][source] = vertices
        elements: list[list[str]] = [[] for _ in types]
        for number, element in self.rows("vertex_type_element", vertex_type=COUNT, type=TEXT):
            claim_number("vertex_type_element.vertex_type", number, 0, len(types))
            elements[number].append(element)
        return Compilation(
            self._target,
            ReportGraph(*self._one("graph", vertices=COUNT, edges=COUNT, variables=COUNT, compute_sets=COUNT)),
            self._memory(tuple(name for name, *_ in types)),
            self._program_list("entry", "entry"),
            self._leaves,
            tuple(
                VertexType(name, many, size, pricing, precision, tuple(own))
                for (name, many, size, precision), pricing, own in zip(types, priced, elements, strict=True)
            ),
            self._variables(),
            self._exchanges(),
            dict(self.rows("engine_option", name=TEXT, value=TEXT)),
        )

    def _memory(self, types: tuple[str, ...]) -> MemoryByTile:
        tile, gaps = self._integers("tile", ("tile", "gaps"), "tile")
        claim(len(tile) == self._tiles, f"tile has {len(tile)} rows: the target has {self._tiles} tiles")
        claim_each("tile.tile", tile == np.arange(self._tiles), "is not the number of the row")
        names = [name for (name,) in self.rows("memory_category", "category", name=TEXT)]
        self.numbered("memory_category", "category", names)
        category, tile, bytes = self._integers("tile_memory", ("category", "tile", "bytes"), "category, tile")
        claim_range("tile_memory.category", category, 0, len(names))
        claim_range("tile_memory.tile", tile, 0, self._tiles)
        sizes = np.zeros((len(names), self._tiles), np.int64)
        sizes[category, tile] = bytes
        by_category, by_type = (
            dict(self.rows(f"vertex_memory_by_{grouping}", name=TEXT, bytes=COUNT)) for grouping in ("category", "type")
        )
        always, rest = (self._known("tile", column) for column in ("always_live", "not_always_live"))
        categories = dict(zip(names, sizes, strict=True))
        return MemoryByTile(categories, gaps, by_category, by_type, always, rest, self._tile_vertices(types))

    def _tile_vertices(self, types: tuple[str, ...]) -> VerticesByTile:
        columns = ("tile", "vertex_type", "vertices", "bytes")
        tile, vertex_type, vertices, bytes = self._integers("tile_vertex", columns, "tile, vertex_type")
        claim_range("tile_vertex.tile", tile, 0, self._tiles)
        claim_range("tile_vertex.vertex_type", vertex_type, 0, len(types))
        return VerticesByTile(types if len(tile) else (), tile, vertex_type, vertices, bytes)

    def _known(self, table: str, column: str) -> Int64s:
        """A column that may be NULL in every row."""
        rows, filled = self._database.execute(f"SELECT COUNT(*), COUNT({column}) FROM {table}").fetchone()
        claim(filled in (0, rows), f"{table}.{column} is NULL in some rows and not in others")
        return self._integers(table, (column,))[0] if filled else nothing()

    def _variables(self) -> LoweredVariables:
        rows = self.rows("variable", name=TEXT, always_live=COUNT)
        self.numbered("variable", "variable", rows)
        names, always_live = zip(*rows, strict=True) if rows else ((), ())
        always = np.array(always_live, np.int64)
        claim_range("variable.always_live", always, 0, 2)
        living, begin, end = self._integers("variable_life", ("variable", "first_step", "end_step"))
        claim_range("variable_life.variable", living, 0, len(names))
        claim_each("variable_life.variable", np.diff(living) >= 0, "is larger than the next one")
        claim_range("variable_life.first_step", begin, 0, self._steps + 1)
        claim_range("variable_life.end_step", end, 0, self._steps + 1)
        claim_each("variable_life.end_step", end >= begin, "is before first_step")
        first_life = np.searchsorted(living, np.arange(len(names) + 1)).astype(np.int64)
        owner, tile, bytes = self._integers("variable_tile", ("variable", "tile", "bytes"))
        claim_range("variable_tile.variable", owner, 0, len(names))
        claim_each("variable_tile.variable", np.diff(owner) >= 0, "is larger than the next one")
        claim_range("variable_tile.tile", tile, 0, self._tiles)
        first = np.searchsorted(owner, np.arange(len(names) + 1)).astype(np.int64)
        made_at = self._places("variable", len(names)) if self._made_at["variable"] else ()
        offset, span = (self._known("variable_tile", column) for column in ("offset", "span"))
        claim(len(offset) == len(span), "variable_tile.offset or .span is NULL where the other is not")
        return LoweredVariables(names, always.astype(bool), first_life, begin, end, first, tile, bytes, made_at, offset, span)

    def _exchanges(self) -> tuple[ExchangeReport, ...]:
        rows = self.rows("exchange", name=TEXT, phase=TEXT, step=COUNT, message_list=COUNT)
        self.numbered("exchange", "exchange", rows)
        owner, source, destination, bytes = self._integers("exchange_message", ("message_list", "source", "destination", "bytes"))
        claim_range("exchange_message.message_list", owner, 0, len(rows))
        claim_each("exchange_message.message_list", np.diff(owner) >= 0, "is larger than the next one")
        claim_range("exchange_message.source", source, 0, self._tiles)
        claim_range("exchange_message.destination", destination, 0, self._tiles)
        claim_range("exchange.step", np.array([row[2] for row in rows], np.int64), 0, self._steps)
        claim_range("exchange.message_list", np.array([row[3] for row in rows], np.int64), 0, len(rows))
        first = np.searchsorted(owner, np.arange(len(rows) + 1))
        columns = (source.astype(np.int32), destination.astype(np.int32), bytes)
        lists = [tuple(column[begin:end] for column in columns) for begin, end in pairwise(first.tolist())]
        return tuple(ExchangeReport(name, phase, step, *lists[number]) for name, phase, step, number in rows)

    # Programs

    def _read_programs(self) -> list[Program]:
        """The programs by number: each is made of ones that are made before it."""
        sets = self._compute_sets()
        rows = self.rows("program", name=TEXT, type=TEXT, step=PLACE, detail=TEXT, compute_set=MAYBE)
        self.numbered("program", "program", rows)
        parent, position, child = self._integers("program_child", ("parent", "position", "child"), "parent, position")
        claim_range("program_child.parent", parent, 0, len(rows))
        claim_each("program_child.child", child < parent, "is not before its parent")
        first = np.searchsorted(parent, np.arange(len(rows) + 1))
        claim_each("program_child.position", position == np.arange(len(parent)) - first[parent], "is not its place")
        steps = self._database.execute("SELECT COUNT(*) FROM static_step").fetchone()[0]
        claim_range("program.step", np.array([row[2] for row in rows], np.int64), -1, steps)
        children, programs = child.tolist(), list[Program]()
        places, begins, ends = self._places("program", len(rows)), first[:-1].tolist(), first[1:].tolist()
        for (name, type, step, detail, compute_set), made_at, begin, end in zip(rows, places, begins, ends, strict=True):
            if compute_set is not None and compute_set >= len(sets):
                raise FileLoadError(f"program.compute_set has no row {compute_set}")
            parts = tuple(programs[part] for part in children[begin:end])
            programs.append(Program(name, type, parts, step, detail, None if compute_set is None else sets[compute_set], made_at))
        return programs

    def _compute_sets(self) -> list[ComputeSet]:
        names = [name for (name,) in self.rows("compute_set", name=TEXT)]
        self.numbered("compute_set", "compute_set", names)
        vertices: list[list[VertexInstances]] = [[] for _ in names]
        for number, type, many in self.rows("compute_set_vertex", compute_set=COUNT, vertex_type=TEXT, vertices=COUNT):
            claim_number("compute_set_vertex.compute_set", number, 0, len(names))
            vertices[number].append(VertexInstances(type, many))
        made_at = self._places("compute_set", len(names))
        return [ComputeSet(name, tuple(types), place) for name, types, place in zip(names, vertices, made_at, strict=True)]

    def _program_list(self, table: str, key: str) -> tuple[Program, ...]:
        numbers = [number for (number,) in self.rows(table, program=COUNT)]
        self.numbered(table, key, numbers)
        claim_range(f"{table}.program", np.array(numbers, np.int64), 0, len(self._programs))
        return tuple(self._programs[part] for part in numbers)

    # Execution

    def _execution(self) -> Execution | None:
        rows = self.rows("execution", tiles=COUNT, clock_frequency=REAL, missed=COUNT, recorded=COUNT, unrecorded=COUNT)
        claim(len(rows) < 2, f"execution has {len(rows)} rows: expected at most 1")
        if not rows:
            return None
        tiles, clock, *counts = rows[0]
        ran = [name for (name,) in self.rows("executed_program", name=TEXT)]
        types = dict.fromkeys((column.name for column in fields(VertexTypeCycles)), COUNT)
        by_type = {name: VertexTypeCycles(*costs) for name, *costs in self.rows("vertex_type_cycles", name=TEXT, **types)}
        for name, costs in by_type.items():
            below = costs.bound_cycles <= costs.compiled_cycles
            claim(below, f"vertex_type_cycles of {name!r} has more bound_cycles than compiled_cycles")
        profiles = self._tile_profiles()
        steps, runs = self._read_runs(profiles)
        steps = steps or summed_runs(runs)
        numbers = {step.number for step in steps}
        trace, known = self._trace(runs, numbers, profiles, counts), self._copies_known()
        slowest = self._slowest_vertices(numbers)
        lines = read_lines(self, self._tiles)
        return Execution(steps, by_type, tuple(ran), tiles, runs, trace, clock, known, slowest, lines)

    def _slowest_vertices(self, ran: set[int]) -> dict[int, tuple[SizedVertices, ...]]:
        """By step, in the order of the rows; sizes of one type stand together."""
        kinds = {"step": COUNT, "vertex_type": TEXT, "vertices": COUNT, "field": TEXT, "least": COUNT, "most": COUNT}
        slowest: dict[int, tuple[SizedVertices, ...]] = {}
        known: dict[tuple[Any, ...], SizedVertices] = {}  # those that several steps share are made once
        for (step, name, count), rows in groupby(self.rows("slowest_vertex", **kinds), itemgetter(0, 1, 2)):
            claim(step in ran, f"slowest_vertex.step is {step}, which is not a step that ran")
            key = (name, count, *(row[3:] for row in rows))
            if key not in known:
                sizes = tuple(FieldSizes(*size) for size in key[2:] if size[0])
                ordered = all(size.least <= size.most for size in sizes)
                claim(ordered, f"slowest_vertex of step {step} has a larger least than most")
                known[key] = SizedVertices(name, count, sizes)
            slowest[step] = (*slowest.get(step, ()), known[key])
        return slowest

    def _copies_known(self) -> bool:
        rows, filled = self._database.execute("SELECT COUNT(*), COUNT(copy_cycles) FROM run_step").fetchone()
        claim(filled in (0, rows), "run_step.copy_cycles is NULL in some rows and not in others")
        return bool(filled == rows)

    def _read_runs(self, profiles: TileProfiles) -> tuple[tuple[Step, ...], tuple[Run, ...]]:
        """The steps of all runs together, if the file has them, and the runs."""
        runs = self.rows("run", name=TEXT, runs=COUNT)
        self.numbered("run", "run", runs)
        described = self._described()
        waiting = self._waiting(len(runs))
        by_ipu = self._by_ipu(len(runs), any(map(len, waiting)))
        by_run: dict[int, dict[int, Step]] = {number: {} for number in range(ALL_RUNS, len(runs))}
        columns = dict[int, KeysView[str]]()
        kinds = {
            "run": PLACE,
            "step": COUNT,
            **dict.fromkeys(COSTS, COUNT),
            "copy_cycles": MAYBE,
            "tile_profile": MAYBE,
            "times": COUNT,
        }
        rows = self.rows("run_step", **kinds)
        claim_range("run_step.run", np.array([row[0] for row in rows], np.int64), ALL_RUNS, len(runs))
        for run, number, *rest in rows:
            if number not in described:
                raise FileLoadError(f"run_step.step is {number}: step has no such row")
            if number in by_run[run]:
                raise FileLoadError(f"run_step has step {number} of run {run} twice")
            costs: dict[str, Any] = {name: cost or 0 for name, cost in zip(COSTS, rest, strict=False)}
            by_tile: dict[str, Any] = profiles.multiplied(*rest[-2:])
            if run != ALL_RUNS and columns.setdefault(number, by_tile.keys()) != by_tile.keys():
                raise FileLoadError(f"run_step.tile_profile of step {number} in run {run} has other columns than in an earlier run")
            ipus: dict[str, Any] = {"cycles_by_ipu": by_ipu[run, number]} if (run, number) in by_ipu else {}
            by_run[run][number] = Step(**described[number], **costs, **by_tile, **ipus)
        runs_read = tuple(
            Run(name, tuple(by_run[number].values()), many, waiting[number]) for number, (name, many) in enumerate(runs)
        )
        return tuple(by_run[ALL_RUNS].values()), runs_read

    def _waiting(self, runs: int) -> list[Int64s]:
        """Of each run, how long IPUs waited where no step is; empty arrays where there is one clock for all."""
        run, ipu, cycles = self._integers("run_ipu", ("run", "ipu", "waiting_cycles"), "run, ipu")
        claim_range("run_ipu.run", run, 0, runs)
        if not len(run):
            return [no_tiles() for _ in range(runs)]
        whole = len(run) == runs * self._ipus and np.array_equal(ipu, np.tile(np.arange(self._ipus), runs))
        claim(whole, f"run_ipu has {len(run)} rows: expected one for each of {self._ipus} IPUs in each of {runs} runs")
        return list(cycles.reshape(runs, self._ipus))

    def _by_ipu(self, runs: int, known: bool) -> dict[tuple[int, int], Int64s]:
        """By run and step, what each IPU spends in it: zeros for a step in which none has a part."""
        by_ipu: dict[tuple[int, int], Int64s] = {}
        if known:
            for run, step in self._database.execute("SELECT run, step FROM run_step").fetchall():
                by_ipu[run, step] = np.zeros((len(BY_IPU), self._ipus), np.int64)
        run, step, ipu, *columns = self._integers("run_step_ipu", ("run", "step", "ipu", *BY_IPU), "run, step, ipu")
        claim_range("run_step_ipu.run", run, 0, runs)
        claim_range("run_step_ipu.ipu", ipu, 0, self._ipus)
        rows = np.array(columns, np.int64).T
        for key, one, row in zip(zip(run.tolist(), step.tolist(), strict=True), ipu.tolist(), rows, strict=True):
            claim(key in by_ipu, f"run_step_ipu has step {key[1]} of run {key[0]}, of which run_step or run_ipu has no row")
            by_ipu[key][:, one] = row
        return by_ipu

    def _described(self) -> dict[int, dict[str, Any]]:
        """What is the same of a step in all runs, by its number."""
        limits = dict(self.rows("host_limit", step=COUNT, name=TEXT))
        steps: dict[int, dict[str, Any]] = {}
        rows = self.rows("step", step=COUNT, name=TEXT, type=TEXT, depth=COUNT, ipus=COUNT, program=MAYBE)
        for number, name, type, depth, ipus, program in rows:
            claim_number("step.step", number, 0, self._steps)
            claim(type in STEP_TYPES, f"step.type is {type!r}: expected {', '.join(STEP_TYPES)}")
            if program is not None and program >= len(self._programs):
                raise FileLoadError(f"step.program is {program}: program has no such row")
            leaf = None if program is None else self._programs[program]
            steps[number] = {"number": number, "name": name, "type": type, "depth": depth, "num_ipus": ipus, "program": leaf}
            steps[number]["host_limit"] = limits.pop(number, "")
        claim(not limits, f"host_limit.step is {min(limits, default=0)}: step has no such row")
        return steps

    def _tile_profiles(self) -> TileProfiles:
        """What tiles did in steps."""
        names = [columns for (columns,) in self.rows("tile_profile", columns=TEXT)]
        self.numbered("tile_profile", "tile_profile", names)
        profiles, read = list[dict[str, Int64s]](), 0
        for number, column_names in enumerate(names):
            columns = column_names.split()
            claim(BY_TILE.keys() >= set(columns), f"tile_profile.columns is {column_names!r}: the columns are {' '.join(BY_TILE)}")
            tile, *values = self._integers("tile_profile_tile", ("tile", *columns), "tile", f"WHERE tile_profile = {number}")
            claim_range("tile_profile_tile.tile", tile, 0, self._tiles)
            read += len(tile)
            arrays = np.zeros((len(columns), self._tiles), np.int64)
            for row, column in zip(arrays, values, strict=True):
                row[tile] = column
            arrays.flags.writeable = False
            profiles.append({BY_TILE[column]: row for column, row in zip(columns, arrays, strict=True)})
        rows = self._database.execute("SELECT COUNT(*) FROM tile_profile_tile").fetchone()[0]
        claim(rows == read, f"tile_profile_tile has {rows - read} rows of no profile that tile_profile has")
        return TileProfiles(profiles)

    def _trace(self, runs: Sequence[Run], ran: set[int], profiles: TileProfiles, counts: Sequence[int]) -> Trace:
        missed, recorded, unrecorded = counts
        names = ("event", "run", "step", "begin_cycle", "cycles", "ipu")
        event, run, step, begin, cycles, ipu = self._integers("trace_event", names)
        claim_range("trace_event.ipu", ipu, 0, self._ipus)
        claim_each("trace_event.event", event == np.arange(len(event)), "is not the number of the row")
        claim_range("trace_event.run", run, 0, len(runs))
        claim_each("trace_event.step", np.isin(step, np.array(sorted(ran), np.int64)), "is not a step that ran")
        tiles = self._recorded(runs, profiles)
        whose = ipu.astype(np.int32)
        return Trace(step.astype(np.int32), run.astype(np.int32), begin, cycles, missed, recorded, tiles, unrecorded, whose)

    def _recorded(self, runs: Sequence[Run], profiles: TileProfiles) -> RecordedTiles:
        """What tiles did in single executions."""
        columns = ("run", "step", "execution", "tile_profile")
        run, step, execution, profile = self._integers("recorded_execution", columns, "run, step, execution")
        if not len(run):
            return RecordedTiles()
        claim_range("recorded_execution.run", run, 0, len(runs))
        times = {(number, one.number): one.executions for number, whole in enumerate(runs) for one in whole.steps}
        known = np.array([times.get(key, 0) for key in zip(run.tolist(), step.tolist(), strict=True)], np.int64)
        claim_each("recorded_execution.execution", execution < known, "is not one of the step's in that run")
        tile, cycles, first = [], [], [0]
        for number in profile.tolist():
            by_tile = profiles.cycles(number)
            tile.append(np.flatnonzero(by_tile).astype(np.int32))
            cycles.append(by_tile[tile[-1]])
            first.append(first[-1] + len(tile[-1]))
        return RecordedTiles(
            step.astype(np.int32),
            run.astype(np.int32),
            execution,
            np.array(first, np.int64),
            np.concatenate(tile),
            np.concatenate(cycles),
        )


class TileProfiles:
    """The profiles of a file by number, each as a step's arrays by tile."""

    def __init__(self, profiles: list[dict[str, Int64s]]) -> None:
        self._profiles = profiles
        self._most = [max((int(array.max()) for array in profile.values() if len(array)), default=0) for profile in profiles]
        self._made: dict[tuple[int, int], dict[str, Int64s]] = {}

    def cycles(self, profile: int) -> Int64s:
        """For how long tiles compute in a profile that has nothing else."""
        claim(profile < len(self._profiles), f"recorded_execution.tile_profile is {profile}: tile_profile has no such row")
        names = " ".join(self._profiles[profile])
        claim(names == BY_TILE["cycles"], f"recorded_execution.tile_profile is {profile}, which has other columns than cycles")
        return self._profiles[profile][names]

    def multiplied(self, profile: int | None, times: int) -> dict[str, Int64s]:
        """A profile that counts several times. Steps share the arrays, which cannot be written to."""
        if profile is None:
            return {}
        if (profile, times) not in self._made:
            claim(profile < len(self._profiles), f"run_step.tile_profile is {profile}: tile_profile has no such row")
            claim(times * self._most[profile] < ENDLESS, f"run_step.times is {times}: the tiles' cycles or bytes are too many")
            arrays = self._profiles[profile]
            self._made[profile, times] = arrays if times == 1 else {name: array * times for name, array in arrays.items()}
            for array in self._made[profile, times].values():
                array.flags.writeable = False
        return self._made[profile, times]
