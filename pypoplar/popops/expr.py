"""Trees of operations on elements, for `popops.map`: placeholders, constants, casts, operations.

    from pypoplar import popops
    from pypoplar.popops.expr import _1, _2, Exp

    y = popops.map(graph, Exp(_1) * 2.0 + _2, [a, b], prog)

``_1`` is the first tensor. Python's operators build trees; numbers beside a tree become constants. Comparisons build trees too,
so a tree has no truth value: for ``&&``, ``||`` and ``!`` of C++ write `And`, `Or` and `Not`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NoReturn, TypeVar

import numpy as np
from attrs import field, frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.popops.elements.element_docstrings import docstring_of_builder, docstring_of_choice
from pypoplar.popops.elements.element_operations import BINARY, OPERATIONS, TERNARY, UNARY, ElementOperation
from pypoplar.spelling import nearest_or_all
from pypoplar.types import BOOL, FLOAT, HALF, INT, ElementType

Builder = TypeVar("Builder", bound=Callable[..., Any])


class Expr:
    """An expression of the elements of tensors, for `map`: a placeholder, a constant, a cast or an operation.

    Python's operators with a tree on one side build a tree: ``+ - * / % ** & | ^ << >>``, ``-``, ``~``, the comparisons, and
    ``abs``. As comparisons do so, too, a tree has no truth value.

    Raises
    ------
    PoplarTypeError
        If a tree is used as a truth value, or beside what is neither a tree nor a number, such as a NumPy array.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # an array beside a tree is refused, not made an array of trees

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that this one works on, in their order; none of a placeholder or constant."""
        return ()

    def __bool__(self) -> NoReturn:
        raise PoplarTypeError(f"{self} is an expression, which has no truth value: write And, Or and Not, or Select")

    def __add__(self, other: Expr | float) -> Expr:
        return operation("ADD", self, other)

    def __radd__(self, other: float) -> Expr:
        return operation("ADD", other, self)

    def __sub__(self, other: Expr | float) -> Expr:
        return operation("SUBTRACT", self, other)

    def __rsub__(self, other: float) -> Expr:
        return operation("SUBTRACT", other, self)

    def __mul__(self, other: Expr | float) -> Expr:
        return operation("MULTIPLY", self, other)

    def __rmul__(self, other: float) -> Expr:
        return operation("MULTIPLY", other, self)

    def __truediv__(self, other: Expr | float) -> Expr:
        return operation("DIVIDE", self, other)

    def __rtruediv__(self, other: float) -> Expr:
        return operation("DIVIDE", other, self)

    def __mod__(self, other: Expr | float) -> Expr:
        return operation("REMAINDER", self, other)

    def __rmod__(self, other: float) -> Expr:
        return operation("REMAINDER", other, self)

    def __pow__(self, other: Expr | float) -> Expr:
        return operation("POWER", self, other)

    def __rpow__(self, other: float) -> Expr:
        return operation("POWER", other, self)

    def __and__(self, other: Expr | float) -> Expr:
        return operation("BITWISE_AND", self, other)

    def __rand__(self, other: float) -> Expr:
        return operation("BITWISE_AND", other, self)

    def __or__(self, other: Expr | float) -> Expr:
        return operation("BITWISE_OR", self, other)

    def __ror__(self, other: float) -> Expr:
        return operation("BITWISE_OR", other, self)

    def __xor__(self, other: Expr | float) -> Expr:
        return operation("BITWISE_XOR", self, other)

    def __rxor__(self, other: float) -> Expr:
        return operation("BITWISE_XOR", other, self)

    def __lshift__(self, other: Expr | float) -> Expr:
        return operation("SHIFT_LEFT", self, other)

    def __rlshift__(self, other: float) -> Expr:
        return operation("SHIFT_LEFT", other, self)

    def __rshift__(self, other: Expr | float) -> Expr:
        return operation("SHIFT_RIGHT", self, other)

    def __rrshift__(self, other: float) -> Expr:
        return operation("SHIFT_RIGHT", other, self)

    def __neg__(self) -> Expr:
        return operation("NEGATE", self)

    def __invert__(self) -> Expr:
        return operation("BITWISE_NOT", self)

    def __abs__(self) -> Expr:
        return operation("ABSOLUTE", self)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return operation("EQUAL", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return operation("NOT_EQUAL", self, other)

    def __lt__(self, other: Expr | float) -> Expr:
        return operation("LESS_THAN", self, other)

    def __le__(self, other: Expr | float) -> Expr:
        return operation("LESS_THAN_EQUAL", self, other)

    def __gt__(self, other: Expr | float) -> Expr:
        return operation("GREATER_THAN", self, other)

    def __ge__(self, other: Expr | float) -> Expr:
        return operation("GREATER_THAN_EQUAL", self, other)


@frozen(eq=False, str=False)
class PlaceHolder(Expr):
    """The tensor number `index` among those that are mapped, counted from 1.

    Parameters
    ----------
    index:
        1 for the first tensor. ``_1`` to ``_20`` are there already.

    Raises
    ------
    PoplarTypeError
        For what is no whole number from 1 on.
    """

    number: int = field(alias="index")

    @number.validator
    def _is_known(self, _: object, number: object) -> None:
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise PoplarTypeError(f"a PlaceHolder has a number from 1 on, got {number!r}")

    def __str__(self) -> str:
        return f"_{self.number}"


def _number(value: float | np.generic) -> int | float:
    number: object = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, bool | int | float):
        raise PoplarTypeError(f"a constant is a number, got {value!r}")
    return number


@frozen(eq=False, str=False)
class Const(Expr):
    """A number in a tree.

    Parameters
    ----------
    x:
        The number. What is not a number of the type is refused by `map`.
    type:
        The type of the constant. Without it, it is that of the operands beside it; alone a float is FLOAT, an int INT and a
        bool BOOL.

    Raises
    ------
    PoplarTypeError
        For what is no number.
    """

    value: int | float = field(converter=_number, alias="x")
    type: ElementType | None = None

    def __str__(self) -> str:
        shown = repr(self.value)
        return shown if self.type is None else f"{self.type.__name__}({shown})"


def ConstHalf(x: float) -> Const:
    """A constant of type HALF, also where nothing stands beside it.

    Parameters
    ----------
    x:
        Its value, which is rounded to a HALF.

    Returns
    -------
    Const
        ``Const(x, HALF)``.

    Raises
    ------
    PoplarTypeError
        For what is no number.
    """
    return Const(x, HALF)


@frozen(eq=False, str=False)
class Cast(Expr):
    """An expression as another type, rounded, cut or wrapped as `popops.cast` does.

    Parameters
    ----------
    a:
        The expression.
    bType:
        The type that it becomes.

    Raises
    ------
    PoplarTypeError
        For a `bType` that is no element type.
    """

    expression: Expr = field(alias="a")
    type: ElementType = field(alias="bType")

    @type.validator
    def _is_type(self, _: object, type: object) -> None:
        if not isinstance(type, ElementType):
            raise PoplarTypeError(f"Cast takes an expression and an element type, got {type!r}")

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expression whose value is cast."""
        return (self.expression,)

    def __str__(self) -> str:
        return f"cast({self.expression},{self.type.__name__})"


