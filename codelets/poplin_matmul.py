"""Device code of poplin: products of matrices, and the sums of their partial products.

Products of halves are exact in float, and all sums are taken in float; what is stored is rounded once.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu
from pypoplar.poplin.matmul.matmul_cycles import (
    block_product_estimate,
    dot_products_estimate,
    outer_product_estimate,
    reduce_add_estimate,
    sum_partials_estimate,
)

T = TypeVar("T", FLOAT, HALF)  # of the operands
P = TypeVar("P", FLOAT, HALF)  # of partial products
R = TypeVar("R", FLOAT, HALF)  # of the result
GRAIN = 4  # elements of which a worker takes whole numbers: as many HALFs as a word of the memory holds
BESIDE = 8  # sums that are taken at once


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

    def cycles(self, vertex):
        return dot_products_estimate(vertex)


class OuterProduct(MultiVertex, Generic[T, R], name="poplin::OuterProduct"):
    """out = a b for one element a and a piece of a row b."""

    a: Input[T]
    b: Input[Vector[T]]
    out: Output[Vector[R]]

    def compute(self, worker):
        a = float(self.a)
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = a * float(self.b[i])

    def cycles(self, vertex):
        return outer_product_estimate(vertex)


class BlockProduct(MultiVertex, Generic[T, P], name="poplin::BlockProduct", writes_all="out"):
    """out = a b for blocks a [groups, rows, depth], b [groups, depth, columns] and out [groups, rows, columns], row by row.

    A row of out begins `stride` elements behind the one before; what is between them becomes 0. The workers form `rowGroups`
    times ``6 / rowGroups`` sets: each takes a share of the rows, and of them `columnShare` columns. A HALF is rounded once.
    """

    a: Input[Vector[T]]
    b: Input[Vector[T]]
    out: Output[Vector[P]]
    groups: INT
    depth: INT
    columns: INT
    stride: INT
    rowGroups: INT
    columnShare: INT

    def compute(self, worker):
        rows = len(self.out) // (self.groups * self.stride)
        share = (rows + self.rowGroups - 1) // self.rowGroups
        first = worker % self.rowGroups * share
        left = worker // self.rowGroups * self.columnShare
        count = min(share, rows - first)
        width = min(self.columnShare, self.columns - left)
        if count > 0 and width > 0:
            for group in range(self.groups):
                self.multiply(group, rows, first, count, left, width)

    def multiply(self, group, rows, first, count, left, width):
        row = group * rows + first
        padded = width + (self.stride - self.columns if left + width == self.columns else 0)
        for begin in range(row * self.stride + left, (row + count) * self.stride + left, self.stride):
            for j in range(begin, begin + padded):
                self.out[j] = 0.0
        out = self.out[row * self.stride + left :]
        a, b = self.a[row * self.depth :], self.b[group * self.depth * self.columns + left :]
        ipu.multiply_accumulate(out, a, b, count, self.depth, width, out_stride=self.stride, b_stride=self.columns)

    def cycles(self, vertex):
        return block_product_estimate(vertex)


class NearestBlockProduct(BlockProduct[T, P], Generic[T, P], name="poplin::BlockProduct<nearest>", rounding="nearest"):
    """The same, whose HALFs are rounded to the nearest also while stochastic rounding is on."""


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

    def cycles(self, vertex):
        return sum_partials_estimate(vertex)


class ReduceAdd(MultiVertex, Generic[R, P], name="poplin::ReduceAdd"):
    """out = the sum of the rows of partials, in float."""

    partials: Input[VectorList[P]]
    out: Output[Vector[R]]

    def compute(self, worker):
        share = (len(self.out) + ipu.worker_count() * GRAIN - 1) // (ipu.worker_count() * GRAIN) * GRAIN
        begin = min(worker * share, len(self.out))
        end = min(begin + share, len(self.out))
        alone = begin + (end - begin) // BESIDE * BESIDE
        for i in range(begin, alone, BESIDE):
            self.add_beside(i)
        for i in range(alone, end):
            total = 0.0
            for row in self.partials:
                total += float(row[i])
            self.out[i] = total

    def add_beside(self, first):
        """Sums that do not wait for each other, of places that follow each other: the host adds them at once."""
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for row in self.partials:
            piece = row[first : first + BESIDE]
            t0 += float(piece[0])
            t1 += float(piece[1])
            t2 += float(piece[2])
            t3 += float(piece[3])
            t4 += float(piece[4])
            t5 += float(piece[5])
            t6 += float(piece[6])
            t7 += float(piece[7])
        out = self.out[first : first + BESIDE]
        out[0] = t0
        out[1] = t1
        out[2] = t2
        out[3] = t3
        out[4] = t4
        out[5] = t5
        out[6] = t6
        out[7] = t7

    def cycles(self, vertex):
        return reduce_add_estimate(vertex)
