"""Findings of compute: its balance, idle threads and tiles, the dearest vertices, the floating-point rate."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import numpy as np

from pypoplar.arrays.dtypes import Bools
from pypoplar.report.compute_set_costs import compute_sets
from pypoplar.report.escaping import escaped
from pypoplar.report.execution import Execution, Step, step_number
from pypoplar.report.insights.insight import TOLD, Insight, shown, weigh
from pypoplar.report.report import Compilation, Report
from pypoplar.report.slowest_tile import SlowestTiles


def worst_balance(report: Report) -> Insight | None:
    """The compute set that would gain the most cycles from an even spread, and its slowest tile."""
    execution = report.execution
    costs = [cost for cost in compute_sets(execution) if cost.tiles] if execution is not None else []
    if execution is None or not costs:
        return None
    worst, total = max(costs, key=lambda cost: cost.saved_evenly), execution.totalCycles.total
    if worst.saved_evenly < 1:
        return None
    saved = sum(cost.saved_evenly for cost in costs)
    text = (
        f"In compute set {shown(worst.name)} the mean tile works {worst.balance:.1%} of the time of the slowest."
        f" Spread evenly over all tiles it would save {worst.saved_evenly:,.0f} cycles,"
        f" {worst.saved_evenly / total:.1%} of the total;"
        f" all compute sets together would save {saved / total:.1%}."
    )
    link, tile = "balance", SlowestTiles.of(execution).computing(worst.slowest) if worst.slowest is not None else None
    if worst.slowest is not None and tile is not None:
        text += f" The slowest is tile {tile.told()}."
        link = f"balance?step={step_number(worst.slowest, execution.steps.index(worst.slowest))}"
    advice = "Give every tile the same share: split the largest vertices, and map them and their data linearly over all tiles."
    share = saved / total
    title, lines = f"Worst tile balance: {shown(worst.name)}", lines_link(execution, set=worst.name)
    return Insight("worst_balance", weigh(share), title, text, advice, link, share, lines=lines)


def lines_link(execution: Execution, **of: str) -> str:
    """The place in the page that shows the lines of a vertex ``type``, or of a compute ``set``; empty where they are not known."""
    if execution.lines is None:
        return ""
    return f"lines?{urlencode({name: escaped(value) for name, value in of.items()})}" if of else "lines"


def dearest_vertex_type(report: Report) -> Insight | None:
    """The vertex type that takes the most cycles."""
    execution = report.execution
    costs = execution.cycles_by_vertex_type if execution is not None else {}
    total = sum(cost.cycles for cost in costs.values())
    if execution is None or not total or not execution.totalCycles.total:
        return None
    name = max(costs, key=lambda vertex_type: costs[vertex_type].cycles)
    of_vertices = costs[name].cycles / total
    text = f"The {costs[name].instances:,} vertices of {shown(name)} take {costs[name].cycles:,} worker slots,"
    text += f" {of_vertices:.1%} of all vertices' slots."
    advice = "Look at its inner loop first: what runs once per element is worth moving out, and half halves the bytes it loads."
    title = f"Most expensive vertex type: {shown(name)}"
    share, lines = of_vertices * _compute_share(execution), lines_link(execution, type=name)
    return Insight("dearest_vertex_type", "good to know", title, text, advice, "vertices", share, lines=lines)


def idle_worker_threads(report: Report) -> Insight | None:
    """Worker threads without work while their tile computes: what the slowest tiles would save if theirs all had some."""
    execution = report.execution
    steps = execution.steps if execution is not None else ()
    counted = [step for step in steps if len(step.cyclesByTile) and len(step.activeCyclesByTile)]
    busy = sum(int(step.cyclesByTile.sum()) for step in counted)
    if execution is None or not busy:
        return None
    idle = 1 - sum(int(step.activeCyclesByTile.sum()) for step in counted) / busy
    saved = sum(map(saved_by_threads, counted))
    share = saved / execution.totalCycles.total
    if share < TOLD:
        return None
    workers = report.compilation.target.numWorkerContexts
    text = (
        f"While tiles compute, {idle:.1%} of their worker threads' cycles are idle. A tile has {workers} of them, which take turns."
        f" If those of the slowest tiles all had work, it would save {saved:,.0f} cycles, {share:.1%} of the total."
    )
    advice = f"Put a multiple of {workers} equal vertices on each tile, or use a MultiVertex, which runs on all of them."
    lines = lines_link(execution)
    return Insight("idle_worker_threads", weigh(share), "Idle worker threads", text, advice, "balance", share, lines=lines)


def saved_by_threads(step: Step) -> float:
    """Cycles of the machine that a compute step would save if all worker threads of its tiles were busy until the end."""
    slowest = int(step.cyclesByTile.max())
    return step.compute_cycles * (1 - int(step.activeCyclesByTile.max()) / slowest) if slowest else 0.0


def unused_tiles(report: Report) -> Insight | None:
    """Tiles that never compute: what it would save if they took their share of all compute."""
    execution = report.execution
    used = _computing(execution) if execution is not None else None
    if execution is None or used is None or not used.any() or used.all():
        return None
    count, tiles = int(np.count_nonzero(~used)), len(used)
    share = count / tiles * _compute_share(execution)
    text = f"{count:,} of {tiles:,} tiles never compute, {count / tiles:.1%}; the first is tile {int(np.argmin(used)):,}."
    text += f" With their share of the work, up to {share:.1%} of the total cycles would be saved."
    advice = "Map vertices and variables over all tiles, or take a smaller target if the problem does not need more."
    return Insight("unused_tiles", weigh(share), "Unused tiles", text, advice, "balance", share)


def far_from_peak(report: Report) -> Insight | None:
    """Floating-point operations against what the target could do of their kind. Few programs reach it: it is never a warning."""
    execution, target = report.execution, report.compilation.target
    known = any(target.peak_flops_per_cycle.values()) and target.numTiles > 0 and target.clockFrequency > 0
    if execution is None or not execution.flops or not execution.seconds or not known:
        return None
    name, per_cycle = _peak(report.compilation, execution)
    peak = per_cycle * target.numTiles * target.clockFrequency
    achieved = execution.flops / execution.seconds
    text = f"{execution.flops:,} floating-point operations in {execution.seconds * 1e6:,.1f} \u00b5s: {rate(achieved)},"
    text += f" {achieved / peak:.2%} of the {rate(peak)} of {name}."
    advice = "Matrix products in half come closest to the peak; the roofline shows which compute sets are bound by memory instead."
    computing = _compute_share(execution)
    share = max(0.0, computing - achieved / peak)
    lines = lines_link(execution)
    return Insight("far_from_peak", "good to know", "Floating-point rate", text, advice, "roofline", share, lines=lines)


def _peak(compilation: Compilation, execution: Execution) -> tuple[str, float]:
    """The unit that operations of these vertex types can run on at best, and its operations of a tile in a cycle.

    Where some types are of float and others of half, it is what both reach together. Types of which nothing is known may be any.
    """
    peaks = {unit: peak for unit, peak in compilation.target.peak_flops_per_cycle.items() if peak}
    precisions = {vertex_type.name: vertex_type.precision for vertex_type in compilation.vertex_types}
    flops: dict[str, int] = {}
    for name, cost in execution.cycles_by_vertex_type.items():
        unit = max(_units(peaks, precisions.get(name, "")), key=lambda unit: peaks[unit])
        flops[unit] = flops.get(unit, 0) + cost.flops
    flops = {unit: count for unit, count in flops.items() if count}
    if not flops:
        unit = max(peaks, key=lambda unit: peaks[unit])
        return unit, peaks[unit]
    return " and ".join(flops), sum(flops.values()) / sum(count / peaks[unit] for unit, count in flops.items())


def _units(peaks: Mapping[str, float], precision: str) -> list[str]:
    """The units for a precision, ``"float, vector code"``; all of them where it has none."""
    return [unit for unit in peaks if precision and unit.split(",")[0] == precision] or list(peaks)


def rate(operations: float) -> str:
    """Floating-point operations per second, in the unit that suits them."""
    unit = "FLOP/s"
    for larger in ("kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"):
        if operations < 1000:
            break
        operations, unit = operations / 1000, larger
    return f"{operations:,.1f} {unit}"


def _compute_share(execution: Execution) -> float:
    """Share of the total cycles in which the machine computes."""
    total = execution.totalCycles.total
    return sum(step.compute_cycles for step in execution.steps) / total if total else 0.0


def _computing(execution: Execution) -> Bools | None:
    rows = [step.cyclesByTile for step in execution.steps if len(step.cyclesByTile)]
    used: Bools = np.zeros(len(rows[0]), bool) if rows else np.zeros(0, bool)
    for cycles in rows:
        used = used | (cycles > 0)
    return used if rows else None
