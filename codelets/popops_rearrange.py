"""Device code of popops: matrices transposed."""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, SHORT, UNSIGNED_INT, UNSIGNED_SHORT, Input, MultiVertex, Output, Vector, ipu
from pypoplar.popops.rearrange.transpose_cycles import transpose_cycles

T = TypeVar("T", HALF, FLOAT, UNSIGNED_SHORT, UNSIGNED_INT, SHORT, INT)


class Transpose(MultiVertex, Generic[T], name="popops::Transpose1D"):
    """dst has the matrices of src, which lie one behind the other, transposed."""

    src: Input[Vector[T]]
    dst: Output[Vector[T]]
    numSrcRows: INT
    numSrcColumns: INT

    def compute(self, worker):
        rows = self.numSrcRows
        columns = self.numSrcColumns
        size = rows * columns
        for i in ipu.worker_range(worker, self.dst):
            place = i % size
            self.dst[i] = self.src[i - place + place % rows * columns + place // rows]

    def cycles(self, vertex):
        dst, rows, columns = vertex.getFieldInfo("dst"), vertex.value("numSrcRows"), vertex.value("numSrcColumns")
        return transpose_cycles(vertex.target, dst.size() // (rows * columns), rows, columns, dst.elementType().dtype.itemsize)
