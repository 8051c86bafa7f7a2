"""Elements and slices by indices that are tensors: gathered, scattered, selected and written."""

from __future__ import annotations

from math import inf, nan, prod
from typing import Any

import numpy as np
import torch
from torch import fx

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Cast, Const, IsNaN, Max, NotEqual, Select, _1, _2, _3
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.rearranging.rows import Combining, put_rows, row_numbers, taken_rows
from pypoplar.poptorch.lowering.reductions import FLOATS, as_type, mapped
from pypoplar.poptorch.lowering.tensor_views import broadcast, number, typed
from pypoplar.types import BOOL, FLOAT, INT

aten = torch.ops.aten
Indices = list[fx.Node | None]


# elements along a dimension: a table of all elements, each a row


def _element_numbers(at: GraphLowering, index: fx.Node, dim: int, shape: list[int]) -> Tensor:
    """The places, in a flattened tensor of a shape, that an index along a dimension means."""
    if not shape:
        return row_numbers(at, [index], [1], [1])
    axis, own = dim % len(shape), at.shape_of(index)
    strides = [prod(shape[place + 1 :]) for place in range(len(shape))]
    base = np.zeros(own, np.int64)
    for place, (size, stride) in enumerate(zip(own, strides, strict=True)):
        if place != axis:
            base += (np.arange(size) * stride).reshape([size if other == place else 1 for other in range(len(own))])
    return row_numbers(at, [index], [shape[axis]], [strides[axis]], base)


def _column(tensor: Tensor) -> Tensor:
    return tensor.reshape([tensor.numElements(), 1])


@lowers(aten.gather.default)
def gather(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, *, sparse_grad: bool = False) -> Tensor:
    tensor = at.tensor(input)
    return taken_rows(at, _column(tensor), _element_numbers(at, index, dim, tensor.shape())).reshape(at.shape)


@lowers(aten.take.default)
def take(at: GraphLowering, input: fx.Node, index: fx.Node) -> Tensor:
    tensor = at.tensor(input)
    return taken_rows(at, _column(tensor), row_numbers(at, [index], [tensor.numElements()], [1])).reshape(at.shape)


@lowers(aten.put.default)
def put_elements(at: GraphLowering, input: fx.Node, index: fx.Node, source: fx.Node, accumulate: bool = False) -> Tensor:
    tensor = typed(at, input)
    numbers = row_numbers(at, [index], [tensor.numElements()], [1])
    how = Combining.ADD if accumulate else Combining.REPLACE
    return put_rows(at, _column(tensor), numbers, _column(typed(at, source)), how).reshape(at.shape)


def _source_part(at: GraphLowering, source: Any, index: fx.Node) -> Tensor:
    """What goes to the places of an index: the part of a source that has the index' shape, or a number."""
    shape = at.shape_of(index)
    if not isinstance(source, fx.Node):
        return number(at, source, shape)
    tensor = typed(at, source)
    for axis, size in enumerate(shape):
        tensor = tensor.slice(0, size, axis)
    return tensor


def _scattered(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: Any, how: Combining) -> Tensor:
    table = typed(at, input)
    numbers = _element_numbers(at, index, dim, table.shape())
    return put_rows(at, _column(table), numbers, _column(_source_part(at, source, index)), how).reshape(at.shape)


@lowers(aten.scatter.src, aten.scatter.value)
def scatter(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: Any) -> Tensor:
    return _scattered(at, input, dim, index, source, Combining.REPLACE)


@lowers(aten.scatter_add.default)
def scatter_add(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: fx.Node) -> Tensor:
    return _scattered(at, input, dim, index, source, Combining.ADD)


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_combined(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: Any, *, reduce: str) -> Tensor:
    return _scattered(at, input, dim, index, source, Combining.ADD if reduce == "add" else Combining.MULTIPLY)


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: fx.Node, reduce: str, *, include_self: bool = True
) -> Tensor:
    table = typed(at, input)
    numbers = _element_numbers(at, index, dim, table.shape())
    rows = _column(_source_part(at, source, index))
    return combined_rows(at, _column(table), numbers, rows, reduce, include_self).reshape(at.shape)


