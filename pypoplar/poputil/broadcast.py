"""Broadcasting as NumPy does it: shapes are aligned at their last dimension, dimensions of size 1 are repeated."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, overload

from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_tensor, shape_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public


def broadcast_shape(*shapes: list[int]) -> list[int] | None:
    """The shape that all `shapes` can be broadcast to; None if there is none."""
    result = []
    for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return result[::-1]


@public
def canBroadcastToMatch(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have a common shape that NumPy's rules broadcast them to.

    Parameters
    ----------
    a, b:
        The tensors.

    Returns
    -------
    bool
        Whether `broadcastToMatch` takes the two.
    """
    for tensor in (a, b):
        check_tensor("poputil.canBroadcastToMatch", tensor)
    return broadcast_shape(a.shape(), b.shape()) is not None


@public
def expandToMatchRanks(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both tensors with dimensions of size 1 in front of the one of lower rank.

    Parameters
    ----------
    a, b:
        The tensors.

    Returns
    -------
    tuple[Tensor, Tensor]
        Views of one rank.
    """
    for tensor in (a, b):
        check_tensor("poputil.expandToMatchRanks", tensor)
    rank = max(a.rank(), b.rank())
    return a.expand([0] * (rank - a.rank())), b.expand([0] * (rank - b.rank()))


@overload
def broadcastToMatch(a: Tensor, shape: Iterable[int], /) -> Tensor: ...
@overload
def broadcastToMatch(a: Tensor, b: Tensor, /) -> tuple[Tensor, Tensor]: ...
@overload
def broadcastToMatch(a: Tensor, b: Tensor, c: Tensor, /) -> tuple[Tensor, Tensor, Tensor]: ...
@public
def broadcastToMatch(a: Tensor, *others: Any) -> Tensor | tuple[Tensor, ...]:
    """Views of two or three tensors in their common shape, or of one tensor in a shape that is given, as NumPy broadcasts.

    C++ changes its arguments; here the views are returned.

    Parameters
    ----------
    a:
        The first tensor.
    *others:
        One or two tensors; or a shape.

    Returns
    -------
    Tensor | tuple[Tensor, ...]
        A view of each tensor; of `a` alone with a shape.

    Raises
    ------
    PoplibsError
        For shapes without a common one, and a shape that `a` is not broadcast to.

    Examples
    --------
    >>> from pypoplar import FLOAT, Graph, IPUModel, poputil
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> row, column = graph.addVariable(FLOAT, [3]), graph.addVariable(FLOAT, [2, 1])
    >>> a, b = poputil.broadcastToMatch(row, column)
    >>> a.shape(), b.shape()
    ([2, 3], [2, 3])
    """
    check_tensor("poputil.broadcastToMatch", a)
    if len(others) == 1 and not isinstance(others[0], Tensor):
        shape = list(shape_of("poputil.broadcastToMatch", others[0]))
        if broadcast_shape(a.shape(), shape) != shape:
            raise PoplibsError(f"poputil.broadcastToMatch cannot broadcast {a!r} to the shape {shape}")
        return _broadcast(a, shape)
    tensors = (a, *others)
    for tensor in tensors:
        check_tensor("poputil.broadcastToMatch", tensor)
    common = broadcast_shape(*(tensor.shape() for tensor in tensors))
    if common is None:
        raise PoplibsError(f"poputil.broadcastToMatch cannot broadcast {' and '.join(map(repr, tensors))} to a common shape")
    return tuple(_broadcast(tensor, common) for tensor in tensors)


def _broadcast(tensor: Tensor, shape: list[int]) -> Tensor:
    tensor = tensor.expand([0] * (len(shape) - tensor.rank()))
    for dimension, size in enumerate(shape):
        if tensor.dim(dimension) != size:
            tensor = tensor.broadcast(size, dimension)
    return tensor
