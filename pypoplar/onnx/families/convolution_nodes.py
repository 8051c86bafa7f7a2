"""Convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.families.windows import FieldWindows, check_kernel
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED: dict[int, Callable[..., Tensor]] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@operator("Conv")
def conv(op: NodeCall, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A convolution of one to three dimensions."""
    return convolved(op, x, weight, bias)


def convolved(op: NodeCall, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution that a node's attributes say."""
    rank = x.dim() - 2
    if rank not in CONVOLUTIONS or weight.dim() != x.dim():
        raise op.error(f"fields have one to three dimensions, got an input {list(x.shape)} and a weight {list(weight.shape)}")
    windows = FieldWindows.of(op, list(x.shape[2:]), list(weight.shape[2:]))
    padding: list[int] = windows.before
    if windows.before != windows.after:
        x, padding = F.pad(x, windows.flat()), [0] * rank
    return CONVOLUTIONS[rank](x, weight, bias, windows.strides, padding, windows.dilations, op.attribute("group", 1))


@operator("ConvTranspose")
def conv_transpose(op: NodeCall, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The gradient of a convolution by its input."""
    rank = x.dim() - 2
    if rank not in TRANSPOSED:
        raise op.error(f"fields have one to three dimensions, got {list(x.shape)}")
    strides = op.attribute("strides") or [1] * rank
    dilations = op.attribute("dilations") or [1] * rank
    more = op.attribute("output_padding") or [0] * rank
    group = op.attribute("group", 1)
    kernel = list(weight.shape[2:])
    check_kernel(op, kernel)
    full = [(x.shape[2 + one] - 1) * strides[one] + (kernel[one] - 1) * dilations[one] + 1 for one in range(rank)]
    before, after = _cut(op, full, [x.shape[2 + one] for one in range(rank)], strides, more)
    plain = before == after and all(
        one < max(stride, dilation) for one, stride, dilation in zip(more, strides, dilations, strict=True)
    )
    if plain and all(one >= 0 for one in before):
        return TRANSPOSED[rank](x, weight, bias, strides, before, more, group, dilations)
    result = TRANSPOSED[rank](x, weight, None, strides, 0, 0, group, dilations)
    cut = [-one for axis in reversed(range(rank)) for one in (before[axis], after[axis] - more[axis])]
    result = F.pad(result, cut)
    return result if bias is None else result + bias.reshape([-1, *[1] * rank])


def _cut(op: NodeCall, full: list[int], sizes: list[int], strides: list[int], more: list[int]) -> tuple[list[int], list[int]]:
    """How much is cut off at each side."""
    rank = len(full)
    kind, shape = op.attribute("auto_pad", "NOTSET"), op.attribute("output_shape")
    if shape is None and kind in ("SAME_UPPER", "SAME_LOWER"):
        shape = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if shape is None:
        pads = op.attribute("pads") or [0] * 2 * rank
        return list(pads[:rank]), list(pads[rank:])
    total = [one + extra - wanted for one, extra, wanted in zip(full, more, shape[-rank:], strict=True)]
    less, rest = [one // 2 for one in total], [one - one // 2 for one in total]
    return (less, rest) if kind == "SAME_UPPER" else (rest, less)


@operator("MatMul")
def mat_mul(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """A product of matrices."""
    if not a.is_floating_point():
        return exact_product(op, a, b, a.shape[-1], torch.matmul).to(a.dtype)
    return torch.matmul(a, b)


@operator("Gemm")
def gemm(op: NodeCall, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    """``alpha A B + beta C``."""
    alpha, beta = op.attribute("alpha", 1.0), op.attribute("beta", 1.0)
    if op.attribute("transA", 0):
        a = a.transpose(0, 1)
    plain = alpha == 1.0 and (c is None or (beta == 1.0 and c.dim() == 1))
    if plain and op.attribute("transB", 0) and a.is_floating_point() and (c is None or c.shape[0] == b.shape[0]):
        return F.linear(a, b, c)
    if op.attribute("transB", 0):
        b = b.transpose(0, 1)
    product = torch.matmul(a, b) if a.is_floating_point() else exact_product(op, a, b, a.shape[-1], torch.matmul).to(a.dtype)
    if alpha != 1.0:
        product = (alpha * product).to(a.dtype)
    if c is None or beta == 0.0:
        return product
    return product + (c if beta == 1.0 else (beta * c).to(a.dtype))


@operator("Einsum", since=12)
def einsum(op: NodeCall, *operands: Tensor) -> Tensor:
    """Sums of products by the letters of axes."""
    return torch.einsum(op.attribute("equation").replace(" ", ""), *operands)


EXACT = 2**24  # whole numbers up to here are exact in FLOAT
BYTE = 255


def exact_product(op: NodeCall, a: Tensor, b: Tensor, terms: int, product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """A product of integers, as INT: of wide ones in parts whose sums are exact in FLOAT.

    Each factor becomes digits of equal widths, of which the last has the sign.
    """
    digits = (_digits(a, terms), _digits(b, terms)) if a.dtype in WIDE or b.dtype in WIDE else _byte_digits(a, b, terms)
    total = None
    for one, shift in digits[0]:
        for other, further in digits[1]:
            if shift + further >= 32:
                continue  # nothing of it is left in 32 bits
            part = product(one.to(torch.float32), other.to(torch.float32)).to(torch.int32)
            part = torch.bitwise_left_shift(part, shift + further) if shift + further else part
            total = part if total is None else total + part
    assert total is not None
    return total


WIDE = (torch.int16, torch.int32, torch.int64)


def _byte_digits(a: Tensor, b: Tensor, terms: int) -> tuple[list[tuple[Tensor, int]], list[tuple[Tensor, int]]]:
    if terms * BYTE * BYTE < EXACT:
        return [(a, 0)], [(b, 0)]
    return _digits(a, terms), _digits(b, terms)


def _digits(x: Tensor, terms: int) -> list[tuple[Tensor, int]]:
    width = 8
    while terms * (2**width - 1) ** 2 >= EXACT and width > 1:
        width //= 2
    bits = {torch.int8: 8, torch.uint8: 8, torch.int16: 16}.get(x.dtype, 32)
    whole = x.to(torch.int32)
    digits = []
    for shift in range(0, bits, width):
        digit = torch.bitwise_right_shift(whole, shift) if shift else whole
        if shift + width < bits:  # the last one keeps the sign
            digit = torch.bitwise_and(digit, 2**width - 1)
        digits.append((digit, shift))
    return digits
