"""Plans of convolutions whose operands are exchanged: the weights are seen as the input, the input as weights."""

from __future__ import annotations

from math import prod

from attrs import evolve, frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import FIELD, ConvTypes
from pypoplar.poplin.convolution.sliding_axis import SlidingAxis
from pypoplar.poputil.cost_conventions import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling


@frozen
class SwappedPlan:
    """Output channels are the batch, and the batch, with the dimensions of the field that do not slide, is the output channels.

    Of the other dimensions each is a field as large as the kernel, along which a kernel as large as the field slides; outputs come
    out in reverse.
    """

    result: tuple[int, ...]
    points: tuple[int, ...]  # dimensions of the field that do not slide
    inner: ConvolutionPlan
    rearranging: int  # cycles of bringing an input and the result, whose channels lie together elsewhere, into this order

    @property
    def types(self) -> ConvTypes:
        return self.inner.types

    @property
    def others(self) -> list[int]:
        return [place for place in range(len(self.result) - FIELD) if place not in self.points]

    @property
    def cycles(self) -> int:
        return self.inner.cycles

    @property
    def bytes(self) -> int:
        """Memory of the fullest tile."""
        return self.inner.bytes

    @property
    def limit(self) -> int:
        return self.inner.limit

    @property
    def tiles(self) -> int:
        """Tiles at work."""
        return self.inner.tiles

    def describe(self) -> str:
        return f"operands swapped: weights as the input\n{self.inner.describe()}"

    def as_weights(self, input: Tensor) -> Tensor:
        """An input [groups, batch, channels, *field] as the weights of the inner plan."""
        fields = [FIELD + place for place in self.others]
        view = input.dimShuffle([0, 1, *(FIELD + place for place in self.points), 2, *fields])
        return view.flatten(1, 2 + len(self.points))

    def as_input(self, weights: Tensor) -> Tensor:
        """Weights [groups, output channels, channels, *kernel] as the input of the inner plan."""
        return weights.squeeze([FIELD + place for place in self.points])

    def turned(self, output: Tensor) -> Tensor:
        """A result [groups, batch, output channels, *field] as that of the inner plan."""
        for place in self.others:
            output = output.reverse(FIELD + place)
        fields = [FIELD + place for place in self.others]
        return output.dimShuffle([0, 2, 1, *(FIELD + place for place in self.points), *fields]).flatten(2, 3 + len(self.points))

    def turned_back(self, inner: Tensor) -> Tensor:
        """The inverse."""
        sizes = [self.result[FIELD + place] for place in self.points]
        view = inner.reshapePartial(2, 3, [self.result[1], *sizes])
        order = [*self.points, *self.others]
        view = view.dimShuffle([0, 2, 1, *(FIELD + order.index(place) for place in range(len(order)))])
        for place in self.others:
            view = view.reverse(FIELD + place)
        return view

    def input_order(self) -> list[int]:
        """The dimensions of an input in the order in which they lie best in memory."""
        order = []
        for place in self.inner.weights_order():
            order += [1, *(FIELD + point for point in self.points)] if place == 1 else [self._dimension(place)]
        return order

    def weights_order(self) -> list[int]:
        """The same of weights."""
        return [*(FIELD + point for point in self.points), *map(self._dimension, self.inner.input_order())]

    def output_order(self) -> list[int]:
        """The same of a result."""
        order = []
        for place in self.inner.output_order():
            if place == 2:
                order += [1, *(FIELD + point for point in self.points)]
            else:
                order.append(2 if place == 1 else self._dimension(place))
        return order

    def _dimension(self, place: int) -> int:
        return place if place < FIELD else FIELD + self.others[place - FIELD]


def swapped(request: ConvRequest) -> tuple[ConvRequest, tuple[int, ...]] | None:
    """The convolution with its operands exchanged, and the dimensions that do not slide; None where a dilation leaves none."""
    points = tuple(place for place, axis in enumerate(request.axes) if axis.is_point)
    axes = [axis for axis in request.axes if not axis.is_point]
    if any(axis.dilation != 1 and axis.kernel > 1 for axis in axes):
        return None
    groups, batch, inputs, outputs = request.sizes
    columns = batch * prod(request.axes[place].out for place in points)
    return evolve(request, sizes=(groups, outputs, inputs, columns), axes=tuple(map(_exchanged, axes))), points


def rearranging_cycles(request: ConvRequest, inner: ConvRequest) -> int:
    """What it takes to bring input and result from channels that lie together to the order of the inner convolution, and back."""
    groups, batch, inputs, _ = request.sizes
    if inner.sizes[3] == 1:
        return 0
    elements = (groups * batch * inputs * prod(axis.size for axis in request.axes), prod(request.result))
    pieces = sum(int(ceiling(count, request.target.getNumTiles())) for count in elements)
    return 2 * superstep_cycles(request.target) + MESSAGE * pieces


def _exchanged(axis: SlidingAxis) -> SlidingAxis:
    """Output ``out - 1 - o`` of the field as a kernel that slides along the kernel."""
    return SlidingAxis(axis.kernel, axis.size, (axis.out - 1) * axis.stride - axis.lower, 1, axis.stride, axis.out)
