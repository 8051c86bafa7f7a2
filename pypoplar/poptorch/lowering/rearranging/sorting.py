"""Order: sorted elements, the best of them, medians, counts below boundaries. NaN is larger than all else."""

from __future__ import annotations

import math

import numpy as np
import torch

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Const, IsNaN, Not, Select, _1, _2
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.nonlinearities import rows_back, rows_last
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, mapped, reduced
from pypoplar.types import BOOL, FLOAT, INT

aten = torch.ops.aten
Order = popops.SortOrder


def best(ctx: EntryContext, tensor: Tensor, dim: int, count: int, largest: bool) -> tuple[Tensor, Tensor]:
    """So many of the largest or smallest elements of a dimension, in order, and their places; equal ones keep their order."""
    type = tensor.elementType()
    rows = rows_last(as_type(ctx, tensor, type if type in (*FLOATS, INT) else INT), dim)
    shape = list(tensor.shape())
    if shape:
        shape[dim % len(shape)] = count
    if not count or not rows.numElements():
        return ctx.constant(np.zeros(shape, type.dtype)), ctx.constant(np.zeros(shape, INT.dtype))
    params = popops.TopKParams(count, largest, Order.DESCENDING if largest else Order.ASCENDING, True)
    values, places = popops.topKWithPermutation(ctx.graph, ctx.program, rows, params, ctx.name)
    back = [rows_back(one, dim, shape) for one in (as_type(ctx, values, type), places.reinterpret(INT))]
    return back[0], back[1]


@lowers(aten.sort.default)
def sort(ctx: EntryContext, input: Operand, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    tensor = input.placed()
    return best(ctx, tensor, dim, tensor.dim(dim % tensor.rank()) if tensor.rank() else 1, descending)


@lowers(aten.sort.stable)
def sort_stably(
    ctx: EntryContext, input: Operand, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return sort(ctx, input, dim, descending)


@lowers(aten.argsort.default)
def order(ctx: EntryContext, input: Operand, dim: int = -1, descending: bool = False) -> Tensor:
    return sort(ctx, input, dim, descending)[1]


@lowers(aten.argsort.stable)
def stable_order(ctx: EntryContext, input: Operand, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    return sort(ctx, input, dim, descending)[1]


@lowers(aten.topk.default)
def topk(
    ctx: EntryContext, input: Operand, k: int, dim: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[Tensor, Tensor]:
    return best(ctx, input.placed(), dim, k, largest)


@lowers(aten.kthvalue.default)
def kth_value(ctx: EntryContext, input: Operand, k: int, dim: int = -1, keep: bool = False) -> tuple[Tensor, Tensor]:
    tensor = input.placed()
    values, places = best(ctx, tensor, dim, k, False)
    if tensor.rank():
        axis = dim % tensor.rank()
        values, places = (one.slice(k - 1, k, axis) for one in (values, places))
    return values.reshape(ctx.shape), places.reshape(ctx.shape)


@lowers(aten.median.dim)
def median(ctx: EntryContext, input: Operand, dim: int, keep: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of the two in the middle; where there are NaNs, the first of them."""
    tensor = input.placed()
    axes = [dim % tensor.rank()] if tensor.rank() else []
    size = tensor.dim(axes[0]) if axes else 1
    values, places = kth_value(ctx, input, (size - 1) // 2 + 1, dim)
    if tensor.elementType() not in FLOATS or not axes:
        return values, places
    numbers = ctx.constant(np.arange(size, dtype=np.int32).reshape([-1] + [1] * (tensor.rank() - 1 - axes[0])))
    marked = mapped(ctx, Select(_2, Const(size, INT), IsNaN(_1)), tensor, numbers)
    first = reduced(ctx, marked, popops.Operation.MIN, axes, INT).reshape(places.shape())
    return _with_nans(ctx, values, tensor, axes), mapped(ctx, Select(_1, _2, _1 < Const(size, INT)), first, places)


@lowers(aten.median.default)
def median_of_all(ctx: EntryContext, input: Operand) -> Tensor:
    tensor = input.placed()
    flat = tensor.flatten() if tensor.rank() else tensor.reshape([1])
    if not flat.numElements():
        if tensor.elementType() in FLOATS:
            return ctx.constant(np.array(np.nan, tensor.elementType().dtype))
        raise UnsupportedOperation("median: of no elements there is none")
    middle = (flat.numElements() - 1) // 2
    value = best(ctx, flat, 0, middle + 1, False)[0].slice(middle, middle + 1).reshape([])
    return _with_nans(ctx, value, flat, [0])


def _with_nans(ctx: EntryContext, values: Tensor, tensor: Tensor, axes: list[int]) -> Tensor:
    """Values of dimensions of a tensor, but NaN where there is a NaN among the elements that they are of."""
    type = tensor.elementType()
    if type not in FLOATS:
        return values
    found = reduced(ctx, mapped(ctx, IsNaN(_1), tensor), popops.Operation.LOGICAL_OR, axes, BOOL)
    return mapped(ctx, Select(Const(math.nan, type), _1, _2), values, found.reshape(values.shape()))


# counts


@lowers(aten.bucketize.Tensor)
def buckets(ctx: EntryContext, input: Operand, boundaries: Operand, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """How many boundaries are below each element, or, to the right, at most it. NaN is behind them all."""
    tensor, limits = as_type(ctx, input.placed(), FLOAT), as_type(ctx, boundaries.placed(), FLOAT)
    last = tensor.expand([tensor.rank()])
    limits = limits.reshape([1] * tensor.rank() + limits.shape())
    ahead = Not(_1 < _2) if right else Not(_1 <= _2)
    counted = mapped(ctx, Select(Const(1, INT), Const(0, INT), ahead), last, limits)
    return reduced(ctx, counted, popops.Operation.ADD, [tensor.rank()], INT).reshape(ctx.shape)


@lowers(aten.histc.default)
def histogram(ctx: EntryContext, input: Operand, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of equal bins; the last one has its upper end, too. What is outside does not count."""
    if min == max:
        raise UnsupportedOperation("histc: bins from the smallest to the largest element are missing; name their min and max")
    tensor = as_type(ctx, input.placed(), FLOAT)
    flat = tensor.flatten() if tensor.rank() else tensor.reshape([1])
    ends = np.linspace(min, max, bins + 1, dtype=np.float32)
    ends[-1] = np.nextafter(np.float32(max), np.float32(np.inf))
    levels = ctx.constant(ends)
    counts = popops.histogram(ctx.graph, flat, levels, False, ctx.program, ctx.name)
    return as_type(ctx, counts.slice(1, bins + 1).reinterpret(INT), ctx.type)
