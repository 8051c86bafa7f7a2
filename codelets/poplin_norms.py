"""Device code of poplin: normalisation. Activations meet vectors that have an element for each channel.

Element i of a piece belongs to the channel at ``(i + offset) // inner % len(vector)``.
"""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, Input, MultiVertex, Output, Vector, ipu
from pypoplar.poplin.norms.norm_cycles import channel_estimate, inverse_deviation_estimate

T = TypeVar("T", FLOAT, HALF)  # of activations
M = TypeVar("M", FLOAT, HALF)  # of means
P = TypeVar("P", FLOAT, HALF)  # of powers

GRAIN = 4  # elements that a worker's piece is a multiple of: whole words


class _OfChannels(MultiVertex, Generic[T]):
    """out = the value of each element, which its channel decides; a worker has one piece of them."""

    out: Output[Vector[T]]
    offset: INT
    inner: INT

    def rows(self, worker, period):
        share = (len(self.out) + ipu.worker_count() * GRAIN - 1) // (ipu.worker_count() * GRAIN) * GRAIN
        begin = min(worker * share, len(self.out))
        end = min(begin + share, len(self.out))
        channel = (begin + self.offset) // self.inner % period
        if self.inner == 1:
            for i in range(begin, end):
                self.out[i] = self.value(i, channel)
                channel += 1
                if channel == period:
                    channel = 0
        else:
            left = self.inner - (begin + self.offset) % self.inner
            while begin < end:
                behind = min(begin + left, end)
                for i in range(begin, behind):
                    self.out[i] = self.value(i, channel)
                begin = behind
                left = self.inner
                channel += 1
                if channel == period:
                    channel = 0


class NormWhiten(_OfChannels[T], Generic[T], name="poplin::NormWhiten", writes_all="out"):
    """out = (acts - mean) iStdDev."""

    acts: Input[Vector[T]]
    mean: Input[Vector[T]]
    iStdDev: Input[Vector[T]]

    def value(self, i, channel):
        return T(self.acts[i] - self.mean[channel]) * self.iStdDev[channel]

    def compute(self, worker):
        self.rows(worker, len(self.mean))

    def cycles(self, vertex):
        return channel_estimate(vertex, "NormWhiten", "mean")


class NormRemoveMean(_OfChannels[T], Generic[T, M], name="poplin::NormRemoveMean", writes_all="out"):
    """out = acts - mean, rounded once."""

    acts: Input[Vector[T]]
    mean: Input[Vector[M]]

    def value(self, i, channel):
        return float(self.acts[i]) - float(self.mean[channel])

    def compute(self, worker):
        self.rows(worker, len(self.mean))

    def cycles(self, vertex):
        return channel_estimate(vertex, "NormRemoveMean", "mean")


class NormScale(_OfChannels[T], Generic[T], name="poplin::NormScale", writes_all="out"):
    """out = acts gamma."""

    acts: Input[Vector[T]]
    gamma: Input[Vector[T]]

    def value(self, i, channel):
        return self.acts[i] * self.gamma[channel]

    def compute(self, worker):
        self.rows(worker, len(self.gamma))

    def cycles(self, vertex):
        return channel_estimate(vertex, "NormScale", "gamma")


class NormScaleAndShift(_OfChannels[T], Generic[T], name="poplin::NormScaleAndShift", writes_all="out"):
    """out = acts gamma + beta."""

    acts: Input[Vector[T]]
    gamma: Input[Vector[T]]
    beta: Input[Vector[T]]

    def value(self, i, channel):
        return T(self.acts[i] * self.gamma[channel]) + self.beta[channel]

    def compute(self, worker):
        self.rows(worker, len(self.gamma))

    def cycles(self, vertex):
        return channel_estimate(vertex, "NormScaleAndShift", "gamma")


class NormStatisticsGradient(_OfChannels[T], Generic[T], name="poplin::NormStatisticsGradient", writes_all="out"):
    """out = (grads + acts varDelta + meanDelta) iStdDev in float, rounded once."""

    acts: Input[Vector[T]]
    grads: Input[Vector[T]]
    varDelta: Input[Vector[FLOAT]]
    meanDelta: Input[Vector[FLOAT]]
    iStdDev: Input[Vector[T]]

    def value(self, i, channel):
        step = float(self.acts[i]) * self.varDelta[channel] + self.meanDelta[channel]
        return (float(self.grads[i]) + step) * float(self.iStdDev[channel])

    def compute(self, worker):
        self.rows(worker, len(self.iStdDev))

    def cycles(self, vertex):
        return channel_estimate(vertex, "NormStatisticsGradient", "iStdDev")


class _InverseStdDeviation(MultiVertex, Generic[M, P, T]):
    """iStdDev = 1 / sqrt(variance * scaleVar + eps), in float."""

    mean: Input[Vector[M]]
    power: Input[Vector[P]]
    iStdDev: Output[Vector[T]]
    scaleVar: FLOAT
    eps: FLOAT

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.iStdDev):
            self.iStdDev[i] = 1.0 / math.sqrt(self.variance(i) * self.scaleVar + self.eps)

    def cycles(self, vertex):
        return inverse_deviation_estimate(vertex)


class InverseStdDeviationOfSquares(_InverseStdDeviation[M, P, T], Generic[M, P, T], name="poplin::InverseStdDeviation<false>"):
    """`power` is the mean of the squares; rounding may make it less than the mean's square."""

    def variance(self, i):
        mean = float(self.mean[i])
        return max(float(self.power[i]) - mean * mean, 0.0)


class InverseStdDeviationOfVariance(_InverseStdDeviation[M, P, T], Generic[M, P, T], name="poplin::InverseStdDeviation<true>"):
    """`power` is the variance."""

    def variance(self, i):
        return float(self.power[i])
