"""What is planned of a convolution: sizes and types, with the field dimensions that do not slide joined to the batch."""

from __future__ import annotations

from math import prod

from attrs import evolve, frozen

from pypoplar.poplin.convolution.sliding_axis import SlidingAxis, TrimmedAxis
from pypoplar.types import ElementType

AXES = 3  # field dimensions of device code
FIELD = 3  # the first field dimension of [groups, batch, channels, *field] and of [groups, outputs, inputs, *kernel]


@frozen
class ConvTypes:
    """Element types: of the operands, of partial sums, of the result.

    Partial sums that are HALFs are never rounded at random where it is `always_nearest`.
    """

    operands: ElementType
    partials: ElementType
    result: ElementType
    always_nearest: bool = False


@frozen
class ConvShape:
    """A convolution as a tile's vertex sees it: groups, a batch, at most three axes, channels of a group."""

    groups: int
    batch: int
    axes: tuple[SlidingAxis, SlidingAxis, SlidingAxis]
    in_channels: int
    out_channels: int

    @property
    def outputs(self) -> tuple[int, int, int]:
        return self.axes[0].out, self.axes[1].out, self.axes[2].out

    @property
    def is_product(self) -> bool:
        """No axis slides: a product of matrices for each group."""
        return all(axis.is_point for axis in self.axes)

    @property
    def products(self) -> int:
        """Multiplications of inputs and weights, without those of padding."""
        return self.groups * self.batch * prod(axis.products() for axis in self.axes) * self.in_channels * self.out_channels


@frozen
class ConvForm:
    """How the fields of a convolution become the axes of a `ConvShape`.

    Each field dimension is trimmed, and then joins the batch, or is folded: its kernel's elements become input channels and its
    outputs join the batch; or it slides.
    """

    axes: tuple[TrimmedAxis, ...]
    folded: tuple[bool, ...]
    channels: int  # input channels of a group, before any fold
    lanes: bool = False  # groups of one channel each are output channels, with a kernel of their own
    outer: bool = False  # one input channel is multiplied with the weights, without the matrix unit
    samples: bool = False  # input channels are the samples of a batch: of a flat form whose fields lie one behind the other

    @property
    def method(self) -> str:
        """PopLibs' name of how its vertices multiply."""
        return "VMAC" if self.lanes else "OUTER_PRODUCT" if self.outer else "AMP"

    @property
    def is_folded(self) -> bool:
        return any(self.folded)

    @property
    def is_flat(self) -> bool:
        """All that slides is folded, and has one output: a position's inputs are all there are of a row of a matrix."""
        return self.is_folded and not self.sliding and all(axis.out == 1 for axis in self._folded_axes)

    @property
    def pieces(self) -> int:
        """Pieces of memory that a position's inputs are where they are folded, if the places of each phase lie together.

        Along the last axis that has several outputs neighbours are one, with all that is behind it.
        """
        folded = self._folded_axes
        while folded and folded[-1].out == 1:
            folded.pop()
        return prod(axis.kernel for axis in folded[:-1])

    @property
    def _folded_axes(self) -> list[SlidingAxis]:
        return [trim.axis for trim, fold in zip(self.axes, self.folded, strict=True) if fold]

    @property
    def scatters(self) -> bool:
        """Whether what a vertex reads is in pieces on its tile, although that has all of it."""
        return self.is_folded or any(trim.step > 1 or trim.cuts_inputs for trim in self.axes)

    @property
    def weight_pieces(self) -> int:
        """Pieces of memory in which the weights of a group lie where elements of the kernel are cut off; 0 if none are."""
        order = [*self.sliding, *self.joined]
        cut = [number for number, place in enumerate(order) if self.axes[place].cuts_kernel]
        fields = self.channels if self.samples else 1
        return fields * prod(self.axes[place].axis.kernel for place in order[: cut[-1]]) if cut else 0

    @property
    def of_used_inputs(self) -> ConvForm:
        """The form of an input without what no output needs."""
        return evolve(self, axes=tuple(evolve(trim, inputs=(0, trim.axis.size), step=1) for trim in self.axes))

    def input_order(self) -> list[int]:
        """The dimensions of an input [groups, batch, channels, *field] in the order in which they lie best in memory."""
        if self.is_flat:
            fields = sorted(range(len(self.axes)), key=lambda place: self.folded[place])
        else:
            fields = [*range(len(self.axes))] if self.is_folded else [*self.joined, *self.sliding]
        order = [3 + place for place in fields]
        if self.samples:
            return [0, 1, *order[: self.folded.count(False)], 2, *order[self.folded.count(False) :]]
        return [1, *order, 2, 0] if self.lanes else [0, 1, *order, 2]

    def weights_order(self) -> list[int]:
        """The same of weights [groups, output channels, channels, *kernel]."""
        return [*self.kernel_order, 1, 0] if self.lanes else [0, *self.kernel_order, 1]

    @property
    def kernel_order(self) -> list[int]:
        """The order of the kernel and the channels among these."""
        sliding, joined = ([FIELD + place for place in places] for places in (self.sliding, self.joined))
        return [*sliding, 2, *joined] if self.samples else [*sliding, *joined, 2]

    def output_order(self) -> list[int]:
        """The same of a result [groups, batch, output channels, *field]: the order in which it is computed."""
        order = [3 + place for place in (*self.joined, *self.sliding)]
        return [1, *order, 2, 0] if self.lanes else [0, 1, *order, 2]

    def joins(self, place: int) -> bool:
        return self.folded[place] or self.axes[place].axis.is_point

    @property
    def joined(self) -> list[int]:
        """The dimensions that join the batch, in order."""
        return [place for place in range(len(self.axes)) if self.joins(place)]

    @property
    def sliding(self) -> list[int]:
        return [place for place in range(len(self.axes)) if not self.joins(place)]

    def shape(self, groups: int, batch: int, out_channels: int) -> ConvShape:
        """The shape that device code works on."""
        point = SlidingAxis(1, 1, 0, 1, 1, 1)
        sliding = [self.axes[place].axis for place in self.sliding]
        first, second, third = [point] * (AXES - len(sliding)) + sliding
        batch *= prod(self.axes[place].axis.out for place in self.joined)
        channels = self.channels * prod(axis.kernel for axis in self._folded_axes)
        if self.lanes:
            return ConvShape(1, batch, (first, second, third), 1, groups)
        return ConvShape(groups, batch, (first, second, third), channels, out_channels)
