"""Sums of tensors that are zero but for parts, such as gradients of what was selected: joined, where no two parts overlap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from attrs import frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.tensor_views import number

aten = torch.ops.aten


@frozen(eq=False)
class _DisjointPart:
    """Indices of a dimension, and the operand whose tensor is there."""

    begin: int
    end: int
    operand: Operand


@frozen(eq=False)
class _Parts:
    """A tensor that is zero but for parts of a dimension, which are sorted and do not overlap."""

    axis: int
    parts: tuple[_DisjointPart, ...]


def disjoint_sum(ctx: EntryContext, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor | None:
    """An addition, if it is a sum of parts: nothing is added; -0.0 of a part stays so, though zero is added to it."""
    sum = _sum_of(ctx.likes[0], ctx.operation, arguments, keywords)
    if sum is None:
        return None
    pieces, place = [], 0
    for part in sum.parts:
        if part.begin > place:
            pieces.append(_zeros(ctx, sum.axis, part.begin - place))
        tensor = part.operand.placed()
        pieces.append(tensor if tensor.rank() == len(ctx.shape) else tensor.expand([sum.axis]))
        place = part.end
    if place < ctx.shape[sum.axis]:
        pieces.append(_zeros(ctx, sum.axis, ctx.shape[sum.axis] - place))
    return concat(pieces, sum.axis)


def _zeros(ctx: EntryContext, axis: int, count: int) -> Tensor:
    return number(ctx, 0, [*ctx.shape[:axis], count, *ctx.shape[axis + 1 :]])


def _parts_of(operand: Any) -> _Parts | None:
    """The parts of an operand of a sum; None of what is something else, or whose parts overlap."""
    if not isinstance(operand, Operand):
        return None
    made = operand.made_by
    if made.operation is aten.select_backward.default:
        source, sizes, dim, index = made.arguments
        axis = dim % len(sizes)
        begin = index % sizes[axis]
        return _Parts(axis, (_DisjointPart(begin, begin + 1, source),))
    if made.operation is aten.slice_backward.default:
        source, sizes, dim, start, end, step = made.arguments
        begin, end, step = slice(start, end, step).indices(sizes[dim])
        return _Parts(dim % len(sizes), (_DisjointPart(begin, end, source),)) if step == 1 and begin < end else None
    if made.operation is not aten.add.Tensor:
        return None
    return _sum_of(operand.like, made.operation, made.arguments, made.keywords)


def _sum_of(like: torch.Tensor, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> _Parts | None:
    """The parts of both operands of a sum that is `like` a tensor."""
    if operation is not aten.add.Tensor or keywords.get("alpha", 1) != 1 or len(arguments) != 2:
        return None
    left, right = (_parts_of(one) for one in arguments)
    values = [like, *(one.like for one in arguments if isinstance(one, Operand))]
    if left is None or right is None or left.axis != right.axis or len({(one.shape, one.dtype) for one in values}) > 1:
        return None
    parts = sorted((*left.parts, *right.parts), key=lambda part: part.begin)
    overlap = any(after.begin < part.end for part, after in pairwise(parts))
    return None if overlap else _Parts(left.axis, tuple(parts))
