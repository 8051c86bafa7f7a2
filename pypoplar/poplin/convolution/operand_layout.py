"""Operands copied to where and how a plan wants them, where that is cheaper than to gather them element by element."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from math import inf, prod

from attrs import evolve, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.conv_layout import map_convolution_input, map_convolution_weights
from pypoplar.poplin.convolution.conv_partition import KERNEL, OUT
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.plan_costs import COPY_SLOTS, WORKERS
from pypoplar.popops.rearrange.transposed_blocks import best_blocks
from pypoplar.poputil.cost_conventions import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.types import ElementType

SAMPLE = 4096  # elements that are looked at
Mapper = Callable[[Graph, ConvolutionPlan, Tensor], None]


@frozen
class MemoryOrder:
    """How a tensor lies in memory: its dimensions in this order, the last one together.

    The order may be that of a tensor whose dimension 0 is two, the second of which is `factor`. What steps have of a dimension, so
    much each, is a variable of its own.
    """

    dimensions: SequenceOf[int]
    factor: int = 1
    steps: tuple[int, SequenceOf[int]] | None = None  # a dimension, and its sizes in the steps


def in_order(graph: Graph, type: ElementType, shape: list[int], order: MemoryOrder | None, name: str) -> Tensor:
    """A new tensor mapped linearly that lies so in memory, or in the order of its dimensions."""
    order = order or MemoryOrder(range(len(shape)))
    if order.steps is not None:
        dimension, sizes = order.steps
        shapes = [[*shape[:dimension], size, *shape[dimension + 1 :]] for size in sizes]
        own = evolve(order, steps=None)
        return concat([in_order(graph, type, part, own, name) for part in shapes], dimension)
    if len(order.dimensions) > len(shape):
        apart = [shape[0] // order.factor, order.factor, *shape[1:]]
        return in_order(graph, type, apart, order, name).flatten(0, 2)
    variable = graph.addVariable(type, [shape[place] for place in order.dimensions], name)
    mapTensorLinearly(graph, variable)
    return variable.dimShuffle([list(order.dimensions).index(place) for place in range(len(shape))])


@frozen
class _Wanted:
    """What a tile wants of an operand: elements, and the pieces of memory that these are where they lie in the plan's order.

    The last `neighbours` dimensions of that order are wanted together.
    """

    elements: int
    pieces: int
    neighbours: int = 1
    cycles: int = 0  # that a copy takes beside its exchange


def planned_input(graph: Graph, plan: ConvolutionPlan, input: Tensor, prog: Sequence, name: str) -> Tensor:
    """Input [groups, batch, channels, *field], whose channels, or groups of a channel each, are to lie together."""
    if plan.empty or not input.numElements():
        return input
    parts, order = plan.partition.parts, plan.input_order()
    if plan.form.is_folded:
        wanted = _folded_inputs(plan)
    else:
        wanted = _shared(plan, input, order, prod(parts[KERNEL]) * (1 if plan.form.lanes else parts[9]))
    return _laid_out(graph, plan, input, order, wanted, map_convolution_input, prog, below(name, "input"))


def planned_weights(graph: Graph, plan: ConvolutionPlan, weights: Tensor, prog: Sequence, name: str) -> Tensor:
    """Weights [groups, output channels, input channels, *kernel], whose output channels, or groups, are to lie together."""
    if plan.empty or not weights.numElements():
        return weights
    parts, order = plan.partition.parts, plan.weights_order()
    wanted = _shared(plan, weights, order, parts[1] * prod(parts[OUT]))
    return _laid_out(graph, plan, weights, order, wanted, map_convolution_weights, prog, below(name, "weights"))


def _shared(plan: ConvolutionPlan, tensor: Tensor, order: list[int], sharing: int) -> _Wanted:
    """Of a tensor whose elements are wanted by so many tiles each."""
    elements = tensor.numElements() * sharing // plan.tiles
    return _Wanted(elements, elements // tensor.dim(order[-1]))


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
    neighbours = 2 if form.folded[-1] and form.axes[-1].axis.dilation == 1 else 1
    return _Wanted(elements, pieces, neighbours, COPY_SLOTS * WORKERS)  # some of the copy stays on its tile


def _laid_out(
    graph: Graph, plan: ConvolutionPlan, tensor: Tensor, order: list[int], wanted: _Wanted, place: Mapper, prog: Sequence, name: str
) -> Tensor:
    """The tensor, or a copy as the plan wants it."""
    outer = [dimension for dimension in range(tensor.rank()) if dimension not in order[-wanted.neighbours :]]
    rows = tensor.dimShuffle([*outer, *order[-wanted.neighbours :]]).flatten(len(outer), tensor.rank())
    length = rows.dim(len(outer))
    together = _together(rows)
    if together >= length:
        return tensor
    share = ceiling(tensor.numElements(), graph.getTarget().getNumTiles())
    gathered = MESSAGE * wanted.elements // together
    least = superstep_cycles(graph.getTarget()) + wanted.cycles + MESSAGE * wanted.pieces  # of any copy
    if gathered <= least:
        return tensor
    copied = least + MESSAGE * (share // together)
    blocks = best_blocks(graph, tensor.dimShuffle(order))
    transposed = inf if blocks is None else least + MESSAGE * (share // length) + blocks.cycles
    if gathered <= min(copied, transposed):
        return tensor
    if blocks is not None and transposed < copied:
        back = [order.index(place) for place in range(len(order))]
        tensor = blocks.transposed(prog, name).dimShuffle(back)
    copy = in_order(graph, tensor.elementType(), tensor.shape(), MemoryOrder(order), name)
    place(graph, plan, copy)
    prog.add(Copy(tensor.dimShuffle(order), copy.dimShuffle(order)))
    return copy


def _together(rows: Tensor) -> int:
    """How many neighbours in the last dimension lie behind each other in memory: the mean over the last dimensions."""
    sample = rows
    while sample.rank() > 2 and sample.numElements() > SAMPLE:
        sample = sample[0]
    return ceiling(sample.numElements(), sample.runs().stretches())
