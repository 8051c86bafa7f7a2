"""Products of matrices, plain and grouped, into new tensors, given ones, and added to others."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.product_call import ProductCall
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.popops import scaledAddTo
from pypoplar.poputil.arguments import check_call, check_float, check_operands, check_own
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@overload
def matMul(
    graph: Graph, A: Tensor, B: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def matMul(
    graph: Graph, A: Tensor, B: Tensor, prog: Sequence, outputType: ElementType | None, debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.matMul")
def matMul(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor with the product of the matrices A and B; `prog` is extended.

    With ``k = 0`` it is zeros.

    Parameters
    ----------
    A:
        FLOAT or HALF [m, k].
    B:
        Of the type of A, [k, n].
    outputType:
        The type of the product, FLOAT or HALF; by default that of A.
    options:
        Known are

        - ``availableMemoryProportion`` (0.6): the part of a tile's memory that its blocks may take, if there is a plan that
          takes no more; `matMulReportPlan` says what it takes.
        - ``partialsType`` ("float"): the type in which blocks of products are summed and exchanged. Of HALF matrices "half"
          rounds the sum of each block once; of FLOAT ones it changes nothing.
        - ``inputRHSIsPreArranged`` (false): says that B comes from `preArrangeMatMulInputRHS`. Results and cycles do not depend
          on it: B is taken as it lies in any case.
        - ``disableSRForAMPVertices`` (false): partial sums that are HALFs are rounded to the nearest also while stochastic
          rounding is on (`setStochasticRounding`). What is added up of several blocks is rounded as the program says.
        - ``fullyConnectedPass``, ``use128BitConvUnitLoad``, ``enableMultiStageReduce``, ``enableFastReduce`` and
          ``remapOutputTensor`` are accepted and change nothing.
        - ``gatherOutput`` and ``planConstraints`` raise `MissingFeature`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [m, n], where it is computed.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, two types, and types but FLOAT and HALF.
    InvalidTileMapping
        If an element of A or B has no tile.
    InvalidOption
        For other options.

    Notes
    -----
    How the work is split is chosen by estimated cycles: a matrix times a vector is computed where the matrix lives, a column
    times a row where the result will live, all else in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import poplin, program, testing
    >>> def compute(graph, a, b):
    ...     poplin.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"product": poplin.matMul(graph, a, b, prog)}
    >>> testing.run(compute, {"a": np.float32([[1, 2], [3, 4]]), "b": np.float32([[1], [10]])})["product"]
    array([[21.],
           [43.]], dtype=float32)
    """
    return ProductCall.read("poplin.matMul", graph, A, B, prog, outputType, debugContext, options, cache).add()


