"""Device code of popnn: pooling and its gradients.

A vertex has a box of places, each of `channels` elements side by side. `work` lists runs of places, as triples (first place of the
result, first place of what is pooled, count), by worker: worker w has the runs ``firstRun[w] .. firstRun[w + 1]``, which write the
places ``firstPlace[w] .. firstPlace[w + 1]`` of the result alone. `row` is how many places a row of the result has.
"""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, UNSIGNED_INT, Input, MultiVertex, Output, Vector
from pypoplar.popnn.pooling.pool_cycles import pool_estimate

T = TypeVar("T", FLOAT, HALF)

NOTHING = 0xFFFFFFFF  # in the place of what is pooled: these results are of padding alone


class _Pooling(MultiVertex, Generic[T]):
    out: Output[Vector[T]]
    in_: Input[Vector[T]]
    work: Vector[UNSIGNED_INT]
    firstRun: Vector[UNSIGNED_INT]
    firstPlace: Vector[UNSIGNED_INT]
    channels: UNSIGNED_INT
    outStride: UNSIGNED_INT
    inStride: UNSIGNED_INT
    row: UNSIGNED_INT

    def start(self, worker, value):
        for i in range(int(self.firstPlace[worker] * self.channels), int(self.firstPlace[worker + 1] * self.channels)):
            self.out[i] = value

    def combine(self, worker):
        for run in range(int(self.firstRun[worker]), int(self.firstRun[worker + 1])):
            place = int(self.work[3 * run])
            other = int(self.work[3 * run + 1])
            for _ in range(int(self.work[3 * run + 2])):
                for channel in range(int(self.channels)):
                    self.meet(place * int(self.channels) + channel, other * int(self.channels) + channel, place, other)
                place += int(self.outStride)
                other += int(self.inStride)


class MaxPooling(_Pooling[T], Generic[T], name="popnn::MaxPooling", writes_all="out"):
    """out = the largest of what its window has, 0 where that is nothing."""

    def compute(self, worker):
        self.start(worker, -math.inf)
        for run in range(int(self.firstRun[worker]), int(self.firstRun[worker + 1])):
            place = int(self.work[3 * run]) * int(self.channels)
            if self.work[3 * run + 1] == NOTHING:
                for i in range(place, place + int(self.work[3 * run + 2] * self.channels)):
                    self.out[i] = 0.0
            else:
                other = int(self.work[3 * run + 1]) * int(self.channels)
                for _ in range(int(self.work[3 * run + 2])):
                    for channel in range(int(self.channels)):
                        self.out[place + channel] = max(self.out[place + channel], self.in_[other + channel])
                    place += int(self.outStride * self.channels)
                    other += int(self.inStride * self.channels)

    def cycles(self, vertex):
        return pool_estimate(vertex, "max")


class SumPooling(_Pooling[T], Generic[T], name="popnn::SumPooling", writes_all="out"):
    """out = the sum of what its window has, times the scale of its place; one scale is for all."""

    scales: Vector[FLOAT]

    def compute(self, worker):
        self.start(worker, 0.0)
        self.combine(worker)

    def meet(self, i, j, place, other):
        scale = self.scales[min(place, len(self.scales) - 1)]
        self.out[i] = float(self.out[i]) + float(self.in_[j]) * scale

    def cycles(self, vertex):
        return pool_estimate(vertex, "sum")


class SumPoolingGrad(_Pooling[T], Generic[T], name="popnn::SumPoolingGrad", writes_all="out"):
    """The same with the scales of the places that are pooled."""

    scales: Vector[FLOAT]

    def compute(self, worker):
        self.start(worker, 0.0)
        self.combine(worker)

    def meet(self, i, j, place, other):
        scale = self.scales[min(other, len(self.scales) - 1)]
        self.out[i] = float(self.out[i]) + float(self.in_[j]) * scale

    def cycles(self, vertex):
        return pool_estimate(vertex, "sum")


class MaxPoolingGrad(_Pooling[T], Generic[T], name="popnn::MaxPoolingGrad", writes_all="out"):
    """out = the sum of the gradients `in` of the windows whose largest element is the one here."""

    fwdActsIn: Input[Vector[T]]
    fwdActsOut: Input[Vector[T]]

    def compute(self, worker):
        self.start(worker, 0.0)
        self.combine(worker)

    def meet(self, i, j, place, other):
        if self.fwdActsIn[i] == self.fwdActsOut[j]:
            self.out[i] = self.out[i] + self.in_[j]

    def cycles(self, vertex):
        return pool_estimate(vertex, "max gradient")


class MaxPoolingGradientScale(_Pooling[T], Generic[T], name="popnn::MaxPoolingGradientScale", writes_all="out"):
    """out = the gradient of a window over how many of its elements `in` are its largest."""

    fwdActsOut: Input[Vector[T]]
    grads: Input[Vector[T]]

    def compute(self, worker):
        self.start(worker, 0.0)
        self.combine(worker)
        for i in range(int(self.firstPlace[worker] * self.channels), int(self.firstPlace[worker + 1] * self.channels)):
            if self.out[i] > 0.0:
                self.out[i] = float(self.grads[i]) / float(self.out[i])

    def meet(self, i, j, place, other):
        if self.fwdActsOut[i] == self.in_[j]:
            self.out[i] = self.out[i] + 1.0

    def cycles(self, vertex):
        return pool_estimate(vertex, "scale")
