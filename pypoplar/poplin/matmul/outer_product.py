"""Products of a column and a row."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import ElementType


def outer_product(graph: Graph, a: Tensor, b: Tensor, result: ElementType, prog: Sequence, debug: str | None) -> Tensor:
    """A new tensor [rows, columns] with the product of `a` [rows, 1] and `b` [1, columns]; `prog` is extended.

    The result is mapped linearly, as variables of its shape mostly are, and each element is computed where it lives:
    one compute set, and what follows element by element exchanges nothing.
    """
    out = graph.addVariable(result, [a.dim(0), b.dim(1)], below(debug, "out"))
    mapTensorLinearly(graph, out)
    column, row, flat, columns = a.flatten(), b.flatten(), out.flatten(), b.dim(1)
    vertexType = templateVertex("poplin::OuterProduct", a.elementType(), result)
    cs = graph.addComputeSet(below(debug, "matMul"))
    for tile, regions in enumerate(graph.getTileMapping(flat)):
        for begin, end in regions:
            while begin < end:
                index, left = divmod(begin, columns)
                right = min(columns, left + end - begin)
                fields = {
                    "a": column[index],
                    "b": row.slice(left, right),
                    "out": flat.slice(begin, begin + right - left),
                }
                graph.setTileMapping(graph.addVertex(cs, vertexType, fields), tile)
                begin += right - left
    prog.add(Execute(cs))
    return out
