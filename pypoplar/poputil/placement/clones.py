"""Clones of tensors on another IPU, in another graph, and with elements of their own."""

from __future__ import annotations

from itertools import pairwise

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, whole_variables
from pypoplar.poputil.arguments import check_debug, check_graph, check_own, check_prog, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.tile_mapping import calcLinearTileMappingAndNewOffset
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public

UNLESS_ALIASES = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES
AND_ALIASES = TensorCloneMethod.PRESERVE_ORDER_AND_ALIASES


@public
def cloneToIpu(
    graph: Graph, t: Tensor, dstIPU: int, debugContext: str | None = None, method: TensorCloneMethod = UNLESS_ALIASES
) -> Tensor:
    """A new tensor shaped like `t` on another IPU: each element on the tile with the same number there.

    Parameters
    ----------
    t:
        A tensor with tiles.
    dstIPU:
        The IPU, counted from 0.
    method:
        Whether the order of elements in memory and elements that occur several times are kept.

    Returns
    -------
    Tensor
        A variable of the type and shape of `t`.

    Raises
    ------
    PoplibsError
        If the target has no such IPU.
    """
    return _clone_to_ipu("cloneToIpu", graph, t, dstIPU, debugContext, method)


def _clone_to_ipu(call: str, graph: Graph, t: Tensor, ipu: int, debugContext: str | None, method: TensorCloneMethod) -> Tensor:
    check_own(call, graph, t)
    check_debug(call, debugContext)
    _check_method(call, method)
    number, target = whole_number(call, "dstIPU", ipu), graph.getTarget()
    if number >= target.getNumIPUs():
        raise PoplibsError(f"{call}: dstIPU is {number}, and the target has {target.getNumIPUs()} IPUs, from 0 on")
    per_ipu = target.getTilesPerIPU()
    all_here = graph.getTopLevelGraph() is graph and not graph.elements_without_tile(t)
    graph.getTileMapping(t.flatten().slice(0, 0) if all_here else t)  # says what has no tile here; quickly, where all have one
    clone = graph.clone(t, debugContext or "", method)
    for variable in whole_variables(clone):  # in memory there are fewer pieces than in the order of the view
        begin, end, tile = graph.mapped_pieces(variable)
        graph.place_pieces(variable, begin, end, number * per_ipu + tile % per_ipu)
    return clone


