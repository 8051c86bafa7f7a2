"""Sums and means over dimensions. They are summed in FLOAT."""

from __future__ import annotations

from math import prod

import torch
from torch import fx

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.types import FLOAT, HALF

aten = torch.ops.aten


def _axes(dims: list[int] | None, rank: int) -> list[int]:
    return sorted(dim % rank for dim in dims) if dims else list(range(rank))


@lowers(aten.sum.dim_IntList, aten.sum.default)
def summed(
    at: GraphLowering, input: fx.Node, dims: list[int] | None = None, keep: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    tensor = at.tensor(input)
    if tensor.elementType() is not at.type and not (tensor.elementType() is HALF and at.type is FLOAT):
        tensor = popops.cast(at.graph, tensor, at.type, at.program, at.name)
    axes = _axes(dims, tensor.rank())
    add = popops.ReduceParams(popops.Operation.ADD)
    return popops.reduce(at.graph, tensor, at.type, axes, add, at.program, at.name).reshape(at.shape)


@lowers(aten.mean.dim, aten.mean.default)
def mean(
    at: GraphLowering, input: fx.Node, dims: list[int] | None = None, keep: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    tensor = at.tensor(input)
    axes = _axes(dims, tensor.rank())
    count = prod(tensor.dim(axis) for axis in axes)
    scale = at.graph.addConstant(FLOAT, [], 1 / count if count else float("nan"), at.name)
    at.graph.setTileMapping(scale, 0)
    add = popops.ReduceParams(popops.Operation.ADD, False, scale)
    return popops.reduce(at.graph, tensor, at.type, axes, add, at.program, at.name).reshape(at.shape)
