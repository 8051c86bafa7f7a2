"""`map` and its kin: trees of operations over the elements of tensors, as a new tensor, in place, or into a given one.

An operation's type, with its operands one by one or in a list, stands for the operation of the first tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any, TextIO, overload

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.map_call import MapCall, generated_text
from pypoplar.popops.expr import BinaryOpType, Expr, TernaryOpType, UnaryOpType
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.target import Target
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    Tree = Expr | UnaryOpType | BinaryOpType | TernaryOpType
    Tensors = SequenceOf[Tensor]
else:  # what is none of these, the call says better than a form that does not fit
    Tree = Tensors = Any
Options = Mapping[str, object]


@overload
def map(
    graph: Graph, op: UnaryOpType, t: Tensor, prog: Sequence, debugContext: str | None = None, options: Options | None = None
) -> Tensor: ...
@overload
def map(
    graph: Graph, op: BinaryOpType, a: Tensor, b: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def map(
    graph: Graph, op: TernaryOpType, a: Tensor, b: Tensor, c: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def map(
    graph: Graph, exprs: SequenceOf[Tree], ts: Tensors, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> list[Tensor]: ...  # fmt: skip
@overload
def map(
    graph: Graph, expr: Tree, ts: Tensors, prog: Sequence, debugContext: str | None = None, options: Options | None = None
) -> Tensor: ...
@overloaded("popops.map")
def map(
    graph: Graph, prog: Sequence, debugContext: str | None = None, options: Options | None = None, **given: Any
) -> Tensor | list[Tensor]:
    """The value of an expression for each element of tensors, as a new tensor; `prog` is extended.

    Shapes are broadcast as NumPy does. A tree becomes one codelet, that is, one superstep.

    Parameters
    ----------
    op:
        The type of an operation, such as ``UnaryOpType.EXPONENT``, whose operands follow.
    t:
        The operand of an operation of one.
    options:
        Known are

        - ``enableGenerateCodelet`` (true): false makes each operation a compute set of its own, with the same bits.
        - ``forceGenerateCodelet`` (false): true takes back the false of the first.
        - ``enableVectorBroadcastOptimisations`` and ``enableExpressionOptimizations``: they change nothing here.
    a, b, c:
        The operands of an operation of two or three.
    exprs:
        Several trees, each with a result.
    ts:
        The tensors, the first of which is ``_1``. An operation's type takes the first ones.
    expr:
        A tree of `popops.expr`, or an operation's type.

    Returns
    -------
    Tensor | list[Tensor]
        A new tensor of the common shape, mapped like one of the tensors that are read, as `createOutputForElementWiseOp` says;
        a list of them for `exprs`.

    Raises
    ------
    PoplibsError
        For shapes without a common one, types that an operation does not have or that differ, a constant that the type does not
        have, a placeholder beyond the tensors, and no tensors.
    InvalidTileMapping
        If an element of a tensor has no tile.
    InvalidOption
        For other options.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> from pypoplar.popops.expr import _1, _2, Max
    >>> def compute(graph, a, b):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"c": popops.map(graph, Max(_1, 2.0) * _2 + 1.0, [a, b], prog)}
    >>> testing.run(compute, {"a": np.float32([1, 2, 3]), "b": np.float32([10, 20, 30])})["c"]
    array([21., 41., 91.], dtype=float32)
    """
    results = _call("map", graph, prog, debugContext, options, given).plain()
    return results if "exprs" in given else results[0]


@overload
def mapInPlace(
    graph: Graph, op: UnaryOpType, t: Tensor, prog: Sequence, debugContext: str | None = None, options: Options | None = None
) -> None: ...
@overload
def mapInPlace(
    graph: Graph, op: BinaryOpType, a: Tensor, b: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapInPlace(
    graph: Graph, op: TernaryOpType, a: Tensor, b: Tensor, c: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapInPlace(
    graph: Graph, exprs: SequenceOf[Tree], ts: Tensors, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapInPlace(
    graph: Graph, expr: Tree, ts: Tensors, prog: Sequence, debugContext: str | None = None, options: Options | None = None
) -> None: ...
@overloaded("popops.mapInPlace")
def mapInPlace(graph: Graph, prog: Sequence, debugContext: str | None = None, options: Options | None = None, **given: Any) -> None:
    """The value of an expression for each element, in the place of the first tensor; `prog` is extended.

    Of several expressions the values are in the places of the first so many tensors, which all are read before.

    Parameters
    ----------
    op:
        The type of an operation, such as ``UnaryOpType.EXPONENT``, whose operands follow.
    t:
        The operand of an operation of one.
    options:
        As for `map`.
    a, b, c:
        The operands of an operation of two or three.
    exprs:
        Several trees.
    ts:
        The tensors, the first of which is ``_1``.
    expr:
        A tree of `popops.expr`, or an operation's type.

    Raises
    ------
    PoplibsError
        As for `map`; if a result does not have shape and type of the tensor whose place it takes, if that holds an element
        twice or a constant, and if two of them have an element in common.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> from pypoplar.popops.expr import _1, _2
    >>> def compute(graph, a, b):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     popops.mapInPlace(graph, _1 * _1 + _2, [a, b], prog)
    ...     return prog
    >>> testing.run(compute, {"a": np.float32([1, 2, 3]), "b": np.float32([10, 20, 30])})["a"]
    array([11., 24., 39.], dtype=float32)
    """
    _call("mapInPlace", graph, prog, debugContext, options, given).in_place()


@overload
def mapWithOutput(
    graph: Graph, op: UnaryOpType, in_: Tensor, out: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapWithOutput(
    graph: Graph, op: BinaryOpType, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapWithOutput(
    graph: Graph, op: TernaryOpType, a: Tensor, b: Tensor, c: Tensor, out: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapWithOutput(
    graph: Graph, exprs: SequenceOf[Tree], ts: Tensors, outs: SequenceOf[Tensor], prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overload
def mapWithOutput(
    graph: Graph, expr: Tree, ts: Tensors, out: Tensor, prog: Sequence, debugContext: str | None = None,
    options: Options | None = None,
) -> None: ...  # fmt: skip
@overloaded("popops.mapWithOutput")
def mapWithOutput(
    graph: Graph, prog: Sequence, debugContext: str | None = None, options: Options | None = None, **given: Any
) -> None:
    """The value of an expression for each element, in a tensor that is given; `prog` is extended.

    Parameters
    ----------
    op:
        The type of an operation, such as ``UnaryOpType.EXPONENT``, whose operands follow.
    in_:
        The operand of an operation of one.
    out:
        The tensor that is written: of the common shape, and of the type of the value.
    options:
        As for `map`.
    a, b, c:
        The operands of an operation of two or three.
    exprs:
        Several trees.
    ts:
        The tensors, the first of which is ``_1``.
    outs:
        A tensor for each of several trees.
    expr:
        A tree of `popops.expr`, or an operation's type.

    Raises
    ------
    PoplibsError
        As for `map`; if a value does not fit into its tensor, if that holds an element twice or a constant, if two have an
        element in common, and for another number of tensors than trees.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    outs = list(given.pop("outs")) if "outs" in given else [given.pop("out")]
    _call("mapWithOutput", graph, prog, debugContext, options, given).into(*outs)


