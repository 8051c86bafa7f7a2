"""Sums, products, extremes and other numbers of many elements. They are added up and multiplied in FLOAT."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np
import torch

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Abs, And, Cast, Const, Exp, IsInf, IsNaN, Log, Or, Pow, Select, Sqrt, _1, _2
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.integers.integer_ranges import product_range, sum_range
from pypoplar.poptorch.lowering.integers.wide_integers import combined_elements, is_wide, narrowed
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, mapped, reduced
from pypoplar.types import BOOL, FLOAT, HALF, INT, LONGLONG, ElementType

aten = torch.ops.aten
Operation = popops.Operation


def axes_of(dims: Any, rank: int) -> list[int]:
    """The dimensions that PyTorch's argument means: all, where it names none."""
    listed = [dims] if isinstance(dims, int) else list(dims or [])
    return sorted({dim % max(rank, 1) for dim in listed} & set(range(rank))) if listed else list(range(rank))


def combined(ctx: EntryContext, input: Operand, operation: popops.Operation, axes: list[int]) -> Tensor:
    """Sums or products over dimensions, which are left out, in INT; with 64 bits where PyTorch has them and they may be needed."""
    tensor = as_type(ctx, input.placed(), INT)
    if not is_wide(ctx, input, combined_elements(tensor, axes), sum_range if operation is Operation.ADD else product_range):
        return reduced(ctx, tensor, operation, axes, INT)
    return narrowed(ctx, reduced(ctx, tensor, operation, axes, LONGLONG))


# sums and products


