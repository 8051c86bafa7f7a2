"""Rows of a table that are looked up or written by indices which the device computes.

Negative indices count from the end. An index that is out of range gives zeros, and changes nothing: PyTorch would raise an error.
Constant indices are checked when the graph is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from pypoplar import popops
from pypoplar.arrays.dtypes import Int64s
from pypoplar.errors import PoplarIndexError
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import And, Const, Expr, PlaceHolder, Select
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, mapped
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.poptorch.lowering.values import Constant
from pypoplar.program import Copy
from pypoplar.types import INT, UNSIGNED_INT, ElementType


class Combining(Enum):
    """What becomes of a row of a table and of one that goes to its place."""

    REPLACE = "replace"
    ADD = "sum"
    MAX = "amax"
    MULTIPLY = "prod"


def row_numbers(
    ctx: EntryContext, indices: Sequence[Operand], sizes: Sequence[int], strides: Sequence[int], base: Int64s | None = None
) -> Tensor:
    """The numbers of rows that indices of dimensions mean, INT: the sum of each index times its stride, and of `base`.

    Indices are broadcast to one shape. A number is -1 where an index is out of range.
    """
    shape = list(np.broadcast_shapes(*(index.shape for index in indices)))
    known = [_checked(ctx, index, size) for index, size in zip(indices, sizes, strict=True)]
    constants = [array for array in known if array is not None]
    if len(constants) == len(known):
        total = np.zeros(shape, np.int64) if base is None else base
        for array, stride in zip(constants, strides, strict=True):
            total = total + array * stride
        return ctx.constant(total.astype(np.int32))
    tensors = [broadcast(as_type(ctx, index.placed(), INT), shape) for index in indices]
    total_tree: Expr = Const(0, INT)
    inside: Expr | None = None
    for place, (size, stride) in enumerate(zip(sizes, strides, strict=True), 1):
        index = PlaceHolder(place)
        wrapped = Select(index + Const(size, INT), index, index < Const(0, INT))
        fits = And(wrapped >= Const(0, INT), wrapped < Const(size, INT))
        inside = fits if inside is None else And(inside, fits)
        total_tree = total_tree + wrapped * Const(stride, INT)
    if base is not None:
        tensors.append(broadcast(ctx.constant(base.astype(np.int32)), shape))
        total_tree = total_tree + PlaceHolder(len(tensors))
    assert inside is not None, "rows are looked up by an index at least"
    return mapped(ctx, Select(total_tree, Const(-1, INT), inside), *tensors)


def _checked(ctx: EntryContext, index: Operand, size: int) -> Int64s | None:
    """The values of a constant index, counted from the beginning."""
    value = index.value
    if not isinstance(value, Constant):
        return None
    array = value.array.astype(np.int64)
    wrong = array[(array < -size) | (array >= size)]
    if wrong.size:
        raise PoplarIndexError(f"{ctx.name}: the index {wrong.reshape(-1)[0]} is out of a dimension of size {size}")
    return np.where(array < 0, array + size, array)


def taken_rows(ctx: EntryContext, table: Tensor, numbers: Tensor) -> Tensor:
    """Rows [lookups, size] of a table [entries, size] by their numbers, of any shape."""
    lookups, type = numbers.numElements(), table.elementType()
    if not table.numElements() or not lookups:
        return ctx.constant(np.zeros([lookups, table.dim(1)], type.dtype))
    worked = as_type(ctx, table, _worked_type(type))
    plan = _plan(ctx, worked, lookups, update=False)
    found = popops.multiSlice(ctx.graph, worked, _offsets(numbers), [0], [1], ctx.program, plan, {}, ctx.name)
    return as_type(ctx, found.reshape([lookups, table.dim(1)]), type)


def put_rows(ctx: EntryContext, table: Tensor, numbers: Tensor, rows: Tensor, how: Combining) -> Tensor:
    """A new table: an old one, into which rows [lookups, size] went by their numbers."""
    lookups, type = numbers.numElements(), table.elementType()
    if not table.numElements() or not lookups:
        return table
    worked = _worked_type(type)
    plan = _plan(ctx, as_type(ctx, table, worked), lookups, update=True) if how is Combining.ADD else popops.SlicePlan()
    new = popops.createSliceableTensor(ctx.graph, worked, table.shape(), [0], [1], plan, {}, f"{ctx.name}/written")
    ctx.program.add(Copy(as_type(ctx, table, worked), new, name=ctx.name))
    slices = as_type(ctx, rows, worked).reshape([lookups, 1, table.dim(1)])
    operands = ctx.graph, new, slices, _offsets(numbers)
    match how:
        case Combining.ADD:
            options = {"partialType": "float"} if worked in FLOATS and worked is not FLOATS[0] else {}
            one = ctx.constant(worked.dtype.type(1))
            popops.multiUpdateAdd(*operands, one, [0], [1], ctx.program, plan, options, ctx.name)
        case Combining.REPLACE:
            popops.multiUpdate(*operands, [0], [1], ctx.program, plan, {}, ctx.name)
        case Combining.MAX:
            popops.multiUpdateMax(*operands, [0], [1], ctx.program, plan, {}, ctx.name)
        case Combining.MULTIPLY:
            popops.multiUpdateMul(*operands, [0], [1], ctx.program, plan, {}, ctx.name)
    return as_type(ctx, new, type)


def _worked_type(type: ElementType) -> ElementType:
    """The type in which rows are moved: that of small integers and of truth values is INT."""
    return type if type in (*FLOATS, INT) else INT


def _offsets(numbers: Tensor) -> Tensor:
    flat = numbers.flatten() if numbers.rank() else numbers.reshape([1])
    return flat.reinterpret(UNSIGNED_INT).expand([1])


def _plan(ctx: EntryContext, table: Tensor, lookups: int, update: bool) -> popops.SlicePlan:
    used = {"usedForSlice": str(not update).lower(), "usedForUpdate": str(update).lower()}
    return popops.embedding.plan(ctx.graph, table.elementType(), table.dim(0), table.dim(1), [lookups], used)
