"""When each step of a program was executed."""

from __future__ import annotations

import numpy as np
from attrs import Factory, evolve, field, frozen

from pypoplar.arrays.dtypes import Int32s, Int64s


@frozen(eq=False)
class RecordedTiles:
    """What tiles did in the first and the last executions of compute steps in a run, given by `Trace.tiles`.

    Steps of which all recorded executions are as the mean one are left out.

    Attributes
    ----------
    step:
        The number of the static step of each execution.
    run:
        The number of the run.
    execution:
        The number of the execution among those of the step in this run, from 0.
    first:
        Where the tiles of each execution begin in the following two; at last, where all end.
    tile:
        Tiles that had something to do.
    cycles:
        Cycles for which they computed.
    """

    step: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    run: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    execution: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    first: Int64s = field(factory=lambda: np.zeros(1, np.int64))
    tile: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    cycles: Int64s = field(factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.step)

    def by_tile(self, place: int, tiles: int) -> Int64s:
        """Cycles for which each tile computed in one of the executions.

        Parameters
        ----------
        place:
            The execution's place in `step`, `run` and `execution`.
        tiles:
            How many tiles there are.

        Returns
        -------
        numpy.ndarray
            int64 [tiles].
        """
        own = slice(int(self.first[place]), int(self.first[place + 1]))
        cycles: Int64s = np.zeros(tiles, np.int64)
        cycles[self.tile[own]] = self.cycles[own]
        return cycles


@frozen(eq=False)
class Trace:
    """The executions of steps one after the other, as far as they were recorded, given by `Execution.trace`.

    Arrays have an entry for each execution. What a tile did in one is known for the first and last `recorded` executions of a step
    in a run, where they are not alike: `tiles` has it. Of the others it is known for the mean execution of the step in that run,
    ``Step.cyclesByTile / Step.executions``.

    Attributes
    ----------
    step:
        The number of the static step.
    run:
        The number of the run.
    begin:
        The machine cycle at which it begins.
    cycles:
        How long it lasts: sync, exchange or host exchange as the step says, compute as its slowest tile took this time.
    missed:
        Executions that were not recorded: of later runs, and beyond the limit.
    recorded:
        Of how many executions of each step in a run what tiles did is recorded, from the first on, and of as many up to the last; 0
        where all are told as means, as in older profiles.
    tiles:
        What tiles did in these, where it is not as in the mean execution.
    unrecorded:
        Executions of which it was recorded and not kept, as there were too many: of the steps that took the fewest cycles.
    ipu:
        Of which IPU each entry is: of several, each that has a part in an execution has an entry, which begins when it comes to
        it. All 0 where there is one.
    """

    step: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    run: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    begin: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    cycles: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    missed: int = 0
    recorded: int = 0
    tiles: RecordedTiles = field(factory=RecordedTiles)
    unrecorded: int = 0
    ipu: Int32s = field(default=Factory(lambda self: np.zeros(len(self.step), np.int32), takes_self=True))

    def __len__(self) -> int:
        return len(self.step)

    def of_ipu(self, ipu: int) -> Trace:
        """The entries of one IPU.

        Parameters
        ----------
        ipu:
            Its number.

        Returns
        -------
        Trace
            Its entries, which are one after the other; `missed` is that of all IPUs.
        """
        own = self.ipu == ipu
        kept = {name: getattr(self, name)[own] for name in ("step", "run", "begin", "cycles", "ipu")}
        return evolve(self, **kept)

    def events_of_tiles(self) -> Int64s:
        """The events that the executions of `tiles` are.

        Returns
        -------
        numpy.ndarray
            int64, an entry for each execution of `tiles`: its place in the trace, -1 where the trace does not have it.
        """
        own = self.tiles
        steps = 1 + max(int(self.step.max(initial=0)), int(own.step.max(initial=0)))
        pair, wanted = (one.run.astype(np.int64) * steps + one.step for one in (self, own))
        order = np.argsort(pair, kind="stable")
        begin, end = (np.searchsorted(pair, wanted, side, sorter=order) for side in ("left", "right"))
        place = begin + own.execution
        known = place < end
        events: Int64s = np.full(len(own), -1, np.int64)
        events[known] = order[place[known]]
        return events
