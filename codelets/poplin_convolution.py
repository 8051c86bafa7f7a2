"""Device code of poplin: convolutions.

Operands have channels innermost. Sums are taken by the matrix unit, in order of the kernel's elements and of channels; halves that
hold partial sums are rounded after each of its products.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, Input, MultiVertex, Output, Vector, ipu
from pypoplar.poplin.convolution.conv_estimates import (
    conversion_estimate,
    lanes_estimate,
    outer_estimate,
    product_estimate,
    sliding_estimate,
)

T = TypeVar("T", FLOAT, HALF)  # of the operands
P = TypeVar("P", FLOAT, HALF)  # of the partial sums
R = TypeVar("R", FLOAT, HALF)  # of the result


class _ConvPartial(MultiVertex, Generic[T, P]):
    """out [groups, positions, outChannels] of in [groups, ..., inChannels] and weights [groups, ..., inChannels, outChannels].

    Workers share the positions, `grain` of which are one worker's.
    """

    in_: Input[Vector[T]]
    weights: Input[Vector[T]]
    out: Output[Vector[P]]
    groups: INT
    inChannels: INT
    outChannels: INT
    grain: INT

    def positions(self):
        return len(self.out) // (self.groups * self.outChannels)

    def share(self, worker, positions):
        """Where a worker's positions begin; those of the next begin where they end."""
        grains = (positions + self.grain - 1) // self.grain
        return min(worker * grains // ipu.worker_count() * self.grain, positions)


class ConvPartial1x1Out(_ConvPartial[T, P], Generic[T, P], name="poplin::ConvPartial1x1Out", writes_all="out"):
    """Each position of out takes one of in: a product of matrices for each group."""

    def compute(self, worker):
        positions = self.positions()
        begin = self.share(worker, positions)
        end = self.share(worker + 1, positions)
        for group in range(self.groups):
            out = self.out[(group * positions + begin) * self.outChannels : (group * positions + end) * self.outChannels]
            for i in range(len(out)):
                out[i] = 0.0
            self.multiply(out, group, (group * positions + begin) * self.inChannels, end - begin)

    def multiply(self, out, group, first, rows):
        weights = self.weights[group * self.inChannels * self.outChannels :]
        ipu.multiply_accumulate(out, self.in_[first:], weights, rows, self.inChannels, self.outChannels)

    def cycles(self, vertex):
        return product_estimate(vertex)


class NearestConvPartial1x1Out(
    ConvPartial1x1Out[T, P], Generic[T, P], name="poplin::ConvPartial1x1Out<nearest>", rounding="nearest"
):
    """The same, whose HALFs are rounded to the nearest also while stochastic rounding is on."""


class ConvOuterProduct(_ConvPartial[T, P], Generic[T, P], name="poplin::ConvOuterProduct", writes_all="out"):
    """One input channel: each output is the product of an input and a weight, rounded once."""

    def compute(self, worker):
        positions = self.positions()
        begin = self.share(worker, positions)
        end = self.share(worker + 1, positions)
        for group in range(self.groups):
            weights = self.weights[group * self.outChannels : (group + 1) * self.outChannels]
            for position in range(group * positions + begin, group * positions + end):
                self.multiply(self.out[position * self.outChannels :], float(self.in_[position]), weights)

    def multiply(self, out, factor, weights):
        for channel in range(len(weights)):
            out[channel] = factor * float(weights[channel])

    def cycles(self, vertex):
        return outer_estimate(vertex)


class _SlidingKernel(_ConvPartial[T, P], Generic[T, P]):
    """A kernel slides along three axes of in [groups, batch, in0, in1, in2, channels].

    Of each axis output o takes the inputs ``first + o * stride + k * dilation`` for the elements k of the kernel that meet one.
    """

    batch: INT
    in0: INT
    in1: INT
    in2: INT
    out0: INT
    out1: INT
    out2: INT
    kernel0: INT
    kernel1: INT
    kernel2: INT
    first0: INT
    first1: INT
    first2: INT
    stride0: INT
    stride1: INT
    stride2: INT
    dilation0: INT
    dilation1: INT
    dilation2: INT

    def compute(self, worker):
        positions = self.positions()
        begin = self.share(worker, positions)
        end = self.share(worker + 1, positions)
        for group in range(self.groups):
            out = self.out[(group * positions + begin) * self.outChannels : (group * positions + end) * self.outChannels]
            for i in range(len(out)):
                out[i] = 0.0
            position = begin
            while position < end:
                row = position // self.out2
                left = position - row * self.out2
                count = min(self.out2 - left, end - position)
                self.slide(out[(position - begin) * self.outChannels :], group, row, left, count)
                position += count

    def slide(self, out, group, row, left, count):
        """A part of a row of outputs: all rows of the kernel that meet inputs."""
        outer = row // self.out1
        sample = group * self.batch + outer // self.out0
        first0 = self.first0 + outer % self.out0 * self.stride0
        first1 = self.first1 + row % self.out1 * self.stride1
        for k0 in range(self.kernel0):
            i0 = first0 + k0 * self.dilation0
            for k1 in range(self.kernel1):
                i1 = first1 + k1 * self.dilation1
                if 0 <= i0 < self.in0 and 0 <= i1 < self.in1:
                    place = ((sample * self.in0 + i0) * self.in1 + i1) * self.in2
                    kernel = ((group * self.kernel0 + k0) * self.kernel1 + k1) * self.kernel2
                    self.slide_row(out, place, kernel, left, count)

    def at_least(self, place):
        """The first output that begins at a place of the row, or behind it."""
        return (place - self.first2 + self.stride2 - 1) // self.stride2


class ConvPartialnx1(_SlidingKernel[T, P], Generic[T, P], name="poplin::ConvPartialnx1", writes_all="out"):
    """Each element of the kernel, or a row of them, is a product of matrices."""

    def slide_row(self, out, place, kernel, left, count):
        """A row of the kernel along a row of inputs: where all of it meets inputs and these follow each other, in one product."""
        end = left + count
        reach = self.kernel2 - 1
        low = left
        high = left
        if self.dilation2 == 1:
            low = min(max(left, self.at_least(0)), end)
            high = max(low, min(end, self.at_least(self.in2 - reach)))
            at = place + self.first2 + low * self.stride2
            self.multiply(out[(low - left) * self.outChannels :], at, kernel, high - low, self.kernel2 * self.inChannels)
        for k2 in range(self.kernel2):
            begin = min(max(left, self.at_least(-k2 * self.dilation2)), low)
            self.meet(out, place, kernel, k2, left, begin, low)
            begin = max(high, self.at_least(-k2 * self.dilation2))
            self.meet(out, place, kernel, k2, left, begin, min(end, self.at_least(self.in2 - k2 * self.dilation2)))

    def meet(self, out, place, kernel, k2, left, begin, end):
        end = min(end, self.at_least(self.in2 - k2 * self.dilation2))
        if begin < end:
            at = place + self.first2 + begin * self.stride2 + k2 * self.dilation2
            self.multiply(out[(begin - left) * self.outChannels :], at, kernel + k2, end - begin, self.inChannels)

    def multiply(self, out, at, kernel, rows, depth):
        if rows > 0:
            weights = self.weights[kernel * self.inChannels * self.outChannels :]
            far = self.stride2 * self.inChannels
            ipu.multiply_accumulate(out, self.in_[at * self.inChannels :], weights, rows, depth, self.outChannels, a_stride=far)

    def cycles(self, vertex):
        return sliding_estimate(vertex)


class ConvPartialVerticalMac(_SlidingKernel[T, P], Generic[T, P], name="poplin::ConvPartialVerticalMac", writes_all="out"):
    """Each channel has a kernel of its own: in [batch, in0, in1, in2, outChannels], weights [kernel, outChannels]."""

    def slide_row(self, out, place, kernel, left, count):
        for k2 in range(self.kernel2):
            begin = max(left, self.at_least(-k2 * self.dilation2))
            end = min(left + count, self.at_least(self.in2 - k2 * self.dilation2))
            for position in range(begin, end):
                at = (place + self.first2 + position * self.stride2 + k2 * self.dilation2) * self.outChannels
                self.multiply(out[(position - left) * self.outChannels :], self.in_[at:], (kernel + k2) * self.outChannels)

    def multiply(self, out, inputs, first):
        weights = self.weights[first:]
        for channel in range(self.outChannels):
            out[channel] = float(out[channel]) + float(inputs[channel]) * float(weights[channel])

    def cycles(self, vertex):
        return lanes_estimate(vertex)


class ConvConversion(MultiVertex, Generic[P, R], name="poplin::ConvConversion"):
    """out = the partial sums, in the type of the result."""

    partials: Input[Vector[P]]
    out: Output[Vector[R]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = self.partials[i]

    def cycles(self, vertex):
        return conversion_estimate(vertex)


class NearestConvPartialnx1(ConvPartialnx1[T, P], Generic[T, P], name="poplin::ConvPartialnx1<nearest>", rounding="nearest"):
    """The same, whose HALFs are rounded to the nearest also while stochastic rounding is on."""
