"""Arithmetic on elements, as PyTorch computes it: integers are divided downwards, extremes of NaN are NaN."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.popops import expr
from pypoplar.popops.expr import Abs, And, Const, Expr, Floor, IsNaN, Max, Min, NotEqual, Rem, Select, Signum, Square, Trunc
from pypoplar.poptorch.lowering.elements import element
from pypoplar.poptorch.lowering.rearranging.disjoint_sums import disjoint_sum
from pypoplar.poptorch.lowering.shared_expressions import FLOATS
from pypoplar.types import ElementType

aten = torch.ops.aten


def _scaled(operand: Any, alpha: Any) -> Any:
    """An operand times a factor, which is a constant of the expression where PyTorch gives it by its place."""
    return operand if isinstance(alpha, int | float) and alpha == 1 else operand * alpha


@element(aten.add.Tensor, aten.add.Scalar, joined=disjoint_sum)
def add(a: Any, b: Any, alpha: float = 1) -> Any:
    return a + _scaled(b, alpha)


@element(aten.sub.Tensor, aten.sub.Scalar)
def subtract(a: Any, b: Any, alpha: float = 1) -> Any:
    return a - _scaled(b, alpha)


@element(aten.rsub.Tensor, aten.rsub.Scalar)
def subtract_from(a: Any, b: Any, alpha: float = 1) -> Any:
    return b - _scaled(a, alpha)


@element(aten.mul.Tensor, aten.mul.Scalar)
def multiply(a: Any, b: Any) -> Any:
    return a * b


@element(aten.neg.default)
def negate(a: Any) -> Any:
    return -a


@element(aten.abs.default)
def magnitude(a: Any) -> Any:
    return Abs(a)


@element(aten.positive.default)
def itself(a: Any) -> Any:
    return a


@element(aten.sign.default, aten.sgn.default)
def sign(a: Any) -> Any:
    return Signum(a)


# quotients and what is left of them


@element(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def divide(a: Any, b: Any) -> Any:
    return a / b


@element(aten.div.Tensor_mode, aten.div.Scalar_mode, wide=True, typed=True)
def divide_to_whole(a: Any, b: Any, *, rounding_mode: str | None, type: ElementType) -> Any:
    if rounding_mode is None:
        return a / b
    if rounding_mode == "floor":
        return floor_divide(a, b, type=type)
    return Trunc(a / b) if _is_float(type) else a / b


@element(aten.floor_divide.default, aten.floor_divide.Scalar, wide=True, typed=True)
def floor_divide(a: Any, b: Any, *, type: ElementType) -> Any:
    """The quotient rounded down. Of floats it is found from the rest, as PyTorch does: rounding does not take it beyond a whole.

    Infinity leaves no rest that is a number, so its quotient is NaN. A zero has the sign of what was rounded.
    """
    zero = Const(0, type)
    rest = Rem(a, b)
    below = And(NotEqual(rest, zero), NotEqual(rest < zero, expr.Lt(b, zero)))
    if not _is_float(type):
        return a / b - Select(Const(1, type), zero, below)
    quotient = (a - rest) / b
    quotient = quotient - Select(Const(1.0, type), Const(0.0, type), below)
    whole = Floor(quotient)
    whole = Select(whole + 1.0, whole, quotient - whole > 0.5)
    whole = Select(a / b * Const(0.0, type), whole, expr.Equal(quotient, Const(0.0, type)))
    return Select(a / b, whole, expr.Equal(b, Const(0, type)))


@element(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor, wide=True, typed=True)
def remainder(a: Any, b: Any, *, type: ElementType) -> Any:
    """What is left after division downwards: it has the divisor's sign."""
    zero = Const(0, type)
    rest = Rem(a, b)
    return Select(rest + b, rest, And(NotEqual(rest, zero), NotEqual(rest < zero, expr.Lt(b, zero))))


@element(aten.fmod.Tensor, aten.fmod.Scalar)
def rest_of_division(a: Any, b: Any) -> Any:
    """What is left after division towards 0: it has the dividend's sign."""
    return Rem(a, b)


