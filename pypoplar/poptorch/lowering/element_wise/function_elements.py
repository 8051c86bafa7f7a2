"""Functions of one number, or of two. Those that are several steps compute halves in FLOAT and round once, as PyTorch does."""

from __future__ import annotations

import math
from typing import Any

import torch

from pypoplar.popops import expr
from pypoplar.popops.expr import Abs, And, Atan2, Const, Exp, Expm1, IsInf, IsNaN, Log, Log1p, Max, Min, Or, Select, Sqrt, Square
from pypoplar.poptorch.lowering.elements import element
from pypoplar.poptorch.lowering.shared_expressions import FLOATS
from pypoplar.types import FLOAT, ElementType

aten = torch.ops.aten

WHOLE = {  # functions that the libraries have
    aten.exp.default: expr.Exp,
    aten.exp2.default: expr.Exp2,
    aten.expm1.default: expr.Expm1,
    aten.log.default: expr.Log,
    aten.log1p.default: expr.Log1p,
    aten.sqrt.default: expr.Sqrt,
    aten.rsqrt.default: expr.Rsqrt,
    aten.reciprocal.default: expr.Inv,
    aten.sin.default: expr.Sin,
    aten.cos.default: expr.Cos,
    aten.tan.default: expr.Tan,
    aten.asin.default: expr.Asin,
    aten.tanh.default: expr.Tanh,
    aten.erf.default: expr.Erf,
    aten.sigmoid.default: expr.Sigmoid,
}
ROUNDING = {
    aten.floor.default: expr.Floor,
    aten.ceil.default: expr.Ceil,
    aten.trunc.default: expr.Trunc,
    aten.round.default: expr.NearbyInt,
}


def _of_one(function: Any) -> Any:
    """A function of the libraries as an entry of this table."""

    def apply(a: Any) -> Any:
        return function(a)

    return apply


for _operation, _function in WHOLE.items():
    element(_operation)(_of_one(_function))


def _of_floats(function: Any) -> Any:
    """A function that leaves integers as they are."""

    def apply(a: Any, *, type: ElementType) -> Any:
        return function(a) if type in FLOATS else a

    return apply


for _operation, _function in ROUNDING.items():
    element(_operation, typed=True)(_of_floats(_function))


@element(aten.round.decimals, wide=True, typed=True)
def rounded_at(a: Any, *, decimals: int, type: ElementType) -> Any:
    if type not in FLOATS:
        return a
    scale = 10.0 ** abs(decimals)
    return expr.NearbyInt(a * scale) / scale if decimals >= 0 else expr.NearbyInt(a / scale) * scale


@element(aten.frac.default)
def fraction(a: Any) -> Any:
    return a - expr.Trunc(a)


# logarithms and exponentials


@element(aten.log2.default, wide=True)
def logarithm_2(a: Any) -> Any:
    return Log(a) * (1 / math.log(2))


@element(aten.log10.default, wide=True)
def logarithm_10(a: Any) -> Any:
    return Log(a) * (1 / math.log(10))


@element(aten.logaddexp.default, wide=True)
def logarithm_of_sum(a: Any, b: Any) -> Any:
    """log(e^a + e^b), by the larger of them; equal infinities are what they are."""
    same = And(IsInf(a), a == b)
    return Select(a, Max(a, b) + Log1p(Exp(-Abs(a - b))), same)


@element(aten.logaddexp2.default, wide=True)
def logarithm_2_of_sum(a: Any, b: Any) -> Any:
    same = And(IsInf(a), a == b)
    return Select(a, Max(a, b) + Log1p(expr.Exp2(-Abs(a - b))) * (1 / math.log(2)), same)


@element(aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other, wide=True)
def times_logarithm(a: Any, b: Any) -> Any:
    return Select(b, Select(Const(0.0), a * Log(b), a == Const(0.0)), IsNaN(b))


@element(aten.ldexp.Tensor, wide=True)
def times_power_of_two(a: Any, b: Any) -> Any:
    return a * expr.Exp2(b)


@element(aten.logit.default, wide=True)
def logit(a: Any, eps: Any = None) -> Any:
    if eps is not None:
        a = Select(a, Min(Max(a, eps), 1.0 - eps), IsNaN(a))
    return Log(a / (1.0 - a))


@element(aten.logit_backward.default, wide=True)
def logit_backward(gradient: Any, a: Any, eps: Any = None) -> Any:
    result = gradient / (a * (1.0 - a))
    if eps is None:
        return Select(Const(math.nan), result, Or(a < 0.0, a > 1.0))
    return Select(Const(0.0), result, Or(a < eps, a > 1.0 - eps))


