"""Filling tensors with one value."""

from __future__ import annotations

import numpy as np

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.poputil.arguments import check_call, check_tensor
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import HALF, ElementType


@public
def fill(graph: Graph, t: Tensor, prog: Sequence, fillValue: float, debugContext: str | None = None) -> None:
    """Set all elements of `t` to a value of its type; `prog` is extended. Each tile fills what it holds."""
    check_call("popops.fill", graph, prog, debugContext)
    check_tensor("popops.fill", t)
    if not isinstance(fillValue, bool | int | float | np.generic):
        raise PoplarTypeError(f"popops.fill: the value is a number, got {fillValue!r}")
    _fill(graph, t, prog, fillValue, below(debugContext, "fill"))


@public
def zero(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> None:
    """Set all elements of `t` to 0, of a BOOL to false; `prog` is extended. Each tile fills what it holds."""
    check_call("popops.zero", graph, prog, debugContext)
    check_tensor("popops.zero", t)
    _fill(graph, t, prog, 0, below(debugContext, "zero"))


def _fill(graph: Graph, t: Tensor, prog: Sequence, value: float, debug: str) -> None:
    cs = graph.addComputeSet(debug)
    add_element_vertices(graph, cs, templateVertex("popops::Fill", t.elementType()), "out", {"out": t}, values={"in": value})
    prog.add(Execute(cs))


def fill_cycles(elements: int, type: ElementType) -> int:
    """getFill1DCycleEstimate of PopLibs' PerformanceEstimation, of a worker's elements."""
    size = type.dtype.itemsize
    if size == 8:
        return 5 + elements
    if size == 1:
        return 28 + elements // 4 if elements < 64 else 39 + elements // 8
    if type is HALF or size == 2:
        return {1: 15, 2: 21}.get(elements, 26 + elements // 4)
    return 23 + elements // 2 + elements % 2
