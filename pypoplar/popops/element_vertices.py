"""Vertices that work element by element: one on each tile that holds elements of the result, for its elements."""

from __future__ import annotations

from collections.abc import Mapping

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poputil.exceptions import PoplibsError


def add_element_vertices(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str,
    written: str,
    operands: Mapping[str, Tensor],
    *,
    edges: Mapping[str, Tensor] | None = None,
    values: Mapping[str, float | bool] | None = None,
) -> None:
    """Add a MultiVertex of `vertexType` to each tile that holds elements of ``operands[written]``.

    Operands have as many elements as the one that is written, in the same order, or a single one, which every vertex
    reads. `edges` are connected to every vertex as they are, `values` are plain fields.
    """
    out = operands[written]
    if not out.isParallelWriteable():
        raise PoplibsError(f"{out!r} cannot be written: it holds an element twice, or a constant")
    if out.numElements() == 0:
        return
    shared: dict[str, object] = {**(edges or {}), **(values or {})}
    single = {name: operand.flatten() for name, operand in operands.items() if operand.numElements() == 1 != out.numElements()}
    names = [name for name in operands if name not in single and name != written]
    # In the order of memory a tile's elements are one piece, whatever the view of them.
    out, others = graph.reorderToSimplify(out, [operands[name] for name in names])
    views = {written: out, **dict(zip(names, others, strict=True))}
    for tile, regions in enumerate(graph.getTileMapping(out)):
        if not regions:
            continue
        fields: dict[str, object] = {name: concat(view.slices(regions)) for name, view in views.items()}
        vertex = graph.addVertex(computeSet, vertexType, {**fields, **single, **shared})
        graph.setTileMapping(vertex, tile)
