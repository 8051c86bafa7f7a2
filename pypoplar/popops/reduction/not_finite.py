"""Whether a tensor has a NaN, or an infinity."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.reduction.reduce_call import any_true
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, UNSIGNED_INT


@public
def hasNaN(graph: Graph, src: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """Whether an element of `src` is NaN; `prog` is extended.

    Parameters
    ----------
    src:
        FLOAT or HALF of any shape.

    Returns
    -------
    Tensor
        A new BOOL of shape [].

    Raises
    ------
    PoplibsError
        For another type.
    InvalidTileMapping
        If an element of `src` has no tile.
    """
    return _search("hasNaN", graph, src, prog, debugContext, infinities=False)


@public
def hasNaNOrInf(graph: Graph, src: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """Whether an element of `src` is NaN or infinite; `prog` is extended.

    Parameters
    ----------
    src:
        FLOAT or HALF of any shape.

    Returns
    -------
    Tensor
        A new BOOL of shape [].

    Raises
    ------
    PoplibsError
        For another type.
    InvalidTileMapping
        If an element of `src` has no tile.
    """
    return _search("hasNaNOrInf", graph, src, prog, debugContext, infinities=True)


def _search(name: str, graph: Graph, src: Tensor, prog: Sequence, debugContext: str | None, *, infinities: bool) -> Tensor:
    check_call(f"popops.{name}", graph, prog, debugContext)
    check_operands(f"popops.{name}", graph, src)
    if src.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"popops.{name} takes FLOAT or HALF, got {src!r}")
    vertex_type = templateVertex("popops::HasNaNOrInf", infinities, src.elementType())
    check_codelet(f"popops.{name}", graph, vertex_type)
    debug = below(debugContext, name)
    in_, _ = graph.reorderToSimplify(src)
    held = [(tile, regions) for tile, regions in enumerate(graph.getTileMapping(in_)) if regions]
    workers = graph.getTarget().getNumWorkerContexts()
    flags = graph.addVariable(UNSIGNED_INT, [len(held), workers], below(debug, "flags"))
    cs = graph.addComputeSet(debug)
    for row, (tile, regions) in enumerate(held):
        graph.setTileMapping(flags[row], tile)
        vertex = graph.addVertex(cs, vertex_type, {"in": concat(in_.slices(regions)), "out": flags[row]})
        graph.setTileMapping(vertex, tile)
    prog.add(Execute(cs))
    return any_true(f"popops.{name}", graph, flags.flatten(), prog, debug)
