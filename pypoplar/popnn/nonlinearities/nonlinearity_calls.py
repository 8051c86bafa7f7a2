"""Non-linearities, applied to each element or, as softmax, to each row."""

from __future__ import annotations

from enum import Enum

from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.row_vertices import add_row_vertices, group_rows
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.poputil.arguments import check_prog
from pypoplar.poputil.copies import duplicate
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF


class NonLinearityType(Enum):
    """PopLibs' non-linearities. The softmaxes go over the last dimension, the others over every element.

    SOFTMAX takes powers as they come, SOFTMAX_STABLE first subtracts each row's largest element. SOFTMAX_SCALED is not there yet.
    """

    SIGMOID = "SIGMOID"
    HARD_SIGMOID = "HARD_SIGMOID"
    RELU = "RELU"
    TANH = "TANH"
    GELU = "GELU"
    GELU_ERF = "GELU_ERF"
    SWISH = "SWISH"
    SOFTMAX = "SOFTMAX"
    SOFTMAX_STABLE = "SOFTMAX_STABLE"
    SOFTMAX_SCALED = "SOFTMAX_SCALED"


SOFTMAXES = (NonLinearityType.SOFTMAX, NonLinearityType.SOFTMAX_STABLE)


@public
def nonLinearity(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, prog: Sequence, debugContext: str | None = None
) -> Tensor:
    """A new tensor, shaped and mapped like `t` (FLOAT or HALF), with the non-linearity applied; `prog` is extended.

    A row of a softmax is computed on one tile, by one worker.
    """
    check_prog("popnn.nonLinearity", prog)
    _check(nonLinearityType, t)
    if nonLinearityType not in SOFTMAXES:
        result = duplicate(graph, t, prog, below(debugContext, nonLinearityType.value))
        nonLinearityInPlace(graph, nonLinearityType, result, prog, debugContext)
        return result
    result = graph.clone(t, below(debugContext, nonLinearityType.value))
    rows, results = _rows(t), _rows(result)
    cs = graph.addComputeSet(below(debugContext, nonLinearityType.value))
    vertex = templateVertex("popnn::SoftMax", t.elementType())
    stable = {"stable": nonLinearityType is NonLinearityType.SOFTMAX_STABLE}
    add_row_vertices(graph, cs, vertex, group_rows(graph, results), {"in": rows, "out": results}, shared=stable)
    prog.add(Execute(cs))
    return result


@public
def nonLinearityInPlace(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, prog: Sequence, debugContext: str | None = None
) -> None:
    """Apply the non-linearity to `t` itself, which is FLOAT or HALF; `prog` is extended."""
    check_prog("popnn.nonLinearityInPlace", prog)
    _check(nonLinearityType, t)
    if not t.isParallelWriteable():
        raise PoplibsError(f"{t!r} cannot be written: it holds an element twice, or a constant")
    cs = graph.addComputeSet(below(debugContext, nonLinearityType.value))
    if nonLinearityType in SOFTMAXES:
        rows = _rows(t)
        vertex = templateVertex("popnn::SoftMaxInPlace", t.elementType())
        stable = {"stable": nonLinearityType is NonLinearityType.SOFTMAX_STABLE}
        add_row_vertices(graph, cs, vertex, group_rows(graph, rows), {"data": rows}, shared=stable)
    else:
        vertex = templateVertex("popnn::NonLinearity1DInPlace", nonLinearityType.value, t.elementType())
        add_element_vertices(graph, cs, vertex, "data", {"data": t})
    prog.add(Execute(cs))


def _rows(t: Tensor) -> Tensor:
    """The tensor as a matrix of its rows in the last dimension."""
    return t.reshape([t.numElements() // t.dim(-1), t.dim(-1)])


def _check(nonLinearityType: NonLinearityType, t: Tensor) -> None:
    if not isinstance(nonLinearityType, NonLinearityType):
        raise PoplarTypeError(f"expected a popnn.NonLinearityType such as popnn.NonLinearityType.RELU, got {nonLinearityType!r}")
    if nonLinearityType is NonLinearityType.SOFTMAX_SCALED:
        raise MissingFeature("popnn has no SOFTMAX_SCALED yet; SOFTMAX_STABLE gives the same without the scaling")
    if t.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"non-linearities take FLOAT or HALF, got {t!r}")
    if nonLinearityType in SOFTMAXES and (t.rank() == 0 or t.dim(-1) == 0):
        raise PoplibsError(f"a softmax goes over the last dimension, which {t!r} has not or which is empty")
