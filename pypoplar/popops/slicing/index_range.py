"""What is done before a lookup or an update with indices that may be out of range."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, stack
from pypoplar.popops import expr
from pypoplar.popops.elements.map_functions import map
from pypoplar.program import AbortOnCondition, Execute, Sequence
from pypoplar.types import INT, UNSIGNED_INT


def remapped(graph: Graph, indices: Tensor, bounds: list[int], prog: Sequence, debug: str) -> Tensor:
    """Indices whose last dimension has `bounds`, as a new tensor in which 0 stands for those that are not below their bound."""
    limits = graph.addConstant(UNSIGNED_INT, [len(bounds)], bounds, f"{debug}/bounds")
    graph.setTileMapping(limits, 0)
    inside = expr.Lt(expr._1, expr._2)
    chosen = expr.Select(expr._1, expr.Const(0, UNSIGNED_INT), inside)
    result = map(graph, chosen, [indices, limits], prog, f"{debug}/remapOutOfBoundIndices")
    assert isinstance(result, Tensor)
    return result


def validate(graph: Graph, indices: Tensor, bounds: list[int], prog: Sequence, debug: str) -> None:
    """End the run with an error if an index is not below its bound; the last dimension of the indices has `bounds`."""
    if indices.numElements() == 0:
        return
    rows = indices.reshape([-1, len(bounds)]).transpose()
    found, anywhere = graph.addComputeSet(f"{debug}/validateIndices"), graph.addComputeSet(f"{debug}/anyInvalid")
    flags: list[Tensor] = []
    for tile, regions in enumerate(graph.getTileMapping(rows[0])):
        if not regions:
            continue
        flag = graph.addVariable(INT, [], f"{debug}/invalid")
        own = stack([concat(row.slices(regions)) for row in rows])
        vertex = graph.addVertex(found, "popops::IndicesOutOfRange", {"indices": own, "bounds": bounds, "found": flag})
        graph.setTileMapping(flag, tile)
        graph.setTileMapping(vertex, tile)
        flags.append(flag)
    invalid = graph.addVariable(INT, [], f"{debug}/anyInvalid")
    graph.setTileMapping(invalid, 0)
    vertex = graph.addVertex(anywhere, "popops::AnyFound", {"found": stack(flags), "any": invalid})
    graph.setTileMapping(vertex, 0)
    prog.add(Sequence([Execute(found), Execute(anywhere), AbortOnCondition(invalid, f"{debug}: an index is out of range")]))
