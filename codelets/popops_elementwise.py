"""Device code of popops: operations on the elements of tensors of one shape.

A tile has one vertex, whose workers divide its elements.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, InOut, Input, MultiVertex, Output, Vector, ipu
from pypoplar.popops.elements.element_cycles import binary_estimate

T = TypeVar("T", FLOAT, HALF, INT, UNSIGNED_INT)
Real = TypeVar("Real", FLOAT, HALF)


def add(left, right):
    return left + right


def subtract(left, right):
    return left - right


def multiply(left, right):
    return left * right


def divide(left, right):
    return left / right


def maximum(left, right):
    return max(left, right)


def minimum(left, right):
    return min(left, right)


class BinaryOp1D(MultiVertex, Generic[T]):
    """out = in1 op in2; the one element of a shorter operand stands for all."""

    in1: Input[Vector[T]]
    in2: Input[Vector[T]]
    out: Output[Vector[T]]

    def compute(self, worker):
        if len(self.in2) == len(self.out):
            for i in ipu.worker_range(worker, self.out):
                self.out[i] = self.combine(self.in1[i], self.in2[i])
        else:
            other = self.in2[0]
            for i in ipu.worker_range(worker, self.out):
                self.out[i] = self.combine(self.in1[i], other)

    def cycles(self, vertex):
        return binary_estimate(vertex, "out", in_place=False)


class BinaryOp1DInPlace(MultiVertex, Generic[T]):
    """in1Out = in1Out op in2."""

    in1Out: InOut[Vector[T]]
    in2: Input[Vector[T]]

    def compute(self, worker):
        if len(self.in2) == len(self.in1Out):
            for i in ipu.worker_range(worker, self.in1Out):
                self.in1Out[i] = self.combine(self.in1Out[i], self.in2[i])
        else:
            other = self.in2[0]
            for i in ipu.worker_range(worker, self.in1Out):
                self.in1Out[i] = self.combine(self.in1Out[i], other)

    def cycles(self, vertex):
        return binary_estimate(vertex, "in1Out", in_place=True)


class Add(BinaryOp1D[T], Generic[T], name="popops::BinaryOp1D<ADD>"):
    combine = staticmethod(add)


class AddInPlace(BinaryOp1DInPlace[T], Generic[T], name="popops::BinaryOp1DInPlace<ADD>"):
    combine = staticmethod(add)


class Subtract(BinaryOp1D[T], Generic[T], name="popops::BinaryOp1D<SUBTRACT>"):
    combine = staticmethod(subtract)


class SubtractInPlace(BinaryOp1DInPlace[T], Generic[T], name="popops::BinaryOp1DInPlace<SUBTRACT>"):
    combine = staticmethod(subtract)


class Multiply(BinaryOp1D[T], Generic[T], name="popops::BinaryOp1D<MULTIPLY>"):
    combine = staticmethod(multiply)


class MultiplyInPlace(BinaryOp1DInPlace[T], Generic[T], name="popops::BinaryOp1DInPlace<MULTIPLY>"):
    combine = staticmethod(multiply)


class Divide(BinaryOp1D[Real], Generic[Real], name="popops::BinaryOp1D<DIVIDE>"):
    combine = staticmethod(divide)


class DivideInPlace(BinaryOp1DInPlace[Real], Generic[Real], name="popops::BinaryOp1DInPlace<DIVIDE>"):
    combine = staticmethod(divide)


class Maximum(BinaryOp1D[T], Generic[T], name="popops::BinaryOp1D<MAXIMUM>"):
    combine = staticmethod(maximum)


class MaximumInPlace(BinaryOp1DInPlace[T], Generic[T], name="popops::BinaryOp1DInPlace<MAXIMUM>"):
    combine = staticmethod(maximum)


class Minimum(BinaryOp1D[T], Generic[T], name="popops::BinaryOp1D<MINIMUM>"):
    combine = staticmethod(minimum)


class MinimumInPlace(BinaryOp1DInPlace[T], Generic[T], name="popops::BinaryOp1DInPlace<MINIMUM>"):
    combine = staticmethod(minimum)
