"""Between variance and inverse standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_call import Operand, Options, element_call, plain_result, replace_first, write_result
from pypoplar.popops.elements.element_operations import OPERATIONS, ElementOperation
from pypoplar.popops.elements.map_call import MapCall
from pypoplar.popops.expr import Cast, PlaceHolder, operation
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType

TO_INVERSE = OPERATIONS["VARIANCE_TO_INV_STD_DEV"]
TO_VARIANCE = OPERATIONS["INV_STD_DEV_TO_VARIANCE"]


@overload
def varianceToInvStdDev(
    graph: Graph, src: Tensor, epsilon: float | Tensor, prog: Sequence, dstType: ElementType = HALF, debugContext: str | None = None
) -> Tensor: ...
@overload
def varianceToInvStdDev(
    graph: Graph,
    variance: float | Tensor,
    epsilon: float | Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
@overloaded("popops.varianceToInvStdDev")
def varianceToInvStdDev(
    graph: Graph,
    epsilon: Operand,
    prog: Sequence,
    src: Tensor | None = None,
    variance: Operand | None = None,
    dstType: ElementType = HALF,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """1 over the square root of a variance plus `epsilon`, for each element, as a new tensor; `prog` is extended.

    Where the type of the result is another than that of the operand, it is computed in FLOAT.

    Parameters
    ----------
    epsilon:
        A number, or a tensor of the operand's type that is broadcast with it.
    src:
        The variance, FLOAT or HALF, of the form with `dstType`.
    variance:
        The variance, FLOAT or HALF, of the form with `options`, whose result has its type. It may be a number if `epsilon` is a
        tensor.
    dstType:
        The type of the result, FLOAT or HALF.
    options:
        As for `map`; of a single operation they change nothing.

    Returns
    -------
    Tensor
        Of the operands' common shape, mapped like one of them.

    Raises
    ------
    PoplibsError
        For other types, for two types, and for shapes without a common one.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    if src is None:
        return plain_result("varianceToInvStdDev", TO_INVERSE, graph, [variance, epsilon], prog, debugContext, options)
    return _as_type(TO_INVERSE, graph, src, epsilon, prog, dstType, debugContext)


@public
def varianceToInvStdDevInPlace(
    graph: Graph, variance: Tensor, epsilon: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
) -> None:
    """1 over the square root of a variance plus `epsilon`, in the place of `variance`; `prog` is extended.

    Parameters
    ----------
    variance:
        What is written: FLOAT or HALF.
    epsilon:
        A number, or a tensor of its type that is broadcast to its shape.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        For other types, for two types, if the common shape is not that of `variance`, and if that holds an element twice or a
        constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    replace_first("varianceToInvStdDevInPlace", TO_INVERSE, graph, [variance, epsilon], prog, debugContext, options)


@public
def varianceToInvStdDevWithOutput(
    graph: Graph,
    variance: Operand,
    epsilon: Operand,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """1 over the square root of a variance plus `epsilon`, in `out`; `prog` is extended.

    Parameters
    ----------
    variance, epsilon:
        Tensors of one type, FLOAT or HALF, which are broadcast; one of the two may be a number.
    out:
        Of the operands' common shape and type; it has tiles.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        For other types, for two types, and for an `out` of another shape or type, or that holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    write_result("varianceToInvStdDevWithOutput", TO_INVERSE, graph, [variance, epsilon], out, prog, debugContext, options)


@overload
def invStdDevToVariance(
    graph: Graph,
    src: Tensor,
    epsilon: float | Tensor,
    prog: Sequence,
    dstType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def invStdDevToVariance(
    graph: Graph,
    invStdDev: float | Tensor,
    epsilon: float | Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
@overloaded("popops.invStdDevToVariance")
def invStdDevToVariance(
    graph: Graph,
    epsilon: Operand,
    prog: Sequence,
    src: Tensor | None = None,
    invStdDev: Operand | None = None,
    dstType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """1 over the square of an inverse standard deviation, minus `epsilon`, for each element, as a new tensor; `prog` is extended.

    Where the type of the result is another than that of the operand, it is computed in FLOAT.

    Parameters
    ----------
    epsilon:
        A number, or a tensor of the operand's type that is broadcast with it.
    src:
        The inverse standard deviation, FLOAT or HALF, of the form with `dstType`.
    invStdDev:
        The same of the form with `options`, whose result has its type. It may be a number if `epsilon` is a tensor.
    dstType:
        The type of the result, FLOAT or HALF.
    options:
        As for `map`; of a single operation they change nothing.

    Returns
    -------
    Tensor
        Of the operands' common shape, mapped like one of them.

    Raises
    ------
    PoplibsError
        For other types, for two types, and for shapes without a common one.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    if src is None:
        return plain_result("invStdDevToVariance", TO_VARIANCE, graph, [invStdDev, epsilon], prog, debugContext, options)
    return _as_type(TO_VARIANCE, graph, src, epsilon, prog, dstType, debugContext)


@public
def invStdDevToVarianceInPlace(
    graph: Graph, invStdDev: Tensor, epsilon: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
) -> None:
    """1 over the square of an inverse standard deviation, minus `epsilon`, in the place of `invStdDev`; `prog` is extended.

    Parameters
    ----------
    invStdDev:
        What is written: FLOAT or HALF.
    epsilon:
        A number, or a tensor of its type that is broadcast to its shape.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        For other types, for two types, if the common shape is not that of `invStdDev`, and if that holds an element twice or a
        constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    replace_first("invStdDevToVarianceInPlace", TO_VARIANCE, graph, [invStdDev, epsilon], prog, debugContext, options)


@public
def invStdDevToVarianceWithOutput(
    graph: Graph,
    invStdDev: Operand,
    epsilon: Operand,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """1 over the square of an inverse standard deviation, minus `epsilon`, in `out`; `prog` is extended.

    Parameters
    ----------
    invStdDev, epsilon:
        Tensors of one type, FLOAT or HALF, which are broadcast; one of the two may be a number.
    out:
        Of the operands' common shape and type; it has tiles.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        For other types, for two types, and for an `out` of another shape or type, or that holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    write_result("invStdDevToVarianceWithOutput", TO_VARIANCE, graph, [invStdDev, epsilon], out, prog, debugContext, options)


def _as_type(
    row: ElementOperation, graph: Graph, src: Tensor, epsilon: Operand, prog: Sequence, to: ElementType, debug: str | None
) -> Tensor:
    """The result as another type: between the two it is FLOAT."""
    call = f"popops.{row.function}"
    if to not in row.types:
        raise PoplibsError(f"{call} gives FLOAT or HALF, got dstType = {to!r}")
    checked = element_call(row.function, row, graph, [src, epsilon], prog, debug, None)
    if src.elementType() is to:
        return checked.plain()[0]
    wide = [Cast(PlaceHolder(number), FLOAT) for number in (1, 2)]
    tree = Cast(operation(row.name, *wide), to)
    return MapCall.of(call, graph, [tree], checked.tensors, prog, checked.debug).plain()[0]
