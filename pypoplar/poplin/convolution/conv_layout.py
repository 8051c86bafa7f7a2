"""Where the operands and the result of a convolution lie: on tiles that use them, each element on one of these."""

from __future__ import annotations

from math import prod

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.conv_partition import KERNEL, OUT
from pypoplar.poplin.convolution.conv_plan import SUMMED, ConvolutionPlan
from pypoplar.poplin.convolution.conv_views import input_view, result_view, with_lanes
from pypoplar.poplin.convolution.sliding_axis import TrimmedAxis
from pypoplar.poputil.placement.row_layout import BlockRuns, RowLayout, map_shared_runs, shared_rows
from pypoplar.poputil.tile_mapping import mapTensorLinearly


def map_convolution_input(graph: Graph, plan: ConvolutionPlan, input: Tensor) -> None:
    """Map an input [groups, batch, channels, *field]: what several tiles use alike is shared out among them."""
    if plan.empty:
        mapTensorLinearly(graph, input)
        return
    if plan.form.is_flat:
        _map_flat_input(graph, plan, input)
        return
    input = with_lanes(plan.form, input, 2)
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    runs = _input_blocks(plan, input.shape())
    view = input.dimRoll(2, input.rank() - 1)
    if plan.form.lanes:
        _map_runs(graph, view, runs, sharers(plan, (5, 6, 7)), cuts[9], steps[9])
    elif any(plan.form.folded):  # parts of the channels are parts of the kernel, too, which want the same inputs
        _map_runs(graph, view, runs, sharers(plan, (*range(5, 8), 8, 9)), [0, input.dim(2)], 0)
    else:
        _map_runs(graph, view, runs, sharers(plan, (*range(5, 8), 9)), cuts[8], steps[8])


def _map_flat_input(graph: Graph, plan: ConvolutionPlan, input: Tensor) -> None:
    """Map the rows of a matrix [groups, batch, folded kernel and channels], in parts of both; other inputs stay where they are."""
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    view = input_view(graph, plan.form, input)
    groups, batch = (_part(np.arange(view.dim(place)), cuts[place]) * steps[place] for place in (0, 1))
    block = np.add.outer(groups, batch).ravel()
    _map_rows(graph, view, block, sharers(plan, (9,)), cuts[8], steps[8])


def _input_blocks(plan: ConvolutionPlan, shape: list[int]) -> BlockRuns:
    """The block that uses each position [groups, batch, *field] of an input: that of the output in whose middle it is.

    Of the last dimension of the field only places are looked at from which on the block can be another.
    """
    cuts, steps, form = plan.partition.bounds(plan.shape), plan.partition.steps(), plan.form
    fields = [(trim, np.arange(size), size) for trim, size in zip(form.axes, shape[3:], strict=True)]
    if fields:
        trim, _, size = fields[-1]
        fields[-1] = trim, _changes(plan, len(fields) - 1, size), size
    outputs = [_nearest_output(trim, places) for trim, places, _ in fields]
    joined: Int64s = np.arange(shape[1])
    for place in form.joined:
        joined = np.add.outer(joined * form.axes[place].axis.out, outputs[place])
    first = 3 - len(form.sliding)
    block = _part(joined, cuts[1]) * steps[1]
    for number, place in enumerate(form.sliding):
        block = np.add.outer(block, _part(outputs[place], cuts[OUT][first + number]) * steps[2 + first + number])
    order = [*form.joined, *form.sliding]
    block = block.transpose([0, *(1 + order.index(place) for place in range(len(order)))])
    block = np.add.outer(_part(np.arange(shape[0]), cuts[0]) * steps[0], block)
    count = np.diff(np.append(fields[-1][1], fields[-1][2])) if fields else np.ones(1, np.int64)
    return BlockRuns(block.ravel(), np.broadcast_to(count, block.shape).ravel())


def _changes(plan: ConvolutionPlan, place: int, size: int) -> Int64s:
    """Places of a dimension of the field of an input from which on positions may be of another block, the first one included."""
    cuts, form = plan.partition.bounds(plan.shape), plan.form
    trim = form.axes[place]
    if place in form.sliding:
        wanted = np.array(cuts[OUT][3 - len(form.sliding) + form.sliding.index(place)])
    elif place == form.joined[-1]:
        wanted = np.array(cuts[1]) % trim.axis.out  # which output is the first of a part, whatever comes before this dimension
    else:
        return np.arange(size)
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), size)
    while (low < high).any():  # the first place whose output is not before the wanted one; outputs do not fall
        middle = (low + high) // 2
        reached = _nearest_output(trim, middle) >= wanted
        low, high = np.where(reached | (low == high), low, middle + 1), np.where(reached, middle, high)
    return distinct(np.append(low[low < size], 0))


