"""Device code of popops: ranges of integers, and indices as one-hot vectors."""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, Input, MultiVertex, Output, Vector, VectorList, ipu
from pypoplar.popops.encoding.encoding_cycles import iota_cycles, one_hot_cycles
from pypoplar.poputil.cycles import ceiling, share_of_worker

Whole = TypeVar("Whole", INT, UNSIGNED_INT)
Out = TypeVar("Out", FLOAT, HALF, INT, UNSIGNED_INT)


class Iota(MultiVertex, Generic[Whole], name="popops::Iota", writes_all="out"):
    """Each row of out counts up from its offset."""

    out: Output[VectorList[Whole]]
    offsets: Input[Vector[Whole]]

    def compute(self, worker):
        for r in range(len(self.out)):
            row = self.out[r]
            offset = self.offsets[r]
            for i in ipu.worker_range(worker, row):
                row[i] = offset + Whole(i)

    def cycles(self, vertex):
        rows = vertex.getFieldInfo("out")
        shares = (share_of_worker(rows.getSizeAtIndex(row), vertex.target) for row in range(rows.size()))
        return iota_cycles(shares, vertex.target.getVectorWidth(rows.elementType()))


class EncodeOneHot(MultiVertex, Generic[Whole, Out], name="popops::EncodeOneHot"):
    """A piece of rows of sliceLength elements, which begins at `offset` of the first: the element at a row's index is On.

    The others are Off, and all of a row whose index is no element of it.
    """

    indices: Input[Vector[Whole]]
    out: Output[Vector[Out]]
    On: Input[Out]
    Off: Input[Out]
    offset: INT
    sliceLength: INT

    def compute(self, worker):
        off = self.Off
        begin = 0
        end = 0
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = off
            if end == 0:
                begin = i
            end = i + 1
        if end > 0:
            # a row that goes beyond this worker's elements is looked at by the next worker, too
            for row in range((begin + self.offset) // self.sliceLength, (end - 1 + self.offset) // self.sliceLength + 1):
                index = INT(self.indices[row])
                if index >= 0 and index < self.sliceLength:
                    place = row * self.sliceLength - self.offset + index
                    if begin <= place and place < end:
                        self.out[place] = self.On

    def cycles(self, vertex):
        out, indices = vertex.getFieldInfo("out"), vertex.getFieldInfo("indices")
        share = share_of_worker(out.size(), vertex.target)
        rows = min(indices.size(), ceiling(share, vertex.value("sliceLength")) + 1)
        return one_hot_cycles(share, rows, indices.elementType(), out.elementType())
