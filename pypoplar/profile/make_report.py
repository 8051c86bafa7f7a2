"""Makes the report of an executable and of its runs from their tables."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from pypoplar.compiler.executable import Array, Executable
from pypoplar.compiler.executable import Step as StaticStep
from pypoplar.engine import layout as at
from pypoplar.profile.report import (
    Compilation,
    Execution,
    MemoryByTile,
    Report,
    ReportGraph,
    ReportTarget,
    Step,
    Version,
    VertexTypeCycles,
)

if TYPE_CHECKING:
    from pypoplar.engine.state import EngineState

TYPES = {"exchange": "DoExchange", "copy": "DoExchange", "compute": "OnTileExecute", "stream": "StreamCopy", "sync": "Sync"}


def make_report(executable: Executable, state: EngineState | None = None, runs: tuple[str, ...] = ()) -> Report:
    """The report; its execution part is None while nothing has run."""
    target, counts = executable.target, executable.counts
    compilation = Compilation(
        ReportTarget(
            architecture=target.getTargetArchString(),
            numIPUs=target.getNumIPUs(),
            tilesPerIpu=target.getTilesPerIPU(),
            bytesPerTile=target.getBytesPerTile(),
            clockFrequency=target.getTileClockFrequency(),
            numWorkerContexts=target.getNumWorkerContexts(),
        ),
        ReportGraph(counts.vertices, counts.edges, counts.variables, counts.compute_sets),
        _memory(executable),
    )
    ran = state is not None and bool(runs)
    return Report(
        compilation, _execution(executable, state, runs) if ran and state is not None else None, Version(version("pypoplar"))
    )


def _memory(executable: Executable) -> MemoryByTile:
    memory = executable.memory
    categories = {
        "variables": memory.variables,
        "constants": memory.constants,
        "exchange_buffers": memory.exchange_buffers,
        "vertex_state": memory.vertex_state,
        "edge_pointers": memory.edge_pointers,
        "code": memory.code,
        "stack": memory.stack,
    }
    vertex_data = {
        "internal_vertex_state": int(memory.vertex_state.sum()),
        "edge_pointers": int(memory.edge_pointers.sum()),
    }
    by_type = dict(zip((one.name for one in executable.codelets), map(int, executable.vertex_bytes), strict=True))
    return MemoryByTile(categories, memory.gaps, vertex_data, by_type)


def _execution(executable: Executable, state: EngineState, runs: tuple[str, ...]) -> Execution:
    steps = tuple(
        _step(executable, state, number, one)
        for number, one in enumerate(executable.steps)
        if one.kind != "handle" and state.tables[at.EXECUTIONS][number]
    )
    threads = state.division.threads
    slots = state.tables[at.CODELET_SLOTS][: threads * len(executable.codelets)].reshape(threads, -1).sum(0)
    instances = np.bincount(executable.computes.group_codelet, executable.computes.group_count, len(executable.codelets))
    by_type = {
        one.name: VertexTypeCycles(int(instances[number]), int(slots[number])) for number, one in enumerate(executable.codelets)
    }
    return Execution(steps, by_type, runs, executable.target.getNumTiles())


def _step(executable: Executable, state: EngineState, number: int, one: StaticStep) -> Step:
    """A static step with all its executions. A worker's slot is one cycle of a tile that is never idle."""
    tiles = executable.target.getNumTiles()
    times = int(state.tables[at.EXECUTIONS][number])
    nothing: Array = np.zeros(0, np.int64)
    cycles, active = nothing, nothing
    if one.compute >= 0:
        computes = executable.computes
        first, last = int(computes.first_active[one.compute]), int(computes.first_active[one.compute + 1])
        begin = int(state.step_account[number])
        cycles, active = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
        cycles[computes.active_tile[first:last]] = state.tables[at.TILE_CYCLES][begin : begin + last - first]
        active[computes.active_tile[first:last]] = state.tables[at.TILE_SLOTS][begin : begin + last - first]
    slowest = int(one.exchange_cycles.max()) if len(one.exchange_cycles) else 0
    account = executable.exchanges[one.exchange].account if one.exchange >= 0 else None
    return Step(
        name=one.name,
        type=TYPES[one.kind],
        executions=times,
        depth=one.depth,
        sync_cycles=one.sync_cycles * times,
        exchange_cycles=slowest * times,
        compute_cycles=int(state.tables[at.COMPUTE_CYCLES][number]),
        host_exchange_cycles=one.host_cycles * times,
        cyclesByTile=cycles,
        activeCyclesByTile=active,
        exchange_cycles_by_tile=one.exchange_cycles * times,
        bytesSentByTile=account.bytes_sent * times if account is not None else nothing,
        bytesReceivedByTile=account.bytes_received * times if account is not None else nothing,
        host_bytes=one.host_bytes * times,
    )
