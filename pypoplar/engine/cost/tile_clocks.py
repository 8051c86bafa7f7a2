"""The clocks of a machine that is priced: that of the tile that has come farthest, and those of the tiles where they differ."""

from __future__ import annotations

import numpy as np
from attrs import Factory, define, evolve, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.cost.compute_prices import ComputePrice
from pypoplar.engine.cost.priced_ipus import IpuClocks
from pypoplar.engine.cost.spent import SpentParts
from pypoplar.executable.executable import Executable
from pypoplar.interface.layout import NOTHING


def clocks_of(executable: Executable) -> TileClocks | IpuClocks:
    """The clocks of a machine that has not begun."""
    target = executable.target
    apart = target.compute_set_start_cycles or not all(step.waits for step in executable.steps)
    tile = np.zeros(target.getNumTiles(), np.int64) if apart else None
    steps = executable.ipu_steps
    return TileClocks(executable, tile) if steps is None else IpuClocks.of(executable, steps, tile)


def fixed_cycles(executable: Executable) -> list[int]:
    """By step, cycles of one execution but for its vertices."""
    return [step.fixed_cycles for step in executable.steps]


@define(eq=False)
class TileClocks:
    """Cycles since the program began. Where all steps wait for all tiles, and sets have no start, tiles need no clocks."""

    executable: Executable
    tile: Int64s | None  # [tiles]: when each was done with its last compute set
    now: int = 0
    together: int = 0  # when all tiles were last together
    _fixed: list[int] = field(default=Factory(lambda self: fixed_cycles(self.executable), takes_self=True))  # by step

    @property
    def uniform(self) -> bool:
        """Whether what a piece costs does not depend on what was before."""
        return self.tile is None

    def relative(self) -> bytes:
        """What the cycles of what follows depend on."""
        return b"" if self.tile is None else (np.maximum(self.tile, self.together) - self.now).tobytes()

    def parts(self, events: int) -> SpentParts:
        """What collects what a piece costs."""
        return SpentParts(events)

    def meet(self, row: int, parts: SpentParts) -> None:
        """All tiles wait for the one that has come farthest, at a row."""
        self.together = self.now

    def move(self, step: int, parts: SpentParts) -> None:
        """A step that moves something, or a sync."""
        parts.step(step, self._fixed[step], 0)
        self.now += self._fixed[step]
        self.together = self.now

    def superstep(self, row: int, steps: tuple[int, int, int], compute: int, price: ComputePrice, parts: SpentParts) -> None:
        """A compute set, which stands at a row; `steps` are the exchange before it, it itself, and the exchange after it."""
        before, step, after = steps
        lead = self._fixed[step] + (self._fixed[before] if before != NOTHING else 0)
        waits = before != NOTHING or self.executable.steps[step].waits
        slowest = self._compute(compute, price, lead, waits=waits)
        for passed, computed in ((before, 0), (step, slowest), (after, 0)):
            if passed != NOTHING:
                cycles = self._fixed[passed] + computed
                parts.step(passed, cycles, computed)
                self.now += cycles
        if after != NOTHING or self.executable.computes.result_tile[compute] != NOTHING:
            self.together = self.now

    def shift(self, cycles: int) -> None:
        """So many cycles pass for all tiles, which stay as far apart as they are."""
        self.now += cycles
        self.together += cycles
        if self.tile is not None:
            self.tile = self.tile + cycles

    def _compute(self, compute: int, price: ComputePrice, lead: int, *, waits: bool) -> int:
        """A compute set after `lead` cycles of sync and exchange; by how much the slowest tile comes later."""
        if self.tile is None:
            return price.longest
        if waits:
            self.together = self.now + lead
        computes = self.executable.computes
        active = computes.active_tile[computes.first_active[compute] : computes.first_active[compute + 1]]
        done = np.maximum(self.tile[active], self.together) + self.executable.target.compute_set_start_cycles + price.cycles
        self.tile[active] = done
        return max(0, int(done.max(initial=0)) - (self.now + lead))

    def copy(self) -> TileClocks:
        """The clocks as they are."""
        return evolve(self, tile=None if self.tile is None else self.tile.copy())

    def go_on_between(self, first: TileClocks, share: float) -> None:
        """Be as after what is done more often: a share of the times `first`, else what has brought them here."""
        if share >= 0.5:
            self.return_to(first)

    def return_to(self, earlier: TileClocks) -> None:
        """Be as they were."""
        self.tile = None if earlier.tile is None else earlier.tile.copy()
        self.now, self.together = earlier.now, earlier.together
