"""Tensors that are joined, padded, or written into others. What is written over is left out: nothing is copied but what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops import padding
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.rearranging.shared_places import added_overlaps
from pypoplar.poptorch.lowering.shared_expressions import mapped, typed
from pypoplar.poptorch.lowering.tensor_views import broadcast, elements_at, every, number, strided_places
from pypoplar.types import BOOL

aten = torch.ops.aten


@lowers(aten.cat.default)
def concatenated(ctx: EntryContext, sources: list[Operand], dim: int = 0) -> Tensor:
    rank = len(ctx.shape)
    tensors = [typed(ctx, source) for source in sources if len(source.shape) == rank]  # PyTorch leaves out empty vectors
    return tensors[0] if len(tensors) == 1 else concat(tensors, dim % rank)


@lowers(aten.stack.default)
def stacked(ctx: EntryContext, sources: list[Operand], dim: int = 0) -> Tensor:
    axis = dim % len(ctx.shape)
    return concat([typed(ctx, source).expand([axis]) for source in sources], axis)


# padding


@lowers(aten.constant_pad_nd.default)
def padded(ctx: EntryContext, source: Operand, sizes: list[int], value: Any = 0) -> Tensor:
    tensor = source.placed()
    lower, upper = _by_dimension(sizes, tensor.rank())
    for axis, (below, above) in enumerate(zip(lower, upper, strict=True)):
        tensor = tensor.slice(max(0, -below), tensor.dim(axis) - max(0, -above), axis)
        for count, at_begin in ((below, True), (above, False)):
            if count > 0:
                shape = [*tensor.shape()[:axis], count, *tensor.shape()[axis + 1 :]]
                more = number(ctx, value, shape)
                tensor = concat([more, tensor] if at_begin else [tensor, more], axis)
    return tensor


def _by_dimension(sizes: list[int], rank: int) -> tuple[list[int], list[int]]:
    """PyTorch's pairs of padding, the last dimension's first, for each dimension from the first on."""
    pairs = [(sizes[2 * place], sizes[2 * place + 1]) for place in range(len(sizes) // 2)]
    pairs = [(0, 0)] * (rank - len(pairs)) + pairs[::-1]
    return [lower for lower, _ in pairs], [upper for _, upper in pairs]


PADDINGS = {
    **dict.fromkeys(
        (aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default),
        (padding.Type.REFLECT, "reflect"),
    ),
    **dict.fromkeys(
        (aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default),
        (padding.Type.EDGE, "edge"),
    ),
}


@lowers(*PADDINGS)
def padded_from_itself(ctx: EntryContext, source: Operand, sizes: list[int]) -> Tensor:
    lower, upper = _by_dimension(sizes, len(ctx.shape))
    return popops.pad(source.placed(), lower, upper, PADDINGS[ctx.operation][0])


BACKWARD = {
    getattr(aten, f"{operation._schema.name.partition('::')[2]}_backward").default: mode
    for operation, (_, mode) in PADDINGS.items()
}


@lowers(*BACKWARD)
def padded_backward(ctx: EntryContext, gradient: Operand, source: Operand, sizes: list[int]) -> Tensor:
    lower, upper = _by_dimension(sizes, len(ctx.shape))
    places = np.arange(int(np.prod(ctx.shape))).reshape(ctx.shape)
    cut = [slice(max(0, -below), size - max(0, -above)) for below, above, size in zip(lower, upper, ctx.shape, strict=True)]
    widths = [(max(0, below), max(0, above)) for below, above in zip(lower, upper, strict=True)]
    mode: Any = BACKWARD[ctx.operation]
    return added_overlaps(ctx, gradient.placed(), np.pad(places[tuple(cut)], widths, mode=mode), ctx.shape)


# what overlaps


@lowers(aten.unfold_backward.default)
def windows_backward(ctx: EntryContext, gradient: Operand, sizes: list[int], dim: int, size: int, step: int) -> Tensor:
    places = np.arange(int(np.prod(sizes))).reshape(sizes)
    if not sizes:
        return added_overlaps(ctx, gradient.placed(), places.reshape([1]), sizes)
    windows = np.lib.stride_tricks.sliding_window_view(places, size, dim)
    steps = [slice(None)] * len(sizes)
    steps[dim % len(sizes)] = slice(None, None, step)
    return added_overlaps(ctx, gradient.placed(), windows[tuple(steps)], sizes)


@lowers(aten.im2col.default)
def columns_of_images(
    ctx: EntryContext, source: Operand, kernel: list[int], dilation: list[int], pads: list[int], stride: list[int]
) -> Tensor:
    tensor = source.placed()
    image = tensor if tensor.rank() == 4 else tensor.expand([0])
    for axis in (2, 3):
        shape = image.shape()
        shape[axis] = pads[axis - 2]
        if pads[axis - 2]:
            border = number(ctx, 0, shape)
            image = concat([border, image, border], axis)
    counts = [(image.dim(axis + 2) - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1 for axis in (0, 1)]
    parts = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            part = image
            for axis, place in ((0, row), (1, column)):
                begin = place * dilation[axis]
                part = every(part, begin, begin + (counts[axis] - 1) * stride[axis] + 1, stride[axis], axis + 2)
            parts.append(part.flatten(2, 4).expand([2]))
    return concat(parts, 2).reshape(ctx.shape)


@lowers(aten.col2im.default)
def images_of_columns(
    ctx: EntryContext,
    source: Operand,
    size: list[int],
    kernel: list[int],
    dilation: list[int],
    pads: list[int],
    stride: list[int],
) -> Tensor:
    shape = ctx.shape if len(ctx.shape) == 4 else [1, *ctx.shape]
    images = torch.arange(shape[0] * shape[1] * shape[2] * shape[3], dtype=torch.float64).reshape(shape) + 1
    places = torch.nn.functional.unfold(images, kernel, dilation, pads, stride).to(torch.int64) - 1
    return added_overlaps(ctx, source.placed(), places.numpy(), ctx.shape)


# parts that are written


@lowers(aten.slice_backward.default)
def slice_backward(ctx: EntryContext, gradient: Operand, sizes: list[int], dim: int, start: int, end: int, step: int) -> Tensor:
    zeros = number(ctx, 0, sizes)
    return put(zeros, gradient.placed(), dim % len(sizes), *slice(start, end, step).indices(sizes[dim]))


@lowers(aten.select_backward.default)
def select_backward(ctx: EntryContext, gradient: Operand, sizes: list[int], dim: int, index: int) -> Tensor:
    axis = dim % len(sizes)
    begin = index % sizes[axis]
    return put(number(ctx, 0, sizes), gradient.placed().expand([axis]), axis, begin, begin + 1)


@lowers(aten.slice_scatter.default)
def slice_scatter(
    ctx: EntryContext, into: Operand, source: Operand, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    axis = dim % len(ctx.shape)
    return put(typed(ctx, into), typed(ctx, source), axis, *slice(start, end, step).indices(ctx.shape[axis]))


@lowers(aten.select_scatter.default)
def select_scatter(ctx: EntryContext, into: Operand, source: Operand, dim: int, index: int) -> Tensor:
    axis = dim % len(ctx.shape)
    begin = index % ctx.shape[axis]
    return put(typed(ctx, into), typed(ctx, source).expand([axis]), axis, begin, begin + 1)


@lowers(aten.diagonal_backward.default)
def diagonal_backward(ctx: EntryContext, gradient: Operand, sizes: list[int], offset: int, first: int, second: int) -> Tensor:
    places = np.arange(int(np.prod(sizes))).reshape(sizes)
    return added_overlaps(ctx, gradient.placed(), np.diagonal(places, offset, first, second), sizes)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(ctx: EntryContext, into: Operand, source: Operand, offset: int = 0, first: int = 0, second: int = 1) -> Tensor:
    places = np.arange(int(np.prod(ctx.shape))).reshape(ctx.shape)
    return put_at(typed(ctx, into), typed(ctx, source), np.diagonal(places, offset, first, second))


@lowers(aten.as_strided_scatter.default)
def strided_scatter(
    ctx: EntryContext, into: Operand, source: Operand, size: list[int], stride: list[int], offset: int | None = None
) -> Tensor:
    value = into.like
    if not value.is_contiguous() or value.storage_offset():
        raise UnsupportedOperation(
            "as_strided of a tensor that is not contiguous; take slices, permute and view, or call contiguous()"
        )
    return put_at(typed(ctx, into), typed(ctx, source), strided_places(size, stride, offset or 0))


@lowers(aten.diag_embed.default)
def diagonal_matrices(ctx: EntryContext, source: Operand, offset: int = 0, first: int = -2, second: int = -1) -> Tensor:
    places = np.arange(int(np.prod(ctx.shape))).reshape(ctx.shape)
    return added_overlaps(ctx, source.placed(), np.diagonal(places, offset, first, second), ctx.shape)


def put(into: Tensor, part: Tensor, axis: int, begin: int, end: int, step: int = 1) -> Tensor:
    """A tensor with each `step`-th index of a dimension taken from a part, as a view of both."""
    count = part.dim(axis)
    if not count:
        return into
    pieces = [into.slice(0, begin, axis)]
    if step == 1:
        pieces.append(part)
        last = begin + count
    else:
        last = begin
        for index in range(count):
            place = begin + index * step
            pieces += [into.slice(last, place, axis), part.slice(index, index + 1, axis)]
            last = place + 1
    return concat([*pieces, into.slice(last, into.dim(axis), axis)], axis)


def put_at(into: Tensor, part: Tensor, places: np.ndarray[Any, Any]) -> Tensor:
    """A tensor with the elements at some places, of it flattened, taken from a part."""
    both = concat([into.flatten(), part.flatten() if part.rank() else part.reshape([1])])
    order = np.arange(into.numElements())
    order[places.reshape(-1)] = into.numElements() + np.arange(places.size)
    return elements_at(both, order.reshape(into.shape()))


# triangles and whole values


@lowers(aten.tril.default, aten.triu.default)
def triangle(ctx: EntryContext, source: Operand, diagonal: int = 0) -> Tensor:
    rows, columns = ctx.shape[-2:]
    shape = np.tril if ctx.operation is aten.tril.default else np.triu
    kept = shape(np.ones((rows, columns), bool), diagonal)
    tensor = source.placed()
    mask = ctx.constant(kept)
    chosen = popops.expr.Select(popops.expr._1, popops.expr.Const(False if ctx.type is BOOL else 0, ctx.type), popops.expr._2)
    return mapped(ctx, chosen, tensor, broadcast(mask, tensor.shape()))
