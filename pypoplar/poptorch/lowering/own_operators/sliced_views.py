"""PopTorch's slices at places that the device knows."""

from __future__ import annotations

import torch
from torch import fx

from pypoplar import popops, poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.types import INT, UNSIGNED_INT


def _offset(at: GraphLowering, start: fx.Node) -> Tensor:
    """The place where a slice begins, UNSIGNED_INT [1]."""
    given = at.tensor(start).reshape([1])
    if given.elementType() is UNSIGNED_INT:
        return given
    whole = given if given.elementType() is INT else popops.cast(at.graph, given, INT, at.program, at.name)
    return whole.reinterpret(UNSIGNED_INT)


@lowers(torch.ops.poptorch.dynamic_slice.default)
def dynamic_slice(at: GraphLowering, x: fx.Node, dim: int, start: fx.Node, size: int, step: int) -> Tensor:
    shape = at.shape_of(x)
    tensor = at.tensor(x, lambda: popops.createSliceableTensor(at.graph, at.type_of(x), shape, [dim], [size], 0, at.name))
    whole = popops.dynamicSlice(at.graph, tensor, _offset(at, start), [dim], [size], at.program, at.name)
    return whole if step == 1 else whole.subSample(step, dim)


@lowers(torch.ops.poptorch.dynamic_update.default)
def dynamic_update(at: GraphLowering, x: fx.Node, source: fx.Node, dim: int, start: fx.Node, step: int) -> Tensor:
    given, offset = at.tensor(source), _offset(at, start)
    result = poputil.duplicate(at.graph, at.tensor(x), at.program, at.name)
    if step == 1:
        sizes = [given.dim(dim)]
        popops.dynamicUpdate(at.graph, result, given, offset, [dim], sizes, at.program, at.name)
        return result
    for number in range(given.dim(dim)):
        place = popops.add(at.graph, offset, number * step, at.program, at.name)
        popops.dynamicUpdate(at.graph, result, given.slice(number, number + 1, dim), place, [dim], [1], at.program, at.name)
    return result
