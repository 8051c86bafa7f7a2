"""Findings of how evenly compute is spread: over the tiles, over all of them, and over their worker threads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.compute_set_costs import compute_set_name
from pypoplar.report.execution import Step, step_number
from pypoplar.report.insights.compute_savings import ComputeSavings, StepSavings, have_threads_each
from pypoplar.report.insights.insight import TOLD, Insight, lines_link, shown, weigh
from pypoplar.report.report import Report
from pypoplar.report.slowest_tile import SlowestTile, SlowestTiles

MOST = 0.5  # share of what all compute sets could save from which it is one compute set's
FEW = 0.25  # share of the tiles: where no more than these compute, a tensor is on few of them
UNEQUAL = 1.5  # by how much the largest vertex is larger than the least where they are not alike
MANY_SETS = 16  # compute sets that save something: what is divided may be a network, which has more of them then


def worst_balance(report: Report) -> Insight | None:
    """The compute set that would gain the most cycles if the tiles that compute shared its work evenly, and its slowest tile."""
    execution = report.execution
    savings = ComputeSavings.of(report)
    by_name: dict[str, list[StepSavings]] = {}
    for of_step in savings.steps:
        by_name.setdefault(compute_set_name(of_step.step), []).append(of_step)
    if execution is None or not by_name:
        return None
    name, worst = max(by_name.items(), key=lambda entry: _balance(entry[1]))
    total, saved, saved_together = execution.stepCycles, _balance(worst), savings.sum("balance")
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
    advice = f"Give every tile the same share: {divided}, and {_spread(tile, step)}."
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


def _spread(tile: SlowestTile | None, step: Step) -> str:
    """How to map what is to be spread: a library's vertices lie where their tensors do, and small tensors stay on few tiles."""
    of_library = tile is not None and any("::" in vertices.name for vertices in tile.vertices)
    if not of_library or step.activeTiles > FEW * len(step.cyclesByTile):
        return "map vertices and their data linearly over all tiles"
    return (
        "map its tensors by rows: a library's vertices lie where these do, and `poputil.mapTensorLinearly(graph, t)` gives a tile"
        " 128 bytes at least, which keeps a small tensor on few tiles (of halves on half as many); `mapTensorLinearly(graph, t,"
        " row, row)`, with the elements of a row, gives each tile a row"
    )


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


def lone_vertices(report: Report) -> Insight | None:
    """The compute set in which others wait longest for a tile whose work cannot be divided, and which could run beside another."""
    execution, savings = report.execution, ComputeSavings.of(report)
    total = execution.stepCycles if execution is not None else 0
    saved = savings.sum("alone")
    if execution is None or not total or saved < 1:
        return None
    worst = max(savings.steps, key=lambda of_step: of_step.alone)
    name, step = shown(compute_set_name(worst.step)), worst.step
    tile = SlowestTiles.of(execution).computing(step)
    text = f"In compute set {name} {counted(step.activeTiles, 'tile computes', 'tiles compute')}, and all others wait for"
    text += f" {worst.alone:,.0f} cycles, {worst.alone / total:.1%} of the total; its work cannot be divided any further."
    text += f" The slowest is tile {tile.told()}." if tile is not None else ""
    several = sum(of_step.alone >= 1 for of_step in savings.steps)
    text += f" {several:,} steps of this kind take {saved / total:.1%}." if several > 1 else ""
    advice = (
        "Do it beside something else: as a vertex in the compute set of a step before or behind it that does not need its result,"
        " where it takes no time of its own, or as good as none, nor a sync; or on every tile that needs the result, or less"
        " often. Of numbers that the host knows, as of a loop that counts, a constant or a stream takes none."
    )
    link = f"balance?step={step_number(step, execution.steps.index(step))}"
    share = saved / total
    return Insight("lone_vertices", weigh(share), f"Waiting for one tile: {name}", text, advice, link, share)


