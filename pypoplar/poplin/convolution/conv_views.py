"""The operands and the result of a convolution as its vertices see them: views, with zeros where a fold pads."""

from __future__ import annotations

from math import prod

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.conv_shape import AXES, ConvForm
from pypoplar.poplin.convolution.sliding_axis import SlidingAxis


def input_view(graph: Graph, form: ConvForm, input: Tensor) -> Tensor:
    """Input [groups, batch, channels, *field] as [groups, batch, 3 axes, channels] of the form's shape."""
    view = with_lanes(form, used_input(form, input), 2).dimRoll(2, input.rank() - 1)
    for place, trim in enumerate(form.axes):
        if form.folded[place]:
            view = _folded(graph, trim.axis, view, 2 + place, len(form.axes))
    if form.samples:
        view = view.dimRoll(view.rank() - 1, 2 + len(form.axes))
    fields = [2 + place for place in (*form.joined, *form.sliding)]
    view = view.dimShuffle([0, 1, *fields, *range(2 + len(form.axes), view.rank())])
    batch = prod(view.shape()[1 : 2 + len(form.joined)])
    sliding = [form.axes[place].axis.size for place in form.sliding]
    channels = prod(view.shape()[2 + len(form.axes) :])
    return view.reshape([view.dim(0), batch, *_axes(sliding), channels])


def used_input(form: ConvForm, input: Tensor) -> Tensor:
    """Input [groups, batch, channels, *field] without what no output needs."""
    for place, trim in enumerate(form.axes):
        input = input.slice(*trim.inputs, 3 + place).subSample(trim.step, 3 + place)
    return input


def weights_view(form: ConvForm, weights: Tensor) -> Tensor:
    """Weights [groups, output channels, channels, *kernel] as [groups, 3 axes, channels, output channels] of the form's shape."""
    weights = with_lanes(form, weights, 1)
    view = weights
    for place, trim in enumerate(form.axes):
        view = view.slice(*trim.kernel, 3 + place)
    sliding = [form.axes[place].axis.kernel for place in form.sliding]
    channels = prod(form.axes[place].axis.kernel for place in form.joined) * weights.dim(2)
    return view.dimShuffle([0, *form.kernel_order, 1]).reshape([weights.dim(0), *_axes(sliding), channels, weights.dim(1)])


def output_view(form: ConvForm, batch: int, result: Tensor) -> Tensor:
    """A result [groups, batch, 3 axes, output channels] of the form's shape as [groups, batch, output channels, *field]."""
    order = [*form.joined, *form.sliding]
    fields = [form.axes[place].axis.out for place in order]
    view = result.reshape([result.dim(0), batch, *fields, result.dim(5)])
    return with_lanes(form, view.dimShuffle([0, 1, 2 + len(order), *(2 + order.index(place) for place in range(len(order)))]), 2)


def result_view(form: ConvForm, output: Tensor) -> Tensor:
    """The inverse: an output [groups, batch, output channels, *field] as [groups, batch, 3 axes, output channels]."""
    output = with_lanes(form, output, 2)
    view = output.dimShuffle([0, 1, *(3 + place for place in (*form.joined, *form.sliding)), 2])
    batch = prod(view.shape()[1 : 2 + len(form.joined)])
    sliding = [form.axes[place].axis.out for place in form.sliding]
    return view.reshape([output.dim(0), batch, *_axes(sliding), output.dim(2)])


def with_lanes(form: ConvForm, tensor: Tensor, dimension: int) -> Tensor:
    """Groups of one channel as channels of one group, which are in the dimension, or the other way round, if the form has lanes."""
    return tensor.dimShufflePartial([0, dimension], [dimension, 0]) if form.lanes else tensor


def _axes(sizes: list[int]) -> list[int]:
    return [1] * (AXES - len(sizes)) + sizes


def _folded(graph: Graph, axis: SlidingAxis, view: Tensor, dimension: int, fields: int) -> Tensor:
    """The inputs of each element of the kernel, in a new dimension before the channels. The view has so many field dimensions."""
    last = view.rank() - 1
    extent, reach = (axis.out - 1) * axis.stride + 1, (axis.kernel - 1) * axis.dilation + 1
    upper = extent + reach - 1 - axis.lower - axis.size
    if axis.lower or upper > 0:
        counts = (axis.lower, max(upper, 0))
        zeros = _zeros(graph, view, dimension, fields, max(counts))
        view = concat([zeros.slice(0, counts[0], dimension), view, zeros.slice(0, counts[1], dimension)], dimension)
    if axis.out < axis.kernel:  # an output at a time is fewer views
        begins = [output * axis.stride for output in range(axis.out)]
        windows = [view.slice(begin, begin + reach, dimension).subSample(axis.dilation, dimension) for begin in begins]
        return concat([window.expand([dimension]).dimRoll(dimension + 1, last) for window in windows], dimension)
    begins = [k * axis.dilation for k in range(axis.kernel)]
    taken = [view.slice(begin, begin + extent, dimension).subSample(axis.stride, dimension) for begin in begins]
    return concat([piece.expand([last]) for piece in taken], last)


def _zeros(graph: Graph, view: Tensor, dimension: int, fields: int, count: int) -> Tensor:
    """Zeros of the view's shape but for `count` in a dimension: what is in pieces of memory there, is so of them."""
    shape = view.shape()
    shape[dimension] = count
    row = 1 + fields  # the last dimension of the field, whose places lie together
    zero = graph.addConstant(view.elementType(), [shape[row], shape[-1]], [0] * (shape[row] * shape[-1]), "zeros")
    graph.setTileMapping(zero, 0)
    zero = zero.reshape([size if place in (row, len(shape) - 1) else 1 for place, size in enumerate(shape)])
    for place, size in enumerate(shape):
        if place not in (row, len(shape) - 1):
            zero = zero.broadcast(size, place)
    return zero
