"""How a convolution is cut over the tiles: parts of each dimension, and the tile of each combination of parts."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.convolution.conv_shape import AXES, ConvShape
from pypoplar.poplin.convolution.sliding_axis import Range
from pypoplar.poplin.splitting import bounds

DIMENSIONS = ("groups", "batch", "out0", "out1", "out2", "kernel0", "kernel1", "kernel2", "in_channels", "out_channels")
OUT, KERNEL = slice(2, 5), slice(5, 8)
CHANNELS_LAST = tuple(range(len(DIMENSIONS)))  # tiles beside each other have other output channels of the same inputs
OUTPUTS_LAST = (0, 5, 6, 7, 8, 9, 1, 2, 3, 4)  # tiles beside each other have other outputs of the same weights


@frozen
class AxisWindow:
    """What a tile has of an axis: a part of the outputs and of the kernel, and the inputs that these meet."""

    outputs: Range
    kernel: Range
    kernel_part: int
    number: int  # of the part of the outputs and the kernel, kernel innermost
    inputs: Range
    first: int  # where the input of the first output and element of the kernel lies, behind the begin of `inputs`

    @property
    def form(self) -> tuple[int, int, int, int]:
        """Windows of one form can be vertices of one kind."""
        return (
            self.outputs[1] - self.outputs[0],
            self.kernel[1] - self.kernel[0],
            self.inputs[1] - self.inputs[0],
            self.first,
        )


@frozen
class ConvPartition:
    """Numbers of parts in the order of `DIMENSIONS`; grains of channels; the dimensions in order of the tiles, outermost first."""

    parts: tuple[int, ...]
    in_grain: int
    out_grain: int
    order: tuple[int, ...]

    @property
    def tiles(self) -> int:
        return prod(self.parts)

    @property
    def partials(self) -> int:
        """How many partial sums an output has."""
        return prod(self.parts[KERNEL]) * self.parts[8]

    def bounds(self, shape: ConvShape) -> list[list[int]]:
        """Where the parts of each dimension begin, and its end."""
        kernel = [axis.kernel for axis in shape.axes]
        sizes = (shape.groups, shape.batch, *shape.outputs, *kernel, shape.in_channels, shape.out_channels)
        grains = [1] * 8 + [self.in_grain, self.out_grain]
        return [bounds(size, parts, grain) for size, parts, grain in zip(sizes, self.parts, grains, strict=True)]

    def windows(self, shape: ConvShape) -> list[list[AxisWindow]]:
        """The windows of each axis."""
        cuts = self.bounds(shape)
        windows = []
        for axis, outs, kernels in zip(shape.axes, cuts[OUT], cuts[KERNEL], strict=True):
            pairs = product(pairwise(outs), enumerate(pairwise(kernels)))
            windows.append(
                [
                    AxisWindow(outputs, kernel, part, number, *axis.inputs_of(outputs, kernel))
                    for number, (outputs, (part, kernel)) in enumerate(pairs)
                ]
            )
        return windows

    def steps(self) -> list[int]:
        """By how much the tile's number grows from part to part of each dimension."""
        steps, step = [0] * len(self.parts), 1
        for dimension in reversed(self.order):
            steps[dimension], step = step, step * self.parts[dimension]
        return steps

    def window_steps(self, place: int) -> Int64s:
        """The same for the windows of an axis, by their numbers."""
        steps, kernels = self.steps(), self.parts[2 + AXES + place]
        number = np.arange(self.parts[2 + place] * kernels)
        return number // kernels * steps[2 + place] + number % kernels * steps[2 + AXES + place]
