"""Makes the report of an executable and of its runs from their tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, overload

import numpy as np
from attrs import evolve, field, frozen

from pypoplar.arrays.dtypes import Int32s, Int64s, Integers, StructuredArray
from pypoplar.executable.executable import Executable
from pypoplar.executable.graph_facts import PRICED_BY, Counts
from pypoplar.executable.ipu_steps import IpuSteps
from pypoplar.executable.memory_use import TileMemory
from pypoplar.executable.steps import StaticStep
from pypoplar.executable.variable_lives import Lives
from pypoplar.options import option_text
from pypoplar.report.execution import BY_IPU, Execution, Run, Step, VertexTypeCycles, summed_runs
from pypoplar.report.failed_runs import FailedRun, FailedStep
from pypoplar.report.making.exchange_buffers import with_exchange_buffers
from pypoplar.report.making.make_lines import make_line_profile
from pypoplar.report.making.make_programs import make_programs, make_step_programs, step_type
from pypoplar.report.making.make_recorded import with_recorded_tiles
from pypoplar.report.making.make_vertices import SizedVerticesTable, elements, make_vertices_by_tile, precision
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile
from pypoplar.report.program_nodes import Program
from pypoplar.report.report import Compilation, ExchangeReport, HostLink, Report, ReportGraph, ReportTarget, Version, VertexType
from pypoplar.report.run_account import FailedAccount, RunAccount, RunHistory
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF

COUNTED_BY_IPU = ("compute_cycles", "waiting_cycles")
"""The rows of a step's `cycles_by_ipu` that are not known beforehand."""


def memory_report(
    target: Target, memory: TileMemory, counts: Counts, names: tuple[str, ...], made_at: tuple[str, ...], lives: Lives
) -> Report:
    """The report of a program that did not become an executable: what it needs of each tile's memory.

    It says which variables are always live, and not when the others live: the program's steps are not known yet.
    """
    compilation = Compilation(
        _target(target),
        ReportGraph(counts.vertices, counts.edges, counts.variables, counts.compute_sets),
        _categories(memory, {}, {}),
        loweredVariables=_variables(names, made_at, lives),
    )
    return Report(compilation, None, Version(version("pypoplar")))


def make_report(executable: Executable, history: RunHistory | None = None) -> Report:
    """The report; its execution part is None while nothing has run."""
    counts = executable.counts
    vertex_data = {
        "internal_vertex_state": int(executable.memory.vertex_state.sum()),
        "edge_pointers": int(executable.memory.edge_pointers.sum()),
    }
    by_type = dict(zip((codelet.name for codelet in executable.codelets), map(int, executable.vertex_bytes), strict=True))
    steps = make_step_programs(executable)
    variables = _variables(executable.variable_names, executable.made_at.variables, executable.lives)
    compilation = Compilation(
        _target(executable.target, executable.replicas),
        ReportGraph(counts.vertices, counts.edges, counts.variables, counts.compute_sets),
        evolve(_categories(executable.memory, vertex_data, by_type), vertices=make_vertices_by_tile(executable)),
        programs=make_programs(executable, steps),
        step_programs=steps,
        vertex_types=_vertex_types(executable),
        loweredVariables=with_exchange_buffers(variables, executable),
        exchanges=_exchanges(executable),
        options={name: option_text(value) for name, value in executable.options.given},
        mode=executable.mode,
    )
    execution = _execution(executable, history, steps) if history is not None and history.runs else None
    failed = tuple(_failed_run(executable, account) for account in history.failed) if history is not None else ()
    return Report(compilation, execution, Version(version("pypoplar")), failed_runs=failed)


def _failed_run(executable: Executable, account: FailedAccount) -> FailedRun:
    """The steps of a failed run that were complete, in program order."""
    executed = [
        (number, executable.steps[number], int(account.executions[number]))
        for number in np.flatnonzero(account.executions).tolist()
        if executable.steps[number].kind != "handle"
    ]
    steps = (
        FailedStep(number, step.name, step_type(step), times, step.fixed_cycles * times + int(account.compute_cycles[number]))
        for number, step, times in executed
    )
    return FailedRun(account.name, account.error, tuple(steps))


