"""Tensors that lie where a product needs them, and operands put into such."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.block_layout import knowing
from pypoplar.poplin.matmul.block_product import new_result
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.operand_blocks import new_operand
from pypoplar.poplin.matmul.product_call import params_of, planned
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_call, check_debug, check_graph, check_operands, check_tensor, element_type, shape_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType


@overload
def createMatMulInputLHS(
    graph: Graph, dataType: ElementType, aShape: Iterable[int], bShape: Iterable[int], debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def createMatMulInputLHS(
    graph: Graph, inputType: ElementType, outputType: ElementType | None, aShape: Iterable[int], bShape: Iterable[int],
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.createMatMulInputLHS")
def createMatMulInputLHS(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `matMul` takes as A with little exchange.

    It lies in the blocks of the plan of the product with the same types and options, each on one of the tiles that use it. A
    stream into it is rearranged, and a product that takes it the other way around, as that of a gradient, copies it.

    Parameters
    ----------
    aShape:
        Its shape, [m, k].
    bShape:
        The shape of B, [k, n].
    dataType:
        The type of A, B and the product, FLOAT or HALF.
    inputType:
        The type of A and B, where that of the product is given, too.
    outputType:
        The type of the product; None for that of A and B.
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        ``aShape`` of the type of A, with tiles.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    """
    type = inputType or dataType
    name = "poplin.createMatMulInputLHS"
    return _created(name, "left", graph, type, outputType, aShape, bShape, debugContext, options, cache)


