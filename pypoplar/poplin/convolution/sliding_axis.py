"""A field dimension of a convolution that is planned: its size, the kernel that slides along it, and what they give."""

from __future__ import annotations

from attrs import evolve, frozen

from pypoplar.poputil.cycles import ceiling

Range = tuple[int, int]


@frozen
class SlidingAxis:
    """Output o takes the inputs ``o * stride - lower + k * dilation`` for the kernel's elements k; what is outside is 0."""

    size: int
    kernel: int
    lower: int
    dilation: int
    stride: int
    out: int

    @property
    def is_point(self) -> bool:
        """Each output takes the one input of its number."""
        return self.kernel == 1 and self.lower == 0 and self.stride == 1 and self.out == self.size

    def outputs_of(self, k: int) -> Range:
        """The outputs to which an element of the kernel gives something."""
        shift = self.lower - k * self.dilation
        begin, end = max(0, ceiling(shift, self.stride)), min(self.out, (self.size - 1 + shift) // self.stride + 1)
        return begin, max(begin, end)

    def products(self) -> int:
        """Pairs of an output and an element of the kernel that meet an input."""
        return sum(end - begin for begin, end in map(self.outputs_of, range(self.kernel)))

    def inputs_of(self, outputs: Range, kernel: Range) -> tuple[Range, int]:
        """The inputs that a part of the outputs and of the kernel needs, and where the first one would lie, behind their begin."""
        low = outputs[0] * self.stride - self.lower + kernel[0] * self.dilation
        high = (outputs[1] - 1) * self.stride - self.lower + (kernel[1] - 1) * self.dilation + 1
        begin = min(max(low, 0), self.size)
        end = max(begin, min(high, self.size))
        return (begin, end), low - begin


@frozen
class TrimmedAxis:
    """An axis without what no output needs, and where that lies in the axis as it was given."""

    axis: SlidingAxis
    inputs: Range
    step: int
    kernel: Range
    cuts_inputs: bool  # whether some are left out
    cuts_kernel: bool


def trimmed(axis: SlidingAxis) -> TrimmedAxis | None:
    """The axis without inputs and elements of the kernel that meet nothing; None if all outputs are 0."""
    meeting = [k for k in range(axis.kernel) if axis.outputs_of(k)[0] < axis.outputs_of(k)[1]]
    if not meeting:
        return None
    first, last = meeting[0], meeting[-1]
    lower = axis.lower - first * axis.dilation
    begin = max(0, -lower)
    lower = max(0, lower)
    kernel = last - first + 1
    dilation = axis.dilation if kernel > 1 else 1
    end = min(axis.size, begin + (axis.out - 1) * axis.stride - lower + (kernel - 1) * dilation + 1)
    stride = axis.stride if axis.out > 1 else 1
    cuts = (end - begin < axis.size, kernel < axis.kernel)
    left = SlidingAxis(end - begin, kernel, lower, dilation, stride, axis.out)
    if kernel == 1 and lower == 0 and left.size == (axis.out - 1) * stride + 1:  # the stride passes over what lies between
        return TrimmedAxis(evolve(left, size=axis.out, stride=1), (begin, end), stride, (first, last + 1), *cuts)
    if axis.out == 1 and dilation > 1:  # so does the dilation: all elements of the kernel meet inputs, as those do that are left
        return TrimmedAxis(evolve(left, size=kernel, dilation=1), (begin, end), dilation, (first, last + 1), *cuts)
    return TrimmedAxis(left, (begin, end), 1, (first, last + 1), *cuts)
