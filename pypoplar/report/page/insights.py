"""What a report says in words, and what to try. Each rule looks at a report and finds one thing, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import asdict, frozen

from pypoplar.arrays.dtypes import Bools
from pypoplar.report.execution import Execution, Step
from pypoplar.report.memory_report import live_bytes
from pypoplar.report.page.memory_data import category_label
from pypoplar.report.page.operation_data import compute_sets
from pypoplar.report.page.step_data import step_number
from pypoplar.report.report import Report

NAMED = 3  # variables named in a sentence
# From which share of the whole a finding is worth a warning, and from which it is the first thing to look at.
NOTED, GRAVE = 0.15, 0.4
WHAT_FILLS = {
    "variables": "Spread the largest variables over more tiles (poputil.mapTensorLinearly), or keep them as half.",
    "constants": "Constants are held on every tile that uses them: share them, or compute them on the tile.",
    "constant_tables": "Tables of codelets lie on every tile that runs them: make them smaller, or pass them as Input fields.",
    "exchange_buffers": "What a tile receives is held for the whole step: receive it in smaller steps, or map it elsewhere.",
    "vertex_state": "Use fewer, larger vertices: each has state of its own.",
    "edge_pointers": "Use fewer, larger vertices, and connect contiguous regions: each piece costs a pointer.",
    "code": "Use fewer vertex types on a tile: each brings its code.",
    "stack": "Lower debug.workerStackSizeInBytes if the codelets need less.",
}


@frozen
class Insight:
    """A finding: `weight` is "grave", "notable" or "good to know"; `link` is the place in the page that shows it."""

    rule: str
    weight: str
    title: str
    text: str
    advice: str
    link: str


def insights(report: Report) -> list[Insight]:
    """All findings, the gravest first."""
    findings = [finding for rule in RULES if (finding := rule(report)) is not None]
    order = ("grave", "notable", "good to know")
    return sorted(findings, key=lambda finding: order.index(finding.weight))


def insight_data(report: Report) -> list[dict[str, Any]]:
    """The findings as the page's data."""
    return [asdict(finding) for finding in insights(report)]


def weigh(share: float) -> str:
    return "grave" if share >= GRAVE else "notable" if share >= NOTED else "good to know"


def shown(name: str) -> str:
    return f'"{name}"' if name else "an unnamed step"


def rate(operations: float) -> str:
    """Floating-point operations per second, in the unit that suits them."""
    unit = "FLOP/s"
    for larger in ("kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"):
        if operations < 1000:
            break
        operations, unit = operations / 1000, larger
    return f"{operations:,.1f} {unit}"


def largest_tile(report: Report) -> Insight | None:
    """The fullest tile, and what fills it."""
    memory, limit = report.compilation.memory, report.compilation.target.bytesPerTile
    whole = memory.including_gaps()
    if not len(whole) or not whole.max():
        return None
    tile = int(whole.argmax())
    total = int(whole[tile])
    category = max(memory.categories, key=lambda name: int(memory.categories[name][tile]))
    over = int(np.count_nonzero(whole > limit))
    text = f"Tile {tile:,} holds {total:,} B, {total / limit:.1%} of its {limit:,} B; the mean tile holds {whole.mean():,.0f} B."
    text += f" Most of it: {category_label(category).lower()}, {int(memory.categories[category][tile]):,} B."
    variables = sorted(report.compilation.loweredVariables.forTile(tile), key=lambda variable: -variable.size)[:NAMED]
    if variables:
        text += (
            " Its largest variables: " + ", ".join(f"{shown(variable.name)} {variable.size:,} B" for variable in variables) + "."
        )
    if over:
        text += f" {over:,} {'tile does' if over == 1 else 'tiles do'} not fit."
    weight = "grave" if over else "notable" if total > 0.85 * limit else "good to know"
    return Insight("largest_tile", weight, f"Fullest tile: {tile:,}", text, WHAT_FILLS.get(category, ""), f"memory?tile={tile}")


