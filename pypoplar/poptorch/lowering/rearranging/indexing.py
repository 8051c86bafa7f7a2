"""Elements and slices by indices that are tensors: gathered, scattered, selected and written."""

from __future__ import annotations

from math import inf, nan, prod
from typing import Any

import numpy as np
import torch

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Cast, Const, IsNaN, Max, NotEqual, Select, _1, _2, _3
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.rearranging.rows import Combining, put_rows, row_numbers, taken_rows
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, mapped, typed
from pypoplar.poptorch.lowering.tensor_views import broadcast, number
from pypoplar.types import BOOL, FLOAT, INT, UNSIGNED_CHAR

aten = torch.ops.aten
Indices = list[Operand | None]


# elements along a dimension: a table of all elements, each a row


def _element_numbers(ctx: EntryContext, index: Operand, dim: int, shape: list[int]) -> Tensor:
    """The places, in a flattened tensor of a shape, that an index along a dimension means."""
    if not shape:
        return row_numbers(ctx, [index], [1], [1])
    axis, own = dim % len(shape), index.shape
    if not own:  # an index without dimensions is one of a single element, and the tensor a vector
        return row_numbers(ctx, [index], shape, [1])
    strides = [prod(shape[place + 1 :]) for place in range(len(shape))]
    base = np.zeros(own, np.int64)
    for place, (size, stride) in enumerate(zip(own, strides, strict=0 not in own)):  # one of no elements has any dimensions
        if place != axis:
            base += (np.arange(size) * stride).reshape([size if other == place else 1 for other in range(len(own))])
    return row_numbers(ctx, [index], [shape[axis]], [strides[axis]], base)


def _column(tensor: Tensor) -> Tensor:
    return tensor.reshape([tensor.numElements(), 1])


@lowers(aten.gather.default)
def gather(ctx: EntryContext, input: Operand, dim: int, index: Operand, *, sparse_grad: bool = False) -> Tensor:
    tensor = input.placed()
    return taken_rows(ctx, _column(tensor), _element_numbers(ctx, index, dim, tensor.shape())).reshape(ctx.shape)


@lowers(aten.take.default)
def take(ctx: EntryContext, input: Operand, index: Operand) -> Tensor:
    tensor = input.placed()
    return taken_rows(ctx, _column(tensor), row_numbers(ctx, [index], [tensor.numElements()], [1])).reshape(ctx.shape)


@lowers(aten.put.default)
def put_elements(ctx: EntryContext, input: Operand, index: Operand, source: Operand, accumulate: bool = False) -> Tensor:
    tensor = typed(ctx, input)
    numbers = row_numbers(ctx, [index], [tensor.numElements()], [1])
    how = Combining.ADD if accumulate else Combining.REPLACE
    return put_rows(ctx, _column(tensor), numbers, _column(typed(ctx, source)), how).reshape(ctx.shape)


def _source_part(ctx: EntryContext, source: Any, index: Operand) -> Tensor:
    """What goes to the places of an index: the part of a source that has the index' shape, or a number."""
    shape = index.shape
    if not isinstance(source, Operand):
        return number(ctx, source, shape)
    if 0 in shape:
        return number(ctx, 0, shape)
    tensor = typed(ctx, source)
    for axis, size in enumerate(shape):
        tensor = tensor.slice(0, size, axis)
    return tensor if shape else tensor.flatten().slice(0, 1).reshape([])


def _scattered(ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Any, how: Combining) -> Tensor:
    table = typed(ctx, input)
    numbers = _element_numbers(ctx, index, dim, table.shape())
    return put_rows(ctx, _column(table), numbers, _column(_source_part(ctx, source, index)), how).reshape(ctx.shape)


@lowers(aten.scatter.src, aten.scatter.value)
def scatter(ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Any) -> Tensor:
    return _scattered(ctx, input, dim, index, source, Combining.REPLACE)


@lowers(aten.scatter_add.default)
def scatter_add(ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    return _scattered(ctx, input, dim, index, source, Combining.ADD)


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_combined(ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Any, *, reduce: str) -> Tensor:
    return _scattered(ctx, input, dim, index, source, Combining.ADD if reduce == "add" else Combining.MULTIPLY)


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Operand, reduce: str, *, include_self: bool = True
) -> Tensor:
    table = typed(ctx, input)
    numbers = _element_numbers(ctx, index, dim, table.shape())
    rows = _column(_source_part(ctx, source, index))
    return combined_rows(ctx, _column(table), numbers, rows, reduce, include_self).reshape(ctx.shape)


