"""Tensors that are laid out for transfers to and from the host."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import overload

from attrs import frozen

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.slice_arguments import whole_number
from pypoplar.poputil.arguments import element_type, shape_of
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public
from pypoplar.types import UNSIGNED_INT, ElementType

PACKET_BYTES = 1024


@public
@frozen
class IndicesAndTensor:
    """A matrix for rows of a remote buffer, with their indices; given by `createHostSliceableTensor`.

    Attributes
    ----------
    indices:
        UNSIGNED_INT [rows].
    tensor:
        The matrix [rows, columns].
    """

    indices: Tensor
    tensor: Tensor


@overload
def createHostSliceableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], isRead: bool, debugContext: str | None = None
) -> IndicesAndTensor: ...
@overload
def createHostSliceableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], isRead: bool, offset: int, debugContext: str | None = None
) -> IndicesAndTensor: ...
@overloaded("popops.createHostSliceableTensor")
def createHostSliceableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], isRead: bool, offset: int = 0, debugContext: str | None = None
) -> IndicesAndTensor:
    """A new matrix whose rows are transferred one by one, with the indices of the rows.

    Rows are cut into packets of 1024 bytes, which are spread evenly over the tiles.

    Parameters
    ----------
    type:
        The element type.
    shape:
        [rows, columns].
    isRead:
        Whether the device reads the rows; the layout is the same.
    offset:
        Bytes that others have transferred already: the tiles that have a packet more are those after theirs.

    Returns
    -------
    IndicesAndTensor
        The matrix and its UNSIGNED_INT indices [rows], with tiles.

    Raises
    ------
    PoplibsError
        For another rank, a negative offset, and a target of several IPUs.
    """
    return _laid_out("popops.createHostSliceableTensor", graph, type, shape, offset, debugContext)


@overload
def createHostTransferableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], isRead: bool, debugContext: str | None = None
) -> Tensor: ...
@overload
def createHostTransferableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], isRead: bool, offset: int, debugContext: str | None = None
) -> Tensor: ...
@overloaded("popops.createHostTransferableTensor")
def createHostTransferableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], isRead: bool, offset: int = 0, debugContext: str | None = None
) -> Tensor:
    """A new tensor that is transferred as a whole, in packets of 1024 bytes that are spread evenly over the tiles.

    Parameters
    ----------
    type:
        The element type.
    shape:
        Any shape.
    isRead:
        Whether the device reads the tensor; the layout is the same.
    offset:
        Bytes that others have transferred already: the tiles that have a packet more are those after theirs.

    Returns
    -------
    Tensor
        A variable of that shape, with tiles.

    Raises
    ------
    PoplibsError
        For a negative offset, and a target of several IPUs.
    """
    call = "popops.createHostTransferableTensor"
    extents = shape_of(call, shape)
    whole = _laid_out(call, graph, type, (1, prod(extents)), offset, debugContext)
    return whole.tensor.reshape(extents)


def _laid_out(
    call: str, graph: Graph, type: ElementType, shape: Iterable[int], offset: int, debugContext: str | None
) -> IndicesAndTensor:
    element, extents, skipped = element_type(call, type), shape_of(call, shape), whole_number(call, "offset", offset)
    target = graph.getTarget()
    if len(extents) != 2:
        raise PoplibsError(f"{call}: a tensor that is sliced by the host has two dimensions, got the shape {list(extents)}")
    if target.getNumIPUs() != 1:
        raise PoplibsError(f"{call} is for targets of one IPU, got one of {target.getNumIPUs()}")
    rows, width = extents
    packet = PACKET_BYTES // element.size
    tensor = graph.addVariable(element, list(extents), below(debugContext, "hostSliceable"))
    indices = graph.addVariable(UNSIGNED_INT, [rows], below(debugContext, "hostSliceIndices"))
    pieces = [(row, begin, min(begin + packet, width)) for row in range(rows) for begin in range(0, width, packet)]
    tiles = target.getNumTiles()
    first = ceiling(skipped, PACKET_BYTES) % tiles
    mapping: dict[int, list[Interval]] = {}
    tile_of_row = dict.fromkeys(range(rows), first)
    place = 0
    for number in range(tiles):
        tile = (first + number) % tiles
        count = len(pieces) // tiles + (number < len(pieces) % tiles)
        for row, begin, end in pieces[place : place + count]:
            mapping.setdefault(tile, []).append(Interval(row * width + begin, row * width + end))
            if begin == 0:
                tile_of_row[row] = tile
        place += count
    graph.setTileMapping(tensor, mapping)
    by_tile: dict[int, list[Interval]] = {}
    for row, tile in tile_of_row.items():
        by_tile.setdefault(tile, []).append(Interval(row, row + 1))
    graph.setTileMapping(indices, by_tile)
    return IndicesAndTensor(indices, tensor)