def peak_liveness(report: Report) -> Insight | None:
    """The step at which the most is live."""
    compilation = report.compilation
    variables, programs = compilation.loweredVariables, compilation.step_programs
    if not programs or not len(variables):
        return None
    live_by_step = live_bytes(variables, len(programs))
    step = int(live_by_step.argmax())
    if not live_by_step[step]:
        return None
    sizes = np.zeros(len(variables), np.int64)
    living = variables.living(step)
    sizes[living] = variables.total_bytes()[living]
    largest = [int(variable) for variable in np.argsort(-sizes, kind="stable")[:NAMED] if sizes[variable]]
    names = ", ".join(f"{shown(variables.names[variable])} {int(sizes[variable]):,} B" for variable in largest)
    text = f"At step {step:,}, {shown(programs[step].name)}, {int(live_by_step[step]):,} B live besides what is always live."
    text += f" The largest: {names}."
    advice = "Shorten lives: do work in place, and compute large temporaries right before they are used."
    return Insight("peak_liveness", "good to know", "Most live memory", text, advice, f"liveness?step={step}")


def worst_balance(report: Report) -> Insight | None:
    """The compute set that would gain the most cycles from an even spread."""
    execution = report.execution
    costs = [cost for cost in compute_sets(execution) if cost.tiles] if execution is not None else []
    if execution is None or not costs:
        return None
    worst, total = max(costs, key=lambda cost: cost.lost), execution.totalCycles.total
    if worst.lost < 1:
        return None
    lost = sum(cost.lost for cost in costs)
    text = (
        f"In compute set {shown(worst.name)} the mean tile works {worst.balance:.1%} of the time of the slowest."
        f" Spread evenly over all tiles it would save {worst.lost:,.0f} cycles, {worst.lost / total:.1%} of the total;"
        f" all compute sets together would save {lost / total:.1%}."
    )
    advice = "Give every tile the same share: split the largest vertices, and map them and their data linearly over all tiles."
    return Insight("worst_balance", weigh(lost / total), f"Worst tile balance: {shown(worst.name)}", text, advice, "balance")


def biggest_exchange(report: Report) -> Insight | None:
    """The exchange that takes the most cycles."""
    execution = report.execution
    steps = [(place, step) for place, step in enumerate(execution.steps) if _exchange(step)] if execution is not None else []
    if execution is None or not steps:
        return None
    place, most = max(steps, key=lambda pair: _exchange(pair[1]))
    total = execution.totalCycles.total
    share = sum(_exchange(step) for _, step in steps) / total
    text = f"{shown(most.name)} takes {_exchange(most):,} cycles, {_exchange(most) / total:.1%} of the total, in"
    received = most.bytesReceivedByTile
    times = "1 execution" if most.executions == 1 else f"{most.executions:,} executions"
    text += f" {times}, and {_moved(int(most.bytesSentByTile.sum()), int(received.sum()))}."
    text += f" All exchanges together take {share:.1%}."
    if len(received) and received.max():
        text += f" Tile {int(received.argmax()):,} receives the most: {int(received.max()):,} B."
    advice = "Map data to the tiles that use it; where one tile receives much more than the others, spread what it gathers."
    link = f"exchange?step={step_number(most, place)}"
    return Insight("biggest_exchange", weigh(share), f"Biggest exchange: {shown(most.name)}", text, advice, link)


def dearest_vertex_type(report: Report) -> Insight | None:
    """The vertex type that takes the most cycles."""
    costs = report.execution.cycles_by_vertex_type if report.execution is not None else {}
    total = sum(cost.cycles for cost in costs.values())
    if not total:
        return None
    name = max(costs, key=lambda vertex_type: costs[vertex_type].cycles)
    share = costs[name].cycles / total
    text = f"The {costs[name].instances:,} vertices of {shown(name)} take {costs[name].cycles:,} worker cycles,"
    text += f" {share:.1%} of all vertices' cycles."
    advice = "Look at its inner loop first: what runs once per element is worth moving out, and half halves the bytes it loads."
    return Insight("dearest_vertex_type", "good to know", f"Most expensive vertex type: {shown(name)}", text, advice, "vertices")


def idle_worker_threads(report: Report) -> Insight | None:
    """Worker threads without work while their tile computes."""
    steps = report.execution.steps if report.execution is not None else ()
    counted = [step for step in steps if len(step.cyclesByTile) and len(step.activeCyclesByTile)]
    busy = sum(int(step.cyclesByTile.sum()) for step in counted)
    if not busy:
        return None
    idle = 1 - sum(int(step.activeCyclesByTile.sum()) for step in counted) / busy
    if idle < NOTED:
        return None
    workers = report.compilation.target.numWorkerContexts
    text = (
        f"While tiles compute, {idle:.1%} of their worker threads' cycles are idle. A tile has {workers} of them, which take turns."
    )
    advice = f"Put a multiple of {workers} equal vertices on each tile, or use a MultiVertex, which runs on all of them."
    return Insight("idle_worker_threads", weigh(idle), "Idle worker threads", text, advice, "balance")


