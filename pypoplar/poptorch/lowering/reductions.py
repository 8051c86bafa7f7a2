"""Sums, products, extremes and other numbers of many elements. They are added up and multiplied in FLOAT."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np
import torch
from torch import fx

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Abs, And, Cast, Const, Exp, Expr, IsInf, IsNaN, Log, Or, Pow, Select, Sqrt, _1, _2
from pypoplar.poptorch.capture.origins import operation_name
from pypoplar.poptorch.lowering.integers.integer_ranges import product_range, sum_range
from pypoplar.poptorch.lowering.integers.wide_integers import counted, is_wide, narrowed
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.values import Constant
from pypoplar.types import BOOL, FLOAT, HALF, INT, LONGLONG, ElementType

aten = torch.ops.aten
Operation = popops.Operation
FLOATS = (FLOAT, HALF)


def axes_of(dims: Any, rank: int) -> list[int]:
    """The dimensions that PyTorch's argument means: all, where it names none."""
    listed = [dims] if isinstance(dims, int) else list(dims or [])
    return sorted({dim % max(rank, 1) for dim in listed} & set(range(rank))) if listed else list(range(rank))


def as_type(at: GraphLowering, tensor: Tensor, type: ElementType) -> Tensor:
    """A tensor as one of a type."""
    return tensor if tensor.elementType() is type else popops.cast(at.graph, tensor, type, at.program, at.name)


def mapped(at: GraphLowering, tree: Expr, *tensors: Tensor) -> Tensor:
    """The elements of an expression."""
    return popops.map(at.graph, tree, list(tensors), at.program, at.name)


def combined(at: GraphLowering, input: fx.Node, operation: popops.Operation, axes: list[int]) -> Tensor:
    """Sums or products over dimensions, which are left out, in INT; with 64 bits where PyTorch has them and they may be needed."""
    tensor = as_type(at, at.tensor(input), INT)
    if not is_wide(at, input, counted(tensor, axes), sum_range if operation is Operation.ADD else product_range):
        return reduced(at, tensor, operation, axes, INT)
    return narrowed(at, reduced(at, tensor, operation, axes, LONGLONG))


def reduced(at: GraphLowering, tensor: Tensor, operation: popops.Operation, axes: list[int], type: ElementType) -> Tensor:
    """A reduction over dimensions, which are left out."""
    return popops.reduce(at.graph, tensor, type, axes, popops.ReduceParams(operation), at.program, at.name)


# sums and products


