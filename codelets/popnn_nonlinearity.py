"""Device code of popnn: non-linearities."""

import math
from typing import Generic, TypeVar

from pypoplar import BOOL, FLOAT, HALF, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu
from pypoplar.popnn.nonlinearities.nonlinearity_cycles import non_linearity_estimate, softmax_estimate

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


def soft_max(row, out, stable):
    shift = 0.0
    if stable:
        shift = float(row[0])
        for value in row:
            shift = max(shift, float(value))
    total = 0.0
    for i in range(len(row)):
        power = math.exp(float(row[i]) - shift)
        total += power
        out[i] = power
    scale = 1.0 / total
    for i in range(len(out)):
        out[i] = float(out[i]) * scale


class NonLinearity1DInPlace(MultiVertex, Generic[T]):
    """Every element replaced by the function's value, computed in float."""

    data: InOut[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.data):
            self.data[i] = self.function(float(self.data[i]))

    def cycles(self, vertex):
        return non_linearity_estimate(vertex)


class Sigmoid(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<SIGMOID>"):
    function = staticmethod(sigmoid)


class HardSigmoid(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<HARD_SIGMOID>"):
    function = staticmethod(hard_sigmoid)


class Relu(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<RELU>"):
    function = staticmethod(relu)


class Tanh(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<TANH>"):
    function = staticmethod(tanh)


class Gelu(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<GELU>"):
    function = staticmethod(gelu)


class GeluErf(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<GELU_ERF>"):
    function = staticmethod(gelu_erf)


class Swish(NonLinearity1DInPlace[T], Generic[T], name="popnn::NonLinearity1DInPlace<SWISH>"):
    function = staticmethod(swish)


class SoftMax(Vertex, Generic[T], name="popnn::SoftMax", writes_all="out"):
    """For each row the powers of e over their sum, taken in float. `stable` subtracts the row's largest element first."""

    in_: Input[VectorList[T]]
    out: Output[VectorList[T]]
    stable: BOOL

    def compute(self):
        for row in range(len(self.in_)):
            soft_max(self.in_[row], self.out[row], self.stable)

    def cycles(self, vertex):
        return softmax_estimate(vertex, "in")


class SoftMaxInPlace(Vertex, Generic[T], name="popnn::SoftMaxInPlace"):
    data: InOut[VectorList[T]]
    stable: BOOL

    def compute(self):
        for row in range(len(self.data)):
            soft_max(self.data[row], self.data[row], self.stable)

    def cycles(self, vertex):
        return softmax_estimate(vertex, "data")
