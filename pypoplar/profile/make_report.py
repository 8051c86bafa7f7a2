"""Makes the report of an executable and of its runs from their tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import overload

import numpy as np
from attrs import field, frozen

from pypoplar.compiler.executable import Array, Counts, Executable, TileMemory
from pypoplar.compiler.executable import Step as StaticStep
from pypoplar.profile.execution import Execution, Step, VertexTypeCycles
from pypoplar.profile.make_programs import TYPES, make_programs, make_step_programs
from pypoplar.profile.report import Compilation, ExchangeReport, Report, ReportGraph, ReportTarget, Version, VertexType
from pypoplar.profile.run_account import RunAccount
from pypoplar.profile.tile_memory import MemoryByTile
from pypoplar.target import Target


def memory_report(target: Target, memory: TileMemory, counts: Counts) -> Report:
    """The report of a program that did not become an executable: what it needs of each tile's memory."""
    compilation = Compilation(
        _target(target),
        ReportGraph(counts.vertices, counts.edges, counts.variables, counts.compute_sets),
        _categories(memory, {}, {}),
    )
    return Report(compilation, None, Version(version("pypoplar")))


def make_report(executable: Executable, account: RunAccount | None = None) -> Report:
    """The report; its execution part is None while nothing has run."""
    counts = executable.counts
    vertex_data = {
        "internal_vertex_state": int(executable.memory.vertex_state.sum()),
        "edge_pointers": int(executable.memory.edge_pointers.sum()),
    }
    by_type = dict(zip((one.name for one in executable.codelets), map(int, executable.vertex_bytes), strict=True))
    steps = make_step_programs(executable)
    compilation = Compilation(
        _target(executable.target),
        ReportGraph(counts.vertices, counts.edges, counts.variables, counts.compute_sets),
        _categories(executable.memory, vertex_data, by_type),
        programs=make_programs(executable, steps),
        step_programs=steps,
        vertex_types=_vertex_types(executable),
        exchanges=_exchanges(executable),
        options={name: str(value) for name, value in executable.options.given},
    )
    execution = _execution(executable, account) if account is not None and account.runs else None
    return Report(compilation, execution, Version(version("pypoplar")))


def _target(target: Target) -> ReportTarget:
    return ReportTarget(
        architecture=target.getTargetArchString(),
        numIPUs=target.getNumIPUs(),
        tilesPerIpu=target.getTilesPerIPU(),
        bytesPerTile=target.getBytesPerTile(),
        clockFrequency=target.getTileClockFrequency(),
        numWorkerContexts=target.getNumWorkerContexts(),
        system=target.getTargetSystemString(),
    )


@frozen(eq=False)
class ExchangeReports(Sequence[ExchangeReport]):
    """The exchanges of the program's steps, each made when it is asked for."""

    executable: Executable
    steps: tuple[int, ...]  # the static steps that exchange something
    made: dict[int, ExchangeReport] = field(factory=dict)

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, number: int) -> ExchangeReport: ...
    @overload
    def __getitem__(self, number: slice) -> list[ExchangeReport]: ...
    def __getitem__(self, number: int | slice) -> ExchangeReport | list[ExchangeReport]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        step = self.steps[number]
        if step not in self.made:
            self.made[step] = _exchange(self.executable, step)
        return self.made[step]


def _exchange(executable: Executable, step: int) -> ExchangeReport:
    named = executable.exchanges[executable.steps[step].exchange]
    rows, tiles = named.account.messages, executable.target.getNumTiles()
    pairs, row = np.unique(rows["source"].astype(np.int64) * tiles + rows["destination"], return_inverse=True)
    bytes = np.bincount(row, weights=rows["bytes"], minlength=len(pairs)).astype(np.int64)
    source, destination = np.divmod(pairs, tiles)
    return ExchangeReport(named.name, named.phase, step, source.astype(np.int32), destination.astype(np.int32), bytes)


def _exchanges(executable: Executable) -> ExchangeReports:
    def moves(step: StaticStep) -> bool:
        return step.exchange >= 0 and len(executable.exchanges[step.exchange].account.messages) > 0

    return ExchangeReports(executable, tuple(number for number, one in enumerate(executable.steps) if moves(one)))


def _vertex_types(executable: Executable) -> tuple[VertexType, ...]:
    instances = _instances(executable)
    return tuple(
        VertexType(one.name, int(instances[number]), int(executable.vertex_bytes[number]))
        for number, one in enumerate(executable.codelets)
    )


def _categories(memory: TileMemory, vertex_data: dict[str, int], by_type: dict[str, int]) -> MemoryByTile:
    categories = {
        "variables": memory.variables,
        "constants": memory.constants,
        "exchange_buffers": memory.exchange_buffers,
        "vertex_state": memory.vertex_state,
        "edge_pointers": memory.edge_pointers,
        "code": memory.code,
        "stack": memory.stack,
    }
    return MemoryByTile(categories, memory.gaps, vertex_data, by_type)


def _execution(executable: Executable, account: RunAccount) -> Execution:
    steps = tuple(
        _step(executable, account, number, one)
        for number, one in enumerate(executable.steps)
        if one.kind != "handle" and account.executions[number]
    )
    instances = _instances(executable)
    by_type = {
        one.name: VertexTypeCycles(int(instances[number]), int(account.codelet_slots[number]))
        for number, one in enumerate(executable.codelets)
    }
    target = executable.target
    return Execution(steps, by_type, account.runs, target.getNumTiles(), clockFrequency=target.getTileClockFrequency())


def _instances(executable: Executable) -> Array:
    """Vertices of each codelet; those of a compute set that is there once for each result it is executed with count once."""
    computes = executable.computes
    codelet = np.full(len(executable.vertex_names.tile), -1)
    codelet[computes.vertex] = np.repeat(computes.group_codelet, computes.group_count)
    counted: Array = np.bincount(codelet[codelet >= 0], minlength=len(executable.codelets))
    return counted


def _step(executable: Executable, account: RunAccount, number: int, one: StaticStep) -> Step:
    """A static step with all its executions. A worker's slot is one cycle of a tile that is never idle."""
    tiles = executable.target.getNumTiles()
    times = int(account.executions[number])
    nothing: Array = np.zeros(0, np.int64)
    cycles, active = nothing, nothing
    if one.compute >= 0:
        computes = executable.computes
        first, last = int(computes.first_active[one.compute]), int(computes.first_active[one.compute + 1])
        begin = int(account.first_tile[number])
        cycles, active = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
        cycles[computes.active_tile[first:last]] = account.tile_cycles[begin : begin + last - first]
        active[computes.active_tile[first:last]] = account.tile_slots[begin : begin + last - first]
    slowest = int(one.moving_cycles.max()) if len(one.exchange_cycles) else 0
    exchange = executable.exchanges[one.exchange] if one.exchange >= 0 else None
    return Step(
        name=one.name,
        number=number,
        num_ipus=executable.target.getNumIPUs(),
        type=TYPES[one.kind],
        executions=times,
        depth=one.depth,
        sync_cycles=one.sync_cycles * times,
        exchange_cycles=slowest * times,
        compute_cycles=int(account.compute_cycles[number]),
        host_exchange_cycles=one.host_cycles * times,
        cyclesByTile=cycles,
        activeCyclesByTile=active,
        exchange_cycles_by_tile=one.moving_cycles * times,
        bytesSentByTile=exchange.bytes_sent * times if exchange is not None else nothing,
        bytesReceivedByTile=exchange.bytes_received * times if exchange is not None else nothing,
        host_bytes=one.host_bytes * times,
    )
