"""Operands copied to where and how a plan wants them, where that is cheaper than to gather them element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.conv_layout import map_convolution_input, map_convolution_weights
from pypoplar.poplin.convolution.conv_partition import KERNEL, OUT
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.layout.memory_order import MemoryOrder, in_order, pieces_in_order
from pypoplar.poplin.convolution.layout.plan_memory import input_memory, weights_memory
from pypoplar.poplin.convolution.plan_costs import COPY_SLOTS, WORKERS
from pypoplar.popops.rearrange.transposed_blocks import best_blocks
from pypoplar.poputil.cost_conventions import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence

SAMPLE = 4096  # elements that are looked at
Mapper = Callable[[Graph, ConvolutionPlan, Tensor], None]


@frozen
class _Wanted:
    """What a tile wants of an operand: elements, and the pieces of memory that these are where they lie as the plan has them.

    The last `neighbours` dimensions of that order are wanted together, as far as these are not cut.
    """

    elements: int
    pieces: int
    neighbours: int = 1
    cycles: int = 0  # that a copy takes beside its exchange


def planned_input(graph: Graph, plan: ConvolutionPlan, input: Tensor, prog: Sequence, name: str) -> Tensor:
    """Input [groups, batch, channels, *field], whose channels, or groups of a channel each, are to lie together."""
    if plan.empty or not input.numElements():
        return input
    order = input_memory(plan, input.shape())
    if plan.form.is_flat:
        wanted = _flat_inputs(plan)
    elif plan.form.is_folded:
        wanted = _folded_inputs(plan)
    else:
        parts = plan.partition.parts
        wanted = _shared(plan, input, order, prod(parts[KERNEL]) * (1 if plan.form.lanes else parts[9]))
    return _laid_out(graph, plan, input, order, wanted, map_convolution_input, prog, below(name, "input"))


def planned_weights(graph: Graph, plan: ConvolutionPlan, weights: Tensor, prog: Sequence, name: str) -> Tensor:
    """Weights [groups, output channels, input channels, *kernel], whose output channels, or groups, are to lie together."""
    if plan.empty or not weights.numElements():
        return weights
    parts, order = plan.partition.parts, weights_memory(plan, weights.shape())
    wanted = _shared(plan, weights, order, parts[1] * prod(parts[OUT]))
    return _laid_out(graph, plan, weights, order, wanted, map_convolution_weights, prog, below(name, "weights"))


def _shared(plan: ConvolutionPlan, tensor: Tensor, order: MemoryOrder, sharing: int) -> _Wanted:
    """Of a tensor whose elements are wanted by so many tiles each: what a tile has is in one piece on each of these."""
    elements = tensor.numElements() * sharing // plan.tiles
    return _Wanted(elements, elements // tensor.dim(order.dimensions[-1]))


def _flat_inputs(plan: ConvolutionPlan) -> _Wanted:
    """Of the rows of a matrix, which has all elements of the kernel."""
    parts, shape = plan.partition.parts, plan.shape
    positions = ceiling(shape.groups, parts[0]) * ceiling(shape.batch, parts[1])
    return _Wanted(positions * ceiling(shape.in_channels, parts[8]), positions, 1 + sum(plan.form.folded))


def _folded_inputs(plan: ConvolutionPlan) -> _Wanted:
    """Of an input that is folded: an element is wanted anew for each element of the kernel that meets it.

    Where the last dimension of the field is folded, its neighbours are wanted together, with their channels.
    """
    form, shape, parts = plan.form, plan.shape, plan.partition.parts
    positions = ceiling(shape.groups, parts[0]) * ceiling(shape.batch, parts[1])
    for axis, outs, kernels in zip(shape.axes, parts[OUT], parts[KERNEL], strict=True):
        reach = (ceiling(axis.out, outs) - 1) * axis.stride + (ceiling(axis.kernel, kernels) - 1) * axis.dilation + 1
        positions *= min(axis.size, reach)
    elements = positions * ceiling(shape.in_channels, parts[8])
    for trim, folds in zip(form.axes, form.folded, strict=True):
        if folds:  # but for those that meet padding
            elements = elements * trim.axis.products() // (trim.axis.out * trim.axis.kernel)
    pieces = positions * ceiling(form.pieces, parts[8])
    neighbours = 2 if form.folded[-1] else 1
    return _Wanted(elements, pieces, neighbours, COPY_SLOTS * WORKERS)  # some of the copy stays on its tile


def _laid_out(
    graph: Graph,
    plan: ConvolutionPlan,
    tensor: Tensor,
    order: MemoryOrder,
    wanted: _Wanted,
    place: Mapper,
    prog: Sequence,
    name: str,
) -> Tensor:
    """The tensor, or a copy as the plan wants it."""
    rows = _rows(tensor, order, wanted.neighbours)
    length = rows.dim(rows.rank() - 1)
    together = _together(rows)
    if together >= min(length, order.largest_part(order.dimensions[-1], length)):
        return tensor
    share = ceiling(tensor.numElements(), graph.getTarget().getNumTiles())
    gathered = MESSAGE * wanted.elements // together
    least = superstep_cycles(graph.getTarget()) + wanted.cycles + MESSAGE * wanted.pieces  # of any copy
    if gathered <= least:
        return tensor
    copied = least + MESSAGE * (share // together)
    lying = pieces_in_order(tensor, order)
    blocks = best_blocks(graph, lying[0] if len(lying) == 1 else tensor.dimShuffle(order.dimensions))
    transposed = inf if blocks is None else least + MESSAGE * (share // length) + blocks.cycles
    if gathered <= min(copied, transposed):
        return tensor
    copy = in_order(graph, tensor.elementType(), tensor.shape(), order, name)
    place(graph, plan, copy)
    if blocks is not None and transposed < copied:
        made = blocks.transposed(prog, name)
        back = [order.dimensions.index(dimension) for dimension in range(len(order.dimensions))]
        lying = [made] if len(lying) == 1 else pieces_in_order(made.dimShuffle(back), order)
    source, destination = (concat([piece.flatten() for piece in pieces]) for pieces in (lying, pieces_in_order(copy, order)))
    prog.add(Copy(source, destination))
    return copy


def _rows(tensor: Tensor, order: MemoryOrder, neighbours: int) -> Tensor:
    """What is wanted together: the last dimensions of the order as one, of a phase."""
    for dimension, count in order.phases.items():
        tensor = tensor.subSample(count, dimension)
    last = order.dimensions[-neighbours:]
    outer = [dimension for dimension in range(tensor.rank()) if dimension not in last]
    return tensor.dimShuffle([*outer, *last]).flatten(len(outer), tensor.rank())


def _together(rows: Tensor) -> int:
    """How many neighbours in the last dimension lie behind each other in memory: the mean over the last dimensions."""
    sample = rows
    while sample.rank() > 2 and sample.numElements() > SAMPLE:
        sample = sample[0]
    return ceiling(sample.numElements(), sample.runs().stretches())