def combined_rows(at: GraphLowering, table: Tensor, numbers: Tensor, rows: Tensor, reduce: str, include: bool) -> Tensor:
    """A table with rows combined into it: their sum, product, mean, largest or smallest, with what was there or without it."""
    type = table.elementType()
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise UnsupportedOperation(f"scatter: the reduction {reduce} is missing; there are sum, prod, mean, amax and amin")
    if reduce == "amin":
        table, rows = mapped(at, -_1, table), mapped(at, -_1, rows)
    if not include:
        lowest = -inf if type in FLOATS else -(2**31)
        start = {"prod": 1.0, "amax": lowest, "amin": lowest}.get(reduce, 0.0)
        table = put_rows(at, table, numbers, number(at, start, rows.shape(), type), Combining.REPLACE)
    if reduce != "mean":
        how = {"sum": Combining.ADD, "prod": Combining.MULTIPLY}.get(reduce, Combining.MAX)
        if how is Combining.MAX and type in FLOATS:
            result = _largest_rows(at, table, numbers, rows)
        else:
            result = put_rows(at, table, numbers, rows, how)
        return mapped(at, -_1, result) if reduce == "amin" else result
    worked = FLOAT if type in FLOATS else INT
    total = put_rows(at, as_type(at, table, worked), numbers, as_type(at, rows, worked), Combining.ADD)
    counts = number(at, 1 if include else 0, table.shape(), INT)
    counts = put_rows(at, counts, numbers, number(at, 1, rows.shape(), INT), Combining.ADD)
    many = Max(_2, Const(1, INT))
    if worked is FLOAT:
        return mapped(at, Cast(_1 / Cast(many, FLOAT), type), total, counts)
    below = Select(Const(1, INT), Const(0, INT), popops.expr.And(_1 < Const(0, INT), NotEqual(_1 % many, Const(0, INT))))
    return as_type(at, mapped(at, _1 / many - below, total, counts), type)


def _largest_rows(at: GraphLowering, table: Tensor, numbers: Tensor, rows: Tensor) -> Tensor:
    """The largest of floats, and NaN where there is one among them, which the device's maximum leaves out: marks go beside them."""
    marked = [concat([one, mapped(at, Cast(IsNaN(_1), one.elementType()), one)], 1) for one in (table, rows)]
    both = put_rows(at, marked[0], numbers, marked[1], Combining.MAX)
    width = table.dim(1)
    lacking = NotEqual(_2, Const(0.0, table.elementType()))
    return mapped(at, Select(Const(nan), _1, lacking), both.slice(0, width, 1), both.slice(width, 2 * width, 1))


# slices of a dimension


