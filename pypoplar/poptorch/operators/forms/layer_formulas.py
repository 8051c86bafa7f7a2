"""Layers and views that PyTorch computes in kernels of its own, as formulas of other operations."""

from __future__ import annotations

from math import pi
from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.bilinear.default)
def bilinear(first: Any, second: Any, weight: Any, bias: Any = None) -> Any:
    """``first weight second`` for each output: one product with all weights, then one for each sample."""
    outputs, inner, outer = weight.shape
    rows = first.reshape(-1, inner) @ weight.permute(1, 0, 2).reshape(inner, outputs * outer)
    result = (rows.reshape(-1, outputs, outer) @ second.reshape(-1, outer, 1)).reshape(*first.shape[:-1], outputs)
    return result if bias is None else result + bias


@replaces(aten.channel_shuffle.default)
def channel_shuffle(input: Any, groups: int) -> Any:
    """Channels of all groups in turn."""
    samples, channels, *field = input.shape
    return input.reshape(samples, groups, channels // groups, *field).transpose(1, 2).reshape(input.shape)


@replaces(aten._weight_norm.default)
def weight_norm(direction: Any, length: Any, dim: int = 0) -> Any:
    """Directions of given lengths, for each place of a dimension; -1 means one length for all."""
    others = [axis for axis in range(direction.dim()) if axis != dim]
    wide = direction.float()
    norms = torch.linalg.vector_norm(wide, 2, others, keepdim=True) if others else wide.abs()
    return (direction * (length / norms)).to(direction.dtype)


@replaces(aten.cdist.default)
def distances(first: Any, second: Any, power: float = 2.0, mode: int | None = None) -> Any:
    """Distances between all rows of two tables, from the differences of their elements."""
    return torch.linalg.vector_norm(first.unsqueeze(-2) - second.unsqueeze(-3), power, -1)


@replaces(aten.rot90.default)
def turned(input: Any, times: int = 1, dims: list[int] | None = None) -> Any:
    """A tensor turned by right angles in the plane of two dimensions."""
    first, second = dims or (0, 1)
    match times % 4:
        case 1:
            return input.flip(second).transpose(first, second)
        case 2:
            return input.flip(first, second)
        case 3:
            return input.flip(first).transpose(first, second)
    return input.clone()


@replaces(aten.block_diag.default)
def block_diagonal(tensors: list[Any]) -> Any:
    """A matrix of blocks along its diagonal, zeros elsewhere."""
    blocks = [tensor.reshape(1, -1) if tensor.dim() < 2 else tensor for tensor in tensors]
    width, before, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        behind = width - before - block.shape[1]
        rows.append(torch.nn.functional.pad(block, (before, behind)))
        before += block.shape[1]
    return torch.cat(rows)


@replaces(aten.addbmm.default)
def sum_of_products(added: Any, first: Any, second: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """``beta added + alpha`` times the sum of products of matrices: one product of them side by side."""
    batches, rows, inner = first.shape
    if alpha == 0:  # PyTorch does not ask what they are
        none = torch.zeros(rows, second.shape[-1], dtype=first.dtype)
        return none if beta == 0 else beta * added + none
    product = first.transpose(0, 1).reshape(rows, batches * inner) @ second.reshape(batches * inner, -1)
    return alpha * product if beta == 0 else beta * added + alpha * product


@replaces(aten.addr.default)
def outer_product(added: Any, first: Any, second: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """``beta added + alpha first second``, of two vectors."""
    product = alpha * (first.unsqueeze(1) * second)
    return product if beta == 0 else beta * added + product


@replaces(aten.deg2rad.default)
def radians(degrees: Any) -> Any:
    """Angles in radians."""
    return degrees * (pi / 180)


@replaces(aten.rad2deg.default)
def degrees(radians: Any) -> Any:
    """Angles in degrees."""
    return radians * (180 / pi)


@replaces(aten.fill.Scalar, aten.fill.Tensor)
def filled(input: Any, value: Any) -> Any:
    """A tensor of this shape and type of one value."""
    if isinstance(value, torch.Tensor):
        return value.to(input.dtype).expand(input.shape).clone()
    return torch.full_like(input, value)


@replaces(aten.linalg_cross.default)
def cross_product(first: Any, second: Any, *, dim: int = -1) -> Any:
    """Vectors at right angles to two others: three elements along a dimension."""
    first, second = torch.broadcast_tensors(first, second)
    ahead, behind = ([one.roll(-places, dim) for one in (first, second)] for places in (1, 2))
    return ahead[0] * behind[1] - behind[0] * ahead[1]


@replaces(aten.cross.default)
def cross_product_somewhere(first: Any, second: Any, dim: int | None = None) -> Any:
    """The same along a dimension that may be left out: then the first one of three elements."""
    size = torch.broadcast_shapes(first.shape, second.shape)
    return cross_product(first, second, dim=size.index(3) if dim is None else dim)


@replaces(aten.lcm.default)
def common_multiple(first: Any, second: Any) -> Any:
    """The least common multiple of integers; that of 0 is 0."""
    factor = torch.gcd(first, second)
    return (first // torch.where(factor == 0, 1, factor) * second).abs()
