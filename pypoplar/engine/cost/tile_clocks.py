"""The clocks of a machine that is priced: that of the tile that has come farthest, and those of the tiles where they differ."""

from __future__ import annotations

import numpy as np
from attrs import define, evolve

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.cost.compute_prices import ComputePrice
from pypoplar.executable.executable import Executable


@define(eq=False)
class TileClocks:
    """Cycles since the program began. Where all steps wait for all tiles, and sets have no start, tiles need no clocks."""

    executable: Executable
    tile: Int64s | None  # [tiles]: when each was done with its last compute set
    now: int = 0
    together: int = 0  # when all tiles were last together

    @staticmethod
    def of(executable: Executable) -> TileClocks:
        """All at the beginning."""
        target = executable.target
        apart = target.compute_set_start_cycles or not all(step.waits for step in executable.steps)
        return TileClocks(executable, np.zeros(target.getNumTiles(), np.int64) if apart else None)

    @property
    def uniform(self) -> bool:
        """Whether what a piece costs does not depend on what was before."""
        return self.tile is None

    def relative(self) -> bytes:
        """What the cycles of what follows depend on."""
        return b"" if self.tile is None else (np.maximum(self.tile, self.together) - self.now).tobytes()

    def advance(self, cycles: int) -> None:
        """So many cycles pass for the tile that has come farthest."""
        self.now += cycles

    def gather(self) -> None:
        """All tiles wait for it."""
        self.together = self.now

    def shift(self, cycles: int) -> None:
        """So many cycles pass for all tiles, which stay as far apart as they are."""
        self.now += cycles
        self.together += cycles
        if self.tile is not None:
            self.tile = self.tile + cycles

    def compute(self, compute: int, price: ComputePrice, lead: int, *, waits: bool) -> int:
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

    def return_to(self, earlier: TileClocks) -> None:
        """Be as they were."""
        self.tile = None if earlier.tile is None else earlier.tile.copy()
        self.now, self.together = earlier.now, earlier.together
