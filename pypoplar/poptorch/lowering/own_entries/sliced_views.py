"""PopTorch's slices at places that the device knows."""

from __future__ import annotations

import torch

from pypoplar import popops, poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import as_type
from pypoplar.types import INT, UNSIGNED_INT


def _offset(ctx: EntryContext, start: Operand) -> Tensor:
    """The place where a slice begins, UNSIGNED_INT [1]."""
    given = start.placed().reshape([1])
    if given.elementType() is UNSIGNED_INT:
        return given
    whole = as_type(ctx, given, INT)
    return whole.reinterpret(UNSIGNED_INT)


@lowers(torch.ops.poptorch.dynamic_slice.default)
def dynamic_slice(ctx: EntryContext, x: Operand, dim: int, start: Operand, size: int, step: int) -> Tensor:
    shape = x.shape
    tensor = x.placed(lambda: popops.createSliceableTensor(ctx.graph, x.type, shape, [dim], [size], 0, ctx.name))
    whole = popops.dynamicSlice(ctx.graph, tensor, _offset(ctx, start), [dim], [size], ctx.program, ctx.name)
    return whole if step == 1 else whole.subSample(step, dim)


@lowers(torch.ops.poptorch.dynamic_update.default)
def dynamic_update(ctx: EntryContext, x: Operand, source: Operand, dim: int, start: Operand, step: int) -> Tensor:
    given, offset = source.placed(), _offset(ctx, start)
    result = poputil.duplicate(ctx.graph, x.placed(), ctx.program, ctx.name)
    if step == 1:
        sizes = [given.dim(dim)]
        popops.dynamicUpdate(ctx.graph, result, given, offset, [dim], sizes, ctx.program, ctx.name)
        return result
    for number in range(given.dim(dim)):
        place = popops.add(ctx.graph, offset, number * step, ctx.program, ctx.name)
        popops.dynamicUpdate(ctx.graph, result, given.slice(number, number + 1, dim), place, [dim], [1], ctx.program, ctx.name)
    return result
