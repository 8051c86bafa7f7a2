"""Collects what a piece of a program costs on several IPUs, whose steps run at the same time."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from attrs import define, evolve, field

from pypoplar.engine.cost.spent import Executions, IpuSpent, Spent, SpentParts


class LatestClock(Protocol):
    """What says how far a machine has come."""

    @property
    def latest(self) -> int:
        """Cycles of its latest IPU."""


@define(eq=False)
class IpuParts(SpentParts):
    """As `SpentParts`. Cycles of a piece are those by which the latest clock comes later: perhaps fewer than those of its steps."""

    clocks: LatestClock = field(kw_only=True)
    _begin: int = field(init=False)
    _single: list[tuple[int, int, int, int]] = field(factory=list)  # of the steps that are not yet in `_whole`
    _row: list[tuple[int, int, int]] = field(factory=list)  # the same, of `IpuSpent`

    def __attrs_post_init__(self) -> None:
        self._begin = self.clocks.latest

    def executed(self, step: int, computed: int) -> None:
        """One execution of a step; by how much vertices made it longer on the IPU where they took longest."""
        self._step.append(step)
        self._computed.append(computed)

    def share(self, step: int, share: int, ipu: int, begin: int, cycles: int, computed: int) -> None:
        """What an IPU did in it: when it began, how long it took, and how long its vertices took."""
        if self._kept + len(self._single) < self.events:
            self._single.append((step, begin - self._begin, cycles, ipu))
        if computed:
            self._row.append((share, computed, 0))

    def wait(self, place: int, cycles: int) -> None:
        """An IPU waited so long: before its share of a step, or in the place of that IPU behind all shares."""
        if cycles:
            self._row.append((place, 0, cycles))

    def add(self, spent: Spent) -> None:
        """A part, which has just been done."""
        self._settle()
        self._cycles = self.clocks.latest - round(spent.cycles) - self._begin
        self._append(spent)

    def _settle(self) -> None:
        if not self._step and not self._row:
            return
        step, computed = np.array(self._step, np.int64), np.array(self._computed, np.int64)
        events = Executions(*np.array(self._single, np.int64).reshape(-1, 4).T)
        rows = IpuSpent(*np.array(self._row, np.int64).reshape(-1, 3).T)
        self._cycles = 0
        self._append(Spent(0, step, np.ones(len(step), np.int64), computed, events, ipus=rows))
        self._step, self._computed, self._single, self._row = [], [], [], []

    def finish(self) -> Spent:
        """All of it."""
        return evolve(super().finish(), cycles=self.clocks.latest - self._begin)
