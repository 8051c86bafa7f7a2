"""Operands that are broadcast along all dimensions of a tensor but one, mapped beside its elements."""

from __future__ import annotations

from math import prod

import numpy as np

from pypoplar.arrays.interval_algebra import keys, union
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_debug, check_flag, check_own, dimension_of
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces
from pypoplar.poputil.placement.use_tracking import TensorUseTracker
from pypoplar.poputil.tile_mapping import chooseMappingOffset, mapTensorLinearly, moved
from pypoplar.tracebacks import public
from pypoplar.types import ElementType, check_type


@public
def createBroadcastOperand(
    graph: Graph, fullTensor: Tensor, type: ElementType, dim: int, ditherMapping: bool = False, debugContext: str | None = None
) -> Tensor:
    """A new vector along one dimension of a tensor, each element on a tile that has elements of that index.

    So least is exchanged when the two are combined, as with a bias or a scale of channels.

    Parameters
    ----------
    fullTensor:
        The tensor, with tiles.
    type:
        The element type of the vector.
    dim:
        The dimension that the vector goes along.
    ditherMapping:
        Whether its tiles are moved on by a number that the shape of `fullTensor` decides.

    Returns
    -------
    Tensor
        A variable ``[fullTensor.dim(dim)]``; that of an empty tensor is mapped linearly.

    Raises
    ------
    PoplarIndexError
        For a dimension that there is not.
    """
    check_own("createBroadcastOperand", graph, fullTensor)
    check_type(type)
    check_flag("createBroadcastOperand", "ditherMapping", ditherMapping)
    check_debug("createBroadcastOperand", debugContext)
    dimension = dimension_of("createBroadcastOperand", "dim", fullTensor, dim)
    size = fullTensor.dim(dimension)
    begin, end, tile = mapped_pieces(graph, fullTensor)
    operand = graph.addVariable(type, [size], below(debugContext, "broadcastOperand"))
    if len(begin) == 0:
        mapTensorLinearly(graph, operand)
        return operand
    inner = prod(fullTensor.shape()[dimension + 1 :])
    first, last = begin // inner, (end - 1) // inner  # of indices that begin again after `size`
    low, high = first % size, last % size + 1
    whole, wraps = last - first + 1 >= size, low >= high
    low[whole], high[whole] = 0, size
    wraps &= ~whole
    parts = [(low[~wraps], high[~wraps], tile[~wraps]), (low[wraps], np.full(wraps.sum(), size), tile[wraps])]
    parts.append((np.zeros(wraps.sum(), np.int64), high[wraps], tile[wraps]))
    low, high, tile = (np.concatenate(column) for column in zip(*parts, strict=True))
    low, high = union(keys(tile, low, size + 1), keys(tile, high, size + 1))
    tile = low // (size + 1)
    first = int(operand.runs().start[0]) - tile * (size + 1)
    target = graph.getTarget()
    tracker = TensorUseTracker(target.getNumTiles())
    tracker.add_uses(operand, low + first, high + first, tile)
    grain = target.getDataPathWidth() // (8 * target.getTypeSize(type))
    tracker.mapTensorsByUse(graph, grain, 0, False, TensorUseTracker.MappingMethod.ConstrainMappingToUsedTiles)
    if ditherMapping:
        mapping = graph.getTileMapping(operand)
        graph.setTileMapping(operand, moved(mapping, chooseMappingOffset(len(mapping), fullTensor.shape())))
    return operand