# hyperbolic and inverse functions, from the exponential, the logarithm and the arc tangent of a point


@element(aten.sinh.default, wide=True)
def sinh(a: Any) -> Any:
    """From e^x - 1, which loses nothing near 0; far out in two factors, which do not overflow."""
    less = Expm1(Abs(a))
    near = 0.5 * (less + less / (less + 1.0))
    half = Exp(0.5 * Abs(a))
    size = Select(0.5 * half * half, near, Abs(a) > 20.0)
    return Select(-size, size, a < 0.0)


@element(aten.cosh.default, wide=True)
def cosh(a: Any) -> Any:
    half = Exp(0.5 * Abs(a))
    return Select(0.5 * half * half, 0.5 * (Exp(a) + Exp(-a)), Abs(a) > 20.0)


@element(aten.asinh.default, wide=True)
def asinh(a: Any) -> Any:
    size = Abs(a)
    near = Log1p(size + Square(size) / (1.0 + Sqrt(1.0 + Square(size))))
    result = Select(Log(size) + math.log(2), near, size > 1e8)
    return Select(-result, result, a < 0.0)


@element(aten.acosh.default, wide=True)
def acosh(a: Any) -> Any:
    over = a - 1.0
    near = Log1p(over + Sqrt(over * (a + 1.0)))
    return Select(Log(a) + math.log(2), near, a > 1e8)


@element(aten.atanh.default, wide=True)
def atanh(a: Any) -> Any:
    return 0.5 * (Log1p(a) - Log1p(-a))


@element(aten.acos.default, wide=True)
def acos(a: Any) -> Any:
    return Atan2(Sqrt((1.0 - a) * (1.0 + a)), a)


@element(aten.atan.default, wide=True)
def atan(a: Any) -> Any:
    return Atan2(a, Const(1.0))


@element(aten.atan2.default)
def atan2(a: Any, b: Any) -> Any:
    return Atan2(a, b)


@element(aten.erfc.default, wide=True)
def erfc(a: Any) -> Any:
    """What the error function lacks to 1. Beyond 0.5 the difference of `expr.Erf` would lose digits; see `erfc_far`."""
    far = _erfc_far(Abs(a))
    beyond = Select(2.0 - far, far, a < 0.0)
    return Select(1.0 - expr.Erf(a), beyond, Abs(a) < 0.5)


def _erfc_far(size: Any) -> Any:
    """The rational approximation of W. J. Cody's kind by Numerical Recipes (erfc, Chebyshev), relative error 1.2e-7."""
    t = 1.0 / (1.0 + 0.5 * size)
    coefficients = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368)
    total: Any = Const(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * t + coefficient
    return t * Exp(-Square(size) - 1.26551223 + t * total)


# two numbers


@element(aten.hypot.default, wide=True)
def hypotenuse(a: Any, b: Any) -> Any:
    """Scaled by the longer side, whose square may not be a number."""
    larger = Max(Abs(a), Abs(b))
    ratio = Min(Abs(a), Abs(b)) / larger
    result = Select(larger, larger * Sqrt(1.0 + Square(ratio)), larger == Const(0.0))
    result = Select(a + b, result, Or(IsNaN(a), IsNaN(b)))
    return Select(Const(math.inf), result, Or(IsInf(a), IsInf(b)))


@element(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(a: Any, b: Any) -> Any:
    """The size of `a` with the sign of `b`, which a zero has, too."""
    negative = Or(b < Const(0.0), And(b == Const(0.0), expr.Inv(b) < Const(0.0)))
    return Select(-Abs(a), Abs(a), negative)


@element(aten.heaviside.default, typed=True)
def heaviside(a: Any, at_zero: Any, *, type: ElementType) -> Any:
    step = Select(Const(1, type), Const(0, type), a > Const(0, type))
    return Select(at_zero, step, a == Const(0, type))


@element(aten.nan_to_num.default, typed=True)
def nan_to_num(a: Any, nan: Any = None, posinf: Any = None, neginf: Any = None, *, type: ElementType) -> Any:
    if type not in FLOATS:
        return a
    most = float(torch.finfo(torch.float32 if type is FLOAT else torch.float16).max)
    above, below = (default if given is None else _number(given) for given, default in ((posinf, most), (neginf, -most)))
    finite = Select(Const(0.0 if nan is None else _number(nan), type), a, IsNaN(a))
    return Select(Select(Const(above, type), Const(below, type), a > Const(0.0, type)), finite, IsInf(a))


def _number(given: Any) -> float:
    return float(given.value if isinstance(given, Const) else given)
