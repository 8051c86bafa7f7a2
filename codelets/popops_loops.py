"""Device code of popops: the counters of loops."""

from typing import Generic, TypeVar

from pypoplar import INT, UNSIGNED_INT, InOut, Input, Output, Vertex
from pypoplar.popops.loops.counted_loops import COUNTER_CYCLES

Whole = TypeVar("Whole", INT, UNSIGNED_INT)


class ForLoopCounter(Vertex, Generic[Whole], name="popops::ForLoopCounter"):
    """Count on, and say whether the limit is still ahead."""

    count: InOut[Whole]
    limit: Input[Whole]
    comparisonResult: Output[UNSIGNED_INT]
    increment: Whole

    def compute(self):
        self.count += self.increment
        self.comparisonResult = UNSIGNED_INT(1) if self.count != self.limit else UNSIGNED_INT(0)

    def cycles(self, vertex):
        return COUNTER_CYCLES