def _target(target: Target, replicas: int = 1) -> ReportTarget:
    return ReportTarget(
        architecture=target.getTargetArchString(),
        numIPUs=target.getNumIPUs(),
        tilesPerIpu=target.getTilesPerIPU(),
        bytesPerTile=target.getBytesPerTile(),
        clockFrequency=target.getTileClockFrequency(),
        numWorkerContexts=target.getNumWorkerContexts(),
        numReplicas=replicas,
        system=target.getTargetSystemString(),
        timing=target.timing,
        peak_flops_per_cycle={
            "half, convolution units": target.conv_unit_flops_per_cycle(HALF),
            "float, convolution units": target.conv_unit_flops_per_cycle(FLOAT),
            "half, vector code": target.vector_flops_per_cycle(HALF),
            "float, vector code": target.vector_flops_per_cycle(FLOAT),
        },
        memory_bytes_per_cycle=target.tile_memory_bytes_per_cycle,
        link_bytes_per_cycle=target.ipu_link_bytes_per_second / target.getTileClockFrequency(),
        link_topology=target.getIpuLinkTopology(),
        link_domain_size=target.getIpuLinkDomainSize(),
        gateway_bytes_per_cycle=target.gateway_bytes_per_second / target.getTileClockFrequency(),
        gateway_link_bytes_per_cycle=target.gateway_link_bytes_per_second / target.getTileClockFrequency(),
        host_link=HostLink(
            target.host_write_bytes_per_second / target.getTileClockFrequency(),
            target.host_read_bytes_per_second / target.getTileClockFrequency(),
            target.host_sync_seconds * target.getTileClockFrequency(),
        ),
    )


@frozen(eq=False)
class ExchangeReports(Sequence[ExchangeReport]):
    """The exchanges of the program's steps, each made when it is asked for."""

    executable: Executable
    steps: tuple[int, ...]  # the static steps that exchange something
    reports: dict[int, ExchangeReport] = field(factory=dict)
    pairs: dict[int, tuple[Int32s, Int32s, Int64s]] = field(factory=dict)  # by the id of the messages

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, number: int) -> ExchangeReport: ...
    @overload
    def __getitem__(self, number: slice) -> list[ExchangeReport]: ...
    def __getitem__(self, number: int | slice) -> ExchangeReport | list[ExchangeReport]:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        step = self.steps[number]
        if step not in self.reports:
            named = self.executable.exchanges[self.executable.steps[step].exchange]
            rows = named.account.messages
            if id(rows) not in self.pairs:  # exchanges of one compute set share their messages
                self.pairs[id(rows)] = _pairs(rows, self.executable.target.getNumTiles())
            self.reports[step] = ExchangeReport(named.name, named.phase, step, *self.pairs[id(rows)])
        return self.reports[step]


def _pairs(rows: StructuredArray, tiles: int) -> tuple[Int32s, Int32s, Int64s]:
    """Sources, destinations and bytes of messages, one row for each pair of tiles."""
    pairs, row = np.unique(rows["source"].astype(np.int64) * tiles + rows["destination"], return_inverse=True)
    bytes = np.bincount(row, weights=rows["bytes"], minlength=len(pairs)).astype(np.int64)
    source, destination = np.divmod(pairs, tiles)
    return source.astype(np.int32), destination.astype(np.int32), bytes


def _exchanges(executable: Executable) -> ExchangeReports:
    def moves(step: StaticStep) -> bool:
        return step.exchange >= 0 and len(executable.exchanges[step.exchange].account.messages) > 0

    return ExchangeReports(executable, tuple(number for number, step in enumerate(executable.steps) if moves(step)))


def _vertex_types(executable: Executable) -> tuple[VertexType, ...]:
    instances = executable.priced_by.sum(1)

    def priced_by(number: int) -> dict[str, int]:
        return dict(zip(PRICED_BY, map(int, executable.priced_by[number]), strict=True))

    return tuple(
        VertexType(
            codelet.name,
            int(instances[number]),
            int(executable.vertex_bytes[number]),
            priced_by(number),
            precision(codelet),
            elements(codelet),
        )
        for number, codelet in enumerate(executable.codelets)
    )