def _rows_of(tensor: Tensor, axis: int) -> Tensor:
    """A table of a tensor's slices along a dimension."""
    return tensor.dimRoll(axis, 0).reshape([tensor.dim(axis), tensor.numElements() // max(tensor.dim(axis), 1)])


def _tensor_of(rows: Tensor, axis: int, shape: list[int]) -> Tensor:
    """A tensor of a shape from the table of its slices along a dimension."""
    others = [size for place, size in enumerate(shape) if place != axis]
    return rows.reshape([shape[axis], *others]).dimRoll(0, axis)


@lowers(aten.index_select.default)
def index_select(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node) -> Tensor:
    tensor = at.tensor(input)
    if not tensor.rank():
        return tensor
    axis = dim % tensor.rank()
    found = taken_rows(at, _rows_of(tensor, axis), row_numbers(at, [index], [tensor.dim(axis)], [1]))
    return _tensor_of(found, axis, at.shape)


def _put_slices(
    at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: Tensor, how: str, include: bool = True
) -> Tensor:
    tensor = typed(at, input)
    whole = tensor if tensor.rank() else tensor.reshape([1])
    axis, lookups = dim % whole.rank(), prod(at.shape_of(index))
    shape = [*whole.shape()[:axis], lookups, *whole.shape()[axis + 1 :]]
    rows = _rows_of(broadcast(source, shape), axis)
    numbers = row_numbers(at, [index], [whole.dim(axis)], [1])
    table = _rows_of(whole, axis)
    if how == "replace":
        return _tensor_of(put_rows(at, table, numbers, rows, Combining.REPLACE), axis, whole.shape()).reshape(at.shape)
    return _tensor_of(combined_rows(at, table, numbers, rows, how, include), axis, whole.shape()).reshape(at.shape)


@lowers(aten.index_add.default)
def index_add(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: fx.Node, *, alpha: float = 1) -> Tensor:
    tensor = typed(at, source)
    return _put_slices(at, input, dim, index, tensor if alpha == 1 else mapped(at, _1 * alpha, tensor), "sum")


@lowers(aten.index_copy.default)
def index_copy(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: fx.Node) -> Tensor:
    return _put_slices(at, input, dim, index, typed(at, source), "replace")


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, value: Any) -> Tensor:
    given = typed(at, value).reshape([]) if isinstance(value, fx.Node) else number(at, value, [])
    return _put_slices(at, input, dim, index, given, "replace")


@lowers(aten.index_reduce.default)
def index_reduce(
    at: GraphLowering, input: fx.Node, dim: int, index: fx.Node, source: fx.Node, reduce: str, *, include_self: bool = True
) -> Tensor:
    return _put_slices(at, input, dim, index, typed(at, source), reduce, include_self)


# several dimensions at once, as x[i, :, j] has them


class IndexedPlaces:
    """Where indices of several dimensions lead: the order of dimensions with indexed ones first, and the numbers of rows."""

    def __init__(self, at: GraphLowering, shape: list[int], indices: Indices) -> None:
        self.axes = [axis for axis, index in enumerate(indices) if index is not None]
        self.others = [axis for axis in range(len(shape)) if axis not in self.axes]
        nodes = [index for index in indices if index is not None]
        if any(at.type_of(node) is BOOL for node in nodes):
            raise UnsupportedOperation(
                "index: how many elements a mask picks depends on data; torch.where(mask, x, other) and x * mask have a fixed shape"
            )
        sizes = [shape[axis] for axis in self.axes]
        strides = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
        self.shape, self.entries = shape, prod(sizes)
        self.looked_up = list(np.broadcast_shapes(*(at.shape_of(node) for node in nodes)))
        self.numbers = row_numbers(at, nodes, sizes, strides)
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
def index(at: GraphLowering, input: fx.Node, indices: Indices) -> Tensor:
    tensor = at.tensor(input)
    places = IndexedPlaces(at, tensor.shape(), indices)
    return places.result(taken_rows(at, places.table(tensor), places.numbers))


@lowers(aten.index_put.default, aten._unsafe_index_put.default, aten._index_put_impl.default)
def index_put(
    at: GraphLowering, input: fx.Node, indices: Indices, values: fx.Node, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    tensor, given = typed(at, input), typed(at, values)
    if len(indices) == 1 and indices[0] is not None and at.type_of(indices[0]) is BOOL and given.numElements() == 1:
        mask = at.tensor(indices[0])
        mask = broadcast(mask.reshape([*mask.shape(), *[1] * (tensor.rank() - mask.rank())]), tensor.shape())
        changed = _1 + _2 if accumulate else _2
        return mapped(at, Select(changed, _1, _3), tensor, given.reshape([]), mask)
    places = IndexedPlaces(at, tensor.shape(), indices)
    how = Combining.ADD if accumulate else Combining.REPLACE
    return places.of_table(put_rows(at, places.table(tensor), places.numbers, places.rows(given), how))
