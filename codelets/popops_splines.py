"""Device code of popops: B-spline kernels of graph networks."""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_CHAR, UNSIGNED_INT, Input, MultiVertex, Output, Vector, VectorList, ipu
from pypoplar.popops.splines.spline_cycles import basis_cycles, weighting_cycles
from pypoplar.poputil.cycles import share_of_worker

T = TypeVar("T", FLOAT, HALF)


def share_of_rows(vertex, name):
    """What the busiest worker has of all rows."""
    rows = vertex.getFieldInfo(name)
    return sum(share_of_worker(rows.getSizeAtIndex(row), vertex.target) for row in range(rows.size()))


class _Basis(MultiVertex, Generic[T]):
    """Elements of the matrices [edges, splines] from the offsets on: the product of a basis function of each dimension."""

    pseudo: Input[Vector[T]]
    kernelSize: Input[Vector[INT]]
    isOpenSpline: Input[Vector[UNSIGNED_CHAR]]
    basis: Output[VectorList[T]]
    weightIndex: Output[VectorList[INT]]
    offsets: Input[Vector[UNSIGNED_INT]]
    numSplines: INT
    edgeOffset: INT

    degree = 1

    def compute(self, worker):
        dimensions = len(self.kernelSize)
        for r in range(len(self.basis)):
            row = self.basis[r]
            places = self.weightIndex[r]
            for j in ipu.worker_range(worker, row):
                number = j + INT(self.offsets[r])
                edge = number // self.numSplines - self.edgeOffset
                k = number % self.numSplines
                index = 0
                stride = 1
                product: T = 1.0
                for d in range(dimensions):
                    turn = k % (self.degree + 1)
                    k //= self.degree + 1
                    size = self.kernelSize[d]
                    v = self.pseudo[edge * dimensions + d] * T(size - self.degree * INT(self.isOpenSpline[d]))
                    index += (int(v) + turn) % size * stride
                    stride *= size
                    product *= self.forward(v - T(math.floor(v)), turn)
                row[j] = product
                places[j] = index

    def cycles(self, vertex):
        return basis_cycles(share_of_rows(vertex, "basis"), vertex.getFieldInfo("basis").elementType())


class LinearBasis(_Basis[T], Generic[T], name="popops::SplineBasis<1>", writes_all=("basis", "weightIndex")):
    def forward(self, v, turn):
        return T(1.0) - v - T(turn) + T(2.0) * v * T(turn)


class QuadraticBasis(_Basis[T], Generic[T], name="popops::SplineBasis<2>", writes_all=("basis", "weightIndex")):
    degree = 2

    def forward(self, v, turn):
        if turn == 0:
            return T(0.5) * v * v - v + T(0.5)
        if turn == 1:
            return -v * v + v + T(0.5)
        return T(0.5) * v * v


class CubicBasis(_Basis[T], Generic[T], name="popops::SplineBasis<3>", writes_all=("basis", "weightIndex")):
    degree = 3

    def forward(self, v, turn):
        if turn == 0:
            return (T(1.0) - v) * (T(1.0) - v) * (T(1.0) - v) / T(6.0)
        if turn == 1:
            return (T(3.0) * v * v * v - T(6.0) * v * v + T(4.0)) / T(6.0)
        if turn == 2:
            return (T(-3.0) * v * v * v + T(3.0) * v * v + T(3.0) * v + T(1.0)) / T(6.0)
        return v * v * v / T(6.0)


class SplineWeighting(MultiVertex, Generic[T], name="popops::SplineWeighting", writes_all="output"):
    """Elements of the matrix [edges, numOutCh] from the offset on: sums over splines and input channels."""

    input: Input[Vector[T]]
    weight: Input[Vector[T]]
    basis: Input[Vector[T]]
    weightIndex: Input[Vector[INT]]
    output: Output[Vector[T]]
    offset: INT
    numInCh: INT
    numOutCh: INT
    numSplines: INT

    def compute(self, worker):
        for j in ipu.worker_range(worker, self.output):
            edge = (j + self.offset) // self.numOutCh
            channel = (j + self.offset) % self.numOutCh
            total: T = 0.0
            for s in range(self.numSplines):
                share = self.basis[edge * self.numSplines + s]
                first = self.weightIndex[edge * self.numSplines + s] * self.numInCh
                for c in range(self.numInCh):
                    total += self.weight[(first + c) * self.numOutCh + channel] * (share * self.input[edge * self.numInCh + c])
            self.output[j] = total

    def cycles(self, vertex):
        output = vertex.getFieldInfo("output")
        share = share_of_worker(output.size(), vertex.target)
        return weighting_cycles(share, vertex.value("numInCh"), vertex.value("numSplines"), output.elementType())