@frozen(eq=False, str=False)
class OperationOf(Expr):
    """An operation on expressions; functions such as `Add` make it.

    Parameters
    ----------
    operation:
        A row of the table of operations.
    operands:
        As many expressions as the row has operands.
    """

    operation: ElementOperation
    operands: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operands, in their order."""
        return self.operands

    def __str__(self) -> str:
        return f"{self.operation.function}({','.join(map(str, self.operands))})"


def expression(value: object) -> Expr:
    """An expression as it is, a number as a constant.

    Parameters
    ----------
    value:
        An expression or a number.

    Returns
    -------
    Expr
        The expression itself, or a `Const`.

    Raises
    ------
    PoplarTypeError
        For anything else.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool | int | float | np.generic):
        return Const(value)
    raise PoplarTypeError(f"an expression is made of placeholders, numbers and operations, got {value!r}")


def operation(name: str, *operands: object) -> Expr:
    """An operation on expressions and numbers, by the name of its row in the table.

    Parameters
    ----------
    name:
        PopLibs' name, such as ``"ADD"``.
    operands:
        As many expressions or numbers as it has operands.

    Returns
    -------
    Expr
        The tree with the operation on top.

    Raises
    ------
    PoplarTypeError
        For another number of operands, and for what is neither an expression nor a number.
    """
    row = OPERATIONS[name]
    if len(operands) != row.operands:
        raise PoplarTypeError(f"{row.symbol} takes {row.operands} operand{'s' * (row.operands > 1)}, got {len(operands)}")
    return OperationOf(row, tuple(map(expression, operands)))


