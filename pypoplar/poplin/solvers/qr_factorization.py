"""Orthogonal and upper triangular factors of a matrix, by Householder's reflections."""

from __future__ import annotations

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.solvers.triangular_blocks import row_stretches, tiles_of_rows
from pypoplar.popops.loops.counted_loops import countedLoop
from pypoplar.popops.slicing.dynamic_slice import dynamicSlice
from pypoplar.poputil.arguments import (
    check_call,
    check_debug,
    check_graph,
    check_operands,
    check_own,
    check_writeable,
    element_type,
    whole_number,
)
from pypoplar.poputil.call_options import read_options
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType

ROWS = 32  # rowsPerIteration
UPDATE = "poplin::experimental::Update"


@public
def createQRFactorizationMatrices(
    graph: Graph, type: ElementType, m: int, n: int, debugContext: str | None = None
) -> tuple[Tensor, Tensor]:
    """New tensors A and Q for `QRFactorization`; they hold nothing yet, and Q is to become the identity.

    The columns of A and the rows of Q are on one tile each, over all tiles.

    Parameters
    ----------
    type:
        FLOAT.
    m:
        The rows of A, `n` at least.
    n:
        The columns of A.

    Returns
    -------
    tuple[Tensor, Tensor]
        A [m, n] and Q [m, m], with tiles.

    Raises
    ------
    PoplibsError
        For another type, and fewer rows than columns.
    """
    call = "poplin.experimental.createQRFactorizationMatrices"
    check_graph(call, graph)
    check_debug(call, debugContext)
    if element_type(call, type) is not FLOAT:
        raise PoplibsError(f"{call} makes FLOAT matrices, got {type!r}")
    rows, columns = whole_number(call, "m", m), whole_number(call, "n", n)
    _check_sizes(call, rows, columns)
    a = graph.addVariable(FLOAT, [columns, rows], below(debugContext, "A"))
    q = graph.addVariable(FLOAT, [rows, rows], below(debugContext, "Q"))
    mapTensorLinearly(graph, concat([a, q]), 0, max(rows, 1))
    return a.transpose(), q


def _check_sizes(call: str, rows: int, columns: int) -> None:
    if rows < columns:
        raise PoplibsError(f"{call}: A is [m, n] = [{rows}, {columns}], and has as many rows as columns at least")


@public
def QRFactorization(
    graph: Graph, A: Tensor, Q: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None
) -> None:
    """R in the place of `A`, and in that of `Q` what is there times the orthogonal factor; `prog` is extended.

    So `Q` holds the identity before, and ``Q R`` is what `A` was. A diagonal element of R has the sign opposite to that of the
    element that was there, as of LAPACK. A column of zeros is left as it is.

    Parameters
    ----------
    A:
        What is written: FLOAT [m, n], and m is n at least. R is upper triangular.
    Q:
        What is written: FLOAT [m, m].
    options:
        ``rowsPerIteration`` (32): a loop goes over so many columns with the sizes that the first of them needs. More make a
        smaller program that takes more cycles.

    Raises
    ------
    PoplibsError
        For other shapes and types, tensors with elements in common or that cannot be written, and a ``rowsPerIteration`` below
        1.
    """
    call = "poplin.experimental.QRFactorization"
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, A=A, Q=Q)
    if (
        A.rank() != 2
        or Q.rank() != 2
        or Q.shape() != [A.dim(0)] * 2
        or A.elementType() is not FLOAT
        or Q.elementType() is not FLOAT
    ):
        raise PoplibsError(f"{call}: A is FLOAT [m, n] and Q FLOAT [m, m], got {A!r} and {Q!r}")
    rows, columns = A.shape()
    _check_sizes(call, rows, columns)
    check_operands(call, graph, A=A, Q=Q)
    for matrix in (A, Q):
        check_writeable(call, matrix)
    if shares_elements(graph, A, Q):
        raise PoplibsError(f"{call}: {A!r} and {Q!r} share elements, and both are written")
    many = int(read_options(call, options, {"rowsPerIteration": int}).get("rowsPerIteration", ROWS))
    if many < 1:
        raise PoplibsError(f"{call}: the option 'rowsPerIteration' is 1 at least, got {many}")
    debug = below(debugContext, "QRFactorization")
    for low in range(0, columns, many):
        count = min(many, columns - low)
        prog.add(_reflections(graph, A.transpose(), Q, low, count, debug))


def _reflections(graph: Graph, columns: Tensor, Q: Tensor, low: int, count: int, debug: str) -> Sequence:
    """A loop over `count` reflections, from that of column `low` on."""
    length = columns.dim(1)
    current = columns.slice([low, low], [low + count, length])
    rows = concat([columns.slice([low, low], [columns.dim(0), length]), Q.slice(low, length, 1)])

    def turn(counter: Tensor) -> Sequence:
        program = Sequence()
        x = dynamicSlice(graph, current, counter, [0], [1], program, below(debug, "column")).flatten()
        cs = graph.addComputeSet(below(debug, "update"))
        _add_updates(graph, cs, rows, x, counter)
        program.add(Execute(cs))
        return program

    return countedLoop(graph, count, turn, debug)


def _add_updates(graph: Graph, cs: ComputeSet, rows: Tensor, x: Tensor, counter: Tensor) -> None:
    tiles = tiles_of_rows(graph, rows)
    stretches = np.array(row_stretches(tiles, np.zeros_like(tiles)))
    lengths = stretches[:, 1] - stretches[:, 0]
    for length in np.unique(lengths).tolist():
        chosen = stretches[lengths == length]
        number = len(chosen)
        fields = {
            "rows": concat(rows.slices(chosen.tolist())).reshape([number, length, rows.dim(1)]),
            "x": x.expand([0]).broadcast(number, 0),
            "step": counter.broadcast(number),
            "first": chosen[:, 0],
        }
        graph.add_vertices(cs, UPDATE, fields, tiles[chosen[:, 0]])
