"""Lower and upper factors of a matrix."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.mat_mul import matMulGroupedAcc
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poplin.solvers.solver_arguments import check_real
from pypoplar.poplin.solvers.triangular_blocks import add_block_vertices, solve_rows
from pypoplar.poplin.solvers.triangular_tensors import block_matrix, clear_above, fill
from pypoplar.popops.elements.cast import cast
from pypoplar.poputil.arguments import check_call, check_operands, check_own
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT

BLOCK = 16  # rows of a block


@public
def LUFactorization(graph: Graph, input: Tensor, seq: Sequence, debugContext: str | None = None) -> tuple[Tensor, Tensor]:
    """L and U with ``L U = input``, as new tensors; `seq` is extended.

    L is lower triangular with ones on its diagonal, U upper triangular. Rows are not exchanged: a zero on the diagonal where a
    column is divided by it gives infinities and NaNs, and a small one large errors, where SciPy would choose another row.

    Parameters
    ----------
    input:
        FLOAT or HALF [m, n], which is kept.
    seq:
        The Sequence that is extended.

    Returns
    -------
    tuple[Tensor, Tensor]
        L [m, m] and U [m, n], FLOAT.

    Raises
    ------
    PoplibsError
        For another type or rank.

    Notes
    -----
    Blocks of 16 rows and columns are factorised by a vertex, their rows and columns are solved for, and a product is taken from
    the rest.
    """
    call = "poplin.experimental.LUFactorization"
    check_call(call, graph, seq, debugContext)
    check_own(call, graph, input=input)
    check_real(call, input.elementType())
    if input.rank() != 2:
        raise PoplibsError(f"{call}: the input is a matrix [m, n], got {input!r}")
    check_operands(call, graph, input=input)
    debug = below(debugContext, "LUFactorization")
    rows, columns = input.shape()
    upper = block_matrix(graph, FLOAT, [1, rows, columns], BLOCK, below(debug, "U"))
    lower = block_matrix(graph, FLOAT, [1, rows, rows], BLOCK, below(debug, "L"))
    if rows:
        if columns:
            seq.add(Copy(input, upper[0], debug) if input.elementType() is FLOAT else cast(graph, input, upper[0], debug))
            _factorise(graph, upper, seq, debug)
        _split(graph, lower, upper, seq, debug)
    return lower[0], upper[0]


def _factorise(graph: Graph, matrix: Tensor, seq: Sequence, debug: str) -> None:
    """Both factors in the place of a matrix [1, m, n], without the ones."""
    rows, columns = matrix.shape()[1:]
    cache = PlanningCache()
    for low in range(0, min(rows, columns), BLOCK):
        high = min(low + BLOCK, rows, columns)
        corner = matrix.slice([0, low, low], [1, high, high])
        right = matrix.slice([0, low, high], [1, high, columns])
        left = matrix.slice([0, high, low], [1, rows, high])
        add_block_vertices(graph, "poplin::experimental::LUDCoreVertex", corner, seq, below(debug, "block"))
        solve_rows(graph, corner, right.dimShuffle([0, 2, 1]), True, seq, below(debug, "row"))
        solve_rows(graph, corner.dimShuffle([0, 2, 1]), left, False, seq, below(debug, "column"))
        rest = matrix.slice([0, high, high], [1, rows, columns])
        if rest.numElements():
            matMulGroupedAcc(graph, rest, -1.0, left, right, seq, below(debug, "product"), None, cache)


def _split(graph: Graph, lower: Tensor, both: Tensor, seq: Sequence, debug: str) -> None:
    """What is below the diagonal goes to L, whose diagonal becomes ones."""
    rows, columns = both.shape()[1:]
    common = min(rows, columns)
    seq.add(Copy(both.slice(0, common, 2), lower.slice(0, common, 2), debug))
    fill(graph, lower.slice(common, rows, 2).flatten(), 0, seq, debug)
    clear_above(graph, lower, seq, debug)
    fill(graph, lower.flatten().subSample(rows + 1), 1, seq, debug)
    clear_above(graph, both.dimShuffle([0, 2, 1]), seq, debug)