def _unary(name: str) -> Callable[[Expr | float], Expr]:
    """The class of PopLibs that builds an operation of one operand."""

    def build(a: Expr | float) -> Expr:
        return operation(name, a)

    return _named(build, name)


def _binary(name: str) -> Callable[[Expr | float, Expr | float], Expr]:
    """The class of PopLibs that builds an operation of two operands."""

    def build(a: Expr | float, b: Expr | float) -> Expr:
        return operation(name, a, b)

    return _named(build, name)


def _ternary(name: str) -> Callable[[Expr | float, Expr | float, Expr | float], Expr]:
    """The class of PopLibs that builds an operation of three operands."""

    def build(a: Expr | float, b: Expr | float, c: Expr | float) -> Expr:
        return operation(name, a, b, c)

    return _named(build, name)


def _named(build: Builder, name: str) -> Builder:
    row = OPERATIONS[name]
    build.__name__ = build.__qualname__ = row.symbol
    build.__doc__ = docstring_of_builder(row)
    return build


def _of_type(names: tuple[ElementOperation, ...], kind: object, operands: tuple[object, ...]) -> Expr:
    name = kind.value if isinstance(kind, Enum) else kind
    known = [row.name for row in names]
    if name not in known:
        count = names[0].operands
        raise PoplarTypeError(
            f"no operation of {count} operand{'s' * (count > 1)} is called {name!r}{nearest_or_all(str(name), known)}"
        )
    return operation(str(name), *operands)


class UnaryOpType(Enum):  # noqa: D101 (made of a table)
    __doc__ = docstring_of_choice("The operations of one operand, by the names that PopLibs has for them.", UNARY)

    ABSOLUTE = "ABSOLUTE"
    ASIN = "ASIN"
    BITWISE_NOT = "BITWISE_NOT"
    CBRT = "CBRT"
    CEIL = "CEIL"
    COS = "COS"
    COUNT_LEADING_ZEROS = "COUNT_LEADING_ZEROS"
    ERF = "ERF"
    EXPONENT = "EXPONENT"
    EXPONENT_MINUS_ONE = "EXPONENT_MINUS_ONE"
    EXPONENT2 = "EXPONENT2"
    FLOOR = "FLOOR"
    GELU_ERF = "GELU_ERF"
    INVERSE = "INVERSE"
    IS_FINITE = "IS_FINITE"
    IS_INF = "IS_INF"
    IS_NAN = "IS_NAN"
    LOGARITHM = "LOGARITHM"
    LOGARITHM_ONE_PLUS = "LOGARITHM_ONE_PLUS"
    LOGICAL_NOT = "LOGICAL_NOT"
    NEGATE = "NEGATE"
    NEARBY_INT = "NEARBY_INT"
    POPCOUNT = "POPCOUNT"
    RELU = "RELU"
    ROUND = "ROUND"
    RSQRT = "RSQRT"
    SIGMOID = "SIGMOID"
    SIGNUM = "SIGNUM"
    SIN = "SIN"
    SQRT = "SQRT"
    SQUARE = "SQUARE"
    TAN = "TAN"
    TANH = "TANH"
    TRUNC = "TRUNC"