def combined_rows(ctx: EntryContext, table: Tensor, numbers: Tensor, rows: Tensor, reduce: str, include: bool) -> Tensor:
    """A table with rows combined into it: their sum, product, mean, largest or smallest, with what was there or without it."""
    type = table.elementType()
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise UnsupportedOperation(f"scatter: the reduction {reduce} is missing; there are sum, prod, mean, amax and amin")
    if reduce == "amin":
        table, rows = mapped(ctx, -_1, table), mapped(ctx, -_1, rows)
    if not include:
        lowest = -inf if type in FLOATS else -(2**31)
        start = {"prod": 1.0, "amax": lowest, "amin": lowest}.get(reduce, 0.0)
        table = put_rows(ctx, table, numbers, number(ctx, start, rows.shape(), type), Combining.REPLACE)
    if reduce != "mean":
        how = {"sum": Combining.ADD, "prod": Combining.MULTIPLY}.get(reduce, Combining.MAX)
        if how is Combining.MAX and type in FLOATS:
            result = _largest_rows(ctx, table, numbers, rows)
        else:
            result = put_rows(ctx, table, numbers, rows, how)
        return mapped(ctx, -_1, result) if reduce == "amin" else result
    worked = FLOAT if type in FLOATS else INT
    total = put_rows(ctx, as_type(ctx, table, worked), numbers, as_type(ctx, rows, worked), Combining.ADD)
    counts = number(ctx, 1 if include else 0, table.shape(), INT)
    counts = put_rows(ctx, counts, numbers, number(ctx, 1, rows.shape(), INT), Combining.ADD)
    many = Max(_2, Const(1, INT))
    if worked is FLOAT:
        return mapped(ctx, Cast(_1 / Cast(many, FLOAT), type), total, counts)
    below = Select(Const(1, INT), Const(0, INT), popops.expr.And(_1 < Const(0, INT), NotEqual(_1 % many, Const(0, INT))))
    return as_type(ctx, mapped(ctx, _1 / many - below, total, counts), type)


def _largest_rows(ctx: EntryContext, table: Tensor, numbers: Tensor, rows: Tensor) -> Tensor:
    """The largest of floats, and NaN where there is one among them, which the device's maximum leaves out: marks go beside them."""
    marked = [concat([one, mapped(ctx, Cast(IsNaN(_1), one.elementType()), one)], 1) for one in (table, rows)]
    both = put_rows(ctx, marked[0], numbers, marked[1], Combining.MAX)
    width = table.dim(1)
    lacking = NotEqual(_2, Const(0.0, table.elementType()))
    return mapped(ctx, Select(Const(nan), _1, lacking), both.slice(0, width, 1), both.slice(width, 2 * width, 1))


# slices of a dimension