def _variables(names: tuple[str, ...], made_at: tuple[str, ...], lives: Lives) -> LoweredVariables:
    return LoweredVariables(
        names=names,
        always=lives.always,
        first_life=lives.first_range,
        life_begin=lives.range_begin,
        life_end=lives.range_end,
        first=lives.first,
        tile=lives.tile,
        bytes=lives.bytes,
        offset=lives.offset,
        span=lives.span,
        made_at=made_at,
    )


def _categories(memory: TileMemory, vertex_data: dict[str, int], by_type: dict[str, int]) -> MemoryByTile:
    categories = {
        "variables": memory.variables,
        "constants": memory.constants,
        "constant_tables": memory.constant_tables,
        "exchange_buffers": memory.exchange_buffers,
        "vertex_state": memory.vertex_state,
        "edge_pointers": memory.edge_pointers,
        "code": memory.code,
        "stack": memory.stack,
    }
    return MemoryByTile(categories, memory.gaps, vertex_data, by_type, memory.always_live, memory.not_always_live)


def _execution(executable: Executable, history: RunHistory, programs: tuple[Program, ...]) -> Execution:
    runs = tuple(
        Run(account.name, _steps(executable, account, programs), account.count, account.ipu_waited) for account in history.runs
    )
    target, steps = executable.target, summed_runs(runs)
    return Execution(
        steps=steps,
        cycles_by_vertex_type=_vertex_type_cycles(executable, history),
        programs=history.programs,
        tiles=target.getNumTiles(),
        runs=runs,
        trace=with_recorded_tiles(executable, history),
        clockFrequency=target.getTileClockFrequency(),
        slowest_vertices=SizedVerticesTable(executable).of_slowest(steps),
        lines=make_line_profile(executable, history.counts) if history.counts is not None else None,
    )


def _vertex_type_cycles(executable: Executable, history: RunHistory) -> dict[str, VertexTypeCycles]:
    instances, nothing = executable.priced_by.sum(1), np.zeros(len(executable.codelets), np.int64)

    def total(name: str) -> Int64s:
        arrays = [getattr(account, name) for account in history.runs if len(getattr(account, name))]
        return np.sum(arrays, 0) if arrays else nothing

    counts = ("codelet_slots", "codelet_flops", "codelet_bytes", "codelet_compiled", "codelet_bound")
    columns = [instances, *map(total, counts)]
    columns[-1] = np.minimum(columns[-1], columns[1])  # what an estimate says may be less than the bound of the code beside it
    return {
        codelet.name: VertexTypeCycles(*(int(column[number]) for column in columns))
        for number, codelet in enumerate(executable.codelets)
    }


def _steps(executable: Executable, account: RunAccount, programs: tuple[Program, ...]) -> tuple[Step, ...]:
    arrays = StepArrays(executable, account)
    return tuple(
        _step(executable, account, number, programs[number], arrays)
        for number in np.flatnonzero(account.executions).tolist()
        if executable.steps[number].kind != "handle"
    )


def _by_tile(counts: Integers, active: Int64s, tiles: int) -> Int64s:
    """Counts of the tiles `on` as an array of all tiles: without memory of its own where they are all, as int64."""
    if len(counts) == tiles:
        return counts.astype(np.int64, copy=False)
    whole: Int64s = np.zeros(tiles, np.int64)
    whole[active] = counts
    return whole


def _multiplied(values: Int64s, times: int) -> Int64s:
    """``values * times``, without memory of its own where it is the same."""
    if times != 1:
        return values * times
    same: Int64s = values.view()
    same.flags.writeable = False  # it is the executable's
    return same


def slowest_cycles(by_tile: Int64s) -> int:
    """Cycles of the slowest tile, 0 where none takes part."""
    return int(by_tile.max()) if len(by_tile) else 0


