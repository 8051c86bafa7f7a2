"""Cholesky factors."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.mat_mul import matMulGroupedAcc
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.matmul_params import MatMulParams
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poplin.solvers.solver_arguments import check_matrix, check_real, check_square, grouped, shape_of
from pypoplar.poplin.solvers.solver_options import SolverOptions
from pypoplar.poplin.solvers.triangular_blocks import add_block_vertices, solve_rows
from pypoplar.poplin.solvers.triangular_tensors import block_matrix, clear_above
from pypoplar.popops.elements.cast import cast
from pypoplar.poputil.arguments import check_call, check_debug, check_flag, check_graph, check_writeable
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType

BLOCK = 8  # rows of a block


@public
def createCholeskyInput(
    graph: Graph,
    type: ElementType,
    shape: Iterable[int],
    lower: bool,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for `cholesky`: blocks of so many rows and columns lie together, spread over all tiles.

    Parameters
    ----------
    type:
        FLOAT or HALF.
    shape:
        [..., n, n].
    lower:
        As for `cholesky`: without it blocks are laid out as those of the transpose.
    options:
        As for `cholesky`.
    cache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        A variable of that shape, with tiles.

    Raises
    ------
    PoplibsError
        For other types and shapes, and a ``blockSize`` below 1.
    """
    call = "poplin.createCholeskyInput"
    check_graph(call, graph)
    check_debug(call, debugContext)
    check_real(call, type)
    sizes = shape_of(call, "shape", shape)
    check_square(call, "a", sizes)
    check_flag(call, "lower", lower)
    chosen = SolverOptions.read(call, options, cache, BLOCK)
    return _input(graph, type, sizes, lower, chosen, debugContext or "")


def _input(graph: Graph, type: ElementType, shape: list[int], lower: bool, chosen: SolverOptions, debug: str) -> Tensor:
    matrices = block_matrix(graph, type, grouped(shape), chosen.block, debug)
    return (matrices if lower else matrices.dimShuffle([0, 2, 1])).reshape(shape)


@public
def cholesky(
    graph: Graph,
    a: Tensor,
    lower: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """The triangular factor of symmetric positive definite matrices, as a new tensor; `prog` is extended.

    It is L with ``L L^T = a``, zeros above its diagonal, or the transpose of L. A matrix that is not positive definite gives
    NaNs, or infinities, from the first column on that has no root, where NumPy would raise an error. HALFs are factorised as
    FLOATs, and rounded once, at the end.

    Parameters
    ----------
    a:
        FLOAT or HALF [..., n, n]. The lower or upper triangle alone decides: the other is taken to be its mirror image.
    lower:
        Whether the lower triangle is read, and L is the result; else the upper one and its transpose.
    options:
        ``blockSize`` (8): the rows of a block. A vertex factorises that on the diagonal, the block column below it is solved
        for, and a product with itself is taken from the rest, by `matMulGroupedAcc`, which takes the other options.
    cache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        Of the shape and type of `a`.

    Raises
    ------
    PoplibsError
        For other types and shapes, and a ``blockSize`` below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import poplin, program, testing
    >>> def compute(graph, a):
    ...     poplin.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"lower": poplin.cholesky(graph, a, True, prog)}
    >>> testing.run(compute, {"a": np.float32([[4, 2], [2, 10]])})["lower"]
    array([[2., 0.],
           [1., 3.]], dtype=float32)
    """
    call = "poplin.cholesky"
    chosen = _read(call, graph, a, lower, prog, debugContext, options, cache)
    debug = below(debugContext, "cholesky")
    factor = _input(graph, FLOAT, a.shape(), lower, chosen, debug)
    if a.numElements():
        prog.add(cast(graph, a, factor, debug))
        _factorise(graph, factor, lower, prog, chosen, debug)
    return factor if a.elementType() is FLOAT else cast(graph, factor, HALF, prog, debug)


@public
def choleskyInPlace(
    graph: Graph,
    a: Tensor,
    lower: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """The triangular factor of symmetric positive definite matrices, in their place; `prog` is extended.

    Parameters
    ----------
    a:
        What is written: FLOAT or HALF [..., n, n], as for `cholesky`.
    lower:
        Whether the lower triangle is read, and L is the result; else the upper one and its transpose.
    options:
        As for `cholesky`.
    cache:
        Where the plans of products are kept.

    Raises
    ------
    PoplibsError
        As for `cholesky`; and if `a` holds an element twice or a constant.
    """
    call = "poplin.choleskyInPlace"
    chosen = _read(call, graph, a, lower, prog, debugContext, options, cache)
    check_writeable(call, a)
    debug = below(debugContext, "cholesky")
    if a.elementType() is HALF:
        prog.add(cast(graph, cholesky(graph, a, lower, prog, debugContext, options, cache), a, debug))
    elif a.numElements():
        _factorise(graph, a, lower, prog, chosen, debug)


def _read(
    call: str,
    graph: Graph,
    a: Tensor,
    lower: bool,
    prog: Sequence,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
) -> SolverOptions:
    check_call(call, graph, prog, debugContext)
    check_matrix(call, graph, "a", a)
    check_flag(call, "lower", lower)
    return SolverOptions.read(call, options, cache, BLOCK)


def _factorise(graph: Graph, a: Tensor, lower: bool, prog: Sequence, chosen: SolverOptions, debug: str) -> None:
    matrices = a.reshape(grouped(a.shape()))
    if not lower:
        matrices = matrices.dimShuffle([0, 2, 1])
    groups, size = matrices.shape()[:2]
    for low in range(0, size, chosen.block):
        high = min(low + chosen.block, size)
        corner = matrices.slice([0, low, low], [groups, high, high])
        add_block_vertices(graph, "poplin::Cholesky", corner, prog, below(debug, "block"))
        if high == size:
            break
        column = matrices.slice([0, high, low], [groups, size, high])
        solve_rows(graph, corner, column, False, prog, below(debug, "column"))
        rest = matrices.slice([0, high, high], [groups, size, size])
        transposed = column.dimShuffle([0, 2, 1])
        debug_of_product = below(debug, "product")
        matMulGroupedAcc(graph, rest, -1.0, column, transposed, prog, debug_of_product, chosen.products, chosen.cache)
    clear_above(graph, matrices, prog, debug)


@public
def getCholeskyMatMulPrePlanParameters(
    type: ElementType, shape: Iterable[int], lower: bool, options: Options = None
) -> list[tuple[MatMulParams, dict[str, object]]]:
    """The products of `cholesky` for a shape and options, each once, for `preplanMatMuls`.

    Parameters
    ----------
    type:
        FLOAT or HALF; the products are those of FLOATs in any case.
    shape:
        [..., n, n].
    lower:
        As for `cholesky`.
    options:
        As for `cholesky`.

    Returns
    -------
    list[tuple[MatMulParams, dict[str, object]]]
        Parameters and options of each product.

    Raises
    ------
    PoplibsError
        For other types and shapes, and a ``blockSize`` below 1.
    """
    call = "poplin.getCholeskyMatMulPrePlanParameters"
    check_real(call, type)
    sizes = shape_of(call, "shape", shape)
    check_square(call, "a", sizes)
    check_flag(call, "lower", lower)
    chosen = SolverOptions.read(call, options, None, BLOCK)
    groups, size, _ = grouped(sizes)
    rest = [size - high for high in range(chosen.block, size, chosen.block)]
    products = [((groups, left, chosen.block), (groups, chosen.block, left)) for left in sorted(rest)]
    return [(MatMulParams(FLOAT, FLOAT, *shapes), dict(chosen.products)) for shapes in products]