def idle_worker_threads(report: Report) -> Insight | None:
    """Worker threads without work while their tile computes: what the slowest tiles would save if theirs all had some."""
    execution = report.execution
    steps = execution.steps if execution is not None else ()
    of_threads = [step for step in steps if len(step.cyclesByTile) and len(step.activeCyclesByTile)]
    busy = sum(int(step.cyclesByTile.sum()) for step in of_threads)
    if execution is None or not busy or not execution.stepCycles:
        return None
    idle = 1 - sum(int(step.activeCyclesByTile.sum()) for step in of_threads) / busy
    savings = ComputeSavings.of(report)
    saved = savings.sum("threads")
    share = saved / execution.stepCycles
    if share < TOLD:
        return None
    workers = report.compilation.target.numWorkerContexts
    others = _beside(sum(map(savings.sum, ("unused", "balance", "alone"))), "more tiles and their balance")
    text = (
        f"While tiles compute, {idle:.1%} of their worker threads' cycles are idle. A tile has {workers} of them, which take turns."
        f" If those of the slowest tiles all had work, it would save up to {saved:,.0f} cycles{others}, {share:.1%} of the total,"
        " as far as the work can be divided."
    )
    worst = max(savings.steps, key=lambda of_step: of_step.threads)
    name, tile = shown(compute_set_name(worst.step)), SlowestTiles.of(execution).computing(worst.step)
    of_it = "" if worst.threads >= saved - 1 else f", {worst.threads / execution.stepCycles:.1%}"
    text += f" The most in compute set {name}{of_it}, on tile {tile.told()}." if tile is not None else ""
    advice, lines = _give_threads_work(tile, worst.step, workers), lines_link(execution, set=compute_set_name(worst.step))
    title = f"Idle worker threads: {name}"
    link = f"balance?step={step_number(worst.step, execution.steps.index(worst.step))}"
    return Insight("idle_worker_threads", weigh(share), title, text, advice, link, share, lines=lines)


def _give_threads_work(tile: SlowestTile | None, step: Step, workers: int) -> str:
    """What keeps all threads of a tile busy, by what it has: too few vertices, some that are longer, or unequal shares in one."""
    vertices = tile.vertices if tile is not None else ()
    count = sum(of_type.count for of_type in vertices)
    if tile is None or not count or (count < workers and have_threads_each(step, vertices, workers)):
        few = f" its {counted(count, 'vertex has', 'vertices have')} a thread each,"
        few += " and to put those of several tiles on one gains nothing."
        return (
            f"Divide the work of each tile into a multiple of {workers} equal vertices, or use a MultiVertex, which runs on all"
            f" threads{':' + few if count else '.'}"
        )
    if count == 1:
        return (
            f"The workers of a MultiVertex have unequal shares, and wait for the one that takes longest: of what `ipu.worker_range`"
            f" divides, {workers + 1} elements take as long as {2 * workers}. Give every vertex a multiple of {workers} of it,"
            " divide something that there is more of, or let those that have more to do for each have fewer."
        )
    return (
        f"Put a multiple of {workers} equal vertices on each tile: their threads wait for the longest, or for those that are left"
        " over."
    )


def unused_tiles(report: Report) -> Insight | None:
    """Tiles that never compute: what it would save if they took their share of all compute, as far as it can be divided."""
    execution, savings = report.execution, ComputeSavings.of(report)
    used = savings.used
    if execution is None or not used.any() or used.all() or not execution.stepCycles:
        return None
    count, tiles = int(np.count_nonzero(~used)), len(used)
    saved = savings.sum("unused")
    share = saved / execution.stepCycles
    text = f"{count:,} of {tiles:,} tiles never compute, {count / tiles:.1%}; the first is tile {int(np.argmin(used)):,}."
    text += f" With their share of the work, up to {saved:,.0f} cycles would be saved, {share:.1%} of the total, if it can"
    text += " be divided so and does not become more."
    step = max(savings.steps, key=lambda of_step: of_step.unused).step
    tile = SlowestTiles.of(execution).computing(step)
    text += f" The most in compute set {shown(compute_set_name(step))}, on tile {tile.told()}." if tile is not None else ""
    advice = "Map vertices and variables over all tiles, or take a smaller target if the problem does not need more."
    if tile is not None and have_threads_each(step, tile.vertices, report.compilation.target.numWorkerContexts):
        advice += (
            " Vertices that have a thread each take as long with fewer of them on a tile: only dividing them helps, and what each"
            " part does once stays."
        )
    if sum(of_step.unused > 0 for of_step in savings.steps) >= MANY_SETS:
        advice += " Where more parts take more compute sets, as in a network that sorts, these take back a part of it."
    link = f"balance?step={step_number(step, execution.steps.index(step))}"
    return Insight("unused_tiles", weigh(share), "Unused tiles", text, advice, link, share)
