"""Gradients of non-linearities by what went into them."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.nonlinearities.nonlinearity_arguments import as_rows, check_elements, check_rows, check_set, check_type
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popnn.nonlinearities.softmax_rows import Softmax
from pypoplar.popops.elements.element_output import output_like
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence


@overload
def nonLinearityInputGradient(
    graph: Graph, nonLinearityType: NonLinearityType, act: Tensor, outGradient: Tensor, cs: ComputeSet,
    debugContext: str | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def nonLinearityInputGradient(
    graph: Graph, nonLinearityType: NonLinearityType, act: Tensor, outGradient: Tensor, prog: Sequence,
    debugContext: str | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("popnn.nonLinearityInputGradient")
def nonLinearityInputGradient(
    graph: Graph,
    nonLinearityType: NonLinearityType,
    act: Tensor,
    outGradient: Tensor,
    prog: Sequence | None = None,
    cs: ComputeSet | None = None,
    debugContext: str | None = None,
) -> Tensor:
    """The gradient by what went into a non-linearity, from that by its results.

    It is computed in float and rounded once. RELU multiplies by 0 where its result is 0, as PopLibs' codelet does: a gradient there
    that is NaN or infinite gives NaN. The results of SOFTMAX_SCALED are those with the factor of 62,000, and so is the gradient
    (PopLibs leaves the factor in the sum that it subtracts).

    Parameters
    ----------
    nonLinearityType:
        Which non-linearity.
    act:
        FLOAT or HALF: the results of SIGMOID, RELU, TANH and the softmaxes, and what went in of GELU, GELU_ERF, SWISH and
        HARD_SIGMOID, whose slope is 0.2 between -2.5 and 2.5.
    outGradient:
        The gradient by the results, of the shape and type of `act`.
    cs:
        A compute set that vertices are added to instead of `prog`, which is extended; softmaxes take several.

    Returns
    -------
    Tensor
        A new tensor like `act`.

    Raises
    ------
    PoplibsError
        For other types, two shapes, and a softmax in a compute set.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popnn.nonLinearityInputGradient"
    check_type(call, nonLinearityType)
    check_elements(call, graph, "act", act, debugContext)
    check_elements(call, graph, "outGradient", outGradient, debugContext)
    if act.shape() != outGradient.shape() or act.elementType() is not outGradient.elementType():
        raise PoplibsError(f"{call}: act and outGradient have one shape and type, got {act!r} and {outGradient!r}")
    if cs is not None:
        check_set(call, graph, nonLinearityType, cs)
    if nonLinearityType.is_softmax:
        check_rows(call, act)
    debug = below(debugContext, f"{nonLinearityType.value}Gradient")
    result = output_like(graph, [act], act.elementType(), debug)
    if nonLinearityType.is_softmax:
        assert prog is not None
        softmax = Softmax.of(graph, nonLinearityType, debug)
        softmax.add_gradient(prog, as_rows(act), as_rows(outGradient), as_rows(result))
        return result
    vertex = templateVertex("popnn::NonLinearityGrad1D", nonLinearityType.value, act.elementType())
    operands = {"out": act, "outGrad": outGradient, "inGrad": result}
    added = add_element_vertices(graph, cs or debug, vertex, "inGrad", operands)
    if prog is not None:
        prog.add(Execute(added))
    return result
