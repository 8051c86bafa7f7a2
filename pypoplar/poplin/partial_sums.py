"""Adding up partial products, and rounding sums to the type of the result."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import ElementType


def add_partials(graph: Graph, partials: Tensor, result: ElementType, prog: Sequence, debug: str) -> Tensor:
    """The sum over dimension 0 of `partials` (FLOAT), as a new tensor of type `result`; `prog` is extended.

    A single partial is only rounded, where it lives; the sum of several is spread over all tiles.
    """
    count, *shape = partials.shape()
    rows = partials.reshape([count, partials.numElements() // count])
    if count == 1:
        total = graph.clone(result, partials[0], debug)
    else:
        total = graph.addVariable(result, shape, debug)
        mapTensorLinearly(graph, total)
    cs = graph.addComputeSet(debug)
    flat = total.flatten()
    for tile, regions in enumerate(graph.getTileMapping(total)):
        if not regions:
            continue
        fields = {"partials": concat(rows.slices(regions, 1), 1), "out": concat(flat.slices(regions))}
        graph.setTileMapping(graph.addVertex(cs, templateVertex("poplin::ReduceAdd", result), fields), tile)
    prog.add(Execute(cs))
    return total
