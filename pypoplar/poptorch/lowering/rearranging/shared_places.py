"""The gradients of views that show elements several times: what is in all places of an element is added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.lowering.entry_context import EntryContext
from pypoplar.poptorch.lowering.tensor_views import elements_at, number

MOST_AT_ONCE = 6  # operands of one expression


def added_overlaps(ctx: EntryContext, tensor: Tensor, places: npt.NDArray[Any], shape: list[int]) -> Tensor:
    """A tensor of a shape: each element is the sum of those of `tensor` whose place, in `places`, is its own; -1 is no place.

    The first element of each place makes one view, the second another one, and so on; views are added in FLOAT. Where there is
    none the view shows a zero.
    """
    flat = tensor.flatten() if tensor.rank() else tensor.reshape([1])
    with_zero = concat([flat, number(ctx, 0, [1])])
    size = int(np.prod(shape))
    own = places.reshape(-1)
    order = np.argsort(own, kind="stable")
    order = order[own[order] >= 0]
    sorted_places = own[order]
    begins = np.searchsorted(sorted_places, np.arange(size))
    counts = np.bincount(sorted_places, minlength=size) if size else np.zeros(0, np.int64)
    layers = []
    for layer in range(int(counts.max(initial=0)) or 1):
        sources = np.full(size, flat.numElements())
        present = counts > layer
        sources[present] = order[begins[present] + layer]
        layers.append(elements_at(with_zero, sources.reshape(shape)))
    return _summed(ctx, layers)


def _summed(ctx: EntryContext, layers: list[Tensor]) -> Tensor:
    while len(layers) > 1:
        groups = [layers[begin : begin + MOST_AT_ONCE] for begin in range(0, len(layers), MOST_AT_ONCE)]
        layers = [_sum_of(ctx, group) for group in groups]
    return layers[0]


def _sum_of(ctx: EntryContext, group: list[Tensor]) -> Tensor:
    if len(group) == 1:
        return group[0]
    tree: popops.expr.Expr = popops.expr._1
    for place in range(2, len(group) + 1):
        tree = tree + popops.expr.PlaceHolder(place)
    return popops.map(ctx.graph, tree, group, ctx.program, ctx.name)
