"""`popops.pad`: views of a tensor with elements added at its ends, or cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import overload

import numpy as np

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.padding import MappingMethod, Type
from pypoplar.poputil.arguments import check_operands, check_own, dimension_of, shape_of
from pypoplar.poputil.broadcast import broadcastToMatch
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.largest_tensor import check_fits
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.tiles_of_elements import place_on, tiles_of_elements
from pypoplar.types import BOOL

Padding = Callable[[Tensor, int, int, bool], Tensor]  # what is added to a tensor: in this dimension, so much, at its lower end
ZERO = MappingMethod.ZERO


@overload
def pad(
    graph: Graph,
    t: Tensor,
    paddingLower: Sequence[int],
    paddingUpper: Sequence[int],
    val: float | bool | Tensor = 0.0,
    mappingMethod: MappingMethod = ZERO,
) -> Tensor: ...
@overload
def pad(
    graph: Graph,
    t: Tensor,
    paddingLower: int,
    paddingUpper: int,
    dim: int,
    val: float | bool | Tensor = 0.0,
    mappingMethod: MappingMethod = ZERO,
) -> Tensor: ...
@overload
def pad(t: Tensor, paddingLower: Sequence[int], paddingUpper: Sequence[int], type: Type) -> Tensor: ...
@overload
def pad(t: Tensor, paddingLower: int, paddingUpper: int, dim: int, type: Type) -> Tensor: ...
@overloaded("popops.pad")
def pad(
    t: Tensor,
    paddingLower: int | Sequence[int],
    paddingUpper: int | Sequence[int],
    graph: Graph | None = None,
    dim: int | None = None,
    val: float | bool | Tensor = 0.0,
    mappingMethod: MappingMethod = ZERO,
    type: Type | None = None,
) -> Tensor:
    """A view of `t` with so many elements more at the lower and upper ends of its dimensions, or less for negative numbers.

    No elements are copied. Without a graph, what is added are elements of `t` again; with one, it is a value.

    Parameters
    ----------
    t:
        The tensor that is padded.
    paddingLower, paddingUpper:
        A number of elements for each dimension; or, with `dim`, one number. Negative ones cut off.
    dim:
        The only dimension that is padded.
    val:
        What is added: a constant of the type of `t`, or a tensor of one element of that type, which every element of the
        padding then is.
    mappingMethod:
        Where a constant lies: on no tile, on tile 0, or beside the nearest element.
    type:
        Which elements of `t` are added: those at the edge, or those that are reflected in it.

    Returns
    -------
    Tensor
        A view of `t`, of its type.

    Raises
    ------
    PoplibsError
        Where more is cut off than there is, where REFLECT needs more elements than there are, for EDGE without elements, and
        for a `val` of several elements or another type.
    PoplarTypeError
        For a `val` that the type does not have.
    PoplarIndexError
        For a `dim` that `t` does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x):
    ...     wider = popops.pad(graph, x, [1], [2], 7)
    ...     mirrored = popops.pad(x, [0], [2], popops.padding.Type.REFLECT)
    ...     return program.Sequence(), {"wider": wider, "mirrored": mirrored}
    >>> result = testing.run(compute, {"x": np.int32([1, 2, 3])})
    >>> result["wider"].tolist(), result["mirrored"].tolist()
    ([7, 1, 2, 3, 7, 7], [1, 2, 3, 2, 1])
    """
    lower, upper = _amounts(t, dim, paddingLower, paddingUpper)
    for dimension in range(t.rank()):
        _check_amounts(t, dimension, lower[dimension], upper[dimension], type, mappingMethod)
    if isinstance(val, Tensor) and (val.numElements(), val.elementType()) != (1, t.elementType()):
        raise PoplibsError(f"popops.pad: val is one {t.elementType()!r}, as {t!r} has, got {val!r}")
    if graph is not None:
        check_own("popops.pad", graph, t, *([val] if isinstance(val, Tensor) else []))
        if mappingMethod is MappingMethod.EDGE:
            check_operands("popops.pad", graph, t)
    if isinstance(val, bool | np.bool_) and t.elementType() is not BOOL:
        raise PoplarTypeError(f"popops.pad: val is a number or a tensor, got {val!r}")
    padded = shape_of("popops.pad", [t.dim(place) + lower[place] + upper[place] for place in range(t.rank())])
    if graph is not None and not isinstance(val, Tensor):
        check_fits("popops.pad: the constant that is added", graph.getTarget(), t.elementType(), [prod(padded) - t.numElements()])
    padding = _of_elements(type) if graph is None else _of_value(graph, val, mappingMethod)
    for dimension in range(t.rank()):
        t = _padded(t, dimension, lower[dimension], upper[dimension], padding)
    return t


def _amounts(t: Tensor, dim: int | None, lower: int | Sequence[int], upper: int | Sequence[int]) -> tuple[list[int], list[int]]:
    """What is added at both ends of each dimension."""
    if dim is not None:
        assert not isinstance(lower, Sequence)
        assert not isinstance(upper, Sequence)
        dimension = dimension_of("popops.pad", "dim", t, dim)
        return tuple([amount * (place == dimension) for place in range(t.rank())] for amount in map(int, (lower, upper)))  # type: ignore[return-value]
    assert isinstance(lower, Sequence)
    assert isinstance(upper, Sequence)
    if not len(lower) == len(upper) == t.rank():
        raise PoplibsError(f"popops.pad takes two numbers for each dimension of {t!r}, got {lower!r} and {upper!r}")
    return [int(amount) for amount in lower], [int(amount) for amount in upper]


def _check_amounts(t: Tensor, dimension: int, lower: int, upper: int, type: Type | None, method: MappingMethod) -> None:
    size = t.dim(dimension)
    if min(lower, upper, lower + upper) + size < 0:
        raise PoplibsError(f"popops.pad by {lower} and {upper} cuts off more than dimension {dimension} of {t!r} has")
    rest = size + min(lower, 0)  # REFLECT and EDGE see what has been cut off no more, and below what has been added above
    largest = max(lower, 0), max(upper, 0)
    if type is Type.REFLECT and (largest[0] >= max(size, 1) or largest[1] >= max(rest + largest[0], 1)):
        raise PoplibsError(f"popops.pad by {lower} and {upper}: dimension {dimension} of {t!r} has too few elements to reflect")
    if type is Type.EDGE and max(largest) and (rest == 0 or size == 0):
        raise PoplibsError(f"popops.pad: dimension {dimension} of {t!r} has no edge to repeat")
    if type is None and method is MappingMethod.EDGE and max(largest) and (t.numElements() == 0 or rest == 0):
        raise PoplibsError(f"popops.pad: {t!r} has no elements beside which padding can be mapped")


def _padded(t: Tensor, dimension: int, lower: int, upper: int, padding: Padding) -> Tensor:
    if lower > 0:
        t = concat([padding(t, dimension, lower, True), t], dimension)
    elif lower < 0:
        t = t.slice(-lower, t.dim(dimension), dimension)
    if upper > 0:
        t = concat([t, padding(t, dimension, upper, False)], dimension)
    elif upper < 0:
        t = t.slice(0, t.dim(dimension) + upper, dimension)
    return t


def _of_elements(type: Type | None) -> Padding:
    def edge(t: Tensor, dimension: int, amount: int, low: bool) -> Tensor:
        return _edge(t, dimension, low).broadcast(amount, dimension)

    def reflection(t: Tensor, dimension: int, amount: int, low: bool) -> Tensor:
        begin = 1 if low else t.dim(dimension) - 1 - amount
        return t.slice(begin, begin + amount, dimension).reverse(dimension)

    return edge if type is Type.EDGE else reflection


def _edge(t: Tensor, dimension: int, low: bool) -> Tensor:
    place = 0 if low else t.dim(dimension) - 1
    return t.slice(place, place + 1, dimension)


def _of_value(graph: Graph, val: float | bool | Tensor, method: MappingMethod) -> Padding:
    def constant(t: Tensor, dimension: int, amount: int, low: bool) -> Tensor:
        shape = [*t.shape()[:dimension], amount, *t.shape()[dimension + 1 :]]
        if isinstance(val, Tensor):
            return broadcastToMatch(val.flatten(), shape) if shape else val
        padding = graph.addConstant(t.elementType(), shape, val, "padding")
        if method is MappingMethod.ZERO:
            graph.setTileMapping(padding, 0)
        elif method is MappingMethod.EDGE:
            place_on(graph, padding, np.repeat(tiles_of_elements(graph, _edge(t, dimension, low)), amount, dimension))
        return padding

    return constant
