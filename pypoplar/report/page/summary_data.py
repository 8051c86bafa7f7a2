"""The page's first view: the target, the graph, the options, the headline numbers, where the time goes, the longest steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.report.execution import Execution, numbered_steps
from pypoplar.report.phase_cycles import machine_cycles, mean_tile_cycles
from pypoplar.report.report import Report, ReportTarget

LONGEST = 20  # steps in the table
Fact = dict[str, Any]  # "label" and "value", with a "unit" that page.js writes the value in


def summary_data(report: Report) -> dict[str, Any]:
    """The first view of a report."""
    compilation, execution = report.compilation, report.execution
    graph = compilation.graph
    return {
        "name": report.name,
        "created": report.created,
        "version": report.poplarVersion.string,
        "headline": headline(report),
        "target": _target(compilation.target),
        "graph": [
            fact("Vertices", graph.numVertices),
            fact("Edges", graph.numEdges),
            fact("Variables", graph.numVars),
            fact("Compute sets", graph.numComputeSets),
            fact("Vertex types", len(compilation.vertex_types)),
            fact("Steps of the program", len(compilation.program_steps)),
        ],
        "options": [
            *([fact("mode", compilation.mode, "text")] if report.cost is not None else []),
            *(fact(name, value, "text") for name, value in compilation.options.items()),
        ],
        "cost": report.cost.told() if report.cost is not None else [],
        "failed": ["\n".join(run.told()) for run in report.failed_runs],
        "programs": list(execution.programs) if execution else [],
        "machine": machine_parts(execution) if execution else None,
        "mean_tile": mean_tile_parts(execution) if execution else None,
        "longest": _longest(execution) if execution else [],
    }


def fact(label: str, value: Any, unit: str = "count") -> Fact:
    """A figure of the summary, with what it is called and counted in."""
    return {"label": label, "value": value, "unit": unit}


def headline(report: Report) -> list[Fact]:
    """The numbers that stand on top."""
    memory, target, execution = report.compilation.memory, report.compilation.target, report.execution
    whole = memory.including_gaps()
    most = int(whole.max()) if len(whole) else 0
    over = int(np.count_nonzero(whole > target.bytesPerTile))
    facts = [fact(f"Tiles out of memory, of {len(whole):,}", over)] if over else []
    if execution is not None:
        facts += [
            fact("Cycles", execution.totalCycles.total, "cycles"),
            fact("Time at the target's clock", execution.seconds, "seconds"),
            fact("Supersteps and copies executed", sum(step.executions for step in execution.steps)),
        ]
    facts += [fact("Memory of all tiles", int(whole.sum()), "bytes"), fact("Fullest tile", most, "bytes")]
    facts.append(fact("Fullest tile, of its memory", most / target.bytesPerTile if target.bytesPerTile else 0.0, "share"))
    if execution is not None:
        facts.append(fact("Bytes sent between tiles", sum(int(step.bytesSentByTile.sum()) for step in execution.steps), "bytes"))
        facts.append(fact("Bytes to and from the host", sum(step.host_bytes for step in execution.steps), "bytes"))
        if execution.flops:
            rate = execution.flops / execution.seconds if execution.seconds else 0.0
            facts += [fact("Floating-point operations", execution.flops, "flop"), fact("Achieved", rate, "flop/s")]
    return facts


def machine_parts(execution: Execution) -> list[dict[str, Any]]:
    """All cycles by what the machine did; in each step the slowest tile decides, so the parts add up to the total."""
    return [{"part": name, "label": label, "cycles": cycles} for name, label, cycles in machine_cycles(execution)]


def mean_tile_parts(execution: Execution) -> list[dict[str, Any]]:
    """The same cycles as the mean tile spends them; what is left is waiting for slower tiles."""
    return [{"part": name, "label": label, "cycles": cycles} for name, label, cycles in mean_tile_cycles(execution)]


def target_data(target: ReportTarget) -> dict[str, Any]:
    """What views reckon with: tiles, clock, and the ceilings of the roofline."""
    return {
        "tiles": target.numTiles,
        "tiles_per_ipu": target.tilesPerIpu,
        "ipus": target.numIPUs,
        "clock": float(target.clockFrequency),
        "peaks": {name: float(peak) for name, peak in target.peak_flops_per_cycle.items()},
        "memory_bytes_per_cycle": target.memory_bytes_per_cycle,
    }


def _target(target: ReportTarget) -> list[Fact]:
    return [
        fact("System", target.system or "not named", "text"),
        fact("Architecture", target.architecture, "text"),
        fact("Timing", target.timing, "text"),
        fact("IPUs", target.numIPUs * target.numReplicas),
        fact("Tiles per IPU", target.tilesPerIpu),
        fact("Tiles", target.numTiles * target.numReplicas),
        fact("Replicas", target.numReplicas),
        fact("Worker threads per tile", target.numWorkerContexts),
        fact("Memory per tile", target.bytesPerTile, "bytes"),
        fact("Memory", target.totalMemory * target.numReplicas, "bytes"),
        fact("Clock", float(target.clockFrequency), "Hz"),
    ]


def _longest(execution: Execution) -> list[dict[str, Any]]:
    total = execution.stepCycles
    longest = sorted(numbered_steps(execution).items(), key=lambda pair: (-pair[1].cycles, pair[0]))[:LONGEST]
    return [
        {
            "number": number,
            "name": step.name,
            "type": step.type,
            "executions": step.executions,
            "cycles": step.cycles,
            "share": step.cycles / total if total else 0.0,
            "balance": step.tileBalance if step.activeTiles else None,
        }
        for number, step in longest
    ]
