"""Device code of popops: the counters of loops, and of buffers that go round."""

from typing import Generic, TypeVar

from pypoplar import INT, UNSIGNED_INT, InOut, Input, Output, Vertex
from pypoplar.popops.loops.circ_buf import INCREMENT_CYCLES, OFFSET_CYCLES
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


class CircBufIncrIndex(Vertex, name="popops::CircBufIncrIndex"):
    """Count on, and round."""

    index: InOut[UNSIGNED_INT]
    hSize: UNSIGNED_INT

    def compute(self):
        self.index = (self.index + UNSIGNED_INT(1)) % self.hSize

    def cycles(self, vertex):
        return INCREMENT_CYCLES


class CircOffset(Vertex, name="popops::CircOffset"):
    """A place so much behind another, and round."""

    indexIn: Input[UNSIGNED_INT]
    indexOut: Output[UNSIGNED_INT]
    hSize: UNSIGNED_INT
    offset: UNSIGNED_INT

    def compute(self):
        self.indexOut = (self.indexIn + self.offset) % self.hSize

    def cycles(self, vertex):
        return OFFSET_CYCLES