class BinaryOpType(Enum):  # noqa: D101 (made of a table)
    __doc__ = docstring_of_choice("The operations of two operands, by the names that PopLibs has for them.", BINARY)

    ADD = "ADD"
    ATAN2 = "ATAN2"
    BITWISE_AND = "BITWISE_AND"
    BITWISE_OR = "BITWISE_OR"
    BITWISE_XOR = "BITWISE_XOR"
    BITWISE_XNOR = "BITWISE_XNOR"
    DIVIDE = "DIVIDE"
    EQUAL = "EQUAL"
    GREATER_THAN_EQUAL = "GREATER_THAN_EQUAL"
    GREATER_THAN = "GREATER_THAN"
    INV_STD_DEV_TO_VARIANCE = "INV_STD_DEV_TO_VARIANCE"
    LESS_THAN_EQUAL = "LESS_THAN_EQUAL"
    LESS_THAN = "LESS_THAN"
    LOGICAL_AND = "LOGICAL_AND"
    LOGICAL_OR = "LOGICAL_OR"
    MAXIMUM = "MAXIMUM"
    MINIMUM = "MINIMUM"
    MULTIPLY = "MULTIPLY"
    NOT_EQUAL = "NOT_EQUAL"
    POWER = "POWER"
    REMAINDER = "REMAINDER"
    SHIFT_LEFT = "SHIFT_LEFT"
    SHIFT_RIGHT = "SHIFT_RIGHT"
    SHIFT_RIGHT_SIGN_EXTEND = "SHIFT_RIGHT_SIGN_EXTEND"
    SUBTRACT = "SUBTRACT"
    VARIANCE_TO_INV_STD_DEV = "VARIANCE_TO_INV_STD_DEV"


class TernaryOpType(Enum):  # noqa: D101 (made of a table)
    __doc__ = docstring_of_choice("The operations of three operands, by the names that PopLibs has for them.", TERNARY)

    CLAMP = "CLAMP"
    SELECT = "SELECT"


def UnaryOp(type: UnaryOpType | str, a: Expr | float) -> Expr:
    """The operation of one operand that PopLibs calls so.

    Parameters
    ----------
    type:
        A `UnaryOpType`, or its name.
    a:
        An expression or a number.

    Returns
    -------
    Expr
        ``UnaryOp("EXPONENT", _1)`` is ``Exp(_1)``.

    Raises
    ------
    PoplarTypeError
        For a name that no such operation has; the message has the nearest one.
    """
    return _of_type(UNARY, type, (a,))


def BinaryOp(type: BinaryOpType | str, a: Expr | float, b: Expr | float) -> Expr:
    """The operation of two operands that PopLibs calls so.

    Parameters
    ----------
    type:
        A `BinaryOpType`, or its name.
    a, b:
        Expressions or numbers.

    Returns
    -------
    Expr
        ``BinaryOp("ADD", _1, _2)`` is ``_1 + _2``.

    Raises
    ------
    PoplarTypeError
        For a name that no such operation has; the message has the nearest one.
    """
    return _of_type(BINARY, type, (a, b))


def TernaryOp(type: TernaryOpType | str, a: Expr | float, b: Expr | float, c: Expr | float) -> Expr:
    """The operation of three operands that PopLibs calls so.

    Parameters
    ----------
    type:
        A `TernaryOpType`, or its name.
    a, b, c:
        Expressions or numbers.

    Returns
    -------
    Expr
        ``TernaryOp("SELECT", _1, _2, _3)`` is ``Select(_1, _2, _3)``.

    Raises
    ------
    PoplarTypeError
        For a name that no such operation has; the message has the nearest one.
    """
    return _of_type(TERNARY, type, (a, b, c))


