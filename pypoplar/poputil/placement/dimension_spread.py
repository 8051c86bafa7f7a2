"""Whether a dimension of a tensor lies on several tiles, or on several IPUs."""

from __future__ import annotations

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_own, dimension_of
from pypoplar.poputil.placement.tiles_of_elements import tiles_of_elements
from pypoplar.tracebacks import public


@public
def dimIsSplitOverTiles(graph: Graph, t: Tensor, dimension: int) -> bool:
    """Whether elements of `t` that differ in this dimension alone lie on different tiles.

    Parameters
    ----------
    t:
        The tensor, with tiles.
    dimension:
        The dimension.

    Returns
    -------
    bool
        False for a dimension of size 1.

    Raises
    ------
    PoplarIndexError
        For a dimension that `t` does not have.
    """
    check_own("dimIsSplitOverTiles", graph, t)
    return _changes(tiles_of_elements(graph, t), dimension_of("dimIsSplitOverTiles", "dimension", t, dimension))


@public
def dimIsSplitOverIPUs(graph: Graph, t: Tensor, dimension: int) -> bool:
    """Whether elements of `t` that differ in this dimension alone lie on different IPUs.

    Parameters
    ----------
    t:
        The tensor, with tiles.
    dimension:
        The dimension.

    Returns
    -------
    bool
        False for a dimension of size 1.

    Raises
    ------
    PoplarIndexError
        For a dimension that `t` does not have.
    """
    check_own("dimIsSplitOverIPUs", graph, t)
    tiles = tiles_of_elements(graph, t)
    return _changes(tiles // graph.getTarget().getTilesPerIPU(), dimension_of("dimIsSplitOverIPUs", "dimension", t, dimension))


def _changes(places: Int64s, dimension: int) -> bool:
    return bool((places != places.take(range(min(1, places.shape[dimension])), dimension)).any())
