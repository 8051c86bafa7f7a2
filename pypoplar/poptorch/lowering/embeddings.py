"""Lookups in tables, and gradients of the tables. An index that is none of the table's gives zeros, and changes nothing."""

from __future__ import annotations

from math import prod

import torch
from torch import fx

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Const, Equal, Select, _1
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.values import Constant
from pypoplar.types import FLOAT, INT, UNSIGNED_INT, ElementType

aten = torch.ops.aten


def _plan(at: GraphLowering, entries: int, size: int, lookups: int, update: bool) -> popops.SlicePlan:
    if not (entries and size and lookups):
        return popops.SlicePlan()
    used = {"usedForSlice": "true", "usedForUpdate": str(update).lower()}
    return popops.embedding.plan(at.graph, at.type, entries, size, [lookups], used)


def _offsets(at: GraphLowering, indices: fx.Node, left_out: int = -1) -> Tensor:
    """[lookups, 1] of UNSIGNED_INT; the index `left_out` becomes one that is out of range."""
    tensor = at.tensor(indices).flatten()
    if tensor.elementType() is not INT:
        tensor = popops.cast(at.graph, tensor, INT, at.program, at.name)
    if left_out >= 0:
        masked = Select(Const(-1, INT), _1, Equal(_1, Const(left_out, INT)))
        tensor = popops.map(at.graph, masked, [tensor], at.program, at.name)
    return tensor.reinterpret(UNSIGNED_INT).expand([1])


@lowers(aten.embedding.default)
def embedding(
    at: GraphLowering, table: fx.Node, indices: fx.Node, padding: int = -1, by_frequency: bool = False, sparse: bool = False
) -> Tensor:
    if sparse:
        raise UnsupportedOperation("embedding: sparse gradients are missing; sparse=False is supported")
    entries, size = at.shape_of(table)
    plan = _plan(at, entries, size, prod(at.shape_of(indices)), at.training)
    shape = [entries, size]

    def create() -> Tensor:
        return popops.createSliceableTensor(at.graph, at.type, shape, [0], [1], plan, {}, f"{at.name}/weights")

    operands = at.tensor(table, create), _offsets(at, indices)
    found = popops.multiSlice(at.graph, *operands, [0], [1], at.program, plan, {}, at.name)
    return found.reshape(at.shape)


@lowers(aten.embedding_dense_backward.default)
def embedding_backward(
    at: GraphLowering, gradient: fx.Node, indices: fx.Node, entries: int, padding: int, by_frequency: bool
) -> Tensor:
    """The gradient of a table: that of its entry `padding` is 0. Halves are added in float and rounded once."""
    if by_frequency:
        raise UnsupportedOperation("embedding: scale_grad_by_freq=True is missing; False is supported")
    size, lookups = at.shape[1], prod(at.shape_of(indices))
    plan = _plan(at, entries, size, lookups, True)
    total = popops.createSliceableTensor(at.graph, at.type, [entries, size], [0], [1], plan, {}, f"{at.name}/gradient")
    popops.zero(at.graph, total, at.program, at.name)
    if not total.numElements() or not lookups:
        return total
    slices = at.tensor(gradient).reshape([lookups, 1, size])
    offsets = _offsets(at, indices, padding)
    options = {} if at.type is FLOAT else {"partialType": "float"}
    operands = total, slices, offsets, _one(at, at.type)
    popops.multiUpdateAdd(at.graph, *operands, [0], [1], at.program, plan, options, at.name)
    return total


def _one(at: GraphLowering, type: ElementType) -> Tensor:
    return at.constant(Constant(type.dtype.type(1)))