@lowers(aten.sum.dim_IntList, aten.sum.default)
def summed(ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _combined(ctx, input, Operation.ADD, dims)


@lowers(aten.prod.default)
def product_of_all(ctx: EntryContext, input: Operand, *, dtype: torch.dtype | None = None) -> Tensor:
    return _combined(ctx, input, Operation.MUL, None)


@lowers(aten.prod.dim_int)
def product_of_dimension(
    ctx: EntryContext, input: Operand, dim: int, keep: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    return _combined(ctx, input, Operation.MUL, dim)


def _combined(ctx: EntryContext, input: Operand, operation: popops.Operation, dims: Any) -> Tensor:
    tensor = input.placed()
    axes = axes_of(dims, tensor.rank())
    if ctx.type not in FLOATS:
        return as_type(ctx, combined(ctx, input, operation, axes), ctx.type).reshape(ctx.shape)
    if not (tensor.elementType() is HALF and ctx.type is FLOAT):
        tensor = as_type(ctx, tensor, ctx.type)
    return reduced(ctx, tensor, operation, axes, ctx.type).reshape(ctx.shape)


@lowers(aten.nansum.default)
def sum_of_numbers(
    ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    tensor = input.placed()
    if tensor.elementType() not in FLOATS:
        return _combined(ctx, input, Operation.ADD, dims)
    tensor = mapped(ctx, Select(Const(0.0), _1, IsNaN(_1)), tensor)
    return as_type(ctx, reduced(ctx, tensor, Operation.ADD, axes_of(dims, tensor.rank()), ctx.type), ctx.type).reshape(ctx.shape)


@lowers(aten.mean.dim, aten.mean.default)
def mean(ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    tensor = input.placed()
    axes = axes_of(dims, tensor.rank())
    return mean_of(ctx, tensor, axes, ctx.type).reshape(ctx.shape)


def mean_of(ctx: EntryContext, tensor: Tensor, axes: list[int], type: ElementType) -> Tensor:
    """The means over dimensions, which are left out; of no elements NaN."""
    if tensor.elementType() not in FLOATS:
        tensor = as_type(ctx, tensor, FLOAT)
    count = prod(tensor.dim(axis) for axis in axes)
    if not count:
        return ctx.constant(np.full(_left(tensor, axes), np.nan, type.dtype))
    scale = ctx.graph.addConstant(FLOAT, [], 1 / count, ctx.name)
    ctx.graph.setTileMapping(scale, 0)
    add = popops.ReduceParams(Operation.ADD, False, scale)
    return popops.reduce(ctx.graph, tensor, type, axes, add, ctx.program, ctx.name)


def _left(tensor: Tensor, axes: list[int]) -> list[int]:
    return [size for axis, size in enumerate(tensor.shape()) if axis not in axes]


# variances


@lowers(aten.var.correction)
def variance(
    ctx: EntryContext, input: Operand, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _spread(ctx, input, dims, correction, root=False)[0]


@lowers(aten.std.correction)
def deviation(
    ctx: EntryContext, input: Operand, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _spread(ctx, input, dims, correction, root=True)[0]


@lowers(aten.var_mean.correction)
def variance_and_mean(
    ctx: EntryContext, input: Operand, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _spread(ctx, input, dims, correction, root=False)


@lowers(aten.std_mean.correction)
def deviation_and_mean(
    ctx: EntryContext, input: Operand, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _spread(ctx, input, dims, correction, root=True)


def _spread(ctx: EntryContext, input: Operand, dims: Any, correction: float | None, root: bool) -> tuple[Tensor, Tensor]:
    """Variances, or their roots, and means, from the differences to the means, in FLOAT."""
    tensor = input.placed()
    axes = axes_of(dims, tensor.rank())
    means = mean_of(ctx, tensor, axes, FLOAT)
    apart = mapped(ctx, Cast(_1, FLOAT) - _2, tensor, means.expand(_places(axes)))
    squares = popops.reduce(ctx.graph, apart, FLOAT, axes, popops.ReduceParams(Operation.SQUARE_ADD), ctx.program, ctx.name)
    count = prod(tensor.dim(axis) for axis in axes) - (1 if correction is None else correction)
    tree = _1 / Const(float(max(count, 0)), FLOAT)
    result = mapped(ctx, Cast(Sqrt(tree) if root else tree, ctx.type), squares)
    return result.reshape(ctx.shape), as_type(ctx, means, ctx.type).reshape(ctx.shape)


def _places(axes: list[int]) -> list[int]:
    """Where `Tensor.expand` puts back dimensions that a reduction left out."""
    return [axis - number for number, axis in enumerate(axes)]


def kept(reduction: Tensor, axes: list[int]) -> Tensor:
    """A reduction with dimensions of size 1 where others were left out."""
    return reduction.expand(_places(axes))


# truth


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def any_true(ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False) -> Tensor:
    return _logical(ctx, input, Operation.LOGICAL_OR, dims)


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def all_true(ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False) -> Tensor:
    return _logical(ctx, input, Operation.LOGICAL_AND, dims)


def truths(ctx: EntryContext, tensor: Tensor) -> Tensor:
    """Which elements are not 0."""
    return as_type(ctx, tensor, BOOL)


def _logical(ctx: EntryContext, input: Operand, operation: popops.Operation, dims: Any) -> Tensor:
    tensor = truths(ctx, input.placed())
    result = reduced(ctx, tensor, operation, axes_of(dims, tensor.rank()), BOOL)
    return as_type(ctx, result, ctx.type).reshape(ctx.shape)


@lowers(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_of_nonzero(ctx: EntryContext, input: Operand, dims: Any = None) -> Tensor:
    tensor = as_type(ctx, truths(ctx, input.placed()), INT)
    return reduced(ctx, tensor, Operation.ADD, axes_of(dims, tensor.rank()), INT).reshape(ctx.shape)


# norms and sums of exponentials


@lowers(aten.linalg_vector_norm.default, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype, aten.norm.ScalarOpt_dtype)
def vector_norm(
    ctx: EntryContext, input: Operand, order: float | None = 2, dims: Any = None, keep: bool = False, *,
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """The sum of powers of magnitudes and its root, in FLOAT; of order 0 the number of elements that are not 0."""
    order = 2 if order is None else order
    tensor = as_type(ctx, input.placed(), FLOAT)
    axes = axes_of(dims, tensor.rank())
    if order in (inf, -inf):
        operation = Operation.MAX if order == inf else Operation.MIN
        result = extreme(ctx, mapped(ctx, Abs(_1), tensor), operation, axes)
    elif order == 2:
        squares = popops.reduce(ctx.graph, tensor, FLOAT, axes, popops.ReduceParams(Operation.SQUARE_ADD), ctx.program, ctx.name)
        result = mapped(ctx, Sqrt(_1), squares)
    else:
        power = Cast(Cast(_1, BOOL), FLOAT) if order == 0 else Abs(_1) if order == 1 else Pow(Abs(_1), Const(float(order), FLOAT))
        result = reduced(ctx, mapped(ctx, power, tensor), Operation.ADD, axes, FLOAT)
        if order not in (0, 1):
            result = mapped(ctx, Pow(_1, Const(1 / order, FLOAT)), result)
    return as_type(ctx, result, ctx.type).reshape(ctx.shape)


@lowers(aten.logsumexp.default)
def logarithm_of_sum_of_exponentials(ctx: EntryContext, input: Operand, dims: Any, keep: bool = False) -> Tensor:
    tensor = as_type(ctx, input.placed(), FLOAT)
    axes = axes_of(dims, tensor.rank())
    most = extreme(ctx, tensor, Operation.MAX, axes)
    most = mapped(ctx, Select(Const(0.0, FLOAT), _1, IsInf(_1)), most)
    powers = mapped(ctx, Exp(_1 - _2), tensor, kept(most, axes))
    total = reduced(ctx, powers, Operation.ADD, axes, FLOAT)
    return mapped(ctx, Cast(Log(_1) + _2, ctx.type), total, most).reshape(ctx.shape)


# extremes: of what holds a NaN they are NaN, of equal elements the first one is taken


def extreme(ctx: EntryContext, tensor: Tensor, operation: popops.Operation, axes: list[int]) -> Tensor:
    """The largest or smallest elements over dimensions, which are left out; NaN where there is one among them."""
    result = reduced(ctx, tensor, operation, axes, tensor.elementType())
    if tensor.elementType() not in FLOATS:
        return result
    lacking = reduced(ctx, mapped(ctx, IsNaN(_1), tensor), Operation.LOGICAL_OR, axes, BOOL)
    return mapped(ctx, Select(Const(float("nan")), _1, _2), result, lacking)


def _check_some(ctx: EntryContext, tensor: Tensor, axes: list[int]) -> None:
    if not all(tensor.dim(axis) for axis in axes):
        raise UnsupportedOperation(f"{ctx.operation_name}: of no elements there is none; the shape is {tensor.shape()}")


def _ordered(ctx: EntryContext, input: Operand) -> Tensor:
    """A tensor of a type that the libraries compare."""
    tensor = input.placed()
    return tensor if tensor.elementType() in (*FLOATS, INT) else as_type(ctx, tensor, INT)


def _extreme_of(ctx: EntryContext, input: Operand, operation: popops.Operation, dims: Any) -> Tensor:
    tensor = _ordered(ctx, input)
    axes = axes_of(dims, tensor.rank())
    _check_some(ctx, tensor, axes)
    return as_type(ctx, extreme(ctx, tensor, operation, axes), ctx.type).reshape(ctx.shape)


@lowers(aten.amax.default, aten.max.default)
def largest(ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False) -> Tensor:
    return _extreme_of(ctx, input, Operation.MAX, dims)


@lowers(aten.amin.default, aten.min.default)
def smallest(ctx: EntryContext, input: Operand, dims: Any = None, keep: bool = False) -> Tensor:
    return _extreme_of(ctx, input, Operation.MIN, dims)


@lowers(aten.aminmax.default)
def smallest_and_largest(
    ctx: EntryContext, input: Operand, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _extreme_of(ctx, input, Operation.MIN, dim), _extreme_of(ctx, input, Operation.MAX, dim)


@lowers(aten.max.dim)
def largest_and_place(ctx: EntryContext, input: Operand, dim: int, keep: bool = False) -> tuple[Tensor, Tensor]:
    return _extreme_with_place(ctx, input, Operation.MAX, dim)


@lowers(aten.min.dim)
def smallest_and_place(ctx: EntryContext, input: Operand, dim: int, keep: bool = False) -> tuple[Tensor, Tensor]:
    return _extreme_with_place(ctx, input, Operation.MIN, dim)


@lowers(aten.argmax.default)
def place_of_largest(ctx: EntryContext, input: Operand, dim: int | None = None, keep: bool = False) -> Tensor:
    return _extreme_and_place(ctx, input, Operation.MAX, dim)[1]


@lowers(aten.argmin.default)
def place_of_smallest(ctx: EntryContext, input: Operand, dim: int | None = None, keep: bool = False) -> Tensor:
    return _extreme_and_place(ctx, input, Operation.MIN, dim)[1]


def _extreme_and_place(ctx: EntryContext, input: Operand, operation: popops.Operation, dim: int | None) -> tuple[Tensor, Tensor]:
    """Extremes of a dimension, or of all elements, and the first place of each: the least one where the element is the extreme."""
    tensor = _ordered(ctx, input)
    if dim is None or not tensor.rank():
        tensor, dim = tensor.flatten() if tensor.rank() else tensor.reshape([1]), 0
    axis = dim % tensor.rank()
    _check_some(ctx, tensor, [axis])
    extremes = extreme(ctx, tensor, operation, [axis])
    size = tensor.dim(axis)
    shape = [1] * tensor.rank()
    shape[axis] = size
    places = ctx.constant(np.arange(size, dtype=np.int32).reshape(shape))
    is_it = Or(_1 == _2, And(IsNaN(_1), IsNaN(_2))) if tensor.elementType() in FLOATS else _1 == _2
    tree = Select(popops.expr._3, Const(size, INT), is_it)
    first = reduced(ctx, mapped(ctx, tree, tensor, extremes.expand([axis]), places), Operation.MIN, [axis], INT)
    return extremes, first.reshape(ctx.shape)


def _extreme_with_place(ctx: EntryContext, input: Operand, operation: popops.Operation, dim: int) -> tuple[Tensor, Tensor]:
    """The same, where extremes are results, too."""
    extremes, places = _extreme_and_place(ctx, input, operation, dim)
    return as_type(ctx, extremes, ctx.type).reshape(ctx.shape), places
