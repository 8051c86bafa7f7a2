"""Device code of popnn: non-linearities and their gradients."""

import math
from typing import Generic, TypeVar

from pypoplar import BOOL, FLOAT, HALF, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu
from pypoplar.popnn.nonlinearities.nonlinearity_cycles import (
    gradient_estimate,
    log_softmax_estimate,
    non_linearity_estimate,
    softmax_estimate,
    softmax_gradient_estimate,
)

T = TypeVar("T", FLOAT, HALF)


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def hard_sigmoid(x):
    return max(0.0, min(1.0, 0.2 * x + 0.5))


def relu(x):
    return max(x, 0.0)


def tanh(x):
    return math.tanh(x)


def gelu(x):
    return 0.5 * x * (1.0 + math.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def gelu_erf(x):
    return 0.5 * x * (1.0 + math.erf(x * 0.7071067811865475))


def swish(x):
    return x * sigmoid(x)


def sigmoid_slope(y):
    return y * (1.0 - y)


def hard_sigmoid_slope(x):
    return 0.2 if abs(x) <= 2.5 else 0.0


def relu_slope(y):
    return 1.0 if y > 0.0 else 0.0


def tanh_slope(y):
    return 1.0 - y * y


def gelu_slope(x):
    t = math.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))
    return 0.5 * (1.0 + t + (1.0 - t * t) * x * 0.7978845608 * (1.0 + 3.0 * 0.044715 * x * x))


def gelu_erf_slope(x):
    y = x * 0.7071067811865475
    return 0.5 * (1.0 + math.erf(y) + y * 1.1283791670955126 * math.exp(-y * y))


def swish_slope(x):
    s = sigmoid(x)
    return s * (1.0 + x * (1.0 - s))


class _NonLinearity(MultiVertex, Generic[T]):
    """Every element's value of the function, computed in float."""

    data: Input[Vector[T]]
    out: Output[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = self.function(float(self.data[i]))

    def cycles(self, vertex):
        return non_linearity_estimate(vertex, in_place=False)


class _NonLinearityInPlace(MultiVertex, Generic[T]):
    """The same, of the elements themselves."""

    data: InOut[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.data):
            self.data[i] = self.function(float(self.data[i]))

    def cycles(self, vertex):
        return non_linearity_estimate(vertex, in_place=True)


class _NonLinearityGrad(MultiVertex, Generic[T]):
    """inGrad = outGrad times the slope at `out`, the result of the function or what went into it."""

    out: Input[Vector[T]]
    outGrad: Input[Vector[T]]
    inGrad: Output[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.inGrad):
            self.inGrad[i] = float(self.outGrad[i]) * self.slope(float(self.out[i]))

    def cycles(self, vertex):
        return gradient_estimate(vertex)


def non_linearity(kind, value, derivative):
    """The codelets of a function: a new tensor, in place, and the gradient."""

    class NonLinearity1D(_NonLinearity[T], Generic[T], name=f"popnn::NonLinearity1D<{kind}>", writes_all="out"):
        function = staticmethod(value)

    class NonLinearity1DInPlace(_NonLinearityInPlace[T], Generic[T], name=f"popnn::NonLinearity1DInPlace<{kind}>"):
        function = staticmethod(value)

    class NonLinearityGrad1D(_NonLinearityGrad[T], Generic[T], name=f"popnn::NonLinearityGrad1D<{kind}>", writes_all="inGrad"):
        slope = staticmethod(derivative)

    return NonLinearity1D, NonLinearity1DInPlace, NonLinearityGrad1D


Sigmoid, SigmoidInPlace, SigmoidGrad = non_linearity("SIGMOID", sigmoid, sigmoid_slope)
HardSigmoid, HardSigmoidInPlace, HardSigmoidGrad = non_linearity("HARD_SIGMOID", hard_sigmoid, hard_sigmoid_slope)
Relu, ReluInPlace, ReluGrad = non_linearity("RELU", relu, relu_slope)
Tanh, TanhInPlace, TanhGrad = non_linearity("TANH", tanh, tanh_slope)
Gelu, GeluInPlace, GeluGrad = non_linearity("GELU", gelu, gelu_slope)
GeluErf, GeluErfInPlace, GeluErfGrad = non_linearity("GELU_ERF", gelu_erf, gelu_erf_slope)
Swish, SwishInPlace, SwishGrad = non_linearity("SWISH", swish, swish_slope)


def largest(row):
    """The largest element, in float."""
    value = float(row[0])
    for i in range(1, len(row)):
        value = max(value, float(row[i]))
    return value


class SoftMax(Vertex, Generic[T], name="popnn::SoftMax", writes_all="out"):
    """For each row the powers of e over their sum, in float, times `scaling`. `stable` subtracts the largest element first."""

    in_: Input[VectorList[T]]
    out: Output[VectorList[T]]
    stable: BOOL
    scaling: FLOAT

    def compute(self):
        for row in range(len(self.in_)):
            self.soft_max(self.in_[row], self.out[row])

    def soft_max(self, row, out):
        shift = 0.0
        if self.stable:
            shift = largest(row)
        total = 0.0
        for i in range(len(row)):
            power = math.exp(float(row[i]) - shift)
            total += power
            out[i] = power * self.scaling
        scale = 1.0 / total
        for i in range(len(out)):
            out[i] = float(out[i]) * scale

    def cycles(self, vertex):
        return softmax_estimate(vertex)


class LogSoftMax(Vertex, Generic[T], name="popnn::LogSoftMax", writes_all="out"):
    """For each row its elements less the largest, less the logarithm of the sum of the powers of that, in float."""

    in_: Input[VectorList[T]]
    out: Output[VectorList[T]]

    def compute(self):
        for number in range(len(self.in_)):
            row = self.in_[number]
            out = self.out[number]
            shift = largest(row)
            total = 0.0
            for i in range(len(row)):
                total += math.exp(float(row[i]) - shift)
            logarithm = math.log(total)
            for i in range(len(row)):
                out[i] = float(row[i]) - shift - logarithm

    def cycles(self, vertex):
        return log_softmax_estimate(vertex)


class SoftMaxGrad(Vertex, Generic[T], name="popnn::SoftMaxGrad", writes_all="inGrad"):
    """For each row inGrad = out (outGrad - sum of out outGrad / scaling), in float."""

    out: Input[VectorList[T]]
    outGrad: Input[VectorList[T]]
    inGrad: Output[VectorList[T]]
    scaling: FLOAT

    def compute(self):
        for row in range(len(self.out)):
            self.differentiate(self.out[row], self.outGrad[row], self.inGrad[row])

    def differentiate(self, out, outGrad, inGrad):
        total = 0.0
        for i in range(len(out)):
            total += float(out[i]) * float(outGrad[i])
        mean = total / self.scaling
        for i in range(len(out)):
            inGrad[i] = float(out[i]) * (float(outGrad[i]) - mean)

    def cycles(self, vertex):
        return softmax_gradient_estimate(vertex)
