"""What runs cost as values for programs: what ``pypoplar summary --json`` writes of them. What was not recorded is None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict

from pypoplar.report.execution import Execution, Step, VertexTypeCycles
from pypoplar.report.line_profile import LineProfile
from pypoplar.report.phases import PHASES
from pypoplar.report.report import Compilation
from pypoplar.report.slowest_tile import SlowestTiles
from pypoplar.report.text.summary_execution import Between, achieved, longest_steps

FLOPS_OPTION = "profiler.includeFlopEstimates"


def execution_values(execution: Execution, compilation: Compilation, between: Between, top: int | None) -> dict[str, Any]:
    """All runs together, vertex types, lines, slowest vertices, and the `top` longest steps, or all in program order for None."""
    mean, slowest = execution.tile_average, SlowestTiles.of(execution)
    steps: Iterable[Step] = execution.steps if top is None else longest_steps(execution, top)
    known, with_flops = execution.copies_known, flops_recorded(execution, compilation)
    return {
        "cycles": execution.totalCycles.total,
        "seconds": execution.seconds,
        "programs": list(execution.programs),
        "runs": [{"name": run.name, "runs": run.count, "cycles": run.cycles} for run in execution.runs],
        "ipus": [asdict(ipu) for ipu in execution.ipus],
        "phases": _phases(execution.steps, copies_known=known),
        "mean_tile": {**asdict(mean), "sync": mean.sync - mean.waiting},
        "flops": execution.flops if with_flops else None,
        "flops_per_second": achieved(execution, compilation.target) if with_flops else None,
        "vertex_types": _vertex_types(execution, compilation, with_flops=with_flops),
        "lines": None if execution.lines is None else _lines(execution.lines),
        "slowest_vertices": None if execution.lines is None else [asdict(vertex) for vertex in execution.lines.slowest],
        "step_count": len(execution.steps),
        "steps": [
            _step(step, slowest, copies_known=known, with_flops=with_flops)
            | {"between_ipus": asdict(between[step.number]) if step.number in between else None}
            for step in steps
        ],
    }


def flops_recorded(execution: Execution, compilation: Compilation) -> bool:
    """Whether floating-point operations were counted: as the option says, which a report that was made by hand may not have."""
    return compilation.options.get(FLOPS_OPTION) == "true" or execution.flops > 0


def _vertex_types(execution: Execution, compilation: Compilation, *, with_flops: bool) -> list[dict[str, Any]]:
    """By their worker slots, the most first."""
    pricing = {kind.name: dict(kind.priced_by) for kind in compilation.vertex_types}
    types = sorted(execution.cycles_by_vertex_type.items(), key=lambda entry: (-entry[1].cycles, entry[0]))
    counted = any(cost.compiled_cycles for _, cost in types)
    rows = []
    for name, cost in types:
        compiled, bound = (cost.compiled_cycles, cost.bound_cycles) if counted else _code_slots(execution.lines, name, cost)
        rows.append(
            {
                "name": name,
                "instances": cost.instances,
                "slots": cost.cycles,
                "compiled": compiled,
                "bound": bound,
                "flops": cost.flops if with_flops else None,
                "memory_bytes": cost.memory_bytes if with_flops else None,
                "priced_by": pricing.get(name, {}),
            }
        )
    return rows


def _code_slots(lines: LineProfile | None, vertex_type: str, cost: VertexTypeCycles) -> tuple[int | None, int | None]:
    """Slots of a type's code as compiled, and their bound, as its lines have them."""
    if lines is None or not lines.compiled:
        return None, None
    if vertex_type not in lines.vertex_types:
        return (None, None) if cost.cycles else (0, 0)
    costs = lines.lines(vertex_type)
    return sum(line.compiled or 0 for line in costs), sum(line.bound or 0 for line in costs)


def _lines(profile: LineProfile) -> list[dict[str, Any]]:
    """Vertex types by their slots, the most first, each with the lines that cost something."""
    types = []
    for name in profile.vertex_types:
        costs, groups = profile.lines(name), profile.groups_of(name)
        lines = [
            {
                **asdict(cost.source),
                "slots": cost.slots,
                "share": cost.share,
                "compiled": cost.compiled,
                "bound": cost.bound,
                "executions": cost.executions,
            }
            for cost in costs
            if cost.slots or cost.compiled
        ]
        types.append(
            {
                "vertex_type": name,
                "instances": sum(group.vertices for group in groups),
                "slots": sum(group.slots for group in groups),
                "lines": lines,
            }
        )
    return types


def _phases(steps: Iterable[Step], *, copies_known: bool) -> Mapping[str, int | None]:
    """Cycles by phase; None for the copies on the tile where they are counted with the exchange."""
    known = {phase.name: phase.cycles for phase in PHASES}
    sums: dict[str, int | None] = {name: sum(getattr(step, attribute) for step in steps) for name, attribute in known.items()}
    return sums if copies_known else {**sums, "copies": None}


def _step(step: Step, slowest: SlowestTiles, *, copies_known: bool, with_flops: bool) -> dict[str, Any]:
    tile = slowest.of_step(step)
    computes = bool(step.cyclesByTile.any())
    return {
        "step": step.number,
        "name": step.name,
        "type": step.type,
        "depth": step.depth,
        "executions": step.executions,
        "cycles": step.cycles,
        "phases": _phases((step,), copies_known=copies_known),
        "slowest_tile_cycles": step.slowest_tile_cycles if computes else None,
        "active_tiles": step.activeTiles,
        "tile_balance": step.tileBalance if step.activeTiles else None,
        "active_tile_balance": step.activeTileBalance if step.activeTiles else None,
        "thread_balance": step.thread_balance if computes else None,
        "slowest_tile": None if tile is None else asdict(tile),
        "vertices": dict(step.program.vertices) if step.program is not None else {},
        "bytes_sent": int(step.bytesSentByTile.sum()),
        "bytes_received": int(step.bytesReceivedByTile.sum()),
        "most_pieces": step.most_pieces,
        "host_bytes": step.host_bytes,
        "host_limit": step.host_limit or None,
        "flops": step.flops if with_flops else None,
        "memory_bytes": step.memory_bytes if with_flops else None,
    }
