"""What compute could save, each cycle claimed once: by unused tiles, balance, worker threads, and what is left by code."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools
from pypoplar.report.execution import Execution, Step
from pypoplar.report.tile_vertices import SizedVertices


@frozen(eq=False)
class StepSavings:
    """Cycles of the machine that a compute step could save at most, in all its executions.

    `unused` if the tiles that never compute took their share; `balance` if the others then shared the work evenly; `threads` if
    then all worker threads of the slowest tile had work until the end. `left` is what the step then still takes.
    """

    step: Step
    unused: float
    balance: float
    threads: float
    left: float


@frozen(eq=False)
class ComputeSavings:
    """The savings of an execution's compute steps. `used` says of each tile whether it ever computes."""

    steps: tuple[StepSavings, ...]
    used: Bools

    @staticmethod
    def of(execution: Execution | None) -> ComputeSavings:
        """What the compute steps of an execution could save; nothing where nothing has run."""
        steps = [step for step in execution.steps if step.cyclesByTile.any()] if execution is not None else []
        used: Bools = np.zeros(len(steps[0].cyclesByTile) if steps else 0, bool)
        for step in steps:
            used |= step.cyclesByTile > 0
        if execution is None or not steps:
            return ComputeSavings((), used)
        vertices, share = execution.slowest_vertices, float(used.mean())
        return ComputeSavings(tuple(_savings(step, share, int(used.sum()), vertices.get(step.number, ())) for step in steps), used)

    def sum(self, name: str) -> float:
        """Of all steps: of ``"unused"``, ``"balance"``, ``"threads"`` or ``"left"``."""
        return float(sum(getattr(savings, name) for savings in self.steps))


def _savings(step: Step, used_share: float, used: int, vertices: tuple[SizedVertices, ...]) -> StepSavings:
    whole, slowest = float(step.compute_cycles), int(step.cyclesByTile.max())
    least = 1 / pieces(vertices) if vertices else 0.0  # of the slowest tile's work: what cannot be divided any further
    unused = whole * (1 - max(used_share, min(1.0, least)))
    rest = whole - unused
    part = rest / whole if whole else 0.0
    even = max(int(step.cyclesByTile.sum()) / used * part, slowest * least)
    balance = min(rest, max(0.0, slowest * part - even))
    rest -= balance
    busy = int(step.activeCyclesByTile.max()) / slowest if len(step.activeCyclesByTile) else 1.0
    threads = rest * (1 - busy)
    return StepSavings(step, unused, balance, threads, rest - threads)


def pieces(vertices: tuple[SizedVertices, ...]) -> int:
    """Into how many vertices some could be divided: as many as their longest fields have elements."""
    return sum(group.count * max((size.most for size in group.sizes), default=1) for group in vertices) or 1
