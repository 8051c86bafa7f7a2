"""Operators of single elements: arithmetic, functions, comparisons, logic, conversions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "BitwiseNot": torch.bitwise_not,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Exp": torch.exp,
    "HardSwish": F.hardswish,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Mish": F.mish,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Relu": F.relu,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}
ROUNDING: dict[str, Callable[[Tensor], Tensor]] = {"Ceil": torch.ceil, "Floor": torch.floor, "Round": torch.round}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "And": torch.logical_and,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Equal": torch.eq,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Mul": torch.mul,
    "Or": torch.logical_or,
    "Sub": torch.sub,
    "Xor": torch.logical_xor,
}
SEVERAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"Max": torch.maximum, "Min": torch.minimum, "Sum": torch.add}


def _enter_unary(name: str, function: Callable[[Tensor], Tensor]) -> None:
    def entry(op: NodeCall, x: Tensor) -> Tensor:
        return function(x)

    operator(name)(entry)


def _enter_rounding(name: str, function: Callable[[Tensor], Tensor]) -> None:
    def entry(op: NodeCall, x: Tensor) -> Tensor:
        return function(x) if x.is_floating_point() else x

    operator(name)(entry)


def _enter_binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    def entry(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
        return function(a, spread(op, a, b))

    operator(name)(entry)


def _enter_several(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    def entry(op: NodeCall, *operands: Tensor) -> Tensor:
        return reduce(function, operands)

    operator(name)(entry)


for _name, _function in UNARY.items():
    _enter_unary(_name, _function)
for _name, _function in ROUNDING.items():
    _enter_rounding(_name, _function)
for _name, _pair in BINARY.items():
    _enter_binary(_name, _pair)
for _name, _pair in SEVERAL.items():
    _enter_several(_name, _pair)


def spread(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """The second operand in the shape that `broadcast` and `axis` gave it before opset 7."""
    axis = op.attribute("axis") if op.opset < 7 else None
    if axis is None or b.dim() == 0:
        return b
    begin = axis % a.dim()
    return b.reshape([*b.shape, *[1] * (a.dim() - begin - b.dim())])


@operator("Erf")
def erf(op: NodeCall, x: Tensor) -> Tensor:
    """The error function; of integers, which opset 9 takes, without its fraction."""
    return torch.erf(x) if x.is_floating_point() else torch.erf(x.to(torch.float32)).to(x.dtype)


@operator("Mean")
def mean(op: NodeCall, *operands: Tensor) -> Tensor:
    """The mean of all operands."""
    return reduce(torch.add, operands) / len(operands)


@operator("Div")
def div(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """Of integers the quotient without its fraction."""
    other = spread(op, a, b)
    return torch.div(a, other) if a.is_floating_point() else torch.div(a, other, rounding_mode="trunc")


@operator("Pow")
def power(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """The result has the type of the base."""
    other = spread(op, a, b)
    if op.is_known(1) and other.numel() == 1 and op.known[1] is not None:
        exponent = op.array(1).reshape(-1)[0].item()
        if a.is_floating_point() or (isinstance(exponent, int) and exponent >= 0):
            whole = int(exponent) if float(exponent).is_integer() else exponent
            return torch.pow(a, whole).reshape(torch.broadcast_shapes(a.shape, other.shape)).to(a.dtype)
    if a.dtype == other.dtype:
        return torch.pow(a, other)
    if a.is_floating_point():
        return torch.pow(a, other.to(a.dtype))
    if other.is_floating_point():
        return torch.pow(a.to(torch.float32), other.to(torch.float32)).to(a.dtype)
    return torch.pow(a.to(torch.int32), other.to(torch.int32)).to(a.dtype)


@operator("Mod")
def mod(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """The rest with the divisor's sign; with `fmod` the dividend's."""
    return torch.fmod(a, b) if op.attribute("fmod", 0) else torch.remainder(a, b)


@operator("BitShift")
def bit_shift(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """Shifts to the left or right."""
    left = op.attribute("direction") == "LEFT"
    return torch.bitwise_left_shift(a, b) if left else torch.bitwise_right_shift(a, b)


@operator("Where")
def where(op: NodeCall, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Elements of one operand or the other."""
    return torch.where(condition, a, b)


@operator("IsInf")
def is_infinite(op: NodeCall, x: Tensor) -> Tensor:
    """Infinities of the signs that are asked for."""
    negative, positive = op.attribute("detect_negative", 1), op.attribute("detect_positive", 1)
    if negative and positive:
        return torch.isinf(x)
    if negative:
        return torch.isneginf(x)
    return torch.isposinf(x) if positive else torch.zeros_like(x, dtype=torch.bool)


@operator("Clip")
def clip(op: NodeCall, x: Tensor) -> Tensor:
    """Between bounds that are attributes."""
    least, most = op.attribute("min"), op.attribute("max")
    return x if least is None and most is None else torch.clamp(x, least, most)


@operator("Clip", since=11)
def clip_by_operands(op: NodeCall, x: Tensor) -> Tensor:
    """Between bounds that are operands."""
    bounds = [op.array(one).reshape(-1)[0].item() if op.is_known(one) else None for one in (1, 2)]
    if all(op.is_known(one) or not op.has(one) for one in (1, 2)):
        return torch.clamp(x, *bounds) if any(one is not None for one in bounds) else x
    least, most = op.tensor(1), op.tensor(2)
    x = x if least is None else torch.maximum(x, least)
    return x if most is None else torch.minimum(x, most)


@operator("Elu")
def elu(op: NodeCall, x: Tensor) -> Tensor:
    """Below 0 ``alpha (exp(x) - 1)``."""
    return F.elu(x, op.attribute("alpha", 1.0))