# products and mixtures


@element(aten.addcmul.default, wide=True, typed=True)
def add_product(a: Any, b: Any, c: Any, *, value: float = 1, type: ElementType) -> Any:
    value = value if type in FLOATS else int(value)  # of integers PyTorch takes its whole part
    return a + (b * c if value == 1 else b * c * value)


@element(aten.addcdiv.default, wide=True)
def add_quotient(a: Any, b: Any, c: Any, *, value: float = 1) -> Any:
    return a + (b / c if value == 1 else b * value / c)


@element(aten.lerp.Tensor, aten.lerp.Scalar, wide=True)
def mixture(a: Any, b: Any, weight: Any) -> Any:
    """From `a` to `b`. It begins at the nearer end, so that each end is met exactly."""
    weight = float(weight) if isinstance(weight, int) else weight
    return Select(a + weight * (b - a), b - (b - a) * (1.0 - weight), Abs(weight) < 0.5)


@element(aten.pow.Tensor_Tensor, aten.pow.Scalar, aten.pow.Tensor_Scalar, wide=True, typed=True)
def power(a: Any, b: Any, *, type: ElementType) -> Any:
    exponent = b.value if isinstance(b, Const) else None if isinstance(b, Expr) else b
    match exponent:
        case 0:
            return Const(1, type)
        case 1:
            return a
        case 2:
            return Square(a)
        case 3:
            return Square(a) * a
        case 4:
            return Square(Square(a))
        case 0.5:
            return expr.Sqrt(a)
        case -0.5:
            return expr.Rsqrt(a)
        case -1 | -1.0 if _is_float(type):
            return expr.Inv(a)
        case -2 | -2.0 if _is_float(type):
            return expr.Inv(Square(a))
    return expr.Pow(a, b)


# the larger and the smaller


def larger(a: Expr, b: Expr, type: ElementType) -> Expr:
    """The larger of two, NaN where one of them is."""
    return Select(b, Max(a, b), IsNaN(b)) if _is_float(type) and not isinstance(b, Const) else Max(a, b)


def smaller(a: Expr, b: Expr, type: ElementType) -> Expr:
    """The smaller of two, NaN where one of them is."""
    return Select(b, Min(a, b), IsNaN(b)) if _is_float(type) and not isinstance(b, Const) else Min(a, b)


@element(aten.maximum.default, typed=True)
def maximum(a: Any, b: Any, *, type: ElementType) -> Any:
    return larger(a, b, type)


@element(aten.minimum.default, typed=True)
def minimum(a: Any, b: Any, *, type: ElementType) -> Any:
    return smaller(a, b, type)


@element(aten.fmax.default, typed=True)
def maximum_of_numbers(a: Any, b: Any, *, type: ElementType) -> Any:
    return Select(b, Max(a, b), IsNaN(a)) if _is_float(type) else Max(a, b)


@element(aten.fmin.default, typed=True)
def minimum_of_numbers(a: Any, b: Any, *, type: ElementType) -> Any:
    return Select(b, Min(a, b), IsNaN(a)) if _is_float(type) else Min(a, b)


@element(aten.clamp.default, aten.clamp.Tensor, typed=True)
def clamp(a: Any, min: Any = None, max: Any = None, *, type: ElementType) -> Any:
    lower, upper = (Const(one, type) if isinstance(one, bool | int | float) else one for one in (min, max))
    result = a if lower is None else larger(a, lower, type)
    return result if upper is None else smaller(result, upper, type)


@element(aten.clamp_min.default, aten.clamp_min.Tensor, typed=True)
def clamp_min(a: Any, min: Any, *, type: ElementType) -> Any:
    return clamp(a, min, type=type)


@element(aten.clamp_max.default, aten.clamp_max.Tensor, typed=True)
def clamp_max(a: Any, max: Any, *, type: ElementType) -> Any:
    return clamp(a, None, max, type=type)


def _is_float(type: ElementType) -> bool:
    return type in FLOATS
