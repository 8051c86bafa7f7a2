"""Operations that move nothing: views of tensors. Those that can be undone let an input without a tensor wait."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers

aten = torch.ops.aten


@lowers(
    aten.detach.default,
    aten.alias.default,
    aten.clone.default,
    torch.ops.poptorch.identity_loss.default,
    torch.ops.poptorch.set_available_memory.default,
)
def same(at: GraphLowering, source: fx.Node, *hint: Any, **layout: Any) -> Any:
    return at.value(source)


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def reshape(at: GraphLowering, source: fx.Node, size: list[int]) -> Any:
    shape, before = at.shape_of(at.node), at.shape_of(source)
    return at.view(source, lambda tensor: tensor.reshape(shape), lambda tensor: tensor.reshape(before))


@lowers(aten.t.default)
def transposed(at: GraphLowering, source: fx.Node) -> Any:
    if len(at.shape_of(source)) < 2:
        return at.value(source)
    return at.view(source, Tensor.transpose, Tensor.transpose)


@lowers(aten.permute.default)
def permuted(at: GraphLowering, source: fx.Node, dims: list[int]) -> Any:
    order = [dim % len(dims) for dim in dims]
    back = [order.index(dim) for dim in range(len(order))]
    return at.view(source, lambda tensor: tensor.dimShuffle(order), lambda tensor: tensor.dimShuffle(back))


@lowers(aten.transpose.int)
def exchanged(at: GraphLowering, source: fx.Node, first: int, second: int) -> Any:
    order = list(range(len(at.shape_of(source))))
    order[first], order[second] = order[second], order[first]
    return at.view(source, lambda tensor: tensor.dimShuffle(order), lambda tensor: tensor.dimShuffle(order))


@lowers(aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default)
def with_or_without_ones(at: GraphLowering, source: fx.Node, dims: Any = None) -> Any:
    return reshape(at, source, [])


@lowers(aten.expand.default)
def expanded(at: GraphLowering, source: fx.Node, size: list[int], implicit: bool = False) -> Any:
    wanted, tensor = at.shape_of(at.node), at.tensor(source)
    tensor = tensor.reshape([1] * (len(wanted) - tensor.rank()) + tensor.shape())
    for dim, (new, old) in enumerate(zip(wanted, tensor.shape(), strict=True)):
        if new != old:
            tensor = tensor.broadcast(new, dim) if new else tensor.slice(0, 0, dim)
    return tensor
