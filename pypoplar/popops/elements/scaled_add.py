"""Adding a multiple of one tensor to another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.poputil.arguments import check_call, check_tensor
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF

OPTIONS: dict[str, Kind] = {"optimizeForSpeed": bool, "scaleFloatToHalfTolerance": float}


@public
def scaledAddTo(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    scaleB: float | Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> None:
    """A += scaleB B for each element; `prog` is extended. A and B have one shape and are FLOAT or HALF, not necessarily the same.

    `scaleB` is a number or a tensor of one element, FLOAT or HALF. The sum is taken in float and rounded once to A's
    type, whatever the options `optimizeForSpeed` and `scaleFloatToHalfTolerance` say. The work is done where A lives.
    """
    if isinstance(prog, float | int | Tensor):
        raise MissingFeature("popops.scaledAddTo has no form A = scaleA A + scaleB B yet; it takes (graph, A, B, scaleB, prog)")
    check_call("popops.scaledAddTo", graph, prog, debugContext)
    for tensor in (A, B):
        check_tensor("popops.scaledAddTo", tensor)
    if not isinstance(scaleB, float | int | Tensor | np.number):
        raise PoplarTypeError(f"popops.scaledAddTo: the scale is a number or a tensor of one element, got {scaleB!r}")
    read_options("popops.scaledAddTo", options, OPTIONS)
    if A.shape() != B.shape():
        raise PoplibsError(f"popops.scaledAddTo takes tensors of one shape, got {A!r} and {B!r}")
    for tensor in (A, B):
        if tensor.elementType() not in (FLOAT, HALF):
            raise PoplibsError(f"popops.scaledAddTo takes FLOAT or HALF, got {tensor!r}")
    B = apart(graph, B, A, prog, below(debugContext, "AddTo", "copy"))
    cs = graph.addComputeSet(below(debugContext, "AddTo"))
    types = (A.elementType(), B.elementType())
    if isinstance(scaleB, Tensor):
        if scaleB.numElements() != 1 or scaleB.elementType() not in (FLOAT, HALF):
            raise PoplibsError(f"popops.scaledAddTo takes a scale of one FLOAT or HALF element, got {scaleB!r}")
        scaleB = apart(graph, scaleB, A, prog, below(debugContext, "AddTo", "copy"))
        vertex = templateVertex("popops::ScaledAddTensor", *types, scaleB.elementType())
        add_element_vertices(graph, cs, vertex, "A", {"A": A, "B": B}, edges={"scaleB": scaleB.reshape([])})
    else:
        vertex = templateVertex("popops::ScaledAdd", *types)
        add_element_vertices(graph, cs, vertex, "A", {"A": A, "B": B}, values={"scale": float(scaleB)})
    prog.add(Execute(cs))
