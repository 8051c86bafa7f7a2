"""Non-linearities, applied to each element or, as softmax, to each row."""

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
from pypoplar.poputil.arguments import check_writeable
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence


@overload
def nonLinearity(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, prog: Sequence, debugContext: str | None = None
) -> Tensor: ...
@overload
def nonLinearity(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, nonLinearityScaling: bool, prog: Sequence,
    debugContext: str | None = None,
) -> tuple[Tensor, float | None]: ...  # fmt: skip
@overloaded("popnn.nonLinearity")
def nonLinearity(
    graph: Graph,
    nonLinearityType: NonLinearityType,
    t: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    nonLinearityScaling: bool | None = None,
) -> Tensor | tuple[Tensor, float | None]:
    """A new tensor with a non-linearity applied to another; `prog` is extended.

    Everything is computed in float and rounded once; the powers of a softmax of HALFs are HALFs.

    Parameters
    ----------
    nonLinearityType:
        Which non-linearity.
    t:
        FLOAT or HALF of any shape; of a softmax with a last dimension that has elements.
    nonLinearityScaling:
        Whether the scaling is asked for; without it the result is the tensor alone.

    Returns
    -------
    Tensor | tuple[Tensor, float | None]
        A tensor shaped and mapped like `t`. With `nonLinearityScaling`, True or False, it comes with what its elements are
        multiplied by, 62,000 for SOFTMAX_SCALED and 1 else, or with None for False.

    Raises
    ------
    PoplibsError
        For another type, and for a softmax of no rows.
    InvalidTileMapping
        If an element of `t` has no tile.

    Notes
    -----
    A row of a softmax is computed by one worker, or, where that takes fewer cycles, by all tiles that hold some of it.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popnn, program, testing
    >>> def compute(graph, x):
    ...     popnn.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"y": popnn.nonLinearity(graph, popnn.NonLinearityType.RELU, x, prog)}
    >>> testing.run(compute, {"x": np.float32([-1, 0, 2])})["y"]
    array([0., 0., 2.], dtype=float32)
    """
    result = non_linearity("popnn.nonLinearity", graph, nonLinearityType, t, prog, debugContext)
    return result if nonLinearityScaling is None else (result, nonLinearityType.scaling if nonLinearityScaling else None)


@overload
def nonLinearityInPlace(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, prog: Sequence, debugContext: str | None = None
) -> None: ...
@overload
def nonLinearityInPlace(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, cs: ComputeSet, debugContext: str | None = None
) -> None: ...
@overload
def nonLinearityInPlace(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, nonLinearityScaling: bool, prog: Sequence,
    debugContext: str | None = None,
) -> float | None: ...  # fmt: skip
@overload
def nonLinearityInPlace(
    graph: Graph, nonLinearityType: NonLinearityType, t: Tensor, nonLinearityScaling: bool, cs: ComputeSet,
    debugContext: str | None = None,
) -> float | None: ...  # fmt: skip
@overloaded("popnn.nonLinearityInPlace")
def nonLinearityInPlace(
    graph: Graph,
    nonLinearityType: NonLinearityType,
    t: Tensor,
    prog: Sequence | None = None,
    cs: ComputeSet | None = None,
    debugContext: str | None = None,
    nonLinearityScaling: bool | None = None,
) -> float | None:
    """Apply a non-linearity to a tensor, in its place, as `nonLinearity`.

    Parameters
    ----------
    nonLinearityType:
        Which non-linearity.
    t:
        What is written: FLOAT or HALF of any shape.
    cs:
        A compute set that vertices are added to instead of `prog`, which is extended; softmaxes take several.
    nonLinearityScaling:
        Whether the scaling is asked for.

    Returns
    -------
    float | None
        With `nonLinearityScaling` True what elements are multiplied by, else None.

    Raises
    ------
    PoplibsError
        For another type, a softmax of no rows or in a compute set, and if `t` holds an element twice or a constant.
    InvalidTileMapping
        If an element of `t` has no tile.
    """
    non_linearity_in_place("popnn.nonLinearityInPlace", graph, nonLinearityType, t, prog, cs, debugContext)
    return nonLinearityType.scaling if nonLinearityScaling else None


def non_linearity(call: str, graph: Graph, kind: NonLinearityType, t: Tensor, prog: Sequence, debugContext: str | None) -> Tensor:
    """`nonLinearity` without its scaling."""
    check_type(call, kind)
    check_elements(call, graph, "t", t, debugContext)
    debug = below(debugContext, kind.value)
    if kind.is_softmax:
        check_rows(call, t)
        result = output_like(graph, [t], t.elementType(), debug)
        Softmax.of(graph, kind, debug).add(prog, as_rows(t), as_rows(result))
        return result
    result = output_like(graph, [t], t.elementType(), debug)
    vertex = templateVertex("popnn::NonLinearity1D", kind.value, t.elementType())
    prog.add(Execute(add_element_vertices(graph, debug, vertex, "out", {"data": t, "out": result})))
    return result


def non_linearity_in_place(
    call: str,
    graph: Graph,
    kind: NonLinearityType,
    t: Tensor,
    prog: Sequence | None,
    cs: ComputeSet | None,
    debugContext: str | None,
) -> None:
    """`nonLinearityInPlace` without its scaling."""
    check_type(call, kind)
    check_elements(call, graph, "t", t, debugContext)
    if cs is not None:
        check_set(call, graph, kind, cs)
    if kind.is_softmax:
        check_rows(call, t)
    check_writeable(call, t)
    debug = below(debugContext, kind.value)
    if kind.is_softmax:
        assert prog is not None
        Softmax.of(graph, kind, debug).add(prog, as_rows(t), as_rows(t))
        return
    vertex = templateVertex("popnn::NonLinearity1DInPlace", kind.value, t.elementType())
    added = add_element_vertices(graph, cs or debug, vertex, "data", {"data": t})
    if prog is not None:
        prog.add(Execute(added))
