"""The summary as values for programs: what ``pypoplar summary --json`` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import asdict

from pypoplar.report.execution import Execution, Step
from pypoplar.report.insights.ranking import insight_data
from pypoplar.report.phases import PHASES
from pypoplar.report.report import Compilation, Report
from pypoplar.report.slowest_tile import SlowestTiles
from pypoplar.report.text.summary_execution import longest_steps

TOP = 20  # steps, where nothing else is asked for


def summary_values(report: Report, *, top: int = TOP, all_steps: bool = False, variables: bool = False) -> dict[str, Any]:
    """The summary of a report as numbers, texts, lists and dicts, which JSON holds.

    `execution` is None for a program that has not run. Its steps are the `top` longest ones, or all of them in program order.
    """
    compilation, execution = report.compilation, report.execution
    return {
        "name": report.name,
        "created": report.created,
        "version": report.poplarVersion.string,
        "options": dict(compilation.options),
        "target": asdict(compilation.target),
        "graph": asdict(compilation.graph),
        "memory": _memory(compilation),
        **({"variables": _variables(compilation)} if variables else {}),
        "execution": None if execution is None else _execution(execution, compilation, None if all_steps else top),
        "insights": insight_data(report),
    }


def _memory(compilation: Compilation) -> dict[str, Any]:
    memory, limit = compilation.memory, compilation.target.bytesPerTile
    used, whole = memory.excluding_gaps(), memory.including_gaps()
    fullest = int(whole.argmax()) if len(whole) else -1
    return {
        "tiles_out_of_memory": int(np.count_nonzero(whole > limit)),
        "excluding_gaps": int(used.sum()),
        "including_gaps": int(whole.sum()),
        "categories": {name: int(sizes.sum()) for name, sizes in memory.categories.items()},
        "fullest_tile": {"tile": fullest, "bytes": int(whole[fullest]) if len(whole) else 0, "limit": limit},
    }


def _variables(compilation: Compilation) -> list[dict[str, Any]]:
    """From the largest to the smallest."""
    return [asdict(variable) for variable in sorted(compilation.loweredVariables, key=lambda variable: -variable.size)]


def _execution(execution: Execution, compilation: Compilation, top: int | None) -> dict[str, Any]:
    mean, slowest = execution.tile_average, SlowestTiles.of(execution)
    steps: Iterable[Step] = execution.steps if top is None else longest_steps(execution, top)
    pricing = {kind.name: dict(kind.priced_by) for kind in compilation.vertex_types}
    return {
        "cycles": execution.totalCycles.total,
        "seconds": execution.seconds,
        "programs": list(execution.programs),
        "runs": [{"name": run.name, "runs": run.count, "cycles": run.cycles} for run in execution.runs],
        "phases": _phases(execution.steps, copies_known=execution.copies_known),
        "mean_tile": {**asdict(mean), "sync": mean.sync - mean.waiting},
        "flops": execution.flops,
        "vertex_types": [
            {"name": name, **asdict(cost), "priced_by": pricing.get(name, {})}
            for name, cost in sorted(execution.cycles_by_vertex_type.items(), key=lambda entry: (-entry[1].cycles, entry[0]))
        ],
        "step_count": len(execution.steps),
        "steps": [_step(step, slowest, copies_known=execution.copies_known) for step in steps],
    }


def _phases(steps: Iterable[Step], *, copies_known: bool) -> Mapping[str, int | None]:
    """Cycles by phase; None for the copies on the tile where they are counted with the exchange."""
    known = {phase.name: phase.cycles for phase in PHASES}
    sums: dict[str, int | None] = {name: sum(getattr(step, attribute) for step in steps) for name, attribute in known.items()}
    return sums if copies_known else {**sums, "copies": None}


def _step(step: Step, slowest: SlowestTiles, *, copies_known: bool) -> dict[str, Any]:
    tile = slowest.of_step(step)
    return {
        "step": step.number,
        "name": step.name,
        "type": step.type,
        "executions": step.executions,
        "cycles": step.cycles,
        "phases": _phases((step,), copies_known=copies_known),
        "active_tiles": step.activeTiles,
        "tile_balance": step.tileBalance,
        "slowest_tile": None if tile is None else asdict(tile),
        "bytes_sent": int(step.bytesSentByTile.sum()),
        "bytes_received": int(step.bytesReceivedByTile.sum()),
        "host_bytes": step.host_bytes,
        "flops": step.flops,
    }
