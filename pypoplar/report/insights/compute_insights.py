"""Findings of compute: its balance, idle threads and tiles, the dearest vertices, the floating-point rate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

import numpy as np

from pypoplar.report.compute_set_costs import compute_set_name
from pypoplar.report.escaping import escaped
from pypoplar.report.execution import Execution, Step, step_number
from pypoplar.report.insights.compute_savings import ComputeSavings, StepSavings
from pypoplar.report.insights.dear_functions import dear_lines
from pypoplar.report.insights.insight import TOLD, Insight, shown, told_line, weigh
from pypoplar.report.line_profile import LineCost
from pypoplar.report.plurals import counted
from pypoplar.report.report import Compilation, Report
from pypoplar.report.slowest_tile import SlowestTile, SlowestTiles

MOST = 0.5  # share of what all compute sets could save from which it is one compute set's
UNEQUAL = 1.5  # by how much the largest vertex is larger than the least where they are not alike


def worst_balance(report: Report) -> Insight | None:
    """The compute set that would gain the most cycles if the tiles that compute shared its work evenly, and its slowest tile."""
    execution = report.execution
    savings = ComputeSavings.of(execution)
    by_name: dict[str, list[StepSavings]] = {}
    for of_step in savings.steps:
        by_name.setdefault(compute_set_name(of_step.step), []).append(of_step)
    if execution is None or not by_name:
        return None
    name, worst = max(by_name.items(), key=lambda entry: _balance(entry[1]))
    total, saved, saved_together = execution.totalCycles.total, _balance(worst), savings.sum("balance")
    if saved < 1:
        return None
    computing, slowest = int(savings.used.sum()), sum(int(of_step.step.cyclesByTile.max()) for of_step in worst)
    mean = sum(int(of_step.step.cyclesByTile.sum()) for of_step in worst) / computing
    among, the_mean = "all tiles", "the mean tile"
    if not savings.used.all():
        among = f"the {computing:,} tiles that compute"
        the_mean = f"the mean of {among}"
    text = (
        f"In compute set {shown(name)} {the_mean} works {mean / slowest:.1%} of the time of the slowest."
        f" Spread evenly over {among} it would save {saved:,.0f} cycles{_beside(savings.sum('unused'), 'unused tiles')},"
        f" {saved / total:.1%} of the total"
    )
    text += f"; all compute sets together would save {saved_together / total:.1%}." if saved >= MOST * saved_together else "."
    step = max(worst, key=lambda of_step: of_step.balance).step
    tile = SlowestTiles.of(execution).computing(step)
    if tile is not None:
        text += f" The slowest is tile {tile.told()}."
    divided = _divide(tile, step, report.compilation.target.numWorkerContexts)
    advice = f"Give every tile the same share: {divided}, and map vertices and their data linearly over all tiles."
    share, title = saved_together / total, f"Worst tile balance: {shown(name)}"
    unbalanced = sum(_balance(of_set) >= 1 for of_set in by_name.values())
    if saved < MOST * saved_together:
        title = f"Tile balance of {counted(unbalanced, 'compute set')}"
        text = f"All compute sets together would save {share:.1%} of the total if each were spread evenly. {text}"
    lines = lines_link(execution, set=name)
    link = f"balance?step={step_number(step, execution.steps.index(step))}"
    return Insight("worst_balance", weigh(share), title, text, advice, link, share, lines=lines)


def _balance(savings: Iterable[StepSavings]) -> float:
    return sum(of_step.balance for of_step in savings)


def _beside(claimed: float, what: str) -> str:
    """That a saving comes on top of another one, if there is one."""
    return f" beside what {what} would" if claimed >= 1 else ""


def _divide(tile: SlowestTile | None, step: Step, workers: int) -> str:
    """What to do with the vertices of a tile: to split one that the others do not keep up with, to move some of many."""
    count = sum(vertices.count for vertices in tile.vertices) if tile is not None else 0
    if tile is None or not count:
        return "split the largest vertices"
    which = f"tile {tile.number:,}"
    if count == 1:
        return f"split the vertex of {which}"
    if _one_decides(tile, step, count, workers):
        return f"split the longest of the {count:,} vertices of {which}, which its threads wait for; to move one gains nothing"
    return f"move some of the {count:,} vertices of {which} to others, or split them"


def _one_decides(tile: SlowestTile, step: Step, count: int, workers: int) -> bool:
    """Whether a tile takes as long as its longest vertex: then it is no faster without the others.

    Vertices that all have a thread do not wait for each other. (Those that take all threads in turn keep more than theirs busy.)
    Of more, the longest decides if it is as much larger than the least as the busiest thread has more to do than the mean vertex.
    """
    if not len(step.activeCyclesByTile):
        return False
    active = max(1, int(step.activeCyclesByTile[tile.number]))
    if count <= workers:
        return active * workers <= tile.cycles * count
    most = max((size.most / max(1, size.least) for vertices in tile.vertices for size in vertices.sizes), default=1.0)
    return most >= UNEQUAL and most >= tile.cycles / workers / (active / count)


def lines_link(execution: Execution, **of: str) -> str:
    """The place in the page that shows the lines of a vertex ``type``, or of a compute ``set``; empty where they are not known."""
    if execution.lines is None:
        return ""
    return f"lines?{urlencode({name: escaped(value) for name, value in of.items()})}" if of else "lines"


def dearest_vertex_type(report: Report) -> Insight | None:
    """The vertex type that takes the most worker slots, and what its code could save of the cycles that nothing else claims."""
    execution = report.execution
    costs = execution.cycles_by_vertex_type if execution is not None else {}
    slots = sum(cost.cycles for cost in costs.values())
    if execution is None or not slots or not execution.totalCycles.total:
        return None
    name = _dearest(execution)
    of_library = _estimated_library(report.compilation, name)
    line, dear = (None, []) if of_library else (_dearest_line(execution, name), dear_lines(execution, name))
    text = f"The {counted(costs[name].instances, 'vertex', 'vertices')} of {shown(name)} take {costs[name].cycles:,} worker slots,"
    text += f" {costs[name].cycles / slots:.1%} of all vertices' slots."
    if line is not None:
        text += f" {line.share:.1%} of them go to {told_line(line.source)}."
    bound = _bound(report.compilation, execution, name)
    if bound is not None:
        text += f" Hand-written code could do with {bound - sum(one.saved for one in dear):,}"
        text += ", without the functions of software that it calls." if dear else "."
    halves = _precision(report.compilation, name) == "float"
    if of_library:
        text += " It is a library's, and an estimate says what it takes: its code is not for editing."
        advice = "Call it less often, or for less: fewer and larger calls take less than many small ones."
        advice += " In half it takes half as much or less." if halves else ""
    elif dear:
        advice = dear[0].told(line)
    else:
        advice = "Look at its inner loop first: what runs once per element is worth moving out"
        advice += ", and half halves the bytes it loads." if halves else "."
        if _sums_products(report.compilation, name, line):
            advice += (
                " Sums of products of many rows are a matrix product, for which a tile has a unit of its own that does many in a"
                " cycle: poplin.matMul, or ipu.multiply_accumulate in a MultiVertex."
            )
        if execution.lines is None:
            advice += (
                " With the engine option autoReport.outputExecutionProfile the report tells its lines, and the functions they call."
            )
    title = f"Most expensive vertex type: {shown(name)}"
    share = saved_by_code(report.compilation, execution)
    lines = "" if of_library else lines_link(execution, type=name)
    return Insight("dearest_vertex_type", weigh(share), title, text, advice, "vertices", share, lines=lines)


_PRODUCTS = re.compile(r"\+=[^#]*[^*]\*[^*]")  # a sum of products
_UNIT = 7 / 8  # share of such a line's bound that the matrix unit may save: it does eight times as many FLOATs, or more of HALFs
_TOLD_LINE = 0.25  # share of a vertex type's slots from which its dearest line is told


def _dearest_line(execution: Execution, name: str) -> LineCost | None:
    """The line that takes the most slots of a vertex type, if it takes a good part of them and is known."""
    if execution.lines is None or name not in execution.lines.vertex_types:
        return None
    dearest = max(execution.lines.lines(name), key=lambda line: line.slots, default=None)
    return dearest if dearest is not None and dearest.share >= _TOLD_LINE else None


def _sums_products(compilation: Compilation, name: str, line: LineCost | None) -> bool:
    """Whether a line is a sum of products of floats, which the matrix unit may do."""
    return line is not None and _PRODUCTS.search(line.source.text) is not None and bool(_precision(compilation, name))


def _estimated_library(compilation: Compilation, name: str) -> bool:
    """Whether a vertex type is a library's and estimated: nobody changes the estimate by editing its lines."""
    kind = next((kind for kind in compilation.vertex_types if kind.name == name), None)
    return kind is not None and "::" in name and any(count for source, count in kind.priced_by.items() if source != "code")


