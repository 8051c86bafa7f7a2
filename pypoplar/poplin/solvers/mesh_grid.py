"""Vectors of evenly spaced numbers, and grids of them."""

from __future__ import annotations

import math

import numpy as np

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_debug, check_float, check_own, element_type, shape_of, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import fits
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType


@public
def linspace(graph: Graph, type: ElementType, left: float, right: float, count: int, debugContext: str | None = None) -> Tensor:
    """A new constant vector of evenly spaced numbers, on tile 0.

    Each is rounded once, and the last one is `right`, as of NumPy; PopLibs adds up the steps in float.

    Parameters
    ----------
    type:
        FLOAT or HALF.
    left:
        The first number.
    right:
        The last number.
    count:
        How many there are; a single one is `left`.

    Returns
    -------
    Tensor
        [count].

    Raises
    ------
    PoplibsError
        For another type, a negative count, and numbers that are not finite.
    PoplarTypeError
        For what is no number, or none of the type.
    """
    call = "poplin.linspace"
    check_own(call, graph)
    check_debug(call, debugContext)
    if element_type(call, type) not in (FLOAT, HALF):
        raise PoplibsError(f"{call} makes FLOAT or HALF numbers, got {type!r}")
    for name, end in (("left", left), ("right", right)):
        if not fits(end, float):
            raise PoplarTypeError(f"{call}: {name} is a number, got {end!r}")
        check_float(call, name, end)
        if not math.isfinite(end):
            raise PoplibsError(f"{call}: {name} is a finite number, got {end!r}")
    (size,) = shape_of(call, [whole_number(call, "count", count)])
    values = np.linspace(left, right, size)
    vector = graph.addConstant(type, [len(values)], values, below(debugContext, "linspace"))
    graph.setTileMapping(vector, 0)
    return vector


@public
def meshgrid2d(graph: Graph, x: Tensor, y: Tensor) -> list[Tensor]:
    """The coordinates of a grid, two views of vectors.

    Parameters
    ----------
    x:
        The coordinates along a row.
    y:
        Those along a column, of the type of `x`.

    Returns
    -------
    list[Tensor]
        `x` along each row, and `y` along each column, both [len(y), len(x)].

    Raises
    ------
    PoplibsError
        For two types, and other ranks.
    """
    call = "poplin.meshgrid2d"
    check_own(call, graph, x=x, y=y)
    if x.rank() != 1 or y.rank() != 1 or x.elementType() is not y.elementType():
        raise PoplibsError(f"{call} takes two vectors of one type, got {x!r} and {y!r}")
    return [x.expand([0]).broadcast(y.dim(0), 0), y.expand([1]).broadcast(x.dim(0), 1)]
