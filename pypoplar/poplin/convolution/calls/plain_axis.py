"""A field dimension of a convolution as dimensions of plain ones: padding, stride and dilated kernels, and nothing else.

Zeros between inputs, as in the backward pass of a convolution with a stride, leave each output a part of the kernel alone: those
elements that meet inputs. Outputs that are `step` apart have the same part, so that they are a convolution of their own.
"""

from __future__ import annotations

from math import gcd

from attrs import evolve, frozen

from pypoplar.poplin.convolution.conv_axis import ConvAxis, FieldAxis, OutputAxis


@frozen
class PlainAxis:
    """Outputs ``first, first + step, ...`` of a dimension, without its output padding, as a plain convolution.

    It has `count` outputs, takes the inputs [begin, end), before which there are `lower` zeros, and of the kernel the elements
    ``kernel_first, kernel_first + kernel_step, ...``, `kernel_count` of them; both are counted as they are seen, with what is cut
    off left out, and flipped.
    """

    first: int
    step: int
    count: int
    begin: int
    end: int
    lower: int
    kernel_first: int
    kernel_step: int
    kernel_count: int
    dilation: int
    stride: int

    @property
    def empty(self) -> bool:
        """Whether no input meets an element of the kernel."""
        return self.kernel_count == 0

    @property
    def upper(self) -> int:
        """Zeros behind the last input."""
        extent = (self.count - 1) * self.stride + (self.kernel_count - 1) * self.dilation + 1
        return extent - self.lower - (self.end - self.begin)

    def axis(self) -> ConvAxis:
        input = FieldAxis(self.end - self.begin, paddingLower=self.lower, paddingUpper=self.upper)
        return ConvAxis(input, FieldAxis(self.kernel_count, dilation=self.dilation), OutputAxis(stride=self.stride))


def number_of_phases(axis: ConvAxis) -> int:
    """How many plain ones `plain_axes` makes of a dimension."""
    return min(_phase_step(axis), axis.strided_size)


def plain_axes(axis: ConvAxis) -> list[PlainAxis]:
    """The dimension in as many plain ones as it takes so that there are no zeros between inputs."""
    step = _phase_step(axis)
    return [_plain(axis, first, step) for first in range(number_of_phases(axis))]


def _phase_step(axis: ConvAxis) -> int:
    return axis.input.dilation // gcd(axis.input.dilation, axis.output.stride)


def filled_axis(axis: ConvAxis) -> ConvAxis:
    """The dimension with the zeros between inputs as inputs; nothing is cut off and flipped any more."""
    size = axis.input.transformed_size - axis.input.paddingLower - axis.input.paddingUpper
    lower, upper = axis.input.first_padding, axis.input.last_padding
    return evolve(axis, input=FieldAxis(size, paddingLower=lower, paddingUpper=upper))


def stacked_axis(phases: list[PlainAxis]) -> PlainAxis | None:
    """The outputs of all phases by one kernel that has the elements of each; None where these do not lie on one grid."""
    meeting = [phase for phase in phases if not phase.empty]
    if not meeting:
        return phases[0]
    dilation = max(phase.dilation for phase in meeting)
    starts = [phase.begin - phase.lower for phase in meeting]
    start = min(starts)
    if any((other - start) % dilation for other in starts):
        return None
    taps = max((other - start) // dilation + phase.kernel_count for other, phase in zip(starts, meeting, strict=True))
    begin, end = max(0, start), max(phase.end for phase in meeting)
    return PlainAxis(0, len(phases), phases[0].count, begin, end, begin - start, 0, 1, taps, dilation, meeting[0].stride)


def _plain(axis: ConvAxis, first: int, step: int) -> PlainAxis:
    dilation, spread, stride = axis.input.dilation, axis.kernel.dilation, axis.output.stride
    count = -(-(axis.strided_size - first) // step)
    offset = first * stride + axis.output.truncationLower + axis.kernel.first_padding - axis.input.first_padding
    kernel_step = dilation // gcd(dilation, spread)
    size, taps = axis.input.truncated_size, axis.kernel.truncated_size
    meeting = [j for j in range(min(kernel_step, taps)) if (offset + j * spread) % dilation == 0]
    if not meeting:
        return PlainAxis(first, step, count, 0, 0, 0, 0, 1, 0, 1, 1)
    start, stride = (offset + meeting[0] * spread) // dilation, step * stride // dilation  # of the input of output 0
    spread = kernel_step * spread // dilation
    taps = -(-(taps - meeting[0]) // kernel_step)
    low = max(0, -((start + (count - 1) * stride) // spread))  # elements of the kernel before it see zeros alone
    high = min(taps, (size - 1 - start) // spread + 1)  # and so do those from it on
    if low >= high or size == 0:
        return PlainAxis(first, step, count, 0, 0, 0, 0, 1, 0, 1, 1)
    start += low * spread
    last = start + (count - 1) * stride + (high - low - 1) * spread
    begin, end = max(0, start), min(size, last + 1)
    return PlainAxis(
        first, step, count, begin, end, begin - start, meeting[0] + low * kernel_step, kernel_step, high - low, spread, stride
    )
