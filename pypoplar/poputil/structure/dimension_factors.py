"""Dimensions split into an outer and an inner part each, and put together again."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.errors import PoplarIndexError
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import check_shape
from pypoplar.poputil.arguments import check_tensor, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public


@public
def factorDims(t: Tensor, factors: Iterable[int], startDim: int = 0) -> Tensor:
    """Dimensions as two each: the size over a factor, and the factor.

    The outer parts come first, then the inner ones, then what follows: [4, 6, 4] by factors [1, 2] has the shape [4, 3, 1, 2,
    4].

    Parameters
    ----------
    t:
        The tensor.
    factors:
        What divides each of the dimensions from `startDim` on.
    startDim:
        The first dimension that is split.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    PoplibsError
        Where a factor does not divide its dimension.
    PoplarIndexError
        For more factors than there are dimensions.
    """
    check_tensor("factorDims", t)
    sizes, first = check_shape(factors), whole_number("factorDims", "startDim", startDim)
    _check_dimensions("factorDims", t, first, first + len(sizes))
    shape = []
    for dimension, factor in enumerate(sizes, first):
        if factor < 1 or t.dim(dimension) % factor:
            raise PoplibsError(f"factorDims: {factor} does not divide dimension {dimension} of {t!r}")
        shape += [t.dim(dimension) // factor, factor]
    places = range(first, first + 2 * len(sizes))
    return t.reshapePartial(first, first + len(sizes), shape).dimShufflePartial([*places[::2], *places[1::2]], places)


@public
def unfactorDims(t: Tensor, numDims: int, startDim: int = 0) -> Tensor:
    """Outer parts of dimensions, and the inner parts behind them, as dimensions again: the opposite of `factorDims`.

    Parameters
    ----------
    t:
        The tensor.
    numDims:
        How many dimensions there will be instead of twice as many.
    startDim:
        The first of the outer parts.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    PoplarIndexError
        For more dimensions than `t` has.
    """
    check_tensor("unfactorDims", t)
    count = whole_number("unfactorDims", "numDims", numDims)
    first = whole_number("unfactorDims", "startDim", startDim)
    _check_dimensions("unfactorDims", t, first, first + 2 * count)
    places = range(first, first + 2 * count)
    paired = t.dimShufflePartial([*places[:count], *places[count:]], [*places[::2], *places[1::2]])
    shape = [paired.dim(place) * paired.dim(place + 1) for place in places[::2]]
    return paired.reshapePartial(first, first + 2 * count, shape)


def _check_dimensions(call: str, t: Tensor, begin: int, end: int) -> None:
    if end > t.rank():
        raise PoplarIndexError(f"{call}: dimensions [{begin}:{end}) are out of range for {t!r} of rank {t.rank()}")