def map_convolution_weights(graph: Graph, plan: ConvolutionPlan, weights: Tensor) -> None:
    """Map weights [groups, output channels, channels, *kernel], likewise."""
    if plan.empty:
        mapTensorLinearly(graph, weights)
        return
    weights = with_lanes(plan.form, weights, 1)
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    form = plan.form
    first = 3 - len(form.sliding)
    block = _part(np.arange(weights.dim(0)), cuts[0]) * steps[0]
    folded: Int64s = np.zeros(1, np.int64)
    elements = [
        np.clip(np.arange(size) - trim.kernel[0], 0, trim.axis.kernel - 1)
        for trim, size in zip(form.axes, weights.shape()[3:], strict=True)
    ]
    for number, place in enumerate(form.sliding):
        block = np.add.outer(block, _part(elements[place], cuts[KERNEL][first + number]) * steps[5 + first + number])
    for place in form.joined:
        folded = np.add.outer(folded * form.axes[place].axis.kernel, elements[place])
    channels, kernels = np.arange(weights.dim(2)), prod(form.axes[place].axis.kernel for place in form.joined)
    channel = np.add.outer(folded, channels * kernels) if form.samples else np.add.outer(folded * len(channels), channels)
    channel = channel.reshape([*(len(elements[place]) for place in form.joined), weights.dim(2)])
    block = np.add.outer(block, _part(channel, cuts[8]) * steps[8])  # groups, sliding, joined, channels
    order = [*form.sliding, *form.joined]
    block = block.transpose([0, *(1 + order.index(place) for place in range(len(order))), block.ndim - 1])
    view = weights.dimShuffle([0, *range(3, weights.rank()), 2, 1])
    _map_rows(graph, view, block.ravel(), sharers(plan, (1, 2, 3, 4)), cuts[9], steps[9])


def map_convolution_output(graph: Graph, plan: ConvolutionPlan, output: Tensor) -> None:
    """Map a result [groups, batch, output channels, *field] as `convolve` does that of its own."""
    if plan.empty:
        mapTensorLinearly(graph, output)
    else:
        cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
        _map_runs(graph, result_view(plan.form, output), _output_blocks(plan), sharers(plan, SUMMED), cuts[9], steps[9])


def layout_of_sums(plan: ConvolutionPlan) -> RowLayout:
    """How sums lie: rows are positions [groups, batch, 3 axes], columns output channels.

    They are on the tiles that have partial sums of them, each has a part of the positions.
    """
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    return RowLayout(shared_rows(blocks_of_outputs(plan, np.zeros(1, np.int64)), sharers(plan, SUMMED)), cuts[9], steps[9])


def layout_of_partials(plan: ConvolutionPlan) -> RowLayout:
    """How partial sums lie, where they are made: rows are [parts that are summed, groups, batch, 3 axes], columns as of sums."""
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    return RowLayout(blocks_of_outputs(plan, numbers_of_parts(plan, SUMMED)), cuts[9], steps[9])


def blocks_of_outputs(plan: ConvolutionPlan, first: Int64s) -> Int64s:
    """The tile of each position [groups, batch, 3 axes], from each of some first tiles on; of the first output channels."""
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    for dimension, size in enumerate((plan.shape.groups, plan.shape.batch, *plan.shape.outputs)):
        first = np.add.outer(first, _part(np.arange(size), cuts[dimension]) * steps[dimension]).ravel()
    return first


def _output_blocks(plan: ConvolutionPlan) -> BlockRuns:
    """`blocks_of_outputs` of the first tile, as runs along the last axes."""
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    sizes = (plan.shape.groups, plan.shape.batch, *plan.shape.outputs)
    block, count = np.zeros(1, np.int64), np.ones(1, np.int64)
    for dimension in reversed(range(len(sizes))):
        size, begin = sizes[dimension], distinct(np.array(cuts[dimension][:-1]))
        part = _part(begin, cuts[dimension]) * steps[dimension]
        places = np.diff(np.append(begin, size))
        if len(block) == 1:
            block, count = part + block, places * count
        else:
            block, count = np.add.outer(np.repeat(part, places), block).ravel(), np.tile(count, size)
    return BlockRuns(block, count)


def _nearest_output(trim: TrimmedAxis, inputs: Int64s) -> Int64s:
    """For inputs of a field dimension the output in whose middle each is."""
    axis = trim.axis
    place = np.clip((inputs - trim.inputs[0]) // trim.step, 0, axis.size - 1)
    middle = (axis.kernel - 1) * axis.dilation // 2
    output: Int64s = np.clip((place + axis.lower - middle) // axis.stride, 0, axis.out - 1)
    return output


def _part(place: Int64s, cuts: list[int]) -> Int64s:
    """In which part each place is."""
    part: Int64s = np.searchsorted(cuts, place, "right") - 1
    return part


def sharers(plan: ConvolutionPlan, dimensions: tuple[int, ...]) -> Int64s:
    """By how much the numbers of the tiles that use the same elements differ: those that have other parts of these dimensions."""
    return np.sort(numbers_of_parts(plan, dimensions))


def numbers_of_parts(plan: ConvolutionPlan, dimensions: tuple[int, ...]) -> Int64s:
    """The same in the order of the parts."""
    steps = plan.partition.steps()
    numbers: Int64s = np.zeros(1, np.int64)
    for dimension in dimensions:
        numbers = np.add.outer(numbers, np.arange(plan.partition.parts[dimension]) * steps[dimension]).ravel()
    return numbers


def _map_runs(graph: Graph, view: Tensor, runs: BlockRuns, sharing: Int64s, cuts: list[int], step: int) -> None:
    """Map a view [rows, channels]: the rows of a part of the channels in equal parts on the tiles that share their block."""
    map_shared_runs(graph, view.reshape([view.numElements() // cuts[-1], cuts[-1]]), runs, sharing, cuts, step)


def _map_rows(graph: Graph, view: Tensor, block: Int64s, sharing: Int64s, cuts: list[int], step: int) -> None:
    """Map a view [rows, channels]: the rows of a part of the channels in equal parts on the tiles that share their block."""
    RowLayout(shared_rows(block, sharing), cuts, step).map(graph, view.reshape([len(block), cuts[-1]]))