@frozen(eq=False)
class StepArrays:
    """The arrays by tile of the steps of one account. Steps share them where they are equal, as they often are in a compute set."""

    executable: Executable
    account: RunAccount
    computed: dict[int, tuple[Any, ...]] = field(factory=dict)  # by compute: cycles and slots of its active tiles, and of all
    scaled: dict[tuple[int, int], tuple[Int64s, Int64s]] = field(factory=dict)  # by id and factor: the array, and multiplied

    def compute(self, number: int, compute: int) -> tuple[Int64s, ...]:
        """Cycles and slots of all tiles in a step, which executes this compute."""
        cycles, slots = self.account.tiles.cycles[number], self.account.tiles.slots[number]
        last = self.computed.get(compute)
        if last is None or not (np.array_equal(last[0], cycles) and np.array_equal(last[1], slots)):
            first, end = self.executable.computes.first_active[compute : compute + 2].tolist()
            active, tiles = self.executable.computes.active_tile[first:end], self.executable.target.getNumTiles()
            last = self.computed[compute] = (cycles, slots, *(_by_tile(counts, active, tiles) for counts in (cycles, slots)))
        return last[2:]

    def multiplied(self, values: Int64s, times: int) -> Int64s:
        """``values * times``."""
        key = (id(values), times)
        if key not in self.scaled:
            self.scaled[key] = (values, _multiplied(values, times))
        return self.scaled[key][1]


def _step(executable: Executable, account: RunAccount, number: int, program: Program, arrays: StepArrays) -> Step:
    """A static step with all its executions. A worker's slot is one cycle of a tile that is never idle."""
    static_step = executable.steps[number]
    times = int(account.executions[number])
    nothing: Int64s = np.zeros(0, np.int64)
    cycles, active = arrays.compute(number, static_step.compute) if static_step.compute >= 0 else (nothing, nothing)
    slowest, copies = slowest_cycles(static_step.exchange_cycles), static_step.rearrange_cycles
    exchange = executable.exchanges[static_step.exchange] if static_step.exchange >= 0 else None
    later = int(account.compute_cycles[number])  # than its vertices alone would have it, or for other replicas
    waited = 0 if static_step.compute >= 0 else later
    return Step(
        name=static_step.name,
        number=number,
        num_ipus=executable.target.getNumIPUs(),
        type=step_type(static_step),
        executions=times,
        depth=static_step.depth,
        sync_cycles=static_step.sync_cycles * times + waited,
        exchange_cycles=slowest * times,
        copy_cycles=(slowest_cycles(static_step.moving_cycles) - slowest) * times,
        global_exchange_cycles=static_step.global_exchange_cycles * times,
        compute_cycles=later - waited,
        host_exchange_cycles=static_step.host_cycles * times,
        cyclesByTile=cycles,
        activeCyclesByTile=active,
        exchange_cycles_by_tile=arrays.multiplied(static_step.exchange_cycles, times),
        copy_cycles_by_tile=arrays.multiplied(copies, times) if copies.any() else nothing,
        bytesSentByTile=arrays.multiplied(exchange.bytes_sent, times) if exchange is not None else nothing,
        bytesReceivedByTile=arrays.multiplied(exchange.bytes_received, times) if exchange is not None else nothing,
        pieces_by_tile=arrays.multiplied(static_step.exchange_pieces, times) if exchange is not None else nothing,
        host_bytes=static_step.host_bytes * times,
        host_limit=static_step.host_limit,
        flops=int(account.step_flops[number]) if len(account.step_flops) else 0,
        memory_bytes=int(account.step_bytes[number]) if len(account.step_bytes) else 0,
        program=program,
        cycles_by_ipu=_by_ipu(executable.ipu_steps, account, number) if executable.ipu_steps is not None else nothing,
    )


def _by_ipu(steps: IpuSteps, account: RunAccount, number: int) -> Int64s:
    """A step's `cycles_by_ipu`."""
    own, times = slice(int(steps.first[number]), int(steps.first[number + 1])), int(account.executions[number])
    fixed = {name: getattr(steps, name)[own] * times for name in BY_IPU if name not in COUNTED_BY_IPU}
    counted = {"compute_cycles": account.share_computed[own], "waiting_cycles": account.share_waited[own]}
    cycles = np.zeros((len(BY_IPU), steps.ipus), np.int64)
    cycles[:, steps.ipu[own]] = [{**fixed, **counted}[name] for name in BY_IPU]
    return cycles
