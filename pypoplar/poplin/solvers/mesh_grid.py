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
    """A new constant vector of `count` evenly spaced numbers, FLOAT or HALF, from `left` to `right`, on tile 0.

    Each is rounded once, and the last one is `right`, as NumPy's; PopLibs adds up the steps in float. One number is `left`.
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
    """The coordinates of a grid, two views [len(y), len(x)] of the vectors: `x` along each row, `y` along each column."""
    call = "poplin.meshgrid2d"
    check_own(call, graph, x=x, y=y)
    if x.rank() != 1 or y.rank() != 1 or x.elementType() is not y.elementType():
        raise PoplibsError(f"{call} takes two vectors of one type, got {x!r} and {y!r}")
    return [x.expand([0]).broadcast(y.dim(0), 0), y.expand([1]).broadcast(x.dim(0), 1)]