def _rows_of(tensor: Tensor, axis: int) -> Tensor:
    """A table of a tensor's slices along a dimension."""
    return tensor.dimRoll(axis, 0).reshape([tensor.dim(axis), tensor.numElements() // max(tensor.dim(axis), 1)])


def _tensor_of(rows: Tensor, axis: int, shape: list[int]) -> Tensor:
    """A tensor of a shape from the table of its slices along a dimension."""
    others = [size for place, size in enumerate(shape) if place != axis]
    return rows.reshape([shape[axis], *others]).dimRoll(0, axis)


@lowers(aten.index_select.default)
def index_select(ctx: EntryContext, input: Operand, dim: int, index: Operand) -> Tensor:
    tensor = input.placed()
    if not tensor.rank():
        return tensor
    axis = dim % tensor.rank()
    found = taken_rows(ctx, _rows_of(tensor, axis), row_numbers(ctx, [index], [tensor.dim(axis)], [1]))
    return _tensor_of(found, axis, ctx.shape)


def _put_slices(
    ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Tensor, how: str, include: bool = True
) -> Tensor:
    tensor = typed(ctx, input)
    whole = tensor if tensor.rank() else tensor.reshape([1])
    axis, lookups = dim % whole.rank(), prod(index.shape)
    shape = [*whole.shape()[:axis], lookups, *whole.shape()[axis + 1 :]]
    rows = _rows_of(broadcast(source, shape), axis)
    numbers = row_numbers(ctx, [index], [whole.dim(axis)], [1])
    table = _rows_of(whole, axis)
    if how == "replace":
        return _tensor_of(put_rows(ctx, table, numbers, rows, Combining.REPLACE), axis, whole.shape()).reshape(ctx.shape)
    return _tensor_of(combined_rows(ctx, table, numbers, rows, how, include), axis, whole.shape()).reshape(ctx.shape)


@lowers(aten.index_add.default)
def index_add(ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Operand, *, alpha: float = 1) -> Tensor:
    tensor = typed(ctx, source)
    return _put_slices(ctx, input, dim, index, tensor if alpha == 1 else mapped(ctx, _1 * alpha, tensor), "sum")


@lowers(aten.index_copy.default)
def index_copy(ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Operand) -> Tensor:
    return _put_slices(ctx, input, dim, index, typed(ctx, source), "replace")


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(ctx: EntryContext, input: Operand, dim: int, index: Operand, value: Any) -> Tensor:
    given = typed(ctx, value).reshape([]) if isinstance(value, Operand) else number(ctx, value, [])
    return _put_slices(ctx, input, dim, index, given, "replace")


@lowers(aten.index_reduce.default)
def index_reduce(
    ctx: EntryContext, input: Operand, dim: int, index: Operand, source: Operand, reduce: str, *, include_self: bool = True
) -> Tensor:
    return _put_slices(ctx, input, dim, index, typed(ctx, source), reduce, include_self)


# several dimensions at once, as x[i, :, j] has them


class IndexedPlaces:
    """Where indices of several dimensions lead: the order of dimensions with indexed ones first, and the numbers of rows."""

    def __init__(self, ctx: EntryContext, shape: list[int], indices: Indices) -> None:
        self.axes = [axis for axis, index in enumerate(indices) if index is not None]
        self.others = [axis for axis in range(len(shape)) if axis not in self.axes]
        operands = [index for index in indices if index is not None]
        if any(operand.type is BOOL for operand in operands):
            raise UnsupportedOperation(
                "index: how many elements a mask picks depends on data; torch.where(mask, x, other) and x * mask have a fixed shape"
            )
        if any(operand.type is UNSIGNED_CHAR for operand in operands):
            raise UnsupportedOperation(
                "index: to PyTorch a tensor of torch.uint8 is a mask, not the places; call its bool() or long()"
            )
        sizes = [shape[axis] for axis in self.axes]
        strides = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
        self.shape, self.entries = shape, prod(sizes)
        self.looked_up = list(np.broadcast_shapes(*(operand.shape for operand in operands)))
        self.numbers = row_numbers(ctx, operands, sizes, strides)
        adjacent = self.axes == list(range(self.axes[0], self.axes[-1] + 1))
        self.first = self.axes[0] if adjacent else 0  # where dimensions of the indices stand in the result

    def table(self, tensor: Tensor) -> Tensor:
        """The tensor as [entries, elements], a row for each value that the indices can have together."""
        row = prod(self.shape[axis] for axis in self.others)
        return tensor.dimShuffle([*self.axes, *self.others]).reshape([self.entries, row])

    def of_table(self, table: Tensor) -> Tensor:
        """A table as the tensor that it was made of."""
        order = [*self.axes, *self.others]
        back = [order.index(axis) for axis in range(len(order))]
        return table.reshape([self.shape[axis] for axis in order]).dimShuffle(back)

    def result(self, rows: Tensor) -> Tensor:
        """The rows that were looked up, with dimensions where PyTorch has them."""
        count, others = len(self.looked_up), [self.shape[axis] for axis in self.others]
        tensor = rows.reshape([*self.looked_up, *others])
        rest = list(range(count, tensor.rank()))
        return tensor.dimShuffle([*rest[: self.first], *range(count), *rest[self.first :]])

    def rows(self, values: Tensor) -> Tensor:
        """The rows of values that have the shape of the result, or can be broadcast to it."""
        count, others = len(self.looked_up), [self.shape[axis] for axis in self.others]
        tensor = broadcast(values, [*others[: self.first], *self.looked_up, *others[self.first :]])
        order = [*range(self.first, self.first + count), *range(self.first), *range(self.first + count, tensor.rank())]
        return tensor.dimShuffle(order).reshape([prod(self.looked_up), prod(others)])


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(ctx: EntryContext, input: Operand, indices: Indices) -> Tensor:
    tensor = input.placed()
    places = IndexedPlaces(ctx, tensor.shape(), indices)
    return places.result(taken_rows(ctx, places.table(tensor), places.numbers))


@lowers(aten.index_put.default, aten._unsafe_index_put.default, aten._index_put_impl.default)
def index_put(
    ctx: EntryContext, input: Operand, indices: Indices, values: Operand, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    tensor, given = typed(ctx, input), typed(ctx, values)
    if len(indices) == 1 and indices[0] is not None and indices[0].type in (BOOL, UNSIGNED_CHAR):  # to PyTorch both are masks
        mask = as_type(ctx, indices[0].placed(), BOOL)
        row = _row_of_mask(given, tensor.rank() - mask.rank(), mask.rank())
        if row is not None:
            mask = broadcast(mask.reshape([*mask.shape(), *[1] * (tensor.rank() - mask.rank())]), tensor.shape())
            changed = _1 + _2 if accumulate else _2
            value = row.reshape([]) if row.numElements() == 1 else broadcast(row, tensor.shape())
            return mapped(ctx, Select(changed, _1, _3), tensor, value, mask)
    places = IndexedPlaces(ctx, tensor.shape(), indices)
    how = Combining.ADD if accumulate else Combining.REPLACE
    return places.of_table(put_rows(ctx, places.table(tensor), places.numbers, places.rows(given), how))


def _row_of_mask(values: Tensor, rest: int, masked: int) -> Tensor | None:
    """Values for what a mask picks, where each row is given the same: with dimensions of size 1 in the place of those of the mask.

    None where there is a value of its own for each row: how many there are depends on data.
    """
    shape = values.shape()
    if len(shape) > rest:
        if shape[: len(shape) - rest] != [1]:
            return None
        shape = shape[1:]
    return values.reshape([*[1] * masked, *[1] * (rest - len(shape)), *shape])
