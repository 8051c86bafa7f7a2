"""Device code of poplin: products of matrices, and the sums of their partial products.

Products of halves are exact in float, and all sums are taken in float; what is stored is rounded once.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, Input, MultiVertex, Output, Vector, VectorList, Vertex

T = TypeVar("T", FLOAT, HALF)  # of the operands
R = TypeVar("R", FLOAT, HALF)  # of the result


class DotProduct(Vertex, Generic[T, R], name="poplin::DotProduct"):
    """out = a . b. Elements at even and at odd places are added up apart, as the hardware's vector unit does."""

    a: Input[Vector[T]]
    b: Input[Vector[T]]
    out: Output[R]

    def compute(self):
        even = 0.0
        odd = 0.0
        for i in range(0, len(self.a) - 1, 2):
            even += float(self.a[i]) * float(self.b[i])
            odd += float(self.a[i + 1]) * float(self.b[i + 1])
        if len(self.a) & 1:
            last = len(self.a) - 1
            even += float(self.a[last]) * float(self.b[last])
        self.out = even + odd


class OuterProduct(MultiVertex, Generic[T, R], name="poplin::OuterProduct"):
    """out = a b for one element a and a piece of a row b. Worker w takes the elements from ``w * share`` on."""

    a: Input[T]
    b: Input[Vector[T]]
    out: Output[Vector[R]]
    share: INT

    def compute(self, worker):
        a = float(self.a)
        begin = worker * self.share
        for i in range(begin, min(begin + self.share, len(self.out))):
            self.out[i] = a * float(self.b[i])


class BlockProduct(MultiVertex, Generic[T], name="poplin::BlockProduct"):
    """out = a b for row-major blocks a [rows, depth], b [depth, columns] and out [rows, columns].

    The workers form `rowGroups` times ``6 / rowGroups`` groups: a worker takes every `rowGroups`-th row, and of it
    `columnShare` columns. An element's products are added in order of depth.
    """

    a: Input[Vector[T]]
    b: Input[Vector[T]]
    out: Output[Vector[FLOAT]]
    rows: INT
    depth: INT
    columns: INT
    rowGroups: INT
    columnShare: INT

    def compute(self, worker):
        group = worker // self.rowGroups
        begin = group * self.columnShare
        end = min(begin + self.columnShare, self.columns)
        if begin < end:
            for row in range(worker - group * self.rowGroups, self.rows, self.rowGroups):
                self.multiply(row, begin, end)

    def multiply(self, row, begin, end):
        depth = self.depth
        columns = self.columns
        factors = self.a[row * depth : (row + 1) * depth]
        target = self.out[row * columns + begin : row * columns + end]
        for j in range(len(target)):
            target[j] = 0.0
        for p in range(depth):
            factor = float(factors[p])
            source = self.b[p * columns + begin : p * columns + end]
            for j in range(len(target)):
                target[j] += factor * float(source[j])


class SumPartials(Vertex, Generic[R], name="poplin::SumPartials"):
    """out = the sum of one element's partial products."""

    partials: Input[Vector[FLOAT]]
    out: Output[R]

    def compute(self):
        total = 0.0
        for value in self.partials:
            total += value
        self.out = total


class ReduceAdd(MultiVertex, Generic[R], name="poplin::ReduceAdd"):
    """out = the sum of the rows of partials. Worker w takes the elements from ``w * share`` on."""

    partials: Input[VectorList[FLOAT]]
    out: Output[Vector[R]]
    share: INT

    def compute(self, worker):
        begin = worker * self.share
        for i in range(begin, min(begin + self.share, len(self.out))):
            total = 0.0
            for row in self.partials:
                total += row[i]
            self.out[i] = total
