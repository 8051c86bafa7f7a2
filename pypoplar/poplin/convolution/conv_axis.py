"""One field dimension of a convolution: which elements of the input, the kernel and the output meet.

An output o is the sum over the elements k of the kernel of kernel[k] * input[i] for the one i, if there is one, that lies at the
same place of the transformed input as k does in the transformed kernel moved to o.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from attrs import evolve, frozen


def dilated_size(size: int, dilation: int) -> int:
    """The extent of so many elements with ``dilation - 1`` zeros between neighbours."""
    return 1 + (size - 1) * dilation if size else 0


@frozen
class FieldAxis:
    """A dimension of an input or a kernel: elements are cut off, zeros put between others and at the ends; it may be flipped."""

    size: int
    truncationLower: int = 0
    truncationUpper: int = 0
    dilation: int = 1
    paddingLower: int = 0
    paddingUpper: int = 0
    flip: bool = False

    @property
    def truncated_size(self) -> int:
        return self.size - self.truncationLower - self.truncationUpper

    @property
    def transformed_size(self) -> int:
        return self.paddingLower + dilated_size(self.truncated_size, self.dilation) + self.paddingUpper

    @property
    def first_padding(self) -> int:
        """Zeros before the first element as it is seen, flipped or not."""
        return self.paddingUpper if self.flip else self.paddingLower

    def padded(self, first: int, last: int) -> FieldAxis:
        """With so many zeros before the first and behind the last element as they are seen."""
        lower, upper = (last, first) if self.flip else (first, last)
        return evolve(self, paddingLower=lower, paddingUpper=upper)

    @property
    def last_padding(self) -> int:
        """Zeros behind the last element as it is seen, flipped or not."""
        return self.paddingLower if self.flip else self.paddingUpper

    def place(self, element: int) -> int:
        """Where an element that is not cut off is seen."""
        number = element - self.truncationLower
        return self.first_padding + self.dilation * (self.truncated_size - 1 - number if self.flip else number)

    def element(self, number: int) -> int:
        """The element that is seen as the one of this number."""
        return self.truncationLower + (self.truncated_size - 1 - number if self.flip else number)

    def number(self, element: int) -> int:
        """As the how manieth an element is seen: the inverse of `element`."""
        return self.truncated_size - 1 - (element - self.truncationLower) if self.flip else element - self.truncationLower

    def kept(self, begin: int, end: int) -> range:
        """Of elements [begin, end) those that are not cut off."""
        return range(max(begin, self.truncationLower), min(end, self.size - self.truncationUpper))


@frozen
class OutputAxis:
    """A dimension of an output: of the windows some are cut off, every stride-th is taken, zeros are put at the ends."""

    truncationLower: int = 0
    truncationUpper: int = 0
    stride: int = 1
    paddingLower: int = 0
    paddingUpper: int = 0


@frozen
class ConvAxis:
    """A dimension of a convolution."""

    input: FieldAxis
    kernel: FieldAxis
    output: OutputAxis

    @property
    def windows(self) -> int:
        """Places of the transformed kernel on the transformed input."""
        return self.input.transformed_size + 1 - self.kernel.transformed_size

    @property
    def strided_size(self) -> int:
        """Outputs before they are padded."""
        kept = self.windows - self.output.truncationLower - self.output.truncationUpper
        return -(-kept // self.output.stride)

    @property
    def output_size(self) -> int:
        return self.output.paddingLower + self.strided_size + self.output.paddingUpper

    def outputs(self, element: int, outputs: tuple[int, int] | None = None, inputs: tuple[int, int] | None = None) -> range:
        """The outputs in [begin, end) for which an element of the kernel meets an input in [begin, end): equally spaced ones."""
        if not self.kernel.kept(element, element + 1):
            return range(0)
        low, high = outputs if outputs is not None else (0, self.output_size)
        low = max(low, self.output.paddingLower) - self.output.paddingLower
        high = min(high, self.output.paddingLower + self.strided_size) - self.output.paddingLower
        kept = self.input.kept(*(inputs if inputs is not None else (0, self.input.size)))
        if low >= high or not kept:
            return range(0)
        stride, dilation = self.output.stride, self.input.dilation
        shift = self.kernel.place(element) + self.output.truncationLower - self.input.first_padding
        first, last = sorted((self.input.number(kept[0]), self.input.number(kept[-1])))
        low = max(low, -((shift - first * dilation) // stride))  # inputs of the numbers first to last lie at o * stride + shift
        high = min(high, (last * dilation - shift) // stride + 1)
        common = gcd(dilation, stride)
        step = dilation // common
        if shift % common:
            return range(0)
        meeting = low + -(low * stride + shift) // common * pow(stride // common, -1, step) % step  # the first at an input
        if meeting >= high:
            return range(0)
        return range(self.output.paddingLower + meeting, self.output.paddingLower + high, step)

    def input_of(self, output: int, element: int) -> int | None:
        """The input that an element of the kernel is multiplied with for an output, if there is one."""
        if not self.outputs(element, (output, output + 1)):
            return None
        window = (output - self.output.paddingLower) * self.output.stride + self.output.truncationLower
        place = self.kernel.place(element) + window - self.input.first_padding
        return self.input.element(place // self.input.dilation)

    def kernel_of(self, output: int, input: int) -> int | None:
        """The element of the kernel that an input is multiplied with for an output, if there is one."""
        window = (output - self.output.paddingLower) * self.output.stride + self.output.truncationLower
        if not self.input.kept(input, input + 1) or not 0 <= output - self.output.paddingLower < self.strided_size:
            return None
        number, rest = divmod(self.input.place(input) - window - self.kernel.first_padding, self.kernel.dilation)
        return self.kernel.element(number) if rest == 0 and 0 <= number < self.kernel.truncated_size else None

    def output_range(
        self, outputs: tuple[int, int], kernels: tuple[int, int] | None = None, inputs: tuple[int, int] | None = None
    ) -> tuple[int, int]:
        """From the first to behind the last of `outputs` in which these elements of the kernel and inputs meet; (0, 0) if none."""
        meeting = [run for _, run in self._runs(outputs, kernels, inputs)]
        return _extent([run[0] for run in meeting] + [run[-1] for run in meeting])

    def input_range(self, outputs: tuple[int, int], kernels: tuple[int, int] | None = None) -> tuple[int, int]:
        """From the first to behind the last input that these outputs and elements of the kernel need; (0, 0) if none."""
        ends = [self.input_of(end, element) for element, run in self._runs(outputs, kernels) for end in (run[0], run[-1])]
        return _extent([end for end in ends if end is not None])

    def kernel_range(self, outputs: tuple[int, int], inputs: tuple[int, int] | None = None) -> tuple[int, int]:
        """From the first to behind the last element of the kernel that these outputs and inputs need; (0, 0) if none."""
        return _extent([element for element, _ in self._runs(outputs, None, inputs)])

    def products(self) -> int:
        """Pairs of an element of the kernel and an output that it has a part in."""
        return sum(len(run) for _, run in self._runs((0, self.output_size)))

    def _runs(
        self, outputs: tuple[int, int], kernels: tuple[int, int] | None = None, inputs: tuple[int, int] | None = None
    ) -> Iterator[tuple[int, range]]:
        """The elements of the kernel that meet inputs, each with the outputs for which it does."""
        for element in self.kernel.kept(*(kernels if kernels is not None else (0, self.kernel.size))):
            run = self.outputs(element, outputs, inputs)
            if run:
                yield element, run

    def canonical(self) -> ConvAxis | None:
        """The same products written in the one way: nothing is there that no product needs; None if there are no products.

        Outputs that are always 0 are padding, inputs and elements of the kernel that meet nothing are cut off, padding is not cut
        off again, windows that a stride passes over at the end are cut off, and a single element is neither dilated nor flipped.
        """
        if self.output_range((0, self.output_size)) == (0, 0):
            return None
        axis = self._padding_of_outputs()._without_idle_windows()
        axis = evolve(axis, input=_cut_to(axis.input, axis.input_range((0, axis.output_size))))
        axis = evolve(axis, kernel=_cut_to(axis.kernel, axis.kernel_range((0, axis.output_size))))
        axis = axis._without_padding_of_both()._without_padding_cut_off()
        return evolve(axis, input=_single(axis.input), kernel=_single(axis.kernel))

    def zero(self) -> ConvAxis:
        """A convolution of nothing with the same sizes, whose outputs are padding."""
        input, kernel = (FieldAxis(axis.size, truncationUpper=axis.size, paddingLower=1) for axis in (self.input, self.kernel))
        return ConvAxis(input, kernel, OutputAxis(truncationUpper=1, paddingUpper=self.output_size))

    def _padding_of_outputs(self) -> ConvAxis:
        """Outputs at the ends that are always 0 are padding."""
        output, (first, end) = self.output, self.output_range((0, self.output_size))
        lower, upper = first - output.paddingLower, self.output_size - end - output.paddingUpper
        cut = evolve(
            output,
            truncationLower=output.truncationLower + lower * output.stride,
            truncationUpper=output.truncationUpper + upper * output.stride,
            paddingLower=first,
            paddingUpper=self.output_size - end,
        )
        return evolve(self, output=cut)

    def _without_idle_windows(self) -> ConvAxis:
        kept = self.windows - self.output.truncationLower - self.output.truncationUpper
        idle = (kept - 1) % self.output.stride
        stride = 1 if kept - idle == 1 else self.output.stride
        return evolve(self, output=evolve(self.output, truncationUpper=self.output.truncationUpper + idle, stride=stride))

    def _without_padding_of_both(self) -> ConvAxis:
        """Where the input and the kernel begin, or end, with zeros, these are left out."""
        input, kernel = self.input, self.kernel
        most = kernel.transformed_size - 1
        first = min(input.first_padding, kernel.first_padding, most)
        last = min(input.last_padding, kernel.last_padding, most - first)
        return evolve(
            self,
            input=input.padded(input.first_padding - first, input.last_padding - last),
            kernel=kernel.padded(kernel.first_padding - first, kernel.last_padding - last),
        )

    def _without_padding_cut_off(self) -> ConvAxis:
        """Padding of the input that only windows see which are cut off is left out."""
        input, output = self.input, self.output
        first = min(input.first_padding, output.truncationLower)
        last = min(input.last_padding, output.truncationUpper)
        return evolve(
            self,
            input=input.padded(input.first_padding - first, input.last_padding - last),
            output=evolve(output, truncationLower=output.truncationLower - first, truncationUpper=output.truncationUpper - last),
        )


def _extent(numbers: list[int]) -> tuple[int, int]:
    return (min(numbers), max(numbers) + 1) if numbers else (0, 0)


def _cut_to(axis: FieldAxis, used: tuple[int, int]) -> FieldAxis:
    """With zeros in the place of all elements but those in [begin, end)."""
    lower, upper = used[0] - axis.truncationLower, axis.size - used[1] - axis.truncationUpper
    return evolve(
        axis,
        truncationLower=used[0],
        truncationUpper=axis.size - used[1],
        paddingLower=axis.paddingLower + lower * axis.dilation,
        paddingUpper=axis.paddingUpper + upper * axis.dilation,
    )


def _single(axis: FieldAxis) -> FieldAxis:
    """A single element has no neighbours: it is not dilated, and flipped only in that its padding changes sides."""
    if axis.truncated_size > 1:
        return axis
    return evolve(axis, dilation=1, flip=False, paddingLower=axis.first_padding, paddingUpper=axis.last_padding)
