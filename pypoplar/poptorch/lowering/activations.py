"""Activation functions that are formulas of an element, and their gradients. Halves are computed in float and rounded once.

Of a choice both sides are computed, so that powers are taken of what cannot overflow. NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.popops.expr import Abs, Exp, Expm1, Log1p, Max, Min, Or, Select, Sigmoid, Tanh
from pypoplar.poptorch.lowering.elements import element

aten = torch.ops.aten


@element(aten.hardtanh.default, wide=True)
def hardtanh(x: Any, lowest: float = -1, highest: float = 1) -> Any:
    return Min(Max(x, lowest), highest)


@element(aten.hardtanh_backward.default, wide=True)
def hardtanh_backward(gradient: Any, x: Any, lowest: float, highest: float) -> Any:
    return Select(0.0, gradient, Or(x <= lowest, x >= highest))


@element(aten.leaky_relu.default, wide=True)
def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    return Select(x, x * slope, x > 0.0)


@element(aten.leaky_relu_backward.default, wide=True)
def leaky_relu_backward(gradient: Any, x: Any, slope: float, of_result: bool) -> Any:
    return Select(gradient, gradient * slope, x > 0.0)


@element(aten.elu.default, wide=True)
def elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    return Select(Expm1(Min(x, 0.0) * input_scale) * (alpha * scale), x * scale, x < 0.0)


@element(aten.celu.default, wide=True)
def celu(x: Any, alpha: float = 1) -> Any:
    return elu(x, alpha, 1.0, 1 / alpha)


@element(aten.selu.default, wide=True)
def selu(x: Any) -> Any:
    return elu(x, 1.6732632423543772, 1.0507009873554805)


@element(aten.elu_backward.default, wide=True)
def elu_backward(gradient: Any, alpha: float, scale: float, input_scale: float, of_result: bool, x: Any) -> Any:
    """Of the result or of what went in."""
    factor = alpha * scale
    slope = (x + factor) * input_scale if of_result else Exp(Min(x, 0.0) * input_scale) * (input_scale * factor)
    return gradient * Select(slope, scale, x <= 0.0)


@element(aten.hardsigmoid.default, wide=True)
def hardsigmoid(x: Any) -> Any:
    return Min(Max(x + 3.0, 0.0), 6.0) / 6.0


@element(aten.hardsigmoid_backward.default, wide=True)
def hardsigmoid_backward(gradient: Any, x: Any) -> Any:
    return Select(0.0, gradient * (1 / 6), Or(x <= -3.0, x >= 3.0))


@element(aten.hardswish.default, wide=True)
def hardswish(x: Any) -> Any:
    return x * Min(Max(x + 3.0, 0.0), 6.0) / 6.0


@element(aten.hardswish_backward.default, wide=True)
def hardswish_backward(gradient: Any, x: Any) -> Any:
    return Select(0.0, Select(gradient, gradient * (x / 3.0 + 0.5), x >= 3.0), x <= -3.0)


@element(aten.log_sigmoid.default, wide=True)
def log_sigmoid(x: Any) -> Any:
    return Min(x, 0.0) - Log1p(Exp(-Abs(x)))


@element(aten.log_sigmoid_backward.default, wide=True)
def log_sigmoid_backward(gradient: Any, x: Any, saved: Any) -> Any:
    return gradient * Sigmoid(-x)


@element(aten.softplus.default, wide=True)
def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """``log(1 + exp(beta x)) / beta``; x itself above the threshold."""
    scaled = x * beta
    return Select(x, Log1p(Exp(Min(scaled, threshold))) / beta, scaled > threshold)


@element(aten.softplus_backward.default, wide=True)
def softplus_backward(gradient: Any, x: Any, beta: float, threshold: float) -> Any:
    scaled = x * beta
    return gradient * Select(1.0, Sigmoid(scaled), scaled > threshold)


@element(aten.mish.default, wide=True)
def mish(x: Any) -> Any:
    return x * Tanh(softplus(x))


@element(aten.mish_backward.default, wide=True)
def mish_backward(gradient: Any, x: Any) -> Any:
    limited = Tanh(softplus(x))
    return gradient * (limited + x * Sigmoid(x) * (1.0 - limited * limited))


@element(aten.threshold.default, wide=True)
def threshold(x: Any, limit: float, value: float) -> Any:
    return Select(value, x, x <= limit)


@element(aten.hardshrink.default, wide=True)
def hardshrink(x: Any, limit: float = 0.5) -> Any:
    return Select(0.0, x, Abs(x) <= limit)


@element(aten.hardshrink_backward.default, wide=True)
def hardshrink_backward(gradient: Any, x: Any, limit: float) -> Any:
    return Select(0.0, gradient, Abs(x) <= limit)


@element(aten.softshrink.default, wide=True)
def softshrink(x: Any, limit: float = 0.5) -> Any:
    return Select(x - limit, Select(x + limit, x * 0.0, x < -limit), x > limit)


@element(aten.softshrink_backward.default, wide=True)
def softshrink_backward(gradient: Any, x: Any, limit: float) -> Any:
    return hardshrink_backward(gradient, x, limit)


@element(aten._prelu_kernel.default, wide=True)
def prelu(x: Any, slope: Any) -> Any:
    return Select(x, x * slope, x > 0.0)
