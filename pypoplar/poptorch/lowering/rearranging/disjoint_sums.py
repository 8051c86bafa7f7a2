"""Sums of tensors that are zero but for parts, such as gradients of what was selected: joined, where no two parts overlap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from attrs import frozen
from torch import fx

from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.tensor_views import number

aten = torch.ops.aten


@frozen(eq=False)
class _DisjointPart:
    """Indices of a dimension, and the node whose tensor is there."""

    begin: int
    end: int
    node: fx.Node


@frozen(eq=False)
class _Parts:
    """A tensor that is zero but for parts of a dimension, which are sorted and do not overlap."""

    axis: int
    parts: tuple[_DisjointPart, ...]


def disjoint_sum(at: GraphLowering) -> Tensor | None:
    """What is lowered now, if it is a sum of parts: no addition; -0.0 of a part stays so, though zero is added to it."""
    sum = _parts_of(at.node)
    if sum is None:
        return None
    pieces, place = [], 0
    for part in sum.parts:
        if part.begin > place:
            pieces.append(_zeros(at, sum.axis, part.begin - place))
        tensor = at.tensor(part.node)
        pieces.append(tensor if tensor.rank() == len(at.shape) else tensor.expand([sum.axis]))
        place = part.end
    if place < at.shape[sum.axis]:
        pieces.append(_zeros(at, sum.axis, at.shape[sum.axis] - place))
    return concat(pieces, sum.axis)


def _zeros(at: GraphLowering, axis: int, count: int) -> Tensor:
    return number(at, 0, [*at.shape[:axis], count, *at.shape[axis + 1 :]])


def _parts_of(node: Any) -> _Parts | None:
    """The parts of a sum, or of one of its operands; None of what is something else, or whose parts overlap."""
    if not isinstance(node, fx.Node):
        return None
    given: Any = node.args
    if node.target is aten.select_backward.default:
        source, sizes, dim, index = given
        axis = dim % len(sizes)
        begin = index % sizes[axis]
        return _Parts(axis, (_DisjointPart(begin, begin + 1, source),))
    if node.target is aten.slice_backward.default:
        source, sizes, dim, start, end, step = given
        begin, end, step = slice(start, end, step).indices(sizes[dim])
        return _Parts(dim % len(sizes), (_DisjointPart(begin, end, source),)) if step == 1 and begin < end else None
    if node.target is aten.add.Tensor and node.kwargs.get("alpha", 1) == 1 and len(given) == 2:
        return _joined(node, _parts_of(given[0]), _parts_of(given[1]))
    return None


def _joined(sum: fx.Node, left: _Parts | None, right: _Parts | None) -> _Parts | None:
    """The parts of both operands of a sum."""
    values = [sum.meta["val"], *(operand.meta["val"] for operand in sum.args if isinstance(operand, fx.Node))]
    if left is None or right is None or left.axis != right.axis or len({(one.shape, one.dtype) for one in values}) > 1:
        return None
    parts = sorted((*left.parts, *right.parts), key=lambda part: part.begin)
    overlap = any(after.begin < part.end for part, after in pairwise(parts))
    return None if overlap else _Parts(left.axis, tuple(parts))