def _precision(compilation: Compilation, name: str) -> str:
    return next((kind.precision for kind in compilation.vertex_types if kind.name == name), "")


def _dearest(execution: Execution) -> str:
    costs = execution.cycles_by_vertex_type
    return max(costs, key=lambda vertex_type: costs[vertex_type].cycles)


def saved_by_code(compilation: Compilation, execution: Execution) -> float:
    """Share of the total that the code of the dearest vertex type could save at most: down to its bound where that is known.

    Functions of software can mostly be written in another way, so that their lines are not part of the bound here. A library's
    estimated vertices could take half as much in half. 0 where nothing is known by vertex type.
    """
    costs = execution.cycles_by_vertex_type
    slots = sum(cost.cycles for cost in costs.values())
    if not slots:
        return 0.0
    name = _dearest(execution)
    if _estimated_library(compilation, name):
        saved = costs[name].cycles // 2 if _precision(compilation, name) == "float" else 0
    else:
        bound = _bound(compilation, execution, name)
        saved = costs[name].cycles - (bound or 0)
        if bound:
            saved += sum(line.saved for line in dear_lines(execution, name))
            line = _dearest_line(execution, name)
            if line is not None and _sums_products(compilation, name, line):
                saved += int((line.bound or 0) * _UNIT)
            saved = min(costs[name].cycles, saved)
    return ComputeSavings.of(execution).sum("left") * saved / slots / execution.totalCycles.total


