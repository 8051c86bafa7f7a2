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
    """The element of A where `conditions`, which are BOOL, hold, else that of B, as a new tensor; `prog` is extended.

    A and B have one type, any that there is. Shapes are broadcast as NumPy does; an operand may be a number, but not both A and B.

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
    """The elements of B in the place of those of A where `conditions` do not hold; see `select`."""
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
    """`select` into `out`, which has the operands' common shape and the type of A."""
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

    All have one type: FLOAT, HALF, INT or UNSIGNED_INT. Shapes are broadcast as NumPy does; an operand may be a number.
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
    """`clamp` in the place of `values`."""
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
    """`clamp` into `out`, which has the operands' common shape and type."""
    write_result("clampWithOutput", CLAMP, graph, [values, minimums, maximums], out, prog, debugContext, options)
