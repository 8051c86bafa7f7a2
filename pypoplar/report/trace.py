"""When each step of a program was executed."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int32s, Int64s


@frozen(eq=False)
class Trace:
    """The executions of steps one after the other, as far as they were recorded: arrays of one entry per execution.

    Event i is static step ``step[i]`` in run ``run[i]``; it begins at machine cycle ``begin[i]`` and lasts ``cycles[i]``: sync,
    exchange or host exchange as the step says, compute as its slowest tile took this time. What a tile did in an event is known for
    the mean execution of the step in that run: ``Step.cyclesByTile / Step.executions``.
    """

    step: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    run: Int32s = field(factory=lambda: np.zeros(0, np.int32))
    begin: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    cycles: Int64s = field(factory=lambda: np.zeros(0, np.int64))
    missed: int = 0  # executions that were not recorded: later runs, and what went beyond the limit

    def __len__(self) -> int:
        return len(self.step)