def walk(tree: Expr) -> Iterator[Expr]:
    """Every expression of a tree once, operands before what works on them.

    Parameters
    ----------
    tree:
        The expression on top.

    Yields
    ------
    Expr
        An expression of the tree; the last one is the tree itself.
    """
    seen: set[int] = set()
    stack = [(tree, False)]
    while stack:
        node, entered = stack.pop()
        if entered:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(node.parts))


def default_type(constant: Const) -> ElementType:
    """The type of a constant that nothing stands beside.

    Parameters
    ----------
    constant:
        A constant.

    Returns
    -------
    ElementType
        Its own type; else FLOAT of a float, INT of an int, BOOL of a bool.
    """
    if constant.type is not None:
        return constant.type
    return BOOL if isinstance(constant.value, bool) else FLOAT if isinstance(constant.value, float) else INT


Abs = _unary("ABSOLUTE")
Asin = _unary("ASIN")
BitwiseNot = _unary("BITWISE_NOT")
Cbrt = _unary("CBRT")
Ceil = _unary("CEIL")
Cos = _unary("COS")
Erf = _unary("ERF")
Exp = _unary("EXPONENT")
Expm1 = _unary("EXPONENT_MINUS_ONE")
Exp2 = _unary("EXPONENT2")
Floor = _unary("FLOOR")
GeluErf = _unary("GELU_ERF")
Inv = _unary("INVERSE")
IsFinite = _unary("IS_FINITE")
IsInf = _unary("IS_INF")
IsNaN = _unary("IS_NAN")
Log = _unary("LOGARITHM")
Log1p = _unary("LOGARITHM_ONE_PLUS")
Not = _unary("LOGICAL_NOT")
Neg = _unary("NEGATE")
NearbyInt = _unary("NEARBY_INT")
Round = _unary("ROUND")
Rsqrt = _unary("RSQRT")
Sigmoid = _unary("SIGMOID")
Signum = _unary("SIGNUM")
Sin = _unary("SIN")
Sqrt = _unary("SQRT")
Square = _unary("SQUARE")
Tan = _unary("TAN")
Tanh = _unary("TANH")
Trunc = _unary("TRUNC")
Add = _binary("ADD")
Atan2 = _binary("ATAN2")
BitwiseAnd = _binary("BITWISE_AND")
BitwiseOr = _binary("BITWISE_OR")
BitwiseXor = _binary("BITWISE_XOR")
BitwiseXnor = _binary("BITWISE_XNOR")
Divide = _binary("DIVIDE")
Equal = _binary("EQUAL")
Gte = _binary("GREATER_THAN_EQUAL")
Gt = _binary("GREATER_THAN")
InvStdDevToVariance = _binary("INV_STD_DEV_TO_VARIANCE")
Lte = _binary("LESS_THAN_EQUAL")
Lt = _binary("LESS_THAN")
And = _binary("LOGICAL_AND")
Or = _binary("LOGICAL_OR")
Max = _binary("MAXIMUM")
Min = _binary("MINIMUM")
Mul = _binary("MULTIPLY")
NotEqual = _binary("NOT_EQUAL")
Pow = _binary("POWER")
Rem = _binary("REMAINDER")
Shl = _binary("SHIFT_LEFT")
Shr = _binary("SHIFT_RIGHT")
ShrSE = _binary("SHIFT_RIGHT_SIGN_EXTEND")
Sub = _binary("SUBTRACT")
VarianceToInvStdDev = _binary("VARIANCE_TO_INV_STD_DEV")
Clamp = _ternary("CLAMP")
Select = _ternary("SELECT")
_1, _2, _3, _4, _5, _6, _7, _8, _9, _10 = map(PlaceHolder, range(1, 11))
_11, _12, _13, _14, _15, _16, _17, _18, _19, _20 = map(PlaceHolder, range(11, 21))
