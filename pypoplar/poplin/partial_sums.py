"""Adding up partial products, and rounding sums to the type of the result."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat, concat_slices
from pypoplar.poputil.placement.tiles_of_elements import TileRegions
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import ElementType


def add_partials(
    graph: Graph, partials: Tensor, result: ElementType, prog: Sequence, debug: str, out: Tensor | None = None
) -> Tensor:
    """The sum over dimension 0 of `partials`, FLOAT or HALF, as a tensor of type `result`; `prog` is extended.

    It is `out`, or a new tensor: a single partial is only converted, where it lies; the sum of several is spread over all tiles.
    """
    count, *shape = partials.shape()
    if out is not None:
        total = out
    elif count == 1:
        total = graph.clone(result, partials[0], debug)
    else:
        total = graph.addVariable(result, shape, debug)
        mapTensorLinearly(graph, total)
    cs = graph.addComputeSet(debug)
    add_where_sums_lie(graph, cs, partials, total)
    prog.add(Execute(cs))
    return total


def add_where_sums_lie(graph: Graph, cs: ComputeSet, partials: Tensor, total: Tensor) -> None:
    """Vertices of a compute set that add up `partials` over dimension 0, each element of `total` on its own tile."""
    rows, flat = partials.reshape([partials.dim(0), total.numElements()]), total.flatten()
    vertexType = templateVertex("poplin::ReduceAdd", total.elementType(), partials.elementType())
    for tile, begin, end in TileRegions.of(graph, total).by_tile():
        regions = list(zip(begin.tolist(), end.tolist(), strict=True))
        fields = {"partials": concat(rows.slices(regions, 1), 1), "out": concat_slices(flat, begin, end)}
        graph.setTileMapping(graph.addVertex(cs, vertexType, fields), tile)