@lowers(aten.sum.dim_IntList, aten.sum.default)
def summed(at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _combined(at, input, Operation.ADD, dims)


@lowers(aten.prod.default)
def product_of_all(at: GraphLowering, input: fx.Node, *, dtype: torch.dtype | None = None) -> Tensor:
    return _combined(at, input, Operation.MUL, None)


@lowers(aten.prod.dim_int)
def product_of_dimension(
    at: GraphLowering, input: fx.Node, dim: int, keep: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    return _combined(at, input, Operation.MUL, dim)


def _combined(at: GraphLowering, input: fx.Node, operation: popops.Operation, dims: Any) -> Tensor:
    tensor = at.tensor(input)
    axes = axes_of(dims, tensor.rank())
    if at.type not in FLOATS:
        return as_type(at, combined(at, input, operation, axes), at.type).reshape(at.shape)
    if not (tensor.elementType() is HALF and at.type is FLOAT):
        tensor = as_type(at, tensor, at.type)
    return reduced(at, tensor, operation, axes, at.type).reshape(at.shape)


@lowers(aten.nansum.default)
def sum_of_numbers(
    at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    tensor = at.tensor(input)
    if tensor.elementType() not in FLOATS:
        return _combined(at, input, Operation.ADD, dims)
    tensor = mapped(at, Select(Const(0.0), _1, IsNaN(_1)), tensor)
    return as_type(at, reduced(at, tensor, Operation.ADD, axes_of(dims, tensor.rank()), at.type), at.type).reshape(at.shape)


@lowers(aten.mean.dim, aten.mean.default)
def mean(at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    tensor = at.tensor(input)
    axes = axes_of(dims, tensor.rank())
    return mean_of(at, tensor, axes, at.type).reshape(at.shape)


def mean_of(at: GraphLowering, tensor: Tensor, axes: list[int], type: ElementType) -> Tensor:
    """The means over dimensions, which are left out; of no elements NaN."""
    if tensor.elementType() not in FLOATS:
        tensor = as_type(at, tensor, FLOAT)
    count = prod(tensor.dim(axis) for axis in axes)
    if not count:
        return at.constant(Constant(np.full(_left(tensor, axes), np.nan, type.dtype)))
    scale = at.graph.addConstant(FLOAT, [], 1 / count, at.name)
    at.graph.setTileMapping(scale, 0)
    add = popops.ReduceParams(Operation.ADD, False, scale)
    return popops.reduce(at.graph, tensor, type, axes, add, at.program, at.name)


def _left(tensor: Tensor, axes: list[int]) -> list[int]:
    return [size for axis, size in enumerate(tensor.shape()) if axis not in axes]


# variances


@lowers(aten.var.correction)
def variance(
    at: GraphLowering, input: fx.Node, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _spread(at, input, dims, correction, root=False)[0]


@lowers(aten.std.correction)
def deviation(
    at: GraphLowering, input: fx.Node, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _spread(at, input, dims, correction, root=True)[0]


@lowers(aten.var_mean.correction)
def variance_and_mean(
    at: GraphLowering, input: fx.Node, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _spread(at, input, dims, correction, root=False)


@lowers(aten.std_mean.correction)
def deviation_and_mean(
    at: GraphLowering, input: fx.Node, dims: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _spread(at, input, dims, correction, root=True)


def _spread(at: GraphLowering, input: fx.Node, dims: Any, correction: float | None, root: bool) -> tuple[Tensor, Tensor]:
    """Variances, or their roots, and means, from the differences to the means, in FLOAT."""
    tensor = at.tensor(input)
    axes = axes_of(dims, tensor.rank())
    means = mean_of(at, tensor, axes, FLOAT)
    apart = mapped(at, Cast(_1, FLOAT) - _2, tensor, means.expand(_places(axes)))
    squares = popops.reduce(at.graph, apart, FLOAT, axes, popops.ReduceParams(Operation.SQUARE_ADD), at.program, at.name)
    count = prod(tensor.dim(axis) for axis in axes) - (1 if correction is None else correction)
    tree = _1 / Const(float(max(count, 0)), FLOAT)
    result = mapped(at, Cast(Sqrt(tree) if root else tree, at.type), squares)
    return result.reshape(at.shape), as_type(at, means, at.type).reshape(at.shape)


def _places(axes: list[int]) -> list[int]:
    """Where `Tensor.expand` puts back dimensions that a reduction left out."""
    return [axis - number for number, axis in enumerate(axes)]


def kept(reduction: Tensor, axes: list[int]) -> Tensor:
    """A reduction with dimensions of size 1 where others were left out."""
    return reduction.expand(_places(axes))


# truth


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def any_true(at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False) -> Tensor:
    return _logical(at, input, Operation.LOGICAL_OR, dims)


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def all_true(at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False) -> Tensor:
    return _logical(at, input, Operation.LOGICAL_AND, dims)


def truths(at: GraphLowering, tensor: Tensor) -> Tensor:
    """Which elements are not 0."""
    return as_type(at, tensor, BOOL)


def _logical(at: GraphLowering, input: fx.Node, operation: popops.Operation, dims: Any) -> Tensor:
    tensor = truths(at, at.tensor(input))
    result = reduced(at, tensor, operation, axes_of(dims, tensor.rank()), BOOL)
    return as_type(at, result, at.type).reshape(at.shape)


@lowers(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_of_nonzero(at: GraphLowering, input: fx.Node, dims: Any = None) -> Tensor:
    tensor = as_type(at, truths(at, at.tensor(input)), INT)
    return reduced(at, tensor, Operation.ADD, axes_of(dims, tensor.rank()), INT).reshape(at.shape)


# norms and sums of exponentials


@lowers(aten.linalg_vector_norm.default, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype, aten.norm.ScalarOpt_dtype)
def vector_norm(
    at: GraphLowering, input: fx.Node, order: float | None = 2, dims: Any = None, keep: bool = False, *,
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """The sum of powers of magnitudes and its root, in FLOAT; of order 0 the number of elements that are not 0."""
    order = 2 if order is None else order
    tensor = as_type(at, at.tensor(input), FLOAT)
    axes = axes_of(dims, tensor.rank())
    if order in (inf, -inf):
        operation = Operation.MAX if order == inf else Operation.MIN
        result = extreme(at, mapped(at, Abs(_1), tensor), operation, axes)
    elif order == 2:
        squares = popops.reduce(at.graph, tensor, FLOAT, axes, popops.ReduceParams(Operation.SQUARE_ADD), at.program, at.name)
        result = mapped(at, Sqrt(_1), squares)
    else:
        power = Cast(Cast(_1, BOOL), FLOAT) if order == 0 else Abs(_1) if order == 1 else Pow(Abs(_1), Const(float(order), FLOAT))
        result = reduced(at, mapped(at, power, tensor), Operation.ADD, axes, FLOAT)
        if order not in (0, 1):
            result = mapped(at, Pow(_1, Const(1 / order, FLOAT)), result)
    return as_type(at, result, at.type).reshape(at.shape)


@lowers(aten.logsumexp.default)
def logarithm_of_sum_of_exponentials(at: GraphLowering, input: fx.Node, dims: Any, keep: bool = False) -> Tensor:
    tensor = as_type(at, at.tensor(input), FLOAT)
    axes = axes_of(dims, tensor.rank())
    most = extreme(at, tensor, Operation.MAX, axes)
    most = mapped(at, Select(Const(0.0, FLOAT), _1, IsInf(_1)), most)
    powers = mapped(at, Exp(_1 - _2), tensor, kept(most, axes))
    total = reduced(at, powers, Operation.ADD, axes, FLOAT)
    return mapped(at, Cast(Log(_1) + _2, at.type), total, most).reshape(at.shape)


# extremes: of what holds a NaN they are NaN, of equal elements the first one is taken


def extreme(at: GraphLowering, tensor: Tensor, operation: popops.Operation, axes: list[int]) -> Tensor:
    """The largest or smallest elements over dimensions, which are left out; NaN where there is one among them."""
    result = reduced(at, tensor, operation, axes, tensor.elementType())
    if tensor.elementType() not in FLOATS:
        return result
    lacking = reduced(at, mapped(at, IsNaN(_1), tensor), Operation.LOGICAL_OR, axes, BOOL)
    return mapped(at, Select(Const(float("nan")), _1, _2), result, lacking)


def _check_some(at: GraphLowering, tensor: Tensor, axes: list[int]) -> None:
    if not all(tensor.dim(axis) for axis in axes):
        raise UnsupportedOperation(f"{operation_name(at.node)}: of no elements there is none; the shape is {tensor.shape()}")


def _ordered(at: GraphLowering, input: fx.Node) -> Tensor:
    """A tensor of a type that the libraries compare."""
    tensor = at.tensor(input)
    return tensor if tensor.elementType() in (*FLOATS, INT) else as_type(at, tensor, INT)


def _extreme_of(at: GraphLowering, input: fx.Node, operation: popops.Operation, dims: Any) -> Tensor:
    tensor = _ordered(at, input)
    axes = axes_of(dims, tensor.rank())
    _check_some(at, tensor, axes)
    return as_type(at, extreme(at, tensor, operation, axes), at.type).reshape(at.shape)


@lowers(aten.amax.default, aten.max.default)
def largest(at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False) -> Tensor:
    return _extreme_of(at, input, Operation.MAX, dims)


@lowers(aten.amin.default, aten.min.default)
def smallest(at: GraphLowering, input: fx.Node, dims: Any = None, keep: bool = False) -> Tensor:
    return _extreme_of(at, input, Operation.MIN, dims)


@lowers(aten.aminmax.default)
def smallest_and_largest(
    at: GraphLowering, input: fx.Node, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _extreme_of(at, input, Operation.MIN, dim), _extreme_of(at, input, Operation.MAX, dim)


@lowers(aten.max.dim)
def largest_and_place(at: GraphLowering, input: fx.Node, dim: int, keep: bool = False) -> tuple[Tensor, Tensor]:
    return _extreme_and_place(at, input, Operation.MAX, dim)


@lowers(aten.min.dim)
def smallest_and_place(at: GraphLowering, input: fx.Node, dim: int, keep: bool = False) -> tuple[Tensor, Tensor]:
    return _extreme_and_place(at, input, Operation.MIN, dim)


@lowers(aten.argmax.default)
def place_of_largest(at: GraphLowering, input: fx.Node, dim: int | None = None, keep: bool = False) -> Tensor:
    return _extreme_and_place(at, input, Operation.MAX, dim)[1]


@lowers(aten.argmin.default)
def place_of_smallest(at: GraphLowering, input: fx.Node, dim: int | None = None, keep: bool = False) -> Tensor:
    return _extreme_and_place(at, input, Operation.MIN, dim)[1]


def _extreme_and_place(at: GraphLowering, input: fx.Node, operation: popops.Operation, dim: int | None) -> tuple[Tensor, Tensor]:
    """Extremes of a dimension, or of all elements, and the first place of each: the least one where the element is the extreme."""
    tensor = _ordered(at, input)
    if dim is None or not tensor.rank():
        tensor, dim = tensor.flatten() if tensor.rank() else tensor.reshape([1]), 0
    axis = dim % tensor.rank()
    _check_some(at, tensor, [axis])
    extremes = extreme(at, tensor, operation, [axis])
    size = tensor.dim(axis)
    shape = [1] * tensor.rank()
    shape[axis] = size
    places = at.constant(Constant(np.arange(size, dtype=np.int32).reshape(shape)))
    is_it = Or(_1 == _2, And(IsNaN(_1), IsNaN(_2))) if tensor.elementType() in FLOATS else _1 == _2
    tree = Select(popops.expr._3, Const(size, INT), is_it)
    first = reduced(at, mapped(at, tree, tensor, extremes.expand([axis]), places), Operation.MIN, [axis], INT)
    values = as_type(at, extremes, at.type) if isinstance(at.node.meta["val"], tuple | list) else extremes
    return values.reshape(at.shape), first.reshape(at.shape)
