"""Casts: the elements of a tensor as another type."""

from __future__ import annotations

from typing import overload

import numpy as np
from attrs import evolve

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popops.elements.map_call import MapCall, check_result
from pypoplar.popops.expr import Abs, Cast, Equal, Lt, Or, PlaceHolder, _1
from pypoplar.poputil.arguments import check_call, check_compute_set, check_operands
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Program, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT, UNSIGNED_LONGLONG, ElementType

SAME_BITS = ({INT, UNSIGNED_INT}, {LONGLONG, UNSIGNED_LONGLONG})  # a cast between the two is a copy


@overload
def cast(graph: Graph, src: Tensor, dstType: ElementType, prog: Sequence, debugContext: str | None = None) -> Tensor: ...
@overload
def cast(graph: Graph, src: Tensor, dst: Tensor, debugContext: str | None = None) -> Program: ...
@overload
def cast(graph: Graph, src: Tensor, dst: Tensor, cs: ComputeSet) -> None: ...
@overload
def cast(graph: Graph, src: Tensor, dstType: ElementType, cs: ComputeSet, debugContext: str | None = None) -> Tensor: ...
@overloaded("popops.cast")
def cast(
    graph: Graph,
    src: Tensor,
    dstType: ElementType | None = None,
    dst: Tensor | None = None,
    prog: Sequence | None = None,
    cs: ComputeSet | None = None,
    debugContext: str | None = None,
) -> Tensor | Program | None:
    """The elements of `src` as another type: as a new tensor of type `dstType`, or in the tensor `dst`.

    Floats become integers by cutting towards 0, held at the ends of the range; integers wrap; what is not 0 becomes true. To
    the same type, and between INT and UNSIGNED_INT, a program is a copy.

    Parameters
    ----------
    src:
        A tensor of any shape and type.
    dstType:
        The type of a new tensor.
    dst:
        A tensor of the shape of `src` instead, whose type decides.
    cs:
        A compute set that vertices are added to instead of `prog`, which is extended; the caller executes it.

    Returns
    -------
    Tensor | Program | None
        The new tensor, mapped like `src`. With `dst` alone the program that makes the cast, and None with `dst` and `cs`.

    Raises
    ------
    PoplibsError
        If `dst` has another shape or cannot be written, or has elements of `src` that a compute set would read.
    InvalidTileMapping
        If an element of `src` or `dst` has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import INT, popops, program, testing
    >>> def compute(graph, x):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"whole": popops.cast(graph, x, INT, prog)}
    >>> testing.run(compute, {"x": np.float32([1.5, -1.5, 3e9])})["whole"]
    array([         1,         -1, 2147483647], dtype=int32)
    """
    if dst is not None and cs is not None:
        _call("cast", graph, src, dst.elementType(), Sequence(), debugContext).into_set(cs, dst)
        return None
    if dst is not None:
        program = Sequence()
        _write("cast", graph, src, dst, program, debugContext)
        return program
    assert dstType is not None
    if cs is not None:
        call = _call("cast", graph, src, dstType, Sequence(), debugContext)
        check_compute_set("popops.cast", graph, cs)
        (result,) = call.outputs(call.typed, call.tensors)
        call.into_set(cs, result)
        return result
    assert prog is not None
    call = _call("cast", graph, src, dstType, prog, debugContext)
    (result,) = call.outputs(call.typed, call.tensors)
    _write("cast", graph, src, result, prog, debugContext)
    return result


@public
def castWithOutput(graph: Graph, src: Tensor, dst: Tensor, prog: Sequence, debugContext: str | None = None) -> None:
    """The elements of `src` in `dst`, as the type of `dst`; `prog` is extended.

    How values change is told by `cast`. Where `dst` has elements of `src`, they are copied before.

    Parameters
    ----------
    src:
        A tensor of any shape and type.
    dst:
        A tensor of that shape, of the type that is wanted.

    Raises
    ------
    PoplibsError
        If `dst` has another shape, or holds an element twice or a constant.
    InvalidTileMapping
        If an element of either has no tile.
    """
    check_call("popops.castWithOutput", graph, prog, debugContext)
    check_operands("popops.castWithOutput", graph, src, dst)
    _write("castWithOutput", graph, src, dst, prog, debugContext)


@public
def checkAccuracyWhenCast(
    graph: Graph, input: Tensor, outputType: ElementType, tolerance: float, prog: Sequence, debugContext: str | None = None
) -> Tensor:
    """Whether the one element of `input` keeps its value as `outputType` but for a relative error below `tolerance`.

    A value that the other type has exactly does; infinities and NaN do not.

    Parameters
    ----------
    input:
        A tensor of one element, FLOAT or HALF.
    outputType:
        HALF for a FLOAT, FLOAT for a HALF.
    tolerance:
        The error allowed as a part of the value, 0 at least.

    Returns
    -------
    Tensor
        A new BOOL of shape [], which is known when `prog` has run.

    Raises
    ------
    PoplibsError
        For other types, several elements, or a negative or no tolerance.
    """
    call = "popops.checkAccuracyWhenCast"
    check_call(call, graph, prog, debugContext)
    check_operands(call, graph, input)
    if not isinstance(outputType, ElementType):
        raise PoplarTypeError(f"{call}: outputType is an element type such as HALF, got {outputType!r}")
    type = input.elementType()
    if {type, outputType} != {FLOAT, HALF} or input.numElements() != 1:
        raise PoplibsError(f"{call} judges the cast of one FLOAT to HALF or back, got {input!r} to {outputType!r}")
    given: object = tolerance
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating) or not given >= 0:
        raise PoplibsError(f"{call}: tolerance is a number, 0 at least, got {tolerance!r}")
    error = Abs(Cast(Cast(_1, outputType), type) - _1)
    accurate = Or(Equal(error, 0.0), Lt(error, Abs(_1) * float(tolerance)))
    debug = below(debugContext, "checkAccuracyWhenCast")
    return MapCall.of(call, graph, [accurate], [input.reshape([])], prog, debug).plain()[0]


def nearest_cast(graph: Graph, src: Tensor, dstType: ElementType, prog: Sequence, debugContext: str) -> Tensor:
    """`cast` to a type of another size, rounded to the nearest also while stochastic rounding is on; `prog` is extended."""
    call = evolve(_call("cast", graph, src, dstType, prog, debugContext), always_nearest=True)
    return call.plain()[0]


def _write(name: str, graph: Graph, src: Tensor, dst: Tensor, prog: Sequence, debugContext: str | None) -> None:
    """Extend a program by the cast into a tensor: a copy, where the bits stay."""
    types = {src.elementType(), dst.elementType()}
    if len(types) > 1 and types not in SAME_BITS:
        _call(name, graph, src, dst.elementType(), prog, debugContext).into(dst)
        return
    check_result(f"popops.{name}", dst, src.shape(), dst.elementType())
    check_operands(f"popops.{name}", graph, src, dst)
    source = apart(graph, src, dst, prog, below(debugContext, "cast/copy"))
    prog.add(Copy(source.reinterpret(dst.elementType()), dst, below(debugContext, "cast")))


def _call(name: str, graph: Graph, src: Tensor, type: ElementType, prog: Sequence, debugContext: str | None) -> MapCall:
    call = f"popops.{name}"
    check_operands(call, graph, src)
    return MapCall.of(call, graph, [Cast(PlaceHolder(1), type)], [src], prog, below(debugContext, "cast"))
