"""Sums, products and extremes of all elements up to each one along a dimension.

A step adds to each element the result for those before it, of which a step knows twice as many as the last one: log2 of the
dimension's size steps, each of which is one expression.
"""

from __future__ import annotations

import numpy as np
import torch

from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Abs, And, Exp, Expr, IsInf, IsNaN, Log1p, Max, Or, Select, _1, _2, _3, _4
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.integers.integer_ranges import product_range, sum_range
from pypoplar.poptorch.lowering.integers.wide_integers import Combined, is_wide, narrowed
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, mapped
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.types import FLOAT, INT, LONGLONG

aten = torch.ops.aten


def scanned(ctx: EntryContext, tensors: list[Tensor], axis: int, trees: list[Expr]) -> list[Tensor]:
    """Tensors in which each element along a dimension is combined with all before it.

    `trees` combine n earlier values (_1 to _n) with n later ones (the placeholders after them); they are associative.
    """
    size, step = tensors[0].dim(axis), 1
    while step < size:
        before = [tensor.slice(0, size - step, axis) for tensor in tensors]
        behind = [tensor.slice(step, size, axis) for tensor in tensors]
        news = [mapped(ctx, tree, *before, *behind) for tree in trees]
        tensors = [concat([tensor.slice(0, step, axis), new], axis) for tensor, new in zip(tensors, news, strict=True)]
        step *= 2
    return tensors


def _scan(ctx: EntryContext, input: Operand, dim: int, tree: Expr, range: Combined | None = None) -> Tensor:
    """`range` is that of integer results; with 64 bits where PyTorch has them and they may be needed."""
    tensor = input.placed()
    tensor = as_type(ctx, tensor, FLOAT if ctx.type in FLOATS else INT)
    if not tensor.rank():
        return as_type(ctx, tensor, ctx.type)
    axis = dim % tensor.rank()
    if range is not None and is_wide(ctx, input, tensor.dim(axis), range):
        return narrowed(ctx, scanned(ctx, [as_type(ctx, tensor, LONGLONG)], axis, [tree])[0])
    return as_type(ctx, scanned(ctx, [tensor], axis, [tree])[0], ctx.type)


@lowers(aten.cumsum.default)
def sums_up_to(ctx: EntryContext, input: Operand, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    return _scan(ctx, input, dim, _1 + _2, sum_range)


@lowers(aten.cumprod.default)
def products_up_to(ctx: EntryContext, input: Operand, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    return _scan(ctx, input, dim, _1 * _2, product_range)


@lowers(aten.logcumsumexp.default)
def logarithms_of_sums_up_to(ctx: EntryContext, input: Operand, dim: int) -> Tensor:
    total = Max(_1, _2) + Log1p(Exp(-Abs(_1 - _2)))
    same = And(IsInf(_1), _1 == _2)
    return _scan(ctx, input, dim, Select(_1, Select(_1 + _2, total, Or(IsNaN(_1), IsNaN(_2))), same))


@lowers(aten.cummax.default)
def largest_up_to(ctx: EntryContext, input: Operand, dim: int) -> tuple[Tensor, Tensor]:
    return _extremes_up_to(ctx, input, dim, larger=True)


@lowers(aten.cummin.default)
def smallest_up_to(ctx: EntryContext, input: Operand, dim: int) -> tuple[Tensor, Tensor]:
    return _extremes_up_to(ctx, input, dim, larger=False)


def _extremes_up_to(ctx: EntryContext, input: Operand, dim: int, larger: bool) -> tuple[Tensor, Tensor]:
    """Extremes and their places; of equal ones the last, as PyTorch has it."""
    tensor = input.placed()
    if tensor.elementType() not in (*FLOATS, INT):
        tensor = as_type(ctx, tensor, INT)
    whole = tensor if tensor.rank() else tensor.reshape([1])
    axis = dim % whole.rank()
    shape = [1] * whole.rank()
    shape[axis] = whole.dim(axis)
    places = broadcast(ctx.constant(np.arange(whole.dim(axis), dtype=np.int32).reshape(shape)), whole.shape())
    later = _3 >= _1 if larger else _3 <= _1
    if tensor.elementType() in FLOATS:
        later = Or(IsNaN(_3), later)  # nothing is later than a NaN but another one
    values, found = scanned(ctx, [whole, places], axis, [Select(_3, _1, later), Select(_4, _2, later)])
    return as_type(ctx, values, ctx.type).reshape(ctx.shape), found.reshape(ctx.shape)
