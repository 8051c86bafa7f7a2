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


def planned_input(graph: Graph, plan: ConvolutionPlan, input: Tensor, prog: Sequence, name: str) -> Tensor:
    """Input [groups, batch, channels, *field], whose channels, or groups of a channel each, are to lie together."""
    parts = plan.partition.parts
    sharing = prod(parts[KERNEL]) * (1 if plan.form.lanes else parts[9])
    return _laid_out(graph, plan, input, plan.input_order(), sharing, map_convolution_input, prog, below(name, "input"))


def planned_weights(graph: Graph, plan: ConvolutionPlan, weights: Tensor, prog: Sequence, name: str) -> Tensor:
    """Weights [groups, output channels, input channels, *kernel], whose output channels, or groups, are to lie together."""
    parts = plan.partition.parts
    sharing = parts[1] * prod(parts[OUT])
    return _laid_out(graph, plan, weights, plan.weights_order(), sharing, map_convolution_weights, prog, below(name, "weights"))


def _laid_out(
    graph: Graph, plan: ConvolutionPlan, tensor: Tensor, order: list[int], sharing: int, place: Mapper, prog: Sequence, name: str
) -> Tensor:
    """The tensor, or a copy as the plan wants it; `sharing` is how many tiles want the same elements."""
    if plan.empty or not tensor.numElements():
        return tensor
    dimension = order[-1]
    length = tensor.dim(dimension)
    together = _together(tensor.dimRoll(dimension, tensor.rank() - 1))
    if together >= length:
        return tensor
    wanted = tensor.numElements() * sharing // plan.tiles  # elements of a tile
    share = ceiling(tensor.numElements(), graph.getTarget().getNumTiles())
    gathered = MESSAGE * wanted // together
    least = superstep_cycles(graph.getTarget()) + MESSAGE * (wanted // length)  # of any copy
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
