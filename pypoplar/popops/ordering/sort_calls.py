"""`popops.sort` and its kin: what PopLibs keeps beside top-k."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.ordering.topk_call import TYPES, SortOrder, TopKParams, topK, topKKeyValue
from pypoplar.poputil.arguments import check_call, check_operands, check_own, check_writeable, dimension_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@public
def sort(graph: Graph, t: Tensor, dim: int, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """A new tensor with the elements of `t` in ascending order along a dimension; `prog` is extended.

    Parameters
    ----------
    t:
        FLOAT, HALF, INT or UNSIGNED_INT.
    dim:
        The dimension whose elements are put in order.

    Returns
    -------
    Tensor
        Of the shape and type of `t`. NaN is larger than all else.

    Raises
    ------
    PoplibsError
        For another type.
    PoplarIndexError
        For a dimension that `t` does not have.

    Notes
    -----
    A `topK` of all elements of the dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"ordered": popops.sort(graph, x, 0, prog)}
    >>> testing.run(compute, {"x": np.float32([3, 1, 2])})["ordered"]
    array([1., 2., 3.], dtype=float32)
    """
    dimension = _check("popops.sort", graph, t, t, dim, prog, debugContext)
    return _sorted(graph, t, dimension, prog, debugContext)


@public
def sortInPlace(graph: Graph, t: Tensor, dim: int, prog: Sequence, debugContext: str | None = None) -> None:
    """Put the elements of `t` in ascending order along a dimension, NaN as the largest; `prog` is extended.

    Parameters
    ----------
    t:
        FLOAT, HALF, INT or UNSIGNED_INT, which is written.
    dim:
        The dimension whose elements are put in order.

    Raises
    ------
    PoplibsError
        For another type, and if `t` holds an element twice or a constant.
    PoplarIndexError
        For a dimension that `t` does not have.
    """
    dimension = _check("popops.sortInPlace", graph, t, t, dim, prog, debugContext, written=True)
    prog.add(Copy(_sorted(graph, t, dimension, prog, debugContext), t))


@public
def sortKeyValue(graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """A new tensor with the elements of `v` in the order that sorts `k` along a dimension; `prog` is extended.

    NaN is the largest key. In which order values of equal keys stand is open.

    Parameters
    ----------
    k:
        The keys: FLOAT, HALF, INT or UNSIGNED_INT.
    v:
        The values, of one of these types and the shape of `k`.
    dim:
        The dimension along which keys are compared.

    Returns
    -------
    Tensor
        Of the shape and type of `v`.

    Raises
    ------
    PoplibsError
        For another type, and for two shapes.
    PoplarIndexError
        For a dimension that `k` does not have.
    """
    dimension = _check("popops.sortKeyValue", graph, k, v, dim, prog, debugContext)
    return _sorted_pair(graph, k, v, dimension, prog, debugContext)[1]


@public
def sortKeyValueInPlace(graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, debugContext: str | None = None) -> None:
    """Put the elements of `k` in ascending order along a dimension, and those of `v` in theirs; `prog` is extended.

    NaN is the largest key.

    Parameters
    ----------
    k:
        The keys: FLOAT, HALF, INT or UNSIGNED_INT, which are written.
    v:
        The values, of one of these types and the shape of `k`, which are written.
    dim:
        The dimension along which keys are compared.

    Raises
    ------
    PoplibsError
        For another type, for two shapes, and if either holds an element twice or a constant.
    PoplarIndexError
        For a dimension that `k` does not have.
    """
    dimension = _check("popops.sortKeyValueInPlace", graph, k, v, dim, prog, debugContext, written=True)
    keys, values = _sorted_pair(graph, k, v, dimension, prog, debugContext)
    prog.add(Copy(keys, k))
    prog.add(Copy(values, v))


def _check(
    call: str, graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, debugContext: str | None, written: bool = False
) -> int:
    check_call(call, graph, prog, debugContext)
    named = {"t": k} if k is v else {"k": k, "v": v}
    check_own(call, graph, **named)
    for tensor in (k, v):
        if tensor.elementType() not in TYPES:
            raise PoplibsError(f"{call} takes FLOAT, HALF, INT or UNSIGNED_INT, got {tensor!r}")
        if written:
            check_writeable(call, tensor)
    check_operands(call, graph, **named)
    if k.shape() != v.shape():
        raise PoplibsError(f"{call}: keys and values have one shape, got {k!r} and {v!r}")
    return dimension_of(call, "dim", k, dim)


def _ascending(t: Tensor, dimension: int) -> TopKParams:
    return TopKParams(t.dim(dimension), True, SortOrder.ASCENDING)


def _sorted(graph: Graph, t: Tensor, dimension: int, prog: Sequence, debugContext: str | None) -> Tensor:
    last = t.rank() - 1
    result = topK(graph, prog, t.dimRoll(dimension, last), _ascending(t, dimension), below(debugContext, "sort"))
    return result.dimRoll(last, dimension)


def _sorted_pair(
    graph: Graph, k: Tensor, v: Tensor, dimension: int, prog: Sequence, debugContext: str | None
) -> tuple[Tensor, Tensor]:
    last = k.rank() - 1
    rolled = k.dimRoll(dimension, last), v.dimRoll(dimension, last)
    keys, values = topKKeyValue(graph, prog, *rolled, _ascending(k, dimension), below(debugContext, "sort"))
    return keys.dimRoll(last, dimension), values.dimRoll(last, dimension)