@public
def cloneToGraph(
    srcGraph: Graph,
    dstGraph: Graph,
    t: Tensor,
    debugContext: str | None = None,
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> Tensor:
    """A new tensor shaped like `t` on the tiles of another part of a graph.

    Parameters
    ----------
    srcGraph:
        The part in which `t` is mapped.
    dstGraph:
        The other part; both are parts of one graph, made by `Graph.createVirtualGraph`.
    t:
        A tensor with tiles.
    method:
        Whether the order of elements in memory and elements that occur several times are kept.

    Returns
    -------
    Tensor
        Of the type and shape of `t`, each element on the tile of `dstGraph` whose number it has in `srcGraph`.

    Raises
    ------
    PoplibsError
        For parts of different graphs, and if `dstGraph` has not so many tiles.
    """
    check_own("cloneToGraph", srcGraph, t)
    check_graph("cloneToGraph", dstGraph)
    check_debug("cloneToGraph", debugContext)
    _check_method("cloneToGraph", method)
    if srcGraph.getTopLevelGraph() is not dstGraph.getTopLevelGraph():
        raise PoplibsError(f"cloneToGraph: the graphs to clone {t!r} from and to are no parts of one graph")
    mapping, tiles = srcGraph.getTileMapping(t), dstGraph.getTarget().getNumTiles()
    last = max((tile for tile, intervals in enumerate(mapping) if intervals), default=0)
    if last >= tiles:
        raise PoplibsError(f"cloneToGraph: {t!r} has elements on tile {last}, and the graph to clone it to has {tiles} tiles")
    clone = srcGraph.clone(t, debugContext or "", method)
    dstGraph.setTileMapping(clone, list(mapping[: last + 1]))
    return clone


@public
def cloneAndExpandAliasing(graph: Graph, t: Tensor, offset: int = 0, debugContext: str | None = None) -> tuple[Tensor, int]:
    """A new tensor shaped and mapped like `t` that has an element of its own wherever `t` has one again.

    Those are mapped linearly, so that a tile whose element is broadcast does not hold all of them.

    Parameters
    ----------
    t:
        A tensor with tiles.
    offset:
        The first tile for what `t` has again.

    Returns
    -------
    tuple[Tensor, int]
        The tensor, and the tile behind the last one used so, which is `offset` for a tensor without aliases.
    """
    check_own("cloneAndExpandAliasing", graph, t)
    check_debug("cloneAndExpandAliasing", debugContext)
    first = whole_number("cloneAndExpandAliasing", "offset", offset)
    again = _repeated(graph, t.flatten())
    if not again:
        return graph.clone(t, debugContext or ""), first
    clone = graph.clone(t, debugContext or "", TensorCloneMethod.CREATE_NEW_ORDER)
    expanded = concat(clone.flatten().slices(again))
    mapping, behind = calcLinearTileMappingAndNewOffset(graph, expanded, first)
    graph.setTileMapping(expanded, mapping)
    return clone, behind


def _repeated(graph: Graph, t: Tensor) -> list[Interval]:
    """The intervals of a flat tensor whose elements occur elsewhere in it, too: of each element all but one occurrence."""
    if not t.containsAliases():
        return []
    kept = sorted(interval for regions in graph.getSortedContiguousRegions(t, [(0, t.numElements())], True) for interval in regions)
    behind = [Interval(0, 0), *kept, Interval(t.numElements(), t.numElements())]
    return [Interval(low.end(), high.begin()) for low, high in pairwise(behind) if low.end() < high.begin()]


@public
def createIpuCopy(
    graph: Graph, t: Tensor, dstIpu: int, debugContext: str | None = None, method: TensorCloneMethod = AND_ALIASES
) -> tuple[Tensor, Tensor, Tensor]:
    """A clone of a tensor on another IPU, and what to copy into what; no copy is added to a program.

    Parameters
    ----------
    t:
        A tensor with tiles.
    dstIpu:
        The IPU, counted from 0.
    method:
        Whether the order of elements in memory and elements that occur several times are kept.

    Returns
    -------
    tuple[Tensor, Tensor, Tensor]
        The clone, and source and destination of the copy. Where the clone has the aliases of `t`, these two hold each element
        once.

    Raises
    ------
    PoplibsError
        If the target has no such IPU.
    """
    return _ipu_copy("createIpuCopy", graph, t, dstIpu, debugContext, method)


def _ipu_copy(
    call: str, graph: Graph, t: Tensor, ipu: int, debugContext: str | None, method: TensorCloneMethod
) -> tuple[Tensor, Tensor, Tensor]:
    clone = _clone_to_ipu(call, graph, t, ipu, debugContext, method)
    if not method.name.endswith("AND_ALIASES") or t.numElements() == 0:
        return clone, t, clone
    regions = graph.getSortedContiguousRegions(t.flatten(), [(0, t.numElements())], True)
    once = [interval for several in regions for interval in several]
    return clone, concat(t.flatten().slices(once)), concat(clone.flatten().slices(once))


@public
def copyToIpu(
    masterGraph: Graph,
    t: Tensor,
    prog: Sequence,
    dstIPU: int,
    debugContext: str | None = None,
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> Tensor:
    """A clone of a tensor on another IPU with its values: `prog` is extended by the copy.

    Parameters
    ----------
    masterGraph:
        The graph.
    t:
        A tensor with tiles.
    dstIPU:
        The IPU, counted from 0.
    method:
        Whether the order of elements in memory and elements that occur several times are kept.

    Returns
    -------
    Tensor
        A variable of the type and shape of `t`.

    Raises
    ------
    PoplibsError
        If the target has no such IPU.
    """
    check_prog("copyToIpu", prog)
    clone, source, destination = _ipu_copy("copyToIpu", masterGraph, t, dstIPU, debugContext, method)
    prog.add(Copy(source, destination, False, debugContext or ""))
    return clone


def _check_method(call: str, method: object) -> None:
    if not isinstance(method, TensorCloneMethod):
        raise PoplibsError(f"{call}: how to clone is a TensorCloneMethod, got {method!r}")
