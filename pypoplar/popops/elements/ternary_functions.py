"""The named functions on elements with three operands: select and clamp."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_call import Operand, Options, plain_result, replace_first, write_result
from pypoplar.popops.elements.element_operations import OPERATIONS
from pypoplar.program import Sequence
from pypoplar.tracebacks import public

SELECT = OPERATIONS["SELECT"]
CLAMP = OPERATIONS["CLAMP"]


@public
def select(
    graph: Graph,
    A: Operand,
    B: Operand,
    conditions: Operand,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """The element of A where `conditions` hold, else that of B, as a new tensor; `prog` is extended.

    A and B have one type: FLOAT, HALF, BOOL or one of the integers. Shapes are broadcast as NumPy does.

    Parameters
    ----------
    A, B:
        Tensors; one of the two may be a number of the other's type.
    conditions:
        A BOOL tensor, or a bool.
    options:
        As for `map`; of a single operation they change nothing.

    Returns
    -------
    Tensor
        Of the operands' common shape and the type of A, mapped like an operand, as `createOutputForElementWiseOp` says.

    Raises
    ------
    PoplibsError
        For two types, for conditions that are not BOOL, for shapes without a common one, and for two numbers.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, a, b, chosen):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"c": popops.select(graph, a, b, chosen, prog)}
    >>> arrays = {"a": np.float32([1, 2, 3]), "b": np.float32([10, 20, 30]), "chosen": np.array([True, False, True])}
    >>> testing.run(compute, arrays)["c"]
    array([ 1., 20.,  3.], dtype=float32)
    """
    return plain_result("select", SELECT, graph, [A, B, conditions], prog, debugContext, options)


@public
def selectInPlace(
    graph: Graph,
    A: Tensor,
    B: Operand,
    conditions: Operand,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """The elements of B in the place of those of A where `conditions` do not hold; `prog` is extended.

    Parameters
    ----------
    A:
        What is written.
    B:
        A tensor of the type of A that is broadcast to its shape, or a number of that type.
    conditions:
        A BOOL tensor that is broadcast to the shape of A, or a bool.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        As for `select`; if the common shape is not that of A, and if A holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    replace_first("selectInPlace", SELECT, graph, [A, B, conditions], prog, debugContext, options)


@public
def selectWithOutput(
    graph: Graph,
    A: Operand,
    B: Operand,
    conditions: Operand,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """The element of A where `conditions` hold, else that of B, in `out`; `prog` is extended.

    Parameters
    ----------
    A, B, conditions:
        As for `select`.
    out:
        Of the operands' common shape and the type of A; it has tiles.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        As for `select`; if `out` has another shape or type, or holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    write_result("selectWithOutput", SELECT, graph, [A, B, conditions], out, prog, debugContext, options)


@public
def clamp(
    graph: Graph,
    values: Operand,
    minimums: Operand,
    maximums: Operand,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """``min(max(value, minimum), maximum)`` for each element, as a new tensor; `prog` is extended.

    All have one type: FLOAT, HALF, INT or UNSIGNED_INT. Shapes are broadcast as NumPy does.

    Parameters
    ----------
    values, minimums, maximums:
        Tensors, or numbers of that type; one is a tensor at least.
    options:
        As for `map`; of a single operation they change nothing.

    Returns
    -------
    Tensor
        Of the operands' common shape and type, mapped like an operand, as `createOutputForElementWiseOp` says.

    Raises
    ------
    PoplibsError
        For other types, two types, shapes without a common one, and no tensor.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    return plain_result("clamp", CLAMP, graph, [values, minimums, maximums], prog, debugContext, options)


@public
def clampInPlace(
    graph: Graph,
    values: Tensor,
    minimums: Operand,
    maximums: Operand,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """``min(max(value, minimum), maximum)`` for each element, in the place of `values`; `prog` is extended.

    Parameters
    ----------
    values:
        What is written: FLOAT, HALF, INT or UNSIGNED_INT.
    minimums, maximums:
        Tensors of its type that are broadcast to its shape, or numbers of that type.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        As for `clamp`; if the common shape is not that of `values`, and if that holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    replace_first("clampInPlace", CLAMP, graph, [values, minimums, maximums], prog, debugContext, options)


@public
def clampWithOutput(
    graph: Graph,
    values: Operand,
    minimums: Operand,
    maximums: Operand,
    out: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """``min(max(value, minimum), maximum)`` for each element, in `out`; `prog` is extended.

    Parameters
    ----------
    values, minimums, maximums:
        As for `clamp`.
    out:
        Of the operands' common shape and type; it has tiles.
    options:
        As for `map`; of a single operation they change nothing.

    Raises
    ------
    PoplibsError
        As for `clamp`; if `out` has another shape or type, or holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    write_result("clampWithOutput", CLAMP, graph, [values, minimums, maximums], out, prog, debugContext, options)
