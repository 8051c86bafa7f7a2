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
    """A new tensor with the product of A [m, k] and B [k, n], both FLOAT or both HALF; `prog` is extended.

    The result has A's type unless `outputType` says another. How the work is split is chosen by estimated cycles: a
    matrix times a vector is computed where the matrix lives, a column times a row where the result will live, all else in
    blocks. With ``k = 0`` it is zeros. A `cache` has the plan for the next product of the same shapes.

    Options:

    - ``availableMemoryProportion`` (0.6): the part of a tile's memory that its blocks may take, if there is a plan that takes no
      more; `matMulReportPlan` says what it takes.
    - ``partialsType`` ("float"): the type in which blocks of products are summed and exchanged. Of HALF matrices "half" rounds the
      sum of each block once; of FLOAT ones it changes nothing.
    - ``inputRHSIsPreArranged`` (false): says that B comes from `preArrangeMatMulInputRHS`. Results and cycles do not depend on it:
      B is taken as it lies in any case.
    - ``disableSRForAMPVertices`` (false): partial sums that are HALFs are rounded to the nearest also while stochastic rounding is
      on (`setStochasticRounding`). What is added up of several blocks is rounded as the program says.
    - ``fullyConnectedPass``, ``use128BitConvUnitLoad``, ``enableMultiStageReduce``, ``enableFastReduce`` and ``remapOutputTensor``
      are accepted and change nothing.
    - ``gatherOutput`` and ``planConstraints`` raise `MissingFeature`.

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
    """The product of `A_` and `B_`, as `matMul`, into `out` [m, n], FLOAT or HALF; where `out` has no tiles, it is mapped.

    `out` may have elements of the operands: these are read before it is written.
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
    """A new tensor [g, m, n] with the products of the matrices of A [g, m, k] and B [g, k, n], group by group, as `matMul`.

    All groups are computed at once: how they are cut is part of the plan.

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
    """The products of `matMulGrouped` into `out` [g, m, n], as `matMulWithOutput`."""
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
    """C += k A B for C [m, n], A [m, k] and B [k, n]; `prog` is extended.

    The product, of C's type, is computed as by `matMul` and then added where C lies: the scaled sum is rounded once. The factor
    `k` is a number, or a tensor of one element of A's type. C may have elements of A and B.
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
    """C += k A B, group by group, for C [g, m, n], A [g, m, k] and B [g, k, n]; all else is as for `matMulAcc`."""
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