@public
def outputGeneratedCodelet(target: Target, expr: Tree, ts: Tensors, options: Options | None, os: TextIO) -> None:
    """Write the Python text of the codelet that `map` would make of an expression over tensors.

    Parameters
    ----------
    target:
        The target of the graph; codelets are the same for all.
    expr:
        A tree of `popops.expr`, or an operation's type.
    ts:
        The tensors: their types and shapes decide.
    options:
        As for `map`.
    os:
        A text file, or what has its method `write`.

    Raises
    ------
    PoplibsError
        As for `map`.
    PoplarTypeError
        If `os` cannot be written to, or `target` is none.
    """
    if not isinstance(target, Target):
        raise PoplarTypeError(f"popops.outputGeneratedCodelet: target is a Target such as graph.getTarget(), got {target!r}")
    if not callable(getattr(os, "write", None)):
        raise PoplarTypeError(f"popops.outputGeneratedCodelet: os is a text file, got {os!r}")
    os.write(generated_text("popops.outputGeneratedCodelet", expr, ts, options))


def _call(
    name: str, graph: Graph, prog: Sequence, debugContext: str | None, options: Options | None, given: dict[str, Any]
) -> MapCall:
    """The call with its tree, or trees, and tensors; operands that are given one by one are the tensors."""
    expression = given.get("expr", given.get("exprs", given.get("op")))
    tensors = given["ts"] if "ts" in given else [given[operand] for operand in ("t", "in_", "a", "b", "c") if operand in given]
    return MapCall.read(f"popops.{name}", graph, expression, tensors, prog, debugContext, options)
