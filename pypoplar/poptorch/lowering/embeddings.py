"""Lookups in tables, and gradients of the tables. An index that is none of the table's gives zeros, and changes nothing."""

from __future__ import annotations

from math import prod

import torch

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Const, Equal, Select, _1
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.shared_expressions import as_type, mapped
from pypoplar.types import FLOAT, INT, UNSIGNED_INT, ElementType

aten = torch.ops.aten


def _plan(ctx: EntryContext, entries: int, size: int, lookups: int, update: bool) -> popops.SlicePlan:
    if not (entries and size and lookups):
        return popops.SlicePlan()
    used = {"usedForSlice": "true", "usedForUpdate": str(update).lower()}
    return popops.embedding.plan(ctx.graph, ctx.type, entries, size, [lookups], used)


def _offsets(ctx: EntryContext, indices: Operand, left_out: int = -1) -> Tensor:
    """[lookups, 1] of UNSIGNED_INT; the index `left_out` becomes one that is out of range."""
    tensor = indices.placed().flatten()
    tensor = as_type(ctx, tensor, INT)
    if left_out >= 0:
        masked = Select(Const(-1, INT), _1, Equal(_1, Const(left_out, INT)))
        tensor = mapped(ctx, masked, tensor)
    return tensor.reinterpret(UNSIGNED_INT).expand([1])


@lowers(aten.embedding.default)
def embedding(
    ctx: EntryContext, table: Operand, indices: Operand, padding: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Tensor:
    if sparse:
        raise UnsupportedOperation("embedding: sparse gradients are missing; sparse=False is supported")
    entries, size = table.shape
    plan = _plan(ctx, entries, size, prod(indices.shape), ctx.training)
    shape = [entries, size]

    def create() -> Tensor:
        return popops.createSliceableTensor(ctx.graph, ctx.type, shape, [0], [1], plan, {}, f"{ctx.name}/weights")

    operands = table.placed(create), _offsets(ctx, indices)
    found = popops.multiSlice(ctx.graph, *operands, [0], [1], ctx.program, plan, {}, ctx.name)
    return found.reshape(ctx.shape)


@lowers(aten.embedding_dense_backward.default)
def embedding_backward(
    ctx: EntryContext, gradient: Operand, indices: Operand, entries: int, padding: int, by_frequency: bool
) -> Tensor:
    """The gradient of a table: that of its entry `padding` is 0. Halves are added in float and rounded once."""
    if by_frequency:
        raise UnsupportedOperation("embedding: scale_grad_by_freq=True is missing; False is supported")
    size, lookups = ctx.shape[1], prod(indices.shape)
    plan = _plan(ctx, entries, size, lookups, True)
    total = popops.createSliceableTensor(ctx.graph, ctx.type, [entries, size], [0], [1], plan, {}, f"{ctx.name}/gradient")
    popops.zero(ctx.graph, total, ctx.program, ctx.name)
    if not total.numElements() or not lookups:
        return total
    slices = gradient.placed().reshape([lookups, 1, size])
    offsets = _offsets(ctx, indices, padding)
    options = {} if ctx.type is FLOAT else {"partialType": "float"}
    operands = total, slices, offsets, _one(ctx, ctx.type)
    popops.multiUpdateAdd(ctx.graph, *operands, [0], [1], ctx.program, plan, options, ctx.name)
    return total


def _one(ctx: EntryContext, type: ElementType) -> Tensor:
    return ctx.constant(type.dtype.type(1))
