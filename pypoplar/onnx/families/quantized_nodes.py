"""Quantized numbers: conversions, and products of integers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.families.convolution_nodes import CONVOLUTIONS, exact_product
from pypoplar.onnx.families.windows import FieldWindows
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator


def _along(op: NodeCall, x: Tensor, factor: Tensor, axis: int) -> Tensor:
    """A scale or zero point in the shape of the tensor that it is for."""
    block = op.attribute("block_size", 0)
    if factor.numel() == 1 and not block:
        return factor.reshape(())
    axis = axis % x.dim()
    if block:
        return torch.repeat_interleave(factor, block, axis).narrow(axis, 0, x.shape[axis])
    return factor.reshape([-1 if one == axis else 1 for one in range(x.dim())])


@operator("QuantizeLinear", since=10)
def quantize(op: NodeCall, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """Divided by a scale, rounded and cut to the type of the zero point."""
    code = op.attribute("output_dtype", 0)
    dtype = zero.dtype if zero is not None else op.dtype(code) if code else torch.uint8
    if dtype.is_floating_point:
        raise op.error("quantized floats are missing")
    axis = op.attribute("axis", 1)
    inner = torch.float32 if x.dtype is not torch.float16 else torch.float16
    total = torch.round(x.to(inner) / _along(op, x, scale, axis).to(inner)).to(torch.float32)
    return _cut(total if zero is None else total + _along(op, x, zero, axis).to(torch.float32), dtype)


def _cut(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.clamp(x, torch.iinfo(dtype).min, torch.iinfo(dtype).max).to(torch.int32).to(dtype)


@operator("DequantizeLinear", since=10)
def dequantize(op: NodeCall, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """Without the zero point, times a scale."""
    axis = op.attribute("axis", 1)
    whole = x.to(torch.int32)
    if zero is not None:
        whole = whole - _along(op, x, zero, axis).to(torch.int32)
    code = op.attribute("output_dtype", 0)
    result = whole.to(scale.dtype) * _along(op, x, scale, axis)
    return result.to(op.dtype(code)) if code else result


def _without(x: Tensor, zero: Tensor | None, shape: list[int] | None = None) -> Tensor:
    """Integers without their zero point, as INT."""
    whole = x.to(torch.int32)
    if zero is None:
        return whole
    zero = zero.to(torch.int32)
    return whole - (zero.reshape(shape) if shape is not None and zero.numel() > 1 else zero)


def _integers(op: NodeCall, a: Tensor, b: Tensor, terms: int, product: object) -> Tensor:
    """A product of integers of nine bits, which their differences from a zero point are."""
    narrow = terms * 255 * 255 < 2**24
    if narrow:
        return product(a.to(torch.float32), b.to(torch.float32)).to(torch.int32)  # type: ignore[operator]
    return exact_product(op, a.to(torch.int16), b.to(torch.int16), terms, product)  # type: ignore[arg-type]


@operator("MatMulInteger", since=10)
def integer_product(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """A product of matrices of 8-bit integers, as INT."""
    return _matrix_product(op, a, b, op.tensor(2), op.tensor(3))


def _matrix_product(op: NodeCall, a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None) -> Tensor:
    row = None if a_zero is None or a_zero.dim() != 1 else [-1, 1]
    return _integers(op, _without(a, a_zero, row), _without(b, b_zero), a.shape[-1], torch.matmul)


@operator("QLinearMatMul", since=10)
def quantized_product(op: NodeCall, a: Tensor) -> Tensor:
    """A product of quantized matrices, quantized anew."""
    a_scale, a_zero, b, b_scale, b_zero, scale, zero = (op.tensor(one) for one in range(1, 8))
    assert b is not None
    assert a_scale is not None
    assert b_scale is not None
    assert scale is not None
    assert zero is not None
    total = _matrix_product(op, a, b, a_zero, b_zero).to(torch.float32)
    row = a_scale.reshape(-1, 1) if a_scale.dim() == 1 and a_scale.numel() > 1 else a_scale
    result = torch.round(total * (row.to(torch.float32) * b_scale.to(torch.float32)) / scale.to(torch.float32))
    return _cut(result + zero.to(torch.float32), zero.dtype)


def _convolution(op: NodeCall, x: Tensor, w: Tensor, x_zero: Tensor | None, w_zero: Tensor | None) -> Tensor:
    rank = x.dim() - 2
    windows = FieldWindows.of(op, list(x.shape[2:]), list(w.shape[2:]))
    field = F.pad(_without(x, x_zero), windows.flat())
    kernel = _without(w, w_zero, [-1, *[1] * (rank + 1)])
    group = op.attribute("group", 1)

    def product(a: Tensor, b: Tensor) -> Tensor:
        return CONVOLUTIONS[rank](a, b, None, windows.strides, 0, windows.dilations, group)

    return _integers(op, field, kernel, w[0].numel(), product)


@operator("ConvInteger", since=10)
def integer_convolution(op: NodeCall, x: Tensor, w: Tensor) -> Tensor:
    """A convolution of 8-bit integers, as INT."""
    return _convolution(op, x, w, op.tensor(2), op.tensor(3))


@operator("QLinearConv", since=10)
def quantized_convolution(op: NodeCall, x: Tensor) -> Tensor:
    """A convolution of quantized numbers, quantized anew."""
    x_scale, x_zero, w, w_scale, w_zero, scale, zero = (op.tensor(one) for one in range(1, 8))
    bias = op.tensor(8)
    assert w is not None
    assert x_scale is not None
    assert w_scale is not None
    assert scale is not None
    assert zero is not None
    total = _convolution(op, x, w, x_zero, w_zero)
    channels = [-1, *[1] * (x.dim() - 2)]
    if bias is not None:
        total = total + bias.to(torch.int32).reshape(channels)
    factor = x_scale * w_scale / scale
    result = total.to(torch.float32) * (factor.reshape(channels) if factor.numel() > 1 else factor)
    return _cut(torch.round(result) + zero.to(torch.float32), zero.dtype)
