"""The clocks of several IPUs that are priced: each goes on by itself where nothing comes from another."""

from __future__ import annotations

from typing import Self

import numpy as np
from attrs import define, evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.cost.compute_prices import ComputePrice
from pypoplar.engine.cost.ipu_spent import IpuParts
from pypoplar.executable.executable import Executable
from pypoplar.executable.ipu_steps import IpuSteps
from pypoplar.interface.layout import NOTHING


@frozen(eq=False)
class ShareLists:
    """What is asked of the steps again and again, as lists; see `IpuSteps`."""

    first: list[int]
    ipu: list[int]
    waits: list[int]
    cycles: list[int]
    row_first: list[int]
    row_ipu: list[int]

    @staticmethod
    def of(steps: IpuSteps) -> ShareLists:
        """Those of the steps."""
        tables = (steps.first, steps.ipu, steps.waits, steps.fixed_cycles, steps.row_first, steps.row_ipu)
        return ShareLists(*(table.tolist() for table in tables))


@define(eq=False)
class IpuClocks:
    """Cycles since the program began, by IPU: of its tile that has come farthest."""

    executable: Executable
    steps: IpuSteps
    tile: Int64s | None  # [tiles]: when each was done with its last compute set
    now: list[int]  # by IPU
    together: list[int]  # by IPU: when its tiles were last together
    _lists: ShareLists

    @staticmethod
    def of(executable: Executable, steps: IpuSteps, tile: Int64s | None) -> IpuClocks:
        """All at the beginning."""
        return IpuClocks(executable, steps, tile, [0] * steps.ipus, [0] * steps.ipus, ShareLists.of(steps))

    @property
    def uniform(self) -> bool:
        """Whether what a piece costs does not depend on what was before: it does."""
        return False

    @property
    def latest(self) -> int:
        """The clock of the machine."""
        return max(self.now)

    def parts(self, events: int) -> IpuParts:
        """What collects what a piece costs that begins now."""
        return IpuParts(events, clocks=self)

    def relative(self) -> bytes:
        """What the cycles of what follows depend on."""
        apart = np.array(self.now, np.int64) - self.latest
        if self.tile is None:
            return apart.tobytes()
        together = np.repeat(np.array(self.together, np.int64), self.executable.target.getTilesPerIPU())
        return apart.tobytes() + (np.maximum(self.tile, together) - self.latest).tobytes()

    def shift(self, cycles: int) -> None:
        """So many cycles pass for all IPUs, which stay as far apart as they are."""
        self.now = [clock + cycles for clock in self.now]
        self.together = [clock + cycles for clock in self.together]
        if self.tile is not None:
            self.tile = self.tile + cycles

    def copy(self) -> Self:
        """The clocks as they are."""
        tile = None if self.tile is None else self.tile.copy()
        return evolve(self, tile=tile, now=self.now.copy(), together=self.together.copy())

    def return_to(self, earlier: IpuClocks) -> None:
        """Be as they were."""
        self.tile = None if earlier.tile is None else earlier.tile.copy()
        self.now, self.together = earlier.now.copy(), earlier.together.copy()

    def go_on_between(self, first: IpuClocks, share: float) -> None:
        """Be where a share of the times is as `first`, and the rest as here."""
        self.now = [round(share * one + (1 - share) * other) for one, other in zip(first.now, self.now, strict=True)]
        self.together = self.now.copy()

    def meet(self, row: int, parts: IpuParts) -> None:
        """The IPUs that wait for each other at a row go on when the last of them has come."""
        first = self._lists.row_first
        waiting = self._lists.row_ipu[first[row] : first[row + 1]]
        latest = max((self.now[ipu] for ipu in waiting), default=0)
        for ipu in waiting:
            parts.wait(len(self._lists.ipu) + ipu, latest - self.now[ipu])
            self.now[ipu] = self.together[ipu] = latest

    def move(self, step: int, parts: IpuParts) -> None:
        """A step that moves something, or a sync."""
        self._meet_in_step(step, parts)
        self._pass(step, parts, {})
        self._gather(step)

    def superstep(self, row: int, steps: tuple[int, int, int], compute: int, price: ComputePrice, parts: IpuParts) -> None:
        """A compute set, which stands at a row; `steps` are the exchange before it, it itself, and the exchange after it."""
        before, step, after = steps
        self._meet_in_step(before, parts)
        start = {
            self._lists.ipu[share]: self.now[self._lists.ipu[share]] + self._lists.cycles[share] for share in self._shares(step)
        }
        for share in self._shares(before):
            start[self._lists.ipu[share]] += self._lists.cycles[share]
        if before != NOTHING or self.executable.steps[step].waits:
            for one, cycles in start.items():
                self.together[one] = cycles
        computed = self._computed(compute, price, start)
        if before != NOTHING:
            self._pass(before, parts, {})
        self._pass(step, parts, computed)
        if after != NOTHING:
            self.move(after, parts)
        self.meet(row, parts)

    def _computed(self, compute: int, price: ComputePrice, start: dict[int, int]) -> dict[int, int]:
        """By IPU how long after its start the vertices of the slowest tile are done."""
        computes, first = self.executable.computes, int(self.executable.computes.first_active[compute])
        computed = {}
        for number in range(int(self.steps.part_first[compute]), int(self.steps.part_first[compute + 1])):
            ipu, begin, end = (int(column[number]) for column in (self.steps.part_ipu, self.steps.part_begin, self.steps.part_end))
            cycles = price.cycles[begin - first : end - first]
            if self.tile is None:
                computed[ipu] = int(cycles.max())
                continue
            active = computes.active_tile[begin:end]
            self.tile[active] = (
                np.maximum(self.tile[active], self.together[ipu]) + self.executable.target.compute_set_start_cycles + cycles
            )
            computed[ipu] = max(0, int(self.tile[active].max()) - start[ipu])
        return computed

    def _shares(self, step: int) -> range:
        return range(self._lists.first[step], self._lists.first[step + 1]) if step != NOTHING else range(0)

    def _meet_in_step(self, step: int, parts: IpuParts) -> None:
        waiting = [share for share in self._shares(step) if self._lists.waits[share]]
        latest = max((self.now[self._lists.ipu[share]] for share in waiting), default=0)
        for share in waiting:
            parts.wait(share, latest - self.now[self._lists.ipu[share]])
            self.now[self._lists.ipu[share]] = latest

    def _pass(self, step: int, parts: IpuParts, computed: dict[int, int]) -> None:
        parts.executed(step, max(computed.values(), default=0))
        for share in self._shares(step):
            ipu = self._lists.ipu[share]
            later = computed.get(ipu, 0)
            parts.share(step, share, ipu, self.now[ipu], self._lists.cycles[share] + later, later)
            self.now[ipu] += self._lists.cycles[share] + later

    def _gather(self, step: int) -> None:
        for share in self._shares(step):
            self.together[self._lists.ipu[share]] = self.now[self._lists.ipu[share]]
