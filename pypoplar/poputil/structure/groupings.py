"""Groups of elements that lie together in memory and on a tile."""

from __future__ import annotations

from math import gcd

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_own
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public

GroupingInfo = tuple[int, int]  # the grouped dimension and the size of its groups


@public
def detectInnermostGrouping(graph: Graph, t: Tensor) -> int:
    """How many neighbours in the last dimension lie behind each other in memory and on one tile.

    Judged by the first row alone.

    Parameters
    ----------
    t:
        A tensor with tiles, of one dimension at least.

    Returns
    -------
    int
        A number that divides the last dimension; 1 if none lie so.

    Raises
    ------
    PoplibsError
        For a scalar.
    InvalidTileMapping
        For a tensor without a mapping.
    """
    check_own("detectInnermostGrouping", graph, t)
    if t.rank() == 0:
        raise PoplibsError(f"detectInnermostGrouping: {t!r} is a scalar, and has no last dimension")
    if t.numElements() == 0:
        return 1
    return _of_row(graph, t[(0,) * (t.rank() - 1)] if t.rank() > 1 else t)


def _of_row(graph: Graph, row: Tensor) -> int:
    together = row.getContiguousRegions()[0].size()
    begin, end, _ = graph.mapped_pieces(row)
    on_a_tile = int((end - begin).max())
    grouping = gcd(on_a_tile, together)
    return grouping if row.numElements() % grouping == 0 else 1


@public
def detectDimGroupings(graph: Graph, t: Tensor) -> list[GroupingInfo]:
    """How elements are grouped in memory, from the innermost groups outwards.

    A dimension may occur more than once. Of a matrix in row-major order, on one tile, the groups are those of its columns and
    then of its rows.

    Parameters
    ----------
    t:
        A tensor with tiles, of one dimension at least.

    Returns
    -------
    list[GroupingInfo]
        Pairs of a dimension and the size of its groups.

    Raises
    ------
    PoplibsError
        For a scalar.
    """
    check_own("detectDimGroupings", graph, t)
    if t.rank() == 0:
        raise PoplibsError(f"detectDimGroupings: {t!r} is a scalar, and has no dimensions")
    found: list[GroupingInfo] = []
    total, rank, grouped = 1, t.rank(), t
    while t.numElements():
        dimension, grouping = _innermost(graph, grouped, rank, total)
        if grouping == 1:
            break
        found.append((dimension, grouping))
        total *= grouping
        split = [grouped.dim(dimension) // grouping, grouping]
        grouped = grouped.reshapePartial(dimension, dimension + 1, split).dimRoll(dimension + 1, rank)
    return found


def innermost_grouping(graph: Graph, t: Tensor) -> GroupingInfo:
    """The first of `detectDimGroupings`, of size 1 if there is none: of a tensor with elements and dimensions."""
    return _innermost(graph, t, t.rank(), 1)


def _innermost(graph: Graph, grouped: Tensor, rank: int, total: int) -> GroupingInfo:
    """The dimension that has the largest groups beyond the `total` elements of those that are the dimensions from `rank` on."""
    sizes = [_grouping(graph, grouped, dimension, rank, total) for dimension in range(rank)]
    largest = max(sizes)
    return sizes.index(largest), largest


def _grouping(graph: Graph, grouped: Tensor, dimension: int, rank: int, total: int) -> int:
    """The groups of a dimension, beyond the `total` elements of the groups that are the dimensions from `rank` on."""
    if grouped.dim(dimension) == 1:
        return 1
    row = grouped
    for other in range(rank):
        if other != dimension:
            row = row.slice(0, 1, other)
    size = _of_row(graph, row.flatten())
    return 1 if size % total else gcd(size // total, grouped.dim(dimension))
