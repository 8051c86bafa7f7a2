"""Systems of linear equations whose matrices are triangular."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.mat_mul import matMulGroupedAcc
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.matmul_params import MatMulParams
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poplin.solvers.solver_arguments import check_matrix, check_real, check_sides, grouped, shape_of
from pypoplar.poplin.solvers.solver_options import SolverOptions
from pypoplar.poplin.solvers.triangular_blocks import solve_rows
from pypoplar.poplin.solvers.triangular_tensors import BLOCK, column_matrix
from pypoplar.popops.elements.cast import cast
from pypoplar.poputil.arguments import check_call, check_flag, check_operands, check_own
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType


@public
def triangularSolve(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    a: Tensor,
    b: Tensor,
    leftSide: bool,
    lower: bool,
    unitDiagonal: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """X of ``A X = B``, or of ``X A = B``, with a triangular matrix, as a new tensor; `prog` is extended.

    A zero on the diagonal gives infinities and NaNs, where NumPy would raise an error. HALFs are solved for as FLOATs, and
    rounded once, at the end.

    Parameters
    ----------
    a:
        FLOAT or HALF [..., n, n], of which one triangle is read.
    b:
        Of the type of `a`, [..., n, k], or [..., k, n].
    leftSide:
        Whether A stands on the left of X.
    lower:
        Whether the lower triangle of `a` is read, else the upper one.
    unitDiagonal:
        Whether the diagonal is not read, and taken to be ones.
    options:
        ``blockSize`` (64): matrices are halved until their rows are no more. Blocks on the diagonal are solved by substitution,
        column by column, the rest are products, by `matMulGroupedAcc`, which takes the other options.
    cache:
        Where the plans of products are kept.

    Returns
    -------
    Tensor
        Of the shape and type of `b`.

    Raises
    ------
    PoplibsError
        For other types, shapes that do not fit, and a ``blockSize`` below 1.
    """
    call = "poplin.triangularSolve"
    check_call(call, graph, prog, debugContext)
    check_matrix(call, graph, "A", a)
    check_matrix_of(call, graph, a, b)
    for name, flag in (("leftSide", leftSide), ("lower", lower), ("unitDiagonal", unitDiagonal)):
        check_flag(call, name, flag)
    check_sides(call, a.shape(), b.shape(), leftSide)
    chosen = SolverOptions.read(call, options, cache, BLOCK)
    debug = below(debugContext, "triangularSolve")
    if b.elementType() is HALF:
        a, b = (cast(graph, tensor, FLOAT, prog, debug) for tensor in (a, b))
        solution = _solution(graph, a, b, leftSide, lower, unitDiagonal, prog, chosen, debug)
        return cast(graph, solution, HALF, prog, debug)
    return _solution(graph, a, b, leftSide, lower, unitDiagonal, prog, chosen, debug)


def _solution(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph, a: Tensor, b: Tensor, leftSide: bool, lower: bool, unit: bool, prog: Sequence, chosen: SolverOptions, debug: str
) -> Tensor:
    """The solution of a system of FLOATs."""
    matrices, sides = a.reshape(grouped(a.shape())), b.reshape(grouped(b.shape()))
    if leftSide:
        sides = sides.dimShuffle([0, 2, 1])
    else:
        matrices, lower = matrices.dimShuffle([0, 2, 1]), not lower
    groups, columns, size = sides.shape()
    solution = column_matrix(graph, FLOAT, groups, columns, size, debug)
    view = solution
    if not lower:  # a lower one, seen from its end
        matrices, view = matrices.reverse(1).reverse(2), solution.reverse(2)
    if solution.numElements():
        prog.add(Copy(sides, solution, debug))
        _System(graph, matrices, view, unit, prog, chosen, debug).solve()
    return (solution.dimShuffle([0, 2, 1]) if leftSide else solution).reshape(b.shape())


def check_matrix_of(call: str, graph: Graph, a: Tensor, b: Tensor) -> None:
    """`PoplibsError` unless B has the type of A, and a tile for each element."""
    check_own(call, graph, b=b)
    if b.elementType() is not a.elementType():
        raise PoplibsError(f"{call}: A and B have one type, got {a!r} and {b!r}")
    check_operands(call, graph, b=b)


@frozen(eq=False)
class _System:
    """Lower triangular matrices [g, n, n], and the columns [g, k, n] that become solutions."""

    graph: Graph
    matrices: Tensor
    columns: Tensor
    unit: bool
    prog: Sequence
    options: SolverOptions
    debug: str

    def solve(self) -> None:
        for low, middle, high in steps(self.columns.dim(2), self.options.block):
            if middle == low:
                rows = self.columns.slice(low, high, 2)
                solve_rows(self.graph, self._block(low, high, low, high), rows, self.unit, self.prog, below(self.debug, "block"))
                continue
            solved, left = (self.columns.slice(*bounds, 2).dimShuffle([0, 2, 1]) for bounds in ((low, middle), (middle, high)))
            factor = self._block(middle, high, low, middle)
            debug = below(self.debug, "product")
            matMulGroupedAcc(self.graph, left, -1.0, factor, solved, self.prog, debug, self.options.products, self.options.cache)

    def _block(self, top: int, bottom: int, left: int, right: int) -> Tensor:
        return self.matrices.slice([0, top, left], [self.matrices.dim(0), bottom, right])


def steps(size: int, block: int, low: int = 0) -> Iterator[tuple[int, int, int]]:
    """What is done in turn, in rows: blocks on the diagonal (low, low, high), and products (low, middle, high).

    A product takes what [low, middle) contribute to [middle, high) from there.
    """
    high = low + size
    if size <= block:
        yield low, low, high
        return
    middle = low + ceiling(ceiling(size, block), 2) * block
    yield from steps(middle - low, block, low)
    yield low, middle, high
    yield from steps(high - middle, block, middle)


@public
def getTriangularSolveMatMulPrePlanParameters(
    inputType: ElementType,
    outputType: ElementType,
    aShape: Iterable[int],
    bShape: Iterable[int],
    leftSide: bool,
    lower: bool,
    options: Options = None,
) -> list[tuple[MatMulParams, dict[str, object]]]:
    """The products of `triangularSolve` for shapes and options, each once, for `preplanMatMuls`.

    Parameters
    ----------
    inputType:
        The type of A, FLOAT or HALF; the products are those of FLOATs in any case.
    outputType:
        The type of B.
    aShape:
        [..., n, n].
    bShape:
        [..., n, k], or [..., k, n].
    leftSide, lower:
        As for `triangularSolve`.
    options:
        As for `triangularSolve`.

    Returns
    -------
    list[tuple[MatMulParams, dict[str, object]]]
        Parameters and options of each product.

    Raises
    ------
    PoplibsError
        For other types, shapes that do not fit, and a ``blockSize`` below 1.
    """
    call = "poplin.getTriangularSolveMatMulPrePlanParameters"
    for type in (inputType, outputType):
        check_real(call, type)
    check_flag(call, "leftSide", leftSide)
    check_flag(call, "lower", lower)
    a, b = shape_of(call, "aShape", aShape), shape_of(call, "bShape", bShape)
    check_sides(call, a, b, leftSide)
    chosen = SolverOptions.read(call, options, None, BLOCK)
    groups, columns = grouped(a)[0], b[-1] if leftSide else b[-2]
    bounds = [step for step in steps(a[-1], chosen.block) if step[0] != step[1]]
    products = {((groups, high - middle, middle - low), (groups, middle - low, columns)) for low, middle, high in bounds}
    return [(MatMulParams(FLOAT, FLOAT, *shapes), dict(chosen.products)) for shapes in sorted(products)]
