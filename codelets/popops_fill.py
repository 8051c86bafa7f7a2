"""Device code of popops: filling a tensor with one value."""

from typing import Generic, TypeVar

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    MultiVertex,
    Output,
    Vector,
    ipu,
)
from pypoplar.popops.fill import fill_cycles
from pypoplar.poputil.cycles import share_of_worker

T = TypeVar(
    "T",
    *(FLOAT, HALF, INT, UNSIGNED_INT, BOOL, SHORT, UNSIGNED_SHORT, CHAR, SIGNED_CHAR, UNSIGNED_CHAR, LONGLONG, UNSIGNED_LONGLONG),
)


class Fill(MultiVertex, Generic[T], name="popops::Fill"):
    """Every element of out is `in`."""

    in_: T
    out: Output[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = self.in_

    def cycles(self, vertex):
        field = vertex.getFieldInfo("out")
        return fill_cycles(share_of_worker(field.size(), vertex.target), field.elementType())
