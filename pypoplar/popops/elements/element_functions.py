"""The named functions on elements, three for each operation of the table: as a new tensor, in place, into a given tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_operations import OPERATIONS, ElementOperation
from pypoplar.popops.elements.element_output import first_tile
from pypoplar.popops.elements.map_call import MapCall, read_fusing
from pypoplar.popops.expr import Cast, PlaceHolder, operation
from pypoplar.poputil.arguments import check_call, check_tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import BOOL, FLOAT, HALF, ElementType

Operand = Tensor | float
Options = Mapping[str, object] | None


class UnaryPlain(Protocol):
    """An operation of one operand with a new tensor as result."""

    def __call__(
        self,
        graph: Graph,
        A: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> Tensor: ...


class UnaryInPlace(Protocol):
    """An operation of one operand whose result replaces the first."""

    def __call__(
        self,
        graph: Graph,
        A: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None: ...


class UnaryWithOutput(Protocol):
    """An operation of one operand whose result goes into a given tensor."""

    def __call__(
        self,
        graph: Graph,
        A: Tensor,
        out: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None: ...


class BinaryPlain(Protocol):
    """An operation of two operands with a new tensor as result."""

    def __call__(
        self,
        graph: Graph,
        A: Operand,
        B: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> Tensor: ...


class BinaryInPlace(Protocol):
    """An operation of two operands whose result replaces the first."""

    def __call__(
        self,
        graph: Graph,
        A: Tensor,
        B: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None: ...


class BinaryWithOutput(Protocol):
    """An operation of two operands whose result goes into a given tensor."""

    def __call__(
        self,
        graph: Graph,
        A: Operand,
        B: Operand,
        out: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None: ...


class TernaryPlain(Protocol):
    """An operation of three operands with a new tensor as result."""

    def __call__(
        self,
        graph: Graph,
        A: Operand,
        B: Operand,
        C: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> Tensor: ...


class TernaryInPlace(Protocol):
    """An operation of three operands whose result replaces the first."""

    def __call__(
        self,
        graph: Graph,
        A: Tensor,
        B: Operand,
        C: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None: ...


class TernaryWithOutput(Protocol):
    """An operation of three operands whose result goes into a given tensor."""

    def __call__(
        self,
        graph: Graph,
        A: Operand,
        B: Operand,
        C: Operand,
        out: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None: ...


def unary_functions(row: ElementOperation) -> tuple[UnaryPlain, UnaryInPlace, UnaryWithOutput]:
    """``exp``, ``expInPlace`` and ``expWithOutput`` of an operation."""
    name = row.function

    def plain(graph: Graph, A: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None) -> Tensor:
        (result,) = _call(name, row, graph, [A], prog, debugContext, options).plain()
        return result

    def in_place(graph: Graph, A: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None) -> None:
        _call(f"{name}InPlace", row, graph, [A], prog, debugContext, options).in_place()

    def with_output(
        graph: Graph, A: Tensor, out: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        check_tensor(f"popops.{name}WithOutput", out)
        _call(f"{name}WithOutput", row, graph, [A], prog, debugContext, options).into(out)

    _describe(row, plain, in_place, with_output)
    return public(plain), public(in_place), public(with_output)


def binary_functions(row: ElementOperation) -> tuple[BinaryPlain, BinaryInPlace, BinaryWithOutput]:
    """``pow``, ``powInPlace`` and ``powWithOutput`` of an operation."""
    name = row.function

    def plain(
        graph: Graph, A: Operand, B: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> Tensor:
        (result,) = _call(name, row, graph, [A, B], prog, debugContext, options).plain()
        return result

    def in_place(
        graph: Graph, A: Tensor, B: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        check_tensor(f"popops.{name}InPlace", A)
        _call(f"{name}InPlace", row, graph, [A, B], prog, debugContext, options).in_place()

    def with_output(
        graph: Graph, A: Operand, B: Operand, out: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        check_tensor(f"popops.{name}WithOutput", out)
        _call(f"{name}WithOutput", row, graph, [A, B], prog, debugContext, options).into(out)

    _describe(row, plain, in_place, with_output)
    return public(plain), public(in_place), public(with_output)


def ternary_functions(row: ElementOperation) -> tuple[TernaryPlain, TernaryInPlace, TernaryWithOutput]:
    """``select``, ``selectInPlace`` and ``selectWithOutput``, or those of ``clamp``."""
    name = row.function

    def plain(
        graph: Graph, A: Operand, B: Operand, C: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> Tensor:
        (result,) = _call(name, row, graph, [A, B, C], prog, debugContext, options).plain()
        return result

    def in_place(
        graph: Graph, A: Tensor, B: Operand, C: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        check_tensor(f"popops.{name}InPlace", A)
        _call(f"{name}InPlace", row, graph, [A, B, C], prog, debugContext, options).in_place()

    def with_output(
        graph: Graph,
        A: Operand,
        B: Operand,
        C: Operand,
        out: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Options = None,
    ) -> None:
        check_tensor(f"popops.{name}WithOutput", out)
        _call(f"{name}WithOutput", row, graph, [A, B, C], prog, debugContext, options).into(out)

    _describe(row, plain, in_place, with_output)
    return public(plain), public(in_place), public(with_output)


def _describe(row: ElementOperation, *functions: Any) -> None:
    """Give functions their names and docstrings."""
    types = ", ".join(type.__name__ for type in row.types)
    places = ("as a new tensor, mapped like an operand", "in the place of A", "in `out`, of the operands' common shape")
    operands = "Operands have one type, of" if row.operands > 1 else "The type of A is one of"
    broadcast = "Shapes are broadcast as NumPy does; an operand may be a number. " if row.operands > 1 else ""
    result = "; the result is BOOL" if row.relation else ""
    for function, suffix, where in zip(functions, ("", "InPlace", "WithOutput"), places, strict=True):
        function.__name__ = function.__qualname__ = row.function + suffix
        function.__doc__ = (
            f"{row.meaning} for each element, {where}{result}; `prog` is extended.\n\n"
            f"Here a, b and c stand for the elements of A, B and C. {broadcast}{operands} {types}."
        )


def _call(
    name: str, row: ElementOperation, graph: Graph, operands: list[Any], prog: Sequence, debug: str | None, options: Options
) -> MapCall:
    """The call as one of map; numbers become constants of the type of the tensors beside them."""
    call, function = f"popops.{name}", f"popops.{row.function}"
    check_call(call, graph, prog, debug)
    fuses = read_fusing(call, options)
    for operand in operands:
        if not isinstance(operand, Tensor | bool | float | int | np.generic):
            check_tensor(call, operand)
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    alike = [operand for operand in (operands[:2] if row.name == "SELECT" else operands) if isinstance(operand, Tensor)]
    if not alike:
        raise PoplibsError(f"{function} needs a tensor for at least one operand, got {' and '.join(map(repr, operands))}")
    type = alike[0].elementType()
    if any(tensor.elementType() is not type for tensor in alike):
        raise PoplibsError(f"{function} takes operands of one type, got {' and '.join(map(repr, alike))}")
    if type not in row.types:
        raise PoplibsError(f"{function} has no {type!r}: its types are {', '.join(known.__name__ for known in row.types)}")
    types = [BOOL if row.name == "SELECT" and place == 2 else type for place in range(len(operands))]
    filled = [
        operand if isinstance(operand, Tensor) else _constant(graph, type, operand, tensors[0], below(debug, row.function))
        for operand, type in zip(operands, types, strict=True)
    ]
    if row.commutes and name != f"{row.function}InPlace" and filled[0].numElements() == 1 != filled[1].numElements():
        filled.reverse()  # codelets take a single element as the second operand
    tree = operation(row.name, *(PlaceHolder(number + 1) for number in range(row.operands)))
    return MapCall.of(call, graph, [tree], filled, prog, below(debug, row.function), fuses)


def _constant(graph: Graph, type: ElementType, value: float, beside: Tensor, debug: str) -> Tensor:
    """A constant on the first tile of another tensor."""
    constant = graph.addConstant(type, [], value, below(debug, "constant"))
    graph.setTileMapping(constant, first_tile(graph, beside))
    return constant


abs, absInPlace, absWithOutput = unary_functions(OPERATIONS["ABSOLUTE"])
asin, asinInPlace, asinWithOutput = unary_functions(OPERATIONS["ASIN"])
bitwiseNot, bitwiseNotInPlace, bitwiseNotWithOutput = unary_functions(OPERATIONS["BITWISE_NOT"])
cbrt, cbrtInPlace, cbrtWithOutput = unary_functions(OPERATIONS["CBRT"])
ceil, ceilInPlace, ceilWithOutput = unary_functions(OPERATIONS["CEIL"])
cos, cosInPlace, cosWithOutput = unary_functions(OPERATIONS["COS"])
countLeadingZeros, countLeadingZerosInPlace, countLeadingZerosWithOutput = unary_functions(OPERATIONS["COUNT_LEADING_ZEROS"])
erf, erfInPlace, erfWithOutput = unary_functions(OPERATIONS["ERF"])
exp, expInPlace, expWithOutput = unary_functions(OPERATIONS["EXPONENT"])
expm1, expm1InPlace, expm1WithOutput = unary_functions(OPERATIONS["EXPONENT_MINUS_ONE"])
exp2, exp2InPlace, exp2WithOutput = unary_functions(OPERATIONS["EXPONENT2"])
floor, floorInPlace, floorWithOutput = unary_functions(OPERATIONS["FLOOR"])
geluErf, geluErfInPlace, geluErfWithOutput = unary_functions(OPERATIONS["GELU_ERF"])
inv, invInPlace, invWithOutput = unary_functions(OPERATIONS["INVERSE"])
isFinite, isFiniteInPlace, isFiniteWithOutput = unary_functions(OPERATIONS["IS_FINITE"])
isInf, isInfInPlace, isInfWithOutput = unary_functions(OPERATIONS["IS_INF"])
isNaN, isNaNInPlace, isNaNWithOutput = unary_functions(OPERATIONS["IS_NAN"])
log, logInPlace, logWithOutput = unary_functions(OPERATIONS["LOGARITHM"])
log1p, log1pInPlace, log1pWithOutput = unary_functions(OPERATIONS["LOGARITHM_ONE_PLUS"])
logicalNot, logicalNotInPlace, logicalNotWithOutput = unary_functions(OPERATIONS["LOGICAL_NOT"])
neg, negInPlace, negWithOutput = unary_functions(OPERATIONS["NEGATE"])
nearbyInt, nearbyIntInPlace, nearbyIntWithOutput = unary_functions(OPERATIONS["NEARBY_INT"])
popcount, popcountInPlace, popcountWithOutput = unary_functions(OPERATIONS["POPCOUNT"])
round, roundInPlace, roundWithOutput = unary_functions(OPERATIONS["ROUND"])
rsqrt, rsqrtInPlace, rsqrtWithOutput = unary_functions(OPERATIONS["RSQRT"])
sigmoid, sigmoidInPlace, sigmoidWithOutput = unary_functions(OPERATIONS["SIGMOID"])
signum, signumInPlace, signumWithOutput = unary_functions(OPERATIONS["SIGNUM"])
sin, sinInPlace, sinWithOutput = unary_functions(OPERATIONS["SIN"])
sqrt, sqrtInPlace, sqrtWithOutput = unary_functions(OPERATIONS["SQRT"])
square, squareInPlace, squareWithOutput = unary_functions(OPERATIONS["SQUARE"])
tan, tanInPlace, tanWithOutput = unary_functions(OPERATIONS["TAN"])
tanh, tanhInPlace, tanhWithOutput = unary_functions(OPERATIONS["TANH"])
trunc, truncInPlace, truncWithOutput = unary_functions(OPERATIONS["TRUNC"])
add, addInPlace, addWithOutput = binary_functions(OPERATIONS["ADD"])
atan2, atan2InPlace, atan2WithOutput = binary_functions(OPERATIONS["ATAN2"])
bitwiseAnd, bitwiseAndInPlace, bitwiseAndWithOutput = binary_functions(OPERATIONS["BITWISE_AND"])
bitwiseOr, bitwiseOrInPlace, bitwiseOrWithOutput = binary_functions(OPERATIONS["BITWISE_OR"])
bitwiseXor, bitwiseXorInPlace, bitwiseXorWithOutput = binary_functions(OPERATIONS["BITWISE_XOR"])
bitwiseXnor, bitwiseXnorInPlace, bitwiseXnorWithOutput = binary_functions(OPERATIONS["BITWISE_XNOR"])
div, divInPlace, divWithOutput = binary_functions(OPERATIONS["DIVIDE"])
eq, eqInPlace, eqWithOutput = binary_functions(OPERATIONS["EQUAL"])
gteq, gteqInPlace, gteqWithOutput = binary_functions(OPERATIONS["GREATER_THAN_EQUAL"])
gt, gtInPlace, gtWithOutput = binary_functions(OPERATIONS["GREATER_THAN"])
_, invStdDevToVarianceInPlace, invStdDevToVarianceWithOutput = binary_functions(OPERATIONS["INV_STD_DEV_TO_VARIANCE"])
lteq, lteqInPlace, lteqWithOutput = binary_functions(OPERATIONS["LESS_THAN_EQUAL"])
lt, ltInPlace, ltWithOutput = binary_functions(OPERATIONS["LESS_THAN"])
logicalAnd, logicalAndInPlace, logicalAndWithOutput = binary_functions(OPERATIONS["LOGICAL_AND"])
logicalOr, logicalOrInPlace, logicalOrWithOutput = binary_functions(OPERATIONS["LOGICAL_OR"])
max, maxInPlace, maxWithOutput = binary_functions(OPERATIONS["MAXIMUM"])
min, minInPlace, minWithOutput = binary_functions(OPERATIONS["MINIMUM"])
mul, mulInPlace, mulWithOutput = binary_functions(OPERATIONS["MULTIPLY"])
neq, neqInPlace, neqWithOutput = binary_functions(OPERATIONS["NOT_EQUAL"])
pow, powInPlace, powWithOutput = binary_functions(OPERATIONS["POWER"])
rem, remInPlace, remWithOutput = binary_functions(OPERATIONS["REMAINDER"])
shiftLeft, shiftLeftInPlace, shiftLeftWithOutput = binary_functions(OPERATIONS["SHIFT_LEFT"])
shiftRight, shiftRightInPlace, shiftRightWithOutput = binary_functions(OPERATIONS["SHIFT_RIGHT"])
shiftRightSignExtend, shiftRightSignExtendInPlace, shiftRightSignExtendWithOutput = binary_functions(
    OPERATIONS["SHIFT_RIGHT_SIGN_EXTEND"]
)
sub, subInPlace, subWithOutput = binary_functions(OPERATIONS["SUBTRACT"])
_, varianceToInvStdDevInPlace, varianceToInvStdDevWithOutput = binary_functions(OPERATIONS["VARIANCE_TO_INV_STD_DEV"])
clamp, clampInPlace, clampWithOutput = ternary_functions(OPERATIONS["CLAMP"])
select, selectInPlace, selectWithOutput = ternary_functions(OPERATIONS["SELECT"])


@public
def varianceToInvStdDev(
    graph: Graph,
    src: Tensor,
    epsilon: Operand,
    prog: Sequence,
    dstType: ElementType = HALF,
    debugContext: str | None = None,
) -> Tensor:
    """1 over the square root of a variance plus `epsilon`, for each element, as a new tensor of `dstType`; `prog` is extended.

    `epsilon` is a number, or a tensor of the type of `src`. FLOAT and HALF; where the types differ it is computed in FLOAT.
    """
    return _of_variance("VARIANCE_TO_INV_STD_DEV", graph, src, epsilon, prog, dstType, debugContext)


@public
def invStdDevToVariance(
    graph: Graph,
    src: Tensor,
    epsilon: Operand,
    prog: Sequence,
    dstType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> Tensor:
    """1 over the square of an inverse standard deviation, minus `epsilon`, as a new tensor of `dstType`; `prog` is extended.

    `epsilon` is a number, or a tensor of the type of `src`. FLOAT and HALF; where the types differ it is computed in FLOAT.
    """
    return _of_variance("INV_STD_DEV_TO_VARIANCE", graph, src, epsilon, prog, dstType, debugContext)


def _of_variance(
    name: str, graph: Graph, src: Tensor, epsilon: Operand, prog: Sequence, to: ElementType, debug: str | None
) -> Tensor:
    row = OPERATIONS[name]
    call = f"popops.{row.function}"
    check_tensor(call, src)
    if to not in row.types:
        raise PoplibsError(f"{call} gives FLOAT or HALF, got dstType = {to!r}")
    checked = _call(row.function, row, graph, [src, epsilon], prog, debug, None)
    if src.elementType() is to:
        return checked.plain()[0]
    wide = [Cast(PlaceHolder(number), FLOAT) for number in (1, 2)]
    tree = Cast(operation(name, *wide), to)
    return MapCall.of(call, graph, [tree], checked.tensors, prog, checked.debug).plain()[0]