@operator("Celu")
def celu(op: NodeCall, x: Tensor) -> Tensor:
    """Below 0 ``alpha (exp(x / alpha) - 1)``."""
    return F.celu(x, op.attribute("alpha", 1.0))


@operator("Selu")
def selu(op: NodeCall, x: Tensor) -> Tensor:
    """``gamma`` times Elu."""
    alpha, gamma = op.attribute("alpha", 1.6732632423543772), op.attribute("gamma", 1.0507009873554805)
    if abs(alpha - 1.6732632423543772) < 1e-6 and abs(gamma - 1.0507009873554805) < 1e-6:
        return torch.selu(x)
    return gamma * F.elu(x, alpha)


@operator("LeakyRelu")
def leaky_relu(op: NodeCall, x: Tensor) -> Tensor:
    """Below 0 ``alpha x``."""
    return F.leaky_relu(x, op.attribute("alpha", 0.01))


@operator("ThresholdedRelu")
def thresholded_relu(op: NodeCall, x: Tensor) -> Tensor:
    """0 up to ``alpha``."""
    return torch.where(x > op.attribute("alpha", 1.0), x, torch.zeros_like(x))


@operator("PRelu")
def parametric_relu(op: NodeCall, x: Tensor, slope: Tensor) -> Tensor:
    """Below 0 ``slope x``."""
    if op.opset < 7 and slope.dim() == 1 and slope.numel() > 1:
        slope = slope.reshape([-1, *[1] * (x.dim() - 2)])
    return torch.where(x < 0, slope * x, x)


@operator("HardSigmoid")
def hard_sigmoid(op: NodeCall, x: Tensor) -> Tensor:
    """``alpha x + beta`` between 0 and 1."""
    return torch.clamp(x * op.attribute("alpha", 0.2) + op.attribute("beta", 0.5), 0.0, 1.0)


@operator("Shrink")
def shrink(op: NodeCall, x: Tensor) -> Tensor:
    """0 between ``-lambd`` and ``lambd``, beyond nearer to 0 by ``bias``."""
    bias, bound = op.attribute("bias", 0.0), op.attribute("lambd", 0.5)
    if not x.is_floating_point():
        return shrink_floats(x.to(torch.float32), bias, bound).to(x.dtype)
    return shrink_floats(x, bias, bound)


def shrink_floats(x: Tensor, bias: float, bound: float) -> Tensor:
    """`Shrink` of floats."""
    zero = torch.zeros_like(x)
    return torch.where(x < -bound, x + bias, torch.where(x > bound, x - bias, zero))


@operator("Gelu", since=20)
def gelu(op: NodeCall, x: Tensor) -> Tensor:
    """By the error function, or by ``tanh``."""
    return F.gelu(x, approximate=op.attribute("approximate", "none"))


@operator("Swish", since=24)
def swish(op: NodeCall, x: Tensor) -> Tensor:
    """``x sigmoid(alpha x)``."""
    alpha = op.attribute("alpha", 1.0)
    return F.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


@operator("Cast")
def cast(op: NodeCall, x: Tensor) -> Tensor:
    """Another type."""
    return converted(x, op.dtype(_type_code(op.attribute("to"))))


def _type_code(to: Any) -> int:
    """The code of a type, which opsets before 6 wrote as text."""
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(to)) if isinstance(to, str) else int(to)


@operator("CastLike", since=15)
def cast_like(op: NodeCall) -> Tensor:
    """The type of the other operand."""
    known, x, like = op.known[0], op.tensor(0), op.tensors[1]
    assert x is not None
    assert like is not None
    return converted(x if known is None else known, like.dtype)


def converted(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in another type; truth is what is not 0."""
    if dtype is torch.bool and x.dtype is not torch.bool:
        return x != 0
    return x.to(dtype)


@operator("BitCast", since=26)
def bit_cast(op: NodeCall, x: Tensor) -> Tensor:
    """The same bits in another type of the same size."""
    dtype = op.dtype(op.attribute("to"))
    if dtype.itemsize != x.dtype.itemsize:
        raise op.error(f"elements of {x.dtype.itemsize} bytes cannot be those of {dtype.itemsize}")
    if dtype.itemsize > 1 or dtype is torch.bool:
        return x.view(dtype)
    whole = x.to(torch.int32)
    low, span = torch.iinfo(dtype).min, 256
    wrapped = torch.where(whole < low, whole + span, whole)
    return torch.where(wrapped >= low + span, wrapped - span, wrapped).to(dtype)


@operator("Identity")
def identity(op: NodeCall, x: Tensor) -> Tensor:
    """The operand."""
    return x


@operator("OptionalGetElement", since=15)
def optional_element(op: NodeCall, x: Tensor) -> Tensor:
    """The operand, which is there."""
    return x


@operator("OptionalHasElement", since=15)
def optional_has_element(op: NodeCall) -> Tensor:
    """Whether there is an operand."""
    return torch.tensor(op.has(0))


@operator("Dropout")
def dropout(op: NodeCall, x: Tensor) -> tuple[Tensor, ...]:
    """From opset 12 on nothing is dropped but where a node says that it trains; before, in models that train."""
    ratio, training = op.attribute("ratio", 0.5), op.training
    if op.opset >= 12:
        training = bool(op.number(2, False))
        ratio = op.number(1, 0.5) if training else 0.0
    mask = torch.bool if op.opset >= 10 else x.dtype
    if not training or ratio == 0.0:
        return x, torch.ones_like(x, dtype=mask)
    kept = torch.rand_like(x) >= ratio
    return torch.where(kept, x / (1.0 - ratio), torch.zeros_like(x)), kept.to(mask)