@public
def matMulWithOutput(
    graph: Graph,
    A_: Tensor,
    B_: Tensor,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options_: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """The product of two matrices, as `matMul`, into a tensor that is given; `prog` is extended.

    Parameters
    ----------
    A_:
        FLOAT or HALF [m, k].
    B_:
        Of the type of `A_`, [k, n].
    out:
        FLOAT or HALF [m, n]; where it has no tiles, it is mapped. It may have elements of the operands: these are read before
        it is written.
    options_:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        As for `matMul`; for an `out` of another shape, or that holds an element twice or a constant.
    InvalidTileMapping
        If an element of an operand has no tile.
    """
    _into("poplin.matMulWithOutput", graph, A_, B_, out, prog, debugContext, options_, cache)


@public
def matMulGrouped(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    outputType: ElementType,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor with the products of the matrices of A and B, group by group, as `matMul`; `prog` is extended.

    All groups are computed at once: how they are cut is part of the plan.

    Parameters
    ----------
    A:
        FLOAT or HALF [g, m, k].
    B:
        Of the type of A, [g, k, n].
    outputType:
        The type of the products, FLOAT or HALF.
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [g, m, n], where it is computed.

    Raises
    ------
    PoplibsError
        For shapes that do not fit, two types, and types but FLOAT and HALF.
    InvalidTileMapping
        If an element of A or B has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import FLOAT, poplin, program, testing
    >>> def compute(graph, a, b):
    ...     poplin.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"products": poplin.matMulGrouped(graph, a, b, prog, FLOAT)}
    >>> arrays = {"a": np.float32([[[1, 2]], [[3, 4]]]), "b": np.float32([[[1], [10]], [[1], [100]]])}
    >>> testing.run(compute, arrays)["products"].tolist()
    [[[21.0]], [[403.0]]]
    """
    name = "poplin.matMulGrouped"
    check_call(name, graph, prog, debugContext)
    return ProductCall.read(name, graph, A, B, prog, outputType, debugContext, options, cache, grouped=True).add()


@public
def matMulGroupedWithOutput(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options_: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """The products of `matMulGrouped` into a tensor that is given; `prog` is extended.

    Parameters
    ----------
    A:
        FLOAT or HALF [g, m, k].
    B:
        Of the type of A, [g, k, n].
    out:
        FLOAT or HALF [g, m, n]; where it has no tiles, it is mapped. It may have elements of the operands.
    options_:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        As for `matMulGrouped`; for an `out` of another shape, or that holds an element twice or a constant.
    InvalidTileMapping
        If an element of an operand has no tile.
    """
    _into("poplin.matMulGroupedWithOutput", graph, A, B, out, prog, debugContext, options_, cache, grouped=True)


def _into(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    graph: Graph,
    A: Tensor,
    B: Tensor,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> None:
    check_call(name, graph, prog, debugContext)
    check_own(name, graph, out=out)
    call = ProductCall.read(name, graph, A, B, prog, out.elementType(), debugContext, options, cache, grouped)
    call.check_output(out)
    call.add(out)


@overload
def matMulAcc(
    graph: Graph, C: Tensor, k: float, A: Tensor, B: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overload
def matMulAcc(
    graph: Graph, C: Tensor, k: Tensor, A: Tensor, B: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overloaded("poplin.matMulAcc")
def matMulAcc(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    C: Tensor,
    k: float | Tensor,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """``C += k A B`` for matrices; `prog` is extended.

    The product, of the type of C, is computed as by `matMul` and then added where C lies: the scaled sum is rounded once.

    Parameters
    ----------
    C:
        What is written: FLOAT or HALF [m, n]. It may have elements of A and B.
    k:
        A number, or a tensor of one element of the type of A.
    A:
        FLOAT or HALF [m, k].
    B:
        Of the type of A, [k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        As for `matMul`; for a C of another shape, or that holds an element twice or a constant, and for another factor.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _accumulate("poplin.matMulAcc", graph, C, k, A, B, prog, debugContext, options, cache)


@overload
def matMulGroupedAcc(
    graph: Graph, C: Tensor, k: float, A: Tensor, B: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overload
def matMulGroupedAcc(
    graph: Graph, C: Tensor, k: Tensor, A: Tensor, B: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overloaded("poplin.matMulGroupedAcc")
def matMulGroupedAcc(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    C: Tensor,
    k: float | Tensor,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """``C += k A B`` for matrices, group by group, as `matMulAcc`; `prog` is extended.

    Parameters
    ----------
    C:
        What is written: FLOAT or HALF [g, m, n]. It may have elements of A and B.
    k:
        A number, or a tensor of one element of the type of A.
    A:
        FLOAT or HALF [g, m, k].
    B:
        Of the type of A, [g, k, n].
    options:
        As for `matMul`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        As for `matMulGrouped`; for a C of another shape, or that holds an element twice or a constant, and for another factor.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _accumulate("poplin.matMulGroupedAcc", graph, C, k, A, B, prog, debugContext, options, cache, grouped=True)


def _accumulate(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    graph: Graph,
    C: Tensor,
    k: float | Tensor,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> None:
    check_own(name, graph, C=C)
    call = ProductCall.read(name, graph, A, B, prog, C.elementType(), debugContext, options, cache, grouped)
    call.check_output(C)
    check_operands(name, graph, C=C)
    if isinstance(k, Tensor):
        check_operands(name, graph, k=k)
        if k.numElements() != 1 or k.elementType() is not A.elementType():
            raise PoplibsError(f"{name}: k is a number, or one element of A's type, got {k!r} and A is {A!r}")
    else:
        check_float(name, "k", k)
    if not call.params.empty:
        scaledAddTo(graph, C, call.add(), k, prog, below(debugContext, "accumulate"))