def _bound(compilation: Compilation, execution: Execution, name: str) -> int | None:
    """Slots that hand-written code could reach; None where it is not known, or an estimate decides."""
    priced = next((kind.priced_by for kind in compilation.vertex_types if kind.name == name), {})
    cost, lines = execution.cycles_by_vertex_type[name], execution.lines
    if any(count for source, count in priced.items() if source != "code"):
        return None
    if cost.compiled_cycles:
        return min(cost.bound_cycles, cost.cycles)
    if lines is None or not lines.compiled or name not in lines.vertex_types:
        return None
    return min(sum(line.bound or 0 for line in lines.lines(name)), cost.cycles)


def idle_worker_threads(report: Report) -> Insight | None:
    """Worker threads without work while their tile computes: what the slowest tiles would save if theirs all had some."""
    execution = report.execution
    steps = execution.steps if execution is not None else ()
    of_threads = [step for step in steps if len(step.cyclesByTile) and len(step.activeCyclesByTile)]
    busy = sum(int(step.cyclesByTile.sum()) for step in of_threads)
    if execution is None or not busy or not execution.totalCycles.total:
        return None
    idle = 1 - sum(int(step.activeCyclesByTile.sum()) for step in of_threads) / busy
    savings = ComputeSavings.of(execution)
    saved = savings.sum("threads")
    share = saved / execution.totalCycles.total
    if share < TOLD:
        return None
    workers = report.compilation.target.numWorkerContexts
    others = _beside(savings.sum("unused") + savings.sum("balance"), "more tiles and their balance")
    text = (
        f"While tiles compute, {idle:.1%} of their worker threads' cycles are idle. A tile has {workers} of them, which take turns."
        f" If those of the slowest tiles all had work, it would save {saved:,.0f} cycles{others}, {share:.1%} of the total."
    )
    advice = f"Put a multiple of {workers} equal vertices on each tile, or use a MultiVertex, which runs on all of them."
    lines = lines_link(execution)
    return Insight("idle_worker_threads", weigh(share), "Idle worker threads", text, advice, "balance", share, lines=lines)


def unused_tiles(report: Report) -> Insight | None:
    """Tiles that never compute: what it would save if they took their share of all compute, as far as it can be divided."""
    execution, savings = report.execution, ComputeSavings.of(report.execution)
    used = savings.used
    if execution is None or not used.any() or used.all() or not execution.totalCycles.total:
        return None
    count, tiles = int(np.count_nonzero(~used)), len(used)
    saved = savings.sum("unused")
    share = saved / execution.totalCycles.total
    text = f"{count:,} of {tiles:,} tiles never compute, {count / tiles:.1%}; the first is tile {int(np.argmin(used)):,}."
    text += f" With their share of the work, up to {saved:,.0f} cycles would be saved, {share:.1%} of the total."
    step = max(savings.steps, key=lambda of_step: of_step.unused).step
    tile = SlowestTiles.of(execution).computing(step)
    text += f" The most in compute set {shown(compute_set_name(step))}, on tile {tile.told()}." if tile is not None else ""
    advice = "Map vertices and variables over all tiles, or take a smaller target if the problem does not need more."
    link = f"balance?step={step_number(step, execution.steps.index(step))}"
    return Insight("unused_tiles", weigh(share), "Unused tiles", text, advice, link, share)


def far_from_peak(report: Report) -> Insight | None:
    """Floating-point operations against what the target could do of their kind. Few programs reach it: it is never a warning.

    What it could save is what other findings do not claim.
    """
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
    left = ComputeSavings.of(execution).sum("left") / execution.totalCycles.total
    share = max(0.0, left - saved_by_code(report.compilation, execution) - achieved / peak)
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
