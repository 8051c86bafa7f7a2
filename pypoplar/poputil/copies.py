"""Copies of tensors."""

from __future__ import annotations

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import check_call, check_debug, check_own, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@public
def duplicate(
    graph: Graph,
    in_: Tensor,
    p: Sequence,
    debugContext: str | None = None,
    method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
) -> Tensor:
    """A new tensor shaped and mapped like another, with its values.

    Parameters
    ----------
    in_:
        The tensor that is copied.
    p:
        The Sequence that is extended by the copy.
    method:
        Whether the order of elements in memory and elements that occur several times are kept.

    Returns
    -------
    Tensor
        A variable of the type and shape of `in_`.
    """
    check_call("poputil.duplicate", graph, p, debugContext)
    check_own("poputil.duplicate", graph, in_)
    copy = graph.clone(in_, debugContext or "", method)
    p.add(Copy(in_, copy))
    return copy


def apart(graph: Graph, tensor: Tensor, written: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """`tensor` if it has no element of `written`, else a copy of it: vertices read nothing that is written in their compute set."""
    return duplicate(graph, tensor, prog, debugContext) if shares_elements(graph, tensor, written) else tensor


def shares_elements(graph: Graph, tensor: Tensor, other: Tensor) -> bool:
    """Whether some element is in both."""
    if not set(tensor.variable_numbers()) & set(other.variable_numbers()):
        return False
    both = concat(tensor.flatten(), other.reinterpret(tensor.elementType()).flatten())  # elements of a variable have one size
    if not both.containsAliases():
        return False
    if not tensor.containsAliases() and not other.containsAliases():
        return True
    return _distinct(graph, both) < _distinct(graph, tensor) + _distinct(graph, other)


def _distinct(graph: Graph, tensor: Tensor) -> int:
    """How many different elements a tensor has."""
    regions = graph.getSortedContiguousRegions(tensor, [Interval(0, tensor.numElements())], removeAliasedIntervals=True)
    return sum(interval.size() for intervals in regions for interval in intervals)


@public
def cloneN(
    graph: Graph,
    t: Tensor,
    N: int,
    debugContext: str | None = None,
    method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
) -> Tensor:
    """Several new tensors shaped and mapped like another, stacked in a new first dimension.

    Parameters
    ----------
    t:
        The tensor.
    N:
        How many, 1 at least.
    method:
        Whether the order of elements in memory and elements that occur several times are kept.

    Returns
    -------
    Tensor
        ``[N, *shape]`` of the type of `t`.

    Raises
    ------
    PoplibsError
        For an N below 1.
    """
    check_own("poputil.cloneN", graph, t)
    check_debug("poputil.cloneN", debugContext)
    if whole_number("poputil.cloneN", "N", N) < 1:
        raise PoplibsError(f"cloneN makes at least one clone of {t!r}, got N = {N}")
    return graph.cloneN(t, N, debugContext or "", method)
