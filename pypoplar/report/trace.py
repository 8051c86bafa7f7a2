"""When each step of a program was executed."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int32s, Int64s


@frozen(eq=False)
class Trace:
    """The executions of steps one after the other, as far as they were recorded, given by `Execution.trace`.

    Arrays have an entry for each execution. What a tile did in one is known for the mean execution of the step in that run:
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
    """

    step: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    run: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    begin: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    cycles: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    missed: int = 0

    def __len__(self) -> int:
        return len(self.step)
