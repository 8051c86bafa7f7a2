"""What a plan of a convolution is asked for."""

from __future__ import annotations

from attrs import field, frozen

from pypoplar.poplin.convolution.conv_shape import ConvTypes
from pypoplar.poplin.convolution.plan_constraints import PlanConstraints
from pypoplar.poplin.convolution.sliding_axis import SlidingAxis, trimmed
from pypoplar.target import Target


@frozen
class ConvRequest:
    """A convolution, and the part of a tile's memory that it may take; `sizes` are groups, batch, input and output channels."""

    target: Target
    sizes: tuple[int, int, int, int]
    axes: tuple[SlidingAxis, ...]
    types: ConvTypes
    memory: float
    constraints: PlanConstraints = field(factory=PlanConstraints)
    samples: bool = False  # input channels are the samples of a batch

    @property
    def result(self) -> tuple[int, ...]:
        """[groups, batch, output channels, *field]."""
        return (self.sizes[0], self.sizes[1], self.sizes[3], *(axis.out for axis in self.axes))

    @property
    def limit(self) -> int:
        """Bytes of a tile that a plan may take."""
        return int(self.memory * self.target.getBytesPerTile())

    @property
    def empty(self) -> bool:
        """Whether there are no products."""
        return 0 in self.sizes or None in map(trimmed, self.axes)
