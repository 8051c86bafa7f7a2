"""Device code of poplin: products of matrices, and the sums of their partial products.

Products of halves are exact in float, and all sums are taken in float; what is stored is rounded once.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu

T = TypeVar("T", FLOAT, HALF)  # of the operands
R = TypeVar("R", FLOAT, HALF)  # of the result


def dot(a, b):
    """Products at even and at odd places are added up apart, as the hardware's vector unit does."""
    even = 0.0
    odd = 0.0
    for i in range(0, len(a) - 1, 2):
        even += float(a[i]) * float(b[i])
        odd += float(a[i + 1]) * float(b[i + 1])
    if len(a) & 1:
        even += float(a[len(a) - 1]) * float(b[len(a) - 1])
    return even + odd


class DotProducts(Vertex, Generic[T], name="poplin::DotProducts"):
    """Each element of out is a row of a times b."""

    a: Input[VectorList[T]]
    b: Input[Vector[T]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for row in range(len(self.out)):
            self.out[row] = dot(self.a[row], self.b)


class OuterProduct(MultiVertex, Generic[T, R], name="poplin::OuterProduct"):
    """out = a b for one element a and a piece of a row b."""

    a: Input[T]
    b: Input[Vector[T]]
    out: Output[Vector[R]]

    def compute(self, worker):
        a = float(self.a)
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = a * float(self.b[i])


class BlockProduct(MultiVertex, Generic[T], name="poplin::BlockProduct", writes_all="out"):
    """out = a b for blocks a [rows, depth], b [depth, columns] and out [rows, columns], which lie row by row.

    The workers form `rowGroups` times ``6 / rowGroups`` groups: each takes a share of the rows, and of them `columnShare` columns.
    """

    a: Input[Vector[T]]
    b: Input[Vector[T]]
    out: Output[Vector[FLOAT]]
    depth: INT
    columns: INT
    rowGroups: INT
    columnShare: INT

    def compute(self, worker):
        rows = len(self.out) // self.columns
        share = (rows + self.rowGroups - 1) // self.rowGroups
        first = worker % self.rowGroups * share
        left = worker // self.rowGroups * self.columnShare
        count = min(share, rows - first)
        width = min(self.columnShare, self.columns - left)
        if count > 0 and width > 0:
            self.multiply(first, count, left, width)

    def multiply(self, first, count, left, width):
        for row in range(first, first + count):
            for j in range(row * self.columns + left, row * self.columns + left + width):
                self.out[j] = 0.0
        out, a, b = self.out[first * self.columns + left :], self.a[first * self.depth :], self.b[left:]
        ipu.multiply_accumulate(out, a, b, count, self.depth, width, out_stride=self.columns, b_stride=self.columns)


class SumPartials(Vertex, Generic[R], name="poplin::SumPartials"):
    """Each element of out is the sum of a row of partials."""

    partials: Input[VectorList[FLOAT]]
    out: Output[Vector[R]]

    def compute(self):
        for i in range(len(self.out)):
            total = 0.0
            for value in self.partials[i]:
                total += value
            self.out[i] = total


class ReduceAdd(MultiVertex, Generic[R], name="poplin::ReduceAdd"):
    """out = the sum of the rows of partials."""

    partials: Input[VectorList[FLOAT]]
    out: Output[Vector[R]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.out):
            total = 0.0
            for row in self.partials:
                total += row[i]
            self.out[i] = total
