"""The vertices of a convolution, as its plan says."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from itertools import pairwise, product
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.language.fields import NEAREST
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.poplin.convolution.conv_layout import layout_of_partials
from pypoplar.poplin.convolution.conv_partition import AxisWindow
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_sums import add_up
from pypoplar.poplin.convolution.conv_views import input_view, output_view, weights_view
from pypoplar.poplin.convolution.supersteps import SuperstepLane
from pypoplar.poplin.splitting import EqualParts, equal_parts
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.row_layout import LaidRows
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy
from pypoplar.types import HALF

FORMS = {"AMP": "ConvPartialnx1", "VMAC": "ConvPartialVerticalMac", "OUTER_PRODUCT": "ConvOuterProduct"}


@frozen(eq=False)
class Operands:
    """The tensors of a convolution as its vertices see them.

    Input [groups, batch, 3 axes, channels], weights [groups, 3 axes, channels, output channels], and partial sums.
    """

    input: Tensor
    weights: Tensor
    partials: LaidRows


@frozen
class Channels:
    """Parts of groups, batch and channels that vertices of one kind have."""

    groups: EqualParts
    batch: EqualParts
    depth: EqualParts
    columns: EqualParts
    lanes: bool

    @property
    def counts(self) -> list[int]:
        return [self.groups.count, self.batch.count, self.depth.count, self.columns.count]

    def input(self, tensor: Tensor) -> Tensor:
        """What of an input [groups, batch, 3 axes, channels] each vertex has: a row."""
        if self.lanes:
            tensor = _split(_split(_split(tensor, 5, self.columns), 1, self.batch), 0, self.groups)
            return self._rows(tensor.dimShuffle([0, 2, 7, 1, 3, 4, 5, 6, 8]), 0, 1)
        tensor = _split(_split(_split(tensor, 5, self.depth), 1, self.batch), 0, self.groups)
        return self._rows(tensor.dimShuffle([0, 2, 7, 1, 3, 4, 5, 6, 8]), 3, self.columns.count)

    def weights(self, tensor: Tensor) -> Tensor:
        """The same of weights [groups, 3 axes, channels, output channels]."""
        tensor = _split(_split(_split(tensor, 5, self.columns), 4, self.depth), 0, self.groups)
        return self._rows(tensor.dimShuffle([0, 5, 7, 1, 2, 3, 4, 6, 8]), 1, self.batch.count)

    def _rows(self, tensor: Tensor, dimension: int, times: int) -> Tensor:
        """A row for each vertex of a tensor whose first dimensions are the parts, but for one whose parts share what is there."""
        if dimension:
            tensor = tensor.expand([dimension]).broadcast(times, dimension)
        return tensor.reshape([prod(self.counts), tensor.numElements() // prod(self.counts)])


def convolve(graph: Graph, plan: ConvolutionPlan, input: Tensor, weights: Tensor, lane: SuperstepLane, debug: str | None) -> Tensor:
    """The result [groups, batch, output channels, *field] of a convolution.

    It is of input [groups, batch, channels, *field] and weights [groups, output channels, channels, *kernel].
    """
    if plan.empty:
        return _zeros(graph, plan, lane, debug)
    partials = layout_of_partials(plan).variable(graph, plan.types.partials, below(debug, "partials"))
    operands = Operands(input_view(graph, plan.form, input), weights_view(plan.form, weights), partials)
    cs = lane.compute_set(below(debug, "convolve"))
    cuts = plan.partition.bounds(plan.shape)
    columns = equal_parts(cuts[9])
    if plan.form.is_folded:  # an input in many pieces is not repeated for each part of the columns
        columns = [EqualParts(number, 1, begin, end - begin) for number, (begin, end) in enumerate(pairwise(cuts[9]))]
    for windows in product(*plan.partition.windows(plan.shape)):
        for groups, batch, depth in product(*(equal_parts(cuts[place]) for place in (0, 1, 8))):
            rows: Tensor | None = None
            for part in columns:
                channels = Channels(groups, batch, depth, part, plan.form.lanes)
                if rows is None or not plan.form.is_folded:
                    rows = channels.input(_windows_of(operands.input, windows))
                _add_vertices(graph, cs, plan, operands, channels, windows, rows)
    shape = plan.shape
    if plan.partition.partials > 1 or plan.types.partials is not plan.types.result:
        result = add_up(graph, plan, partials, lane, debug)
    else:
        result = partials.matrix.reshape([shape.groups, shape.batch, *shape.outputs, shape.out_channels])
    return output_view(plan.form, input.dim(1), result)


def _zeros(graph: Graph, plan: ConvolutionPlan, lane: SuperstepLane, debug: str | None) -> Tensor:
    """A result without any products."""
    result = graph.addVariable(plan.types.result, plan.result, below(debug, "zeros"))
    mapTensorLinearly(graph, result)
    if result.numElements():
        zero = graph.addConstant(plan.types.result, [1], 0, below(debug, "zero"))
        graph.setTileMapping(zero, 0)
        lane.programs.add(Copy(zero.broadcast(result.numElements()), result.flatten()))
    return result


def _split(tensor: Tensor, dimension: int, parts: EqualParts) -> Tensor:
    """Parts that follow each other, and in the next dimension what is in each."""
    return parts.of(tensor, dimension).reshapePartial(dimension, dimension + 1, [parts.count, parts.size])


def _windows_of(input: Tensor, windows: SequenceOf[AxisWindow]) -> Tensor:
    """What a window on each axis has of an input."""
    for place, window in enumerate(windows):
        if window.inputs != (0, input.dim(2 + place)):  # a slice of a scattered tensor takes as long as it has elements
            input = input.slice(*window.inputs, 2 + place)
    return input


def _add_vertices(
    graph: Graph,
    cs: ComputeSet,
    plan: ConvolutionPlan,
    operands: Operands,
    channels: Channels,
    windows: SequenceOf[AxisWindow],
    rows: Tensor,
) -> None:
    """The vertices of a window on each axis, and of equal parts of all else; `rows` are what each has of the input."""
    weights, first = operands.weights, _places(plan, channels, windows)
    for place, window in enumerate(windows):
        weights = weights.slice(*window.kernel, 1 + place)
    part = np.tile(channels.columns.numbers, len(first) // channels.columns.count)
    positions = channels.groups.size * channels.batch.size * prod(window.outputs[1] - window.outputs[0] for window in windows)
    fields = {
        "in": rows,
        "weights": channels.weights(weights),
        "out": operands.partials.rows_of_tiles(first, part, np.zeros_like(first), positions),
        **_values(plan, channels, windows),
    }
    form = "ConvPartial1x1Out" if plan.is_product else FORMS[plan.form.method]
    rounding = (NEAREST,) if plan.types.always_nearest and plan.form.method == "AMP" else ()
    vertexType = templateVertex(f"poplin::{form}", *rounding, plan.types.operands, plan.types.partials)
    graph.add_vertices(cs, vertexType, fields, first + part * operands.partials.layout.step)


def _places(plan: ConvolutionPlan, channels: Channels, windows: SequenceOf[AxisWindow]) -> Int64s:
    """The tile of the first part of the output channels, for each vertex."""
    steps = plan.partition.steps()
    field = sum(int(plan.partition.window_steps(place)[window.number]) for place, window in enumerate(windows))
    tile: Int64s = np.array([field])
    for of_dimension, dimension in zip((channels.groups, channels.batch, channels.depth), (0, 1, 8), strict=True):
        tile = np.add.outer(tile, np.array(of_dimension.numbers) * steps[dimension])
    return np.repeat(tile.ravel(), channels.columns.count)


def _values(plan: ConvolutionPlan, channels: Channels, windows: SequenceOf[AxisWindow]) -> dict[str, int]:
    """The plain fields of vertices of equal parts."""
    groups, batch, depth, columns = channels.groups.size, channels.batch.size, channels.depth.size, channels.columns.size
    positions = batch * prod(window.outputs[1] - window.outputs[0] for window in windows)
    grain = 1
    if plan.types.partials is HALF and columns % 2:  # two workers never store to one word
        grain = positions if groups > 1 and positions % 2 else 2
    values = {"groups": groups, "inChannels": depth, "outChannels": columns, "grain": grain}
    if plan.is_product or plan.form.outer:
        return values
    values["batch"] = batch
    for place, (axis, window) in enumerate(zip(plan.shape.axes, windows, strict=True)):
        out, kernel, size, first = window.form
        values |= {f"in{place}": size, f"out{place}": out, f"kernel{place}": kernel, f"first{place}": first}
        values |= {f"stride{place}": axis.stride, f"dilation{place}": axis.dilation}
    return values
