"""The logarithm of the gamma function, its derivatives, and the inverse of the error function, in FLOAT.

Negative numbers are reflected to positive ones; those are moved up by the functions' steps, to where few terms of the series of
Stirling are as exact as FLOAT (Abramowitz and Stegun, Handbook of Mathematical Functions, sections 6.1, 6.3 and 6.4).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from pypoplar.errors import MissingFeature
from pypoplar.popops.expr import Abs, And, Const, Cos, Inv, IsInf, Log, Log1p, NearbyInt, Select, Sin, Sqrt, Square
from pypoplar.poptorch.lowering.elements import element

aten = torch.ops.aten

STEPS = 4  # by which a number is moved up


@element(aten.lgamma.default, wide=True)
def logarithm_of_gamma(a: Any) -> Any:
    """An error of 1e-6 at most, of what is larger than 1 relative to it."""
    reflected = a < 0.5
    positive = _stirling(Select(1.0 - a, a, reflected))
    result = Select(Log(math.pi / Abs(_sine(a))) - positive, positive, reflected)
    return Select(Const(math.inf), result, IsInf(a))


def _stirling(x: Any) -> Any:
    """log gamma(x) = log gamma(x + n) - log(x (x + 1) ... (x + n - 1))."""
    up = x + float(STEPS)
    product = x
    for step in range(1, STEPS):
        product = product * (x + float(step))
    inverse = Inv(up)
    series = inverse * (1 / 12 - Square(inverse) * (1 / 360 - Square(inverse) * (1 / 1260)))
    return (up - 0.5) * Log(up) - up + (0.5 * math.log(2 * math.pi) + series) - Log(product)


def _sine(a: Any) -> Any:
    """sin(pi a), up to its sign, which is 0 at whole numbers."""
    return Sin(math.pi * (a - NearbyInt(a)))


@element(aten.digamma.default, wide=True)
def digamma(a: Any) -> Any:
    """The derivative of the logarithm of gamma; NaN at negative whole numbers, infinite at 0."""
    reflected = a < 0.5
    x = Select(1.0 - a, a, reflected)
    up, steps = x + float(STEPS + 2), Inv(x)
    for step in range(1, STEPS + 2):
        steps = steps + Inv(x + float(step))
    inverse = Inv(up)
    series = Square(inverse) * (1 / 12 - Square(inverse) * (1 / 120 - Square(inverse) * (1 / 252)))
    positive = Log(up) - 0.5 * inverse - series - steps
    rest = a - NearbyInt(a)  # is exact
    result = Select(positive - math.pi * Cos(math.pi * rest) / Sin(math.pi * rest), positive, reflected)
    whole = And(a < 0.0, rest == Const(0.0))
    return Select(Const(math.nan), Select(-Inv(a), result, a == Const(0.0)), whole)


@element(aten.polygamma.default, wide=True)
def polygamma(order: Any, a: Any) -> Any:
    """Derivatives of digamma: the first one, which its gradient takes."""
    if order != 1:
        raise MissingFeature(f"polygamma: the order {order} is missing; 1 is there, and 0 is torch.digamma")
    reflected = a < 0.5
    x = Select(1.0 - a, a, reflected)
    up, steps = x + float(STEPS + 2), Inv(Square(x))
    for step in range(1, STEPS + 2):
        steps = steps + Inv(Square(x + float(step)))
    inverse = Inv(up)
    square = Square(inverse)
    positive = inverse + 0.5 * square + inverse * square * (1 / 6 - square * (1 / 30 - square * (1 / 42))) + steps
    return Select(math.pi**2 / Square(_sine(a)) - positive, positive, reflected)


@element(aten.erfinv.default, wide=True)
def inverse_error_function(a: Any) -> Any:
    """The polynomials of M. Giles (Approximating the erfinv function, GPU Computing Gems, 2011): an error of 4e-7 relative."""
    w = -(Log1p(-a) + Log1p(a))
    middle = _polynomial(w - 2.5, (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                   -0.00125372503, -0.00417768164, 0.246640727, 1.50140941))  # fmt: skip
    ends = _polynomial(Sqrt(w) - 3.0, (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                       -0.0076224613, 0.00943887047, 1.00167406, 2.83297682))  # fmt: skip
    result = a * Select(middle, ends, w < 5.0)
    return Select(a * math.inf, result, Abs(a) == Const(1.0))


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    total: Any = Const(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total
