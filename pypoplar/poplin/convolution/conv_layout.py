"""Where the operands and the result of a convolution lie: on tiles that use them, each element on one of these."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.conv_partition import KERNEL, OUT
from pypoplar.poplin.convolution.conv_plan import SUMMED, ConvolutionPlan
from pypoplar.poplin.convolution.conv_views import result_view, with_lanes
from pypoplar.poplin.convolution.sliding_axis import TrimmedAxis
from pypoplar.poputil.tile_mapping import mapTensorLinearly


def map_convolution_input(graph: Graph, plan: ConvolutionPlan, input: Tensor) -> None:
    """Map an input [groups, batch, channels, *field]: what several tiles use alike is shared out among them."""
    if plan.empty:
        mapTensorLinearly(graph, input)
        return
    input = with_lanes(plan.form, input, 2)
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    batch = np.arange(input.dim(1))
    outputs = [_nearest_output(trim, size) for trim, size in zip(plan.form.axes, input.shape()[3:], strict=True)]
    joined: Int64s = batch
    for place in plan.form.joined:
        joined = np.add.outer(joined * plan.form.axes[place].axis.out, outputs[place])
    sliding = plan.form.sliding
    first = 3 - len(sliding)
    block = _part(joined, cuts[1]) * steps[1]
    for number, place in enumerate(sliding):
        block = np.add.outer(block, _part(outputs[place], cuts[OUT][first + number]) * steps[2 + first + number])
    order = [*plan.form.joined, *sliding]
    block = block.transpose([0, *(1 + order.index(place) for place in range(len(order)))])
    block = np.add.outer(_part(np.arange(input.dim(0)), cuts[0]) * steps[0], block)
    view = input.dimRoll(2, input.rank() - 1)
    if plan.form.lanes:
        _map_rows(graph, view, block.ravel(), sharers(plan, (5, 6, 7)), cuts[9], steps[9])
    elif any(plan.form.folded):  # parts of the channels are parts of the kernel, too, which want the same inputs
        _map_rows(graph, view, block.ravel(), sharers(plan, (*range(5, 8), 8, 9)), [0, input.dim(2)], 0)
    else:
        _map_rows(graph, view, block.ravel(), sharers(plan, (*range(5, 8), 9)), cuts[8], steps[8])


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
    channel = np.add.outer(folded * weights.dim(2), np.arange(weights.dim(2)))
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
        map_sums(graph, plan, result_view(plan.form, output))


def map_sums(graph: Graph, plan: ConvolutionPlan, sums: Tensor) -> None:
    """Map [groups, batch, 3 axes, output channels] to the tiles that have partial sums of them, each a part of the positions."""
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    block: Int64s = np.zeros(1, np.int64)
    for size, dimension in zip(sums.shape()[:5], range(5), strict=True):
        block = np.add.outer(block, _part(np.arange(size), cuts[dimension]) * steps[dimension]).ravel()
    _map_rows(graph, sums, block, sharers(plan, SUMMED), cuts[9], steps[9])


def map_partials(graph: Graph, plan: ConvolutionPlan, partials: Tensor) -> None:
    """Map partial sums [parts of channels, and of 3 kernel axes, groups, batch, 3 axes, output channels] where they are made."""
    cuts, steps = plan.partition.bounds(plan.shape), plan.partition.steps()
    block: Int64s = np.zeros(1, np.int64)
    for size, dimension in zip(partials.shape()[:4], (8, 5, 6, 7), strict=True):
        block = np.add.outer(block, np.arange(size) * steps[dimension]).ravel()
    for size, dimension in zip(partials.shape()[4:9], range(5), strict=True):
        block = np.add.outer(block, _part(np.arange(size), cuts[dimension]) * steps[dimension]).ravel()
    _map_rows(graph, partials, block, np.zeros(1, np.int64), cuts[9], steps[9])


def _nearest_output(trim: TrimmedAxis, size: int) -> Int64s:
    """For each input of a field dimension the output in whose middle it is."""
    axis = trim.axis
    place = np.clip((np.arange(size) - trim.inputs[0]) // trim.step, 0, axis.size - 1)
    middle = (axis.kernel - 1) * axis.dilation // 2
    output: Int64s = np.clip((place + axis.lower - middle) // axis.stride, 0, axis.out - 1)
    return output


def _part(place: Int64s, cuts: list[int]) -> Int64s:
    """In which part each place is."""
    part: Int64s = np.searchsorted(cuts, place, "right") - 1
    return part


def sharers(plan: ConvolutionPlan, dimensions: tuple[int, ...]) -> Int64s:
    """By how much the numbers of the tiles that use the same elements differ: those that have other parts of these dimensions."""
    steps = plan.partition.steps()
    numbers: Int64s = np.zeros(1, np.int64)
    for dimension in dimensions:
        numbers = np.add.outer(numbers, np.arange(plan.partition.parts[dimension]) * steps[dimension]).ravel()
    return np.sort(numbers)


def _map_rows(graph: Graph, view: Tensor, block: Int64s, sharing: Int64s, cuts: list[int], step: int) -> None:
    """Map a view [rows, channels]: the rows of a part of the channels in equal parts on the tiles that share their block."""
    rows = view.reshape([len(block), cuts[-1]])
    order = np.argsort(block, kind="stable")
    _, start, number, count = np.unique(block[order], return_index=True, return_inverse=True, return_counts=True)
    rank = np.arange(len(block)) - start[number]
    tile = np.empty_like(block)
    few, more = np.divmod(count[number], len(sharing))  # rows of each tile; so many tiles have one more
    beyond = rank - more * (few + 1)
    share = np.where(beyond < 0, rank // (few + 1), more + beyond // np.maximum(few, 1))
    tile[order] = block[order] + sharing[share]
    begins = np.flatnonzero(np.concatenate(([True], tile[1:] != tile[:-1])))
    ends = np.append(begins[1:], len(tile)).tolist()
    owners = tile[begins].tolist()
    for part in range(len(cuts) - 1):
        width = cuts[part + 1] - cuts[part]
        mapping: dict[int, list[Interval]] = {}
        for owner, begin, end in zip(owners, begins.tolist(), ends, strict=True):
            mapping.setdefault(owner + part * step, []).append(Interval(begin * width, end * width))
        graph.setTileMapping(rows.slice(cuts[part], cuts[part + 1], 1).flatten(), mapping)