def host_bound(report: Report) -> Insight | None:
    """Time spent on the host's streams."""
    execution = report.execution
    cycles = sum(step.host_exchange_cycles for step in execution.steps) if execution is not None else 0
    if execution is None or cycles < NOTED * execution.totalCycles.total or not cycles:
        return None
    share = cycles / execution.totalCycles.total
    sent = sum(step.host_bytes for step in execution.steps)
    text = f"Exchange with the host takes {cycles:,} cycles, {share:.1%} of the total, for {sent:,} B."
    advice = (
        "Copy more in fewer stream copies, keep data on the device over several runs, or move loops from the host into a Repeat."
    )
    return Insight("host_bound", weigh(share), "Bound by the host", text, advice, "trace")


def sync_bound(report: Report) -> Insight | None:
    """Time spent waiting for all tiles to arrive."""
    execution = report.execution
    cycles = sum(step.sync_cycles for step in execution.steps) if execution is not None else 0
    if execution is None or cycles < NOTED * execution.totalCycles.total or not cycles:
        return None
    share = cycles / execution.totalCycles.total
    times = sum(step.executions for step in execution.steps if step.sync_cycles)
    text = f"{times:,} steps synchronise, for {cycles:,} cycles: {share:.1%} of the total, {cycles / max(1, times):,.0f} each time."
    advice = "Put independent vertices into one compute set, and independent copies into one Copy: fewer, larger supersteps."
    return Insight("sync_bound", weigh(share), "Bound by synchronisation", text, advice, "trace")


def unused_tiles(report: Report) -> Insight | None:
    """Tiles that never compute."""
    execution = report.execution
    used = _computing(execution) if execution is not None else None
    if used is None or not used.any() or used.all():
        return None
    count, tiles = int(np.count_nonzero(~used)), len(used)
    text = f"{count:,} of {tiles:,} tiles never compute, {count / tiles:.1%}; the first is tile {int(np.argmin(used)):,}."
    advice = "Map vertices and variables over all tiles, or take a smaller target if the problem does not need more."
    return Insight("unused_tiles", weigh(count / tiles), "Unused tiles", text, advice, "balance")


def far_from_peak(report: Report) -> Insight | None:
    """Floating-point operations against what the target could do."""
    execution, target = report.execution, report.compilation.target
    peaks = target.peak_flops_per_cycle
    if execution is None or not execution.flops or not execution.seconds or not peaks:
        return None
    name = max(peaks, key=lambda unit: peaks[unit])
    peak = peaks[name] * target.numTiles * target.clockFrequency
    achieved = execution.flops / execution.seconds
    text = f"{execution.flops:,} floating-point operations in {execution.seconds * 1e6:,.1f} \u00b5s: {rate(achieved)},"
    text += f" {achieved / peak:.2%} of the {rate(peak)} of {name}."
    advice = "Matrix products in half come closest to the peak; the roofline shows which compute sets are bound by memory instead."
    return Insight("far_from_peak", "good to know", "Floating-point rate", text, advice, "roofline")


RULES: tuple[Callable[[Report], Insight | None], ...] = (
    largest_tile,
    worst_balance,
    biggest_exchange,
    host_bound,
    sync_bound,
    idle_worker_threads,
    unused_tiles,
    dearest_vertex_type,
    peak_liveness,
    far_from_peak,
)


def _moved(sent: int, received: int) -> str:
    """What an exchange moves: on tiles, or between them, where what is sent once may reach several."""
    if not sent and not received:
        return "moves bytes on their tiles only, into another order"
    return f"moves {sent:,} B" + (f", which arrive as {received:,} B on several tiles at once" if received > sent else "")


def _exchange(step: Step) -> int:
    return step.exchange_cycles + step.global_exchange_cycles


def _computing(execution: Execution) -> Bools | None:
    rows = [step.cyclesByTile for step in execution.steps if len(step.cyclesByTile)]
    used: Bools = np.zeros(len(rows[0]), bool) if rows else np.zeros(0, bool)
    for cycles in rows:
        used = used | (cycles > 0)
    return used if rows else None