@public
def createMatMulGroupedInputLHS(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `matMulGrouped` takes as A with little exchange.

    Parameters
    ----------
    inputType:
        The type of A and B, FLOAT or HALF.
    outputType:
        The type of the product; None for that of A and B.
    aShape:
        Its shape, [g, m, k].
    bShape:
        The shape of B, [g, k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        ``aShape`` of the input type, with tiles.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    """
    name = "poplin.createMatMulGroupedInputLHS"
    return _created(name, "left", graph, inputType, outputType, aShape, bShape, debugContext, options, cache, grouped=True)


@overload
def createMatMulInputRHS(
    graph: Graph, dataType: ElementType, aShape: Iterable[int], bShape: Iterable[int], debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def createMatMulInputRHS(
    graph: Graph, inputType: ElementType, outputType: ElementType | None, aShape: Iterable[int], bShape: Iterable[int],
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.createMatMulInputRHS")
def createMatMulInputRHS(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `matMul` takes as B with little exchange.

    It lies in the blocks of the plan of the product with the same types and options, each on one of the tiles that use it. A
    stream into it is rearranged, and a product that takes it the other way around, as that of a gradient, copies it.

    Parameters
    ----------
    aShape:
        The shape of A, [m, k].
    bShape:
        Its shape, [k, n].
    dataType:
        The type of A, B and the product, FLOAT or HALF.
    inputType:
        The type of A and B, where that of the product is given, too.
    outputType:
        The type of the product; None for that of A and B.
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        ``bShape`` of the type of B, with tiles.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    """
    type = inputType or dataType
    name = "poplin.createMatMulInputRHS"
    return _created(name, "right", graph, type, outputType, aShape, bShape, debugContext, options, cache)


@public
def createMatMulGroupedInputRHS(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `matMulGrouped` takes as B with little exchange.

    Parameters
    ----------
    inputType:
        The type of A and B, FLOAT or HALF.
    outputType:
        The type of the product; None for that of A and B.
    aShape:
        The shape of A, [g, m, k].
    bShape:
        Its shape, [g, k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        ``bShape`` of the input type, with tiles.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    """
    name = "poplin.createMatMulGroupedInputRHS"
    return _created(name, "right", graph, inputType, outputType, aShape, bShape, debugContext, options, cache, grouped=True)


@overload
def createMatMulOutput(
    graph: Graph, dataType: ElementType, aShape: Iterable[int], bShape: Iterable[int], debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def createMatMulOutput(
    graph: Graph, inputType: ElementType, outputType: ElementType | None, aShape: Iterable[int], bShape: Iterable[int],
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.createMatMulOutput")
def createMatMulOutput(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `matMulWithOutput` writes where it computes.

    Parameters
    ----------
    aShape:
        The shape of A, [m, k].
    bShape:
        The shape of B, [k, n].
    dataType:
        The type of A, B and the product, FLOAT or HALF.
    inputType:
        The type of A and B, where that of the product is given, too.
    outputType:
        The type of the product; None for that of A and B.
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [m, n] of the type of the product, with tiles.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    """
    type = inputType or dataType
    name = "poplin.createMatMulOutput"
    return _created(name, "out", graph, type, outputType, aShape, bShape, debugContext, options, cache)


@public
def createMatMulGroupedOutput(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `matMulGroupedWithOutput` writes where it computes.

    Parameters
    ----------
    inputType:
        The type of A and B, FLOAT or HALF.
    outputType:
        The type of the product; None for that of A and B.
    aShape:
        The shape of A, [g, m, k].
    bShape:
        The shape of B, [g, k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [g, m, n] of the type of the product, with tiles.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    """
    name = "poplin.createMatMulGroupedOutput"
    return _created(name, "out", graph, inputType, outputType, aShape, bShape, debugContext, options, cache, grouped=True)


@overload
def preArrangeMatMulInputRHS(
    graph: Graph, aShape: Iterable[int], B: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def preArrangeMatMulInputRHS(
    graph: Graph, aShape: Iterable[int], B: Tensor, prog: Sequence, outputType: ElementType | None,
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.preArrangeMatMulInputRHS")
def preArrangeMatMulInputRHS(
    graph: Graph,
    aShape: Iterable[int],
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A copy of B that lies where products with matrices of a certain shape need it; `prog` is extended by the copy.

    The option ``inputRHSIsPreArranged`` of `matMul` says that B is such a copy.

    Parameters
    ----------
    aShape:
        The shape of A, [m, k].
    B:
        FLOAT or HALF [k, n].
    outputType:
        The type of the product; by default that of B.
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        Of the type and shape of B.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    InvalidTileMapping
        If an element of B has no tile.
    """
    return _arranged("poplin.preArrangeMatMulInputRHS", graph, aShape, B, prog, outputType, debugContext, options, cache)


@public
def preArrangeMatMulGroupedInputRHS(
    graph: Graph,
    aShape: Iterable[int],
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A copy of B that lies where grouped products with matrices of a certain shape need it; `prog` is extended by the copy.

    Parameters
    ----------
    aShape:
        The shape of A, [g, m, k].
    B:
        FLOAT or HALF [g, k, n].
    outputType:
        The type of the product; None for that of B.
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        Of the type and shape of B.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, and for types but FLOAT and HALF.
    InvalidTileMapping
        If an element of B has no tile.
    """
    name = "poplin.preArrangeMatMulGroupedInputRHS"
    check_call(name, graph, prog, debugContext)
    return _arranged(name, graph, aShape, B, prog, outputType, debugContext, options, cache, grouped=True)


@public
def transposeGroupedMatrix(A: Tensor) -> Tensor:
    """A view of grouped matrices, each of them transposed.

    Parameters
    ----------
    A:
        [g, m, k].

    Returns
    -------
    Tensor
        [g, k, m].

    Raises
    ------
    PoplibsError
        For another rank.
    """
    name = "poplin.transposeGroupedMatrix"
    check_tensor(name, A, "A")
    if not A.valid():
        raise PoplarTypeError(f"{name}: A = {A!r} belongs to no graph")
    if A.rank() != 3:
        raise PoplibsError(f"{name} takes [g, m, k], got {A!r}")
    return A.dimShuffle([0, 2, 1])


def _arranged(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    graph: Graph,
    aShape: Iterable[int],
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> Tensor:
    check_operands(name, graph, B=B)
    type = B.elementType()
    copy = _created(name, "right", graph, type, outputType, aShape, B.shape(), debugContext, options, cache, grouped)
    if B.numElements():
        prog.add(Copy(B, copy))
    return copy


def _created(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    which: str,
    graph: Graph,
    type: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> Tensor:
    """A new grouped matrix: the left or right operand of a product, or its result."""
    check_graph(name, graph)
    check_cache(name, cache)
    check_debug(name, debugContext)
    a, b = (list(shape_of(f"{what} of {name}", shape)) for what, shape in (("aShape", aShape), ("bShape", bShape)))
    params = params_of(name, a, b, element_type(name, type), outputType, options, grouped)
    shape = {"left": params.a_shape, "right": params.b_shape, "out": params.out_shape}[which][not grouped :]
    if params.empty:
        tensor = graph.addVariable(params.result if which == "out" else type, shape, debugContext or "")
        mapTensorLinearly(graph, tensor)
        return tensor
    plan = planned(graph.getTarget(), params, cache)
    if which == "out":
        blocks = new_result(graph, plan, debugContext or "")
    else:
        blocks = new_operand(graph, type, plan.cuts, which == "right", debugContext or "")
    return knowing(blocks.matrix.slice(0, shape[-1], 2).reshape(shape), blocks)
