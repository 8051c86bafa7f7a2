"""The named functions on elements, three for each operation of the table: as a new tensor, in place, into a given tensor.

Those of three operands are in `ternary_functions`, those between variance and standard deviation in `variance_functions`.
"""

from __future__ import annotations

from typing import Any, Protocol

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_call import Operand, Options, plain_result, replace_first, write_result
from pypoplar.popops.elements.element_docstrings import docstring_of_function
from pypoplar.popops.elements.element_operations import OPERATIONS, ElementOperation
from pypoplar.program import Sequence
from pypoplar.tracebacks import public

EXAMPLES = {
    "add": """
>>> import numpy as np
>>> from pypoplar import popops, program, testing
>>> def compute(graph, a, b):
...     popops.addCodelets(graph)
...     prog = program.Sequence()
...     return prog, {"sum": popops.add(graph, a, b, prog)}
>>> testing.run(compute, {"a": np.float32([1, 2, 3]), "b": np.float32([10, 20, 30])})["sum"]
array([11., 22., 33.], dtype=float32)
""",
}


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


def unary_functions(row: ElementOperation) -> tuple[UnaryPlain, UnaryInPlace, UnaryWithOutput]:
    """``exp``, ``expInPlace`` and ``expWithOutput`` of an operation."""
    name = row.function

    def plain(graph: Graph, A: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None) -> Tensor:
        return plain_result(name, row, graph, [A], prog, debugContext, options)

    def in_place(graph: Graph, A: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None) -> None:
        replace_first(f"{name}InPlace", row, graph, [A], prog, debugContext, options)

    def with_output(
        graph: Graph, A: Tensor, out: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        write_result(f"{name}WithOutput", row, graph, [A], out, prog, debugContext, options)

    _describe(row, plain, in_place, with_output)
    return public(plain), public(in_place), public(with_output)


def binary_functions(row: ElementOperation) -> tuple[BinaryPlain, BinaryInPlace, BinaryWithOutput]:
    """``pow``, ``powInPlace`` and ``powWithOutput`` of an operation."""
    name = row.function

    def plain(
        graph: Graph, A: Operand, B: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> Tensor:
        return plain_result(name, row, graph, [A, B], prog, debugContext, options)

    def in_place(
        graph: Graph, A: Tensor, B: Operand, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        replace_first(f"{name}InPlace", row, graph, [A, B], prog, debugContext, options)

    def with_output(
        graph: Graph, A: Operand, B: Operand, out: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None
    ) -> None:
        write_result(f"{name}WithOutput", row, graph, [A, B], out, prog, debugContext, options)

    _describe(row, plain, in_place, with_output)
    return public(plain), public(in_place), public(with_output)


def _describe(row: ElementOperation, *functions: Any) -> None:
    """Give functions their names and docstrings."""
    for function, place in zip(functions, ("", "InPlace", "WithOutput"), strict=True):
        function.__name__ = function.__qualname__ = row.function + place
        function.__doc__ = docstring_of_function(row, place, EXAMPLES.get(row.function + place, ""))


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
nearbyint, nearbyintInPlace, nearbyintWithOutput = unary_functions(OPERATIONS["NEARBY_INT"])
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
