"""What a reduction does: its operation, and whether the result is scaled and combined with what is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, overload

from pypoplar.braces import NUMBERS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.tensor import Tensor
from pypoplar.tracebacks import public
from pypoplar.types import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT, ElementType, check_type


class Operation(Enum):
    """The operation of a reduction, or of an update of slices.

    Attributes
    ----------
    ADD:
        The sum, of FLOAT, HALF, INT and LONGLONG; that of INT may be LONGLONG.
    MUL:
        The product, of the same.
    MIN:
        The smallest, of FLOAT, HALF, INT and UNSIGNED_INT.
    MAX:
        The largest, of the same.
    LOGICAL_AND:
        Whether all hold, of BOOL.
    LOGICAL_OR:
        Whether one holds, of BOOL.
    SQUARE_ADD:
        The sum of squares, of FLOAT, HALF and INT.
    LOG_ADD:
        The logarithm of the sum of exponentials, of FLOAT and HALF.
    """

    ADD = "ADD"
    MUL = "MUL"
    MIN = "MIN"
    MAX = "MAX"
    LOGICAL_AND = "LOGICAL_AND"
    LOGICAL_OR = "LOGICAL_OR"
    SQUARE_ADD = "SQUARE_ADD"
    LOG_ADD = "LOG_ADD"


WIDENED = (Operation.ADD, Operation.MUL)  # what takes INT as LONGLONG
SUMS = (Operation.ADD, Operation.SQUARE_ADD, Operation.LOG_ADD)  # what may be scaled and updated
PRECISE = (*SUMS, Operation.MUL)  # what takes halves in float
TYPES: dict[Operation, tuple[ElementType, ...]] = {
    Operation.ADD: (FLOAT, HALF, INT, LONGLONG),
    Operation.MUL: (FLOAT, HALF, INT, LONGLONG),
    Operation.SQUARE_ADD: (FLOAT, HALF, INT),
    Operation.LOG_ADD: (FLOAT, HALF),
    Operation.MIN: (FLOAT, HALF, INT, UNSIGNED_INT),
    Operation.MAX: (FLOAT, HALF, INT, UNSIGNED_INT),
    Operation.LOGICAL_AND: (BOOL,),
    Operation.LOGICAL_OR: (BOOL,),
}


@public
class ReduceParams:
    """What `reduce` and its kin do: an operation, whether it updates its output, and what scales the result.

    An `Operation` alone stands for ``ReduceParams(op)``. `ReduceParams()` waits for its `op`. `useScale` says whether there is
    a scale.

    Parameters
    ----------
    op:
        The operation.
    update:
        Whether the result is combined with what the output holds, ``out += reduce(in)``; with ADD, SQUARE_ADD and LOG_ADD.
    scale:
        A tensor of one FLOAT that the result is multiplied by, with ADD and SQUARE_ADD; LOG_ADD adds it.

    Raises
    ------
    PoplarTypeError
        For other classes: a number is no scale.
    """

    __slots__ = ("op", "scale", "update", "useScale")

    op: Operation
    update: bool
    useScale: bool
    scale: Tensor | None

    def __init__(self, op: Operation | None = None, update: bool = False, scale: Tensor | None = None) -> None:
        if not isinstance(op, Operation | None):
            raise PoplarTypeError(f"ReduceParams takes a popops.Operation, got {op!r}; write popops.Operation.ADD")
        if not isinstance(update, bool):
            raise PoplarTypeError(f"ReduceParams: update is True or False, got {update!r}; a scale comes after it, as a tensor")
        if not isinstance(scale, Tensor | None):
            raise PoplarTypeError(
                f"ReduceParams: the scale is a FLOAT tensor of one element, got {scale!r}; graph.addConstant makes one of a number"
            )
        self.op = op  # type: ignore[assignment]  # calls refuse what has none
        self.update = update
        self.useScale = scale is not None
        self.scale = scale

    def __repr__(self) -> str:
        scale = f", scale={self.scale!r}" if self.useScale else ""
        return f"ReduceParams({self.op}{', update=True' if self.update else ''}{scale})"


@public
class SingleReduceOp:
    """One reduction of `reduceMany`: ``SingleReduceOp(in_, dims, params[, outType][, debugName])``.

    `useOutType` says whether the result has the type `outType`; else it has that of `in_`.

    Parameters
    ----------
    in_:
        What is reduced.
    dims:
        The dimensions that are reduced, and left out of the result.
    params:
        A `ReduceParams`, or an `Operation` alone.
    outType:
        The type of the result; it may be left out.
    debugName:
        A name for what is added to the graph.

    Raises
    ------
    PoplarTypeError
        For `dims` that are no list, and other classes.
    """

    __slots__ = ("debugName", "dims", "in_", "outType", "params", "useOutType")

    in_: Tensor
    dims: list[int]
    params: ReduceParams
    useOutType: bool
    outType: ElementType
    debugName: str

    @overload
    def __init__(
        self, in_: Tensor, dims: Iterable[int], params: ReduceParams | Operation, outType: ElementType, debugName: str = ""
    ) -> None: ...
    @overload
    def __init__(self, in_: Tensor, dims: Iterable[int], params: ReduceParams | Operation, debugName: str = "") -> None: ...
    def __init__(  # type: ignore[misc]  # in the second form the fourth argument has another name
        self, in_: Tensor, dims: Iterable[int], params: ReduceParams | Operation, outType: Any = None, debugName: str = ""
    ) -> None:
        if isinstance(outType, str):
            debugName, outType = outType, None
        if not isinstance(debugName, str):
            raise PoplarTypeError(f"SingleReduceOp: a debug name is a string, got {debugName!r}")
        self.in_ = in_
        if not isinstance(ordered(dims, "the dimensions of SingleReduceOp", NUMBERS), Iterable):
            raise PoplarTypeError(f"SingleReduceOp: dims is a list of dimensions, got {dims!r}")
        self.dims = list(dims)
        self.params = params_of("SingleReduceOp", params)
        self.useOutType = outType is not None
        self.outType = BOOL if outType is None else check_type(outType)
        self.debugName = debugName


def params_of(call: str, params: ReduceParams | Operation) -> ReduceParams:
    """What was given for `params`: an operation alone stands for one without scale and update."""
    if isinstance(params, Operation):
        return ReduceParams(params)
    if not isinstance(getattr(params, "op", None), Operation):
        raise PoplarTypeError(f"{call}: params is a popops.ReduceParams with an operation, or a popops.Operation, got {params!r}")
    if params.useScale and params.scale is None:
        raise PoplarTypeError(f"{call}: params has useScale, and no scale: a tensor of one FLOAT")
    return ReduceParams(params.op, bool(params.update), params.scale if params.useScale else None)


def added(operation: Operation) -> Operation:
    """How partial results of an operation are reduced: squares have been taken by then."""
    return Operation.ADD if operation is Operation.SQUARE_ADD else operation


def listed_types(types: Sequence[ElementType]) -> str:
    return ", ".join(type.__name__ for type in types)
