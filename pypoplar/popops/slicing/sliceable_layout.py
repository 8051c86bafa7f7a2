"""Layouts that make slices local: all rows of the sliced dimensions lie on the tile that holds their elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.blocks import of_blocks, permuted
from pypoplar.popops.slicing.slice_arguments import Extent
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.tile_mapping import mapTensorLinearlyWithOffset
from pypoplar.types import ElementType

ATOM = 4  # bytes that a store writes at least


def start_tile(graph: Graph, *shapes: Sequence[int]) -> int:
    """The first tile of a layout: another for other shapes, so that tensors do not all begin on tile 0."""
    number = 0
    for shape in shapes:
        for size in (len(shape), *shape):
            number = (number * 1000003 + size + 1) % (1 << 61)
    return number % graph.getTarget().getNumTiles()


def sliceable_tensor(
    graph: Graph, type: ElementType, extent: Extent, order: Sequence[int], grain: int, first: int, name: str
) -> Tensor:
    """A variable whose tiles hold all rows, in the `order` of the sliced dimensions, of some unsliced elements each.

    A tile has `grain` of these at least; the first is tile `first`.
    """
    tiles = graph.getTarget().getNumTiles()
    if not extent.dims or prod(extent.shape) == 0:
        tensor = graph.addVariable(type, list(extent.shape), name)
        mapTensorLinearlyWithOffset(graph, tensor, first)
        return tensor
    share = max(ceiling(extent.unsliced, tiles), grain)
    atom = ATOM // type.size if type.size < ATOM else 1
    if len(extent.dims) == 1 and grain >= atom > 1:
        share = ceiling(share, atom) * atom
    sliced = [extent.dims[place] for place in order]
    rows = [extent.shape[dim] for dim in sliced]
    tensor = graph.addVariable(type, [prod(rows) * extent.unsliced], name)
    place = np.arange(ceiling(extent.unsliced, share))
    begin, end = (np.minimum(bound * share, extent.unsliced) * prod(rows) for bound in (place, place + 1))
    graph.place_pieces(tensor, begin, end, (first + place) % tiles)
    columns = of_blocks(tensor, [*rows, extent.unsliced], [*rows, share])
    back = [*sliced, *extent.kept]
    view = columns.reshape([extent.shape[dim] for dim in back])
    return permuted(view, [back.index(dim) for dim in range(len(back))])
