"""What compute could save, each cycle claimed once: by unused tiles, balance, worker threads, and what is left by code."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools
from pypoplar.report.execution import Step
from pypoplar.report.insights.fixed_costs import FixedCosts
from pypoplar.report.report import Report
from pypoplar.report.tile_vertices import SizedVertices


@frozen(eq=False)
class StepSavings:
    """Cycles of the machine that a compute step could save at most, in all its executions.

    `unused` if the tiles that never compute took their share; `balance` if the others then shared the work evenly; `alone` if what
    cannot be divided any further ran beside another compute set; `threads` if then all worker threads of the slowest tile had work
    until the end. `left` is what the step then still takes.
    """

    step: Step
    unused: float
    balance: float
    alone: float
    threads: float
    left: float


@frozen(eq=False)
class ComputeSavings:
    """The savings of an execution's compute steps. `used` says of each tile whether it ever computes."""

    steps: tuple[StepSavings, ...]
    used: Bools

    @staticmethod
    def of(report: Report) -> ComputeSavings:
        """What the compute steps of a report's execution could save; nothing where nothing has run."""
        execution = report.execution
        steps = [step for step in execution.steps if step.cyclesByTile.any()] if execution is not None else []
        used: Bools = np.zeros(len(steps[0].cyclesByTile) if steps else 0, bool)
        for step in steps:
            used |= step.cyclesByTile > 0
        if execution is None or not steps:
            return ComputeSavings((), used)
        fixed, workers = FixedCosts.of(execution, steps), report.compilation.target.numWorkerContexts
        slowest = (SlowestWork.of(step, execution.slowest_vertices.get(step.number, ()), workers, fixed) for step in steps)
        return ComputeSavings(tuple(_savings(work, used) for work in slowest), used)

    def sum(self, name: str) -> float:
        """Of all steps: of a saving of `StepSavings`, or what is ``"left"``."""
        return float(sum(getattr(savings, name) for savings in self.steps))


@frozen(eq=False)
class SlowestWork:
    """The work of the tile that a step waits for, and how far it can be divided.

    `threads_each` says that its vertices have a thread each, so that fewer of them take as long: only to split them helps. `least`
    is the part of its time that is left when it is divided as finely as it can be, `fixed` the part that each part of a vertex
    takes, too; `vertices` is how many it has, 0 where that is not known.
    """

    step: Step
    threads_each: bool
    least: float
    fixed: float
    vertices: int = 0

    @staticmethod
    def of(step: Step, vertices: Sequence[SizedVertices], workers: int, fixed: FixedCosts) -> SlowestWork:
        """That of a step whose slowest tile has these vertices; of no vertices nothing is known."""
        if not vertices:
            return SlowestWork(step, False, 0.0, 0.0)
        each = have_threads_each(step, vertices, workers)
        sizes = [size.most for group in vertices for size in group.sizes]
        pieces = max(sizes) if each and sizes else _pieces(vertices)
        count = sum(group.count for group in vertices)
        return SlowestWork(step, each, 1 / max(1, pieces), fixed.of_tile(step, vertices), count)

    def without(self, share: float) -> float:
        """The part of its time that other tiles can take, if it keeps so much of its work.

        Whole vertices are moved, unless they have a thread each; or all are split, and what is fixed stays.
        """
        split = (1 - self.fixed) * (1 - max(share, self.least))
        whole = self.vertices if not self.threads_each else 0
        return max(split, 1 - ceil(whole * share) / whole) if whole else split


def have_threads_each(step: Step, vertices: Sequence[SizedVertices], workers: int) -> bool:
    """Whether the vertices of a step's slowest tile have a worker thread each: those that take all threads keep more busy."""
    count = sum(group.count for group in vertices)
    if not count or count > workers or not len(step.activeCyclesByTile):
        return False
    tile = int(step.cyclesByTile.argmax())
    return int(step.activeCyclesByTile[tile]) * workers <= int(step.cyclesByTile[tile]) * count


def _savings(work: SlowestWork, used: Bools) -> StepSavings:
    step = work.step
    whole, slowest = float(step.compute_cycles), int(step.cyclesByTile.max())
    unused = whole * work.without(float(used.mean()))
    fixed = work.fixed if work.threads_each else 0.0
    rest = whole - unused
    part = rest / whole if whole else 0.0
    mean = int(step.cyclesByTile.sum()) / int(used.sum()) * part
    balance = min(rest, max(0.0, slowest * part - max(mean, slowest * work.least)))
    rest -= balance
    alone = min(rest, max(0.0, slowest * part - mean)) if work.least >= 1 else 0.0
    rest -= alone
    active = step.activeCyclesByTile
    # What is spread evenly leaves as many idle as the mean tile does; a tile whose threads are all busy until the end decides.
    busy = max(int(active.max()) / slowest, step.thread_balance) if len(active) else 1.0
    threads = rest * (1 - fixed) * (1 - busy)
    return StepSavings(step, unused, balance, alone, threads, rest - threads)


def _pieces(vertices: Sequence[SizedVertices]) -> int:
    """Into how many vertices some could be divided: as many as their longest fields have elements."""
    return sum(group.count * max((size.most for size in group.sizes), default=1) for group in vertices) or 1
