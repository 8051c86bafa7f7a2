"""Device code of popops: filling a tensor with one value."""

from typing import Generic, TypeVar

from pypoplar import MultiVertex, Output, Vector, ipu
from pypoplar.popops.elements.fill import fill_cycles
from pypoplar.poputil.cycles import share_of_worker
from pypoplar.types import SUPPORTED

T = TypeVar("T", *SUPPORTED)


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
