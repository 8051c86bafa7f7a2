"""Tensors for triangular systems, and masks of triangles."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poplin.solvers.solver_arguments import check_matrix, check_real, check_sides, grouped, shape_of
from pypoplar.poplin.solvers.solver_options import SolverOptions
from pypoplar.poputil.arguments import check_call, check_debug, check_flag, check_graph
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

BLOCK = 64  # rows of a block of a triangular system


@public
def createTriangularSolveInputLHS(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType,
    aShape: Iterable[int],
    bShape: Iterable[int],
    leftSide: bool,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for A of `triangularSolve`: blocks lie together, spread over all tiles.

    Parameters
    ----------
    inputType:
        The type of A, FLOAT or HALF.
    outputType:
        The type of B.
    aShape:
        Its shape, [..., n, n].
    bShape:
        The shape of B.
    leftSide:
        As for `triangularSolve`.
    options:
        As for `triangularSolve`.
    cache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        ``aShape`` of `inputType`, with tiles.

    Raises
    ------
    PoplibsError
        For other types, shapes that do not fit, and a ``blockSize`` below 1.
    """
    call = "poplin.createTriangularSolveInputLHS"
    a, _, chosen = _shapes(call, graph, inputType, outputType, aShape, bShape, leftSide, debugContext, options, cache)
    matrix = block_matrix(graph, inputType, grouped(a), chosen.block, debugContext or "")
    return matrix.reshape(a)


@public
def createTriangularSolveInputRHS(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType,
    aShape: Iterable[int],
    bShape: Iterable[int],
    leftSide: bool,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor for B of `triangularSolve`: what is solved for at once is on one tile.

    Parameters
    ----------
    inputType:
        The type of A, FLOAT or HALF.
    outputType:
        The type of B.
    aShape:
        The shape of A, [..., n, n].
    bShape:
        Its shape, [..., n, k], or [..., k, n].
    leftSide:
        As for `triangularSolve`.
    options:
        As for `triangularSolve`.
    cache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        ``bShape`` of `outputType`, with tiles.

    Raises
    ------
    PoplibsError
        For other types, shapes that do not fit, and a ``blockSize`` below 1.
    """
    call = "poplin.createTriangularSolveInputRHS"
    _, b, _ = _shapes(call, graph, inputType, outputType, aShape, bShape, leftSide, debugContext, options, cache)
    shape = grouped(b)
    columns, size = (shape[2], shape[1]) if leftSide else (shape[1], shape[2])
    solution = column_matrix(graph, outputType, shape[0], columns, size, debugContext or "")
    return (solution.dimShuffle([0, 2, 1]) if leftSide else solution).reshape(b)


def _shapes(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType,
    aShape: Iterable[int],
    bShape: Iterable[int],
    leftSide: bool,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
) -> tuple[list[int], list[int], SolverOptions]:
    """The shapes and options of a call, which are checked."""
    check_graph(call, graph)
    check_debug(call, debugContext)
    for type in (inputType, outputType):
        check_real(call, type)
    check_flag(call, "leftSide", leftSide)
    a, b = shape_of(call, "aShape", aShape), shape_of(call, "bShape", bShape)
    check_sides(call, a, b, leftSide)
    return a, b, SolverOptions.read(call, options, cache, BLOCK)


def block_matrix(graph: Graph, type: ElementType, shape: list[int], block: int, debug: str) -> Tensor:
    """A new tensor [g, m, n] whose blocks lie together; those at the ends are filled up with elements that nobody sees."""
    groups, rows, columns = shape
    if max(rows, columns) <= block:
        matrix = graph.addVariable(type, shape, debug)
        mapTensorLinearly(graph, matrix)
        return matrix
    down, along = ceiling(rows, block), ceiling(columns, block)
    blocks = graph.addVariable(type, [groups, down, along, block, block], debug)
    mapTensorLinearly(graph, blocks, block, graph.getTarget().getVectorWidth(type))
    whole = blocks.dimShuffle([0, 1, 3, 2, 4]).reshape([groups, down * block, along * block])
    return whole.slice([0, 0, 0], shape)


def column_matrix(graph: Graph, type: ElementType, groups: int, columns: int, size: int, debug: str) -> Tensor:
    """A new tensor [g, k, n] whose rows, each a column of a system's solution, are on one tile each."""
    matrix = graph.addVariable(type, [groups, columns, size], debug)
    mapTensorLinearly(graph, matrix, 0, max(size, 1))
    return matrix


@public
def triangularMask(
    graph: Graph, a: Tensor, lower: bool, unitDiagonal: bool, prog: Sequence, debugContext: str | None = None
) -> Tensor:
    """A new tensor that has the lower or upper triangle of another, and zeros elsewhere; `prog` is extended by copies.

    Parameters
    ----------
    a:
        FLOAT or HALF [..., n, n].
    lower:
        Whether it is the lower triangle.
    unitDiagonal:
        Whether ones stand on the diagonal; then that of `a` is not read.

    Returns
    -------
    Tensor
        Of the shape and type of `a`, and laid out as it.

    Raises
    ------
    PoplibsError
        For another shape or type.
    """
    call = "poplin.triangularMask"
    check_call(call, graph, prog, debugContext)
    check_matrix(call, graph, "a", a)
    check_flag(call, "lower", lower)
    check_flag(call, "unitDiagonal", unitDiagonal)
    debug = below(debugContext, "triangularMask")
    out = graph.clone(a, debug)
    source, target = (tensor.reshape(grouped(a.shape())) for tensor in (a, out))
    if not lower:
        source, target = source.dimShuffle([0, 2, 1]), target.dimShuffle([0, 2, 1])
    size = target.dim(1)
    if target.numElements() == 0:
        return out
    kept = [(row, 0, row + (not unitDiagonal)) for row in range(size)]
    prog.add(Copy(_rows(source, kept), _rows(target, kept), debug))
    fill(graph, _rows(target, [(row, row + 1, size) for row in range(size)]), 0, prog, debug)
    if unitDiagonal:
        fill(graph, _rows(target, [(row, row, row + 1) for row in range(size)]), 1, prog, debug)
    return out


def clear_above(graph: Graph, matrices: Tensor, prog: Sequence, debug: str) -> None:
    """Zeros above the diagonals of matrices [g, m, n]."""
    rows, columns = matrices.shape()[1:]
    fill(graph, _rows(matrices, [(row, row + 1, columns) for row in range(min(rows, columns))]), 0, prog, debug)


def _rows(matrices: Tensor, parts: Iterable[tuple[int, int, int]]) -> Tensor:
    """Parts of rows of all matrices [g, m, n], given as the row, the first column and the one behind the last: a flat tensor."""
    groups = matrices.dim(0)
    pieces = [matrices.slice([0, row, low], [groups, row + 1, high]).flatten() for row, low, high in parts if low < high]
    return concat(pieces) if pieces else matrices.flatten().slice(0, 0)


def fill(graph: Graph, flat: Tensor, value: float, prog: Sequence, debug: str) -> None:
    """A number copied to all elements of a vector."""
    if flat.numElements() == 0:
        return
    constant = graph.addConstant(flat.elementType(), [1], value, below(debug, "constant"))
    graph.setTileMapping(constant, 0)
    prog.add(Copy(constant.broadcast(flat.numElements()), flat, debug))
