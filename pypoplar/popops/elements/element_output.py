"""Where the result of an element-wise operation goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypoplar.braces import TENSORS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_debug, check_graph, check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.largest_tensor import check_fits
from pypoplar.poputil.placement.tiles_of_elements import TileRegions
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@public
def createOutputForElementWiseOp(
    graph: Graph, inputs: Sequence[Tensor], outputType: ElementType, debugContext: str | None = None
) -> Tensor:
    """A new tensor, shaped like the inputs (which have one shape), for the result of an operation on their elements.

    It is mapped like the input whose fullest tile has the fewest elements; of equal ones like the one on most tiles,
    then the one in fewest pieces. Inputs that hold an element twice do not count; without any other, the mapping is
    linear.

    Parameters
    ----------
    inputs:
        One tensor at least, all of one shape, with tiles.
    outputType:
        The type of the new tensor.

    Returns
    -------
    Tensor
        A new variable of the inputs' shape, with tiles.

    Raises
    ------
    PoplibsError
        For no inputs, and inputs of different shapes.
    PoplarTypeError
        For what is no tensor of the graph or no element type.
    InvalidTileMapping
        If an element of an input has no tile.
    """
    call = "popops.createOutputForElementWiseOp"
    check_graph(call, graph)
    given: object = ordered(inputs, f"the inputs of {call}", TENSORS)
    if not isinstance(given, list | tuple):
        raise PoplarTypeError(f"{call}: inputs is a list of tensors, got {given!r}")
    if not given:
        raise PoplibsError(f"{call} needs at least one input, got an empty list")
    check_operands(call, graph, *given)
    check_debug(call, debugContext)
    if not isinstance(outputType, ElementType):
        raise PoplarTypeError(f"{call}: outputType is an element type such as FLOAT, got {outputType!r}")
    for tensor in inputs[1:]:
        if tensor.shape() != inputs[0].shape():
            raise PoplibsError(f"{call}: the inputs have one shape, got {inputs[0]!r} and {tensor!r}")
    return output_like(graph, inputs, outputType, debugContext or "")


def output_like(graph: Graph, inputs: Sequence[Tensor], outputType: ElementType, debug: str) -> Tensor:
    """`createOutputForElementWiseOp` of inputs that are right."""
    fitting = [tensor for tensor in inputs if not tensor.containsAliases()]
    if not fitting and inputs[0].numElements() == 1:
        fitting = [inputs[0]]
    if fitting:
        return graph.clone(outputType, min(fitting, key=lambda tensor: _spread(graph, tensor)), debug)
    check_fits("the result of an operation on elements", graph.getTarget(), outputType, inputs[0].shape())
    output = graph.addVariable(outputType, inputs[0].shape(), debug)
    mapTensorLinearly(graph, output, 0, graph.getTarget().getVectorWidth(outputType))
    return output


def first_tile(graph: Graph, tensor: Tensor) -> int:
    """The first tile that holds elements of a tensor; 0 of an empty one, `InvalidTileMapping` where one has no tile."""
    _, _, tile = graph.mapped_pieces(tensor)
    return int(tile.min()) if len(tile) else 0


def _spread(graph: Graph, tensor: Tensor) -> tuple[int, int, int]:
    """How a tensor is spread: elements of the fullest tile, tiles (negative) and pieces."""
    simple, _ = graph.reorderToSimplify(tensor)
    regions = TileRegions.of(graph, simple)
    return regions.most(), -int(np.count_nonzero(regions.elements())), len(regions)
