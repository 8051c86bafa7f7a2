"""Operations that move nothing: views of tensors. Those that can be undone let an input without a tensor wait."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS
from pypoplar.types import BOOL, FLOAT, ElementType

aten = torch.ops.aten
SAME = (
    *(aten.detach.default, aten.alias.default, aten.clone.default, aten.lift_fresh_copy.default, aten.lift_fresh.default),
    *(aten.contiguous.default, torch.ops.prims.view_of.default),
    torch.ops.poptorch.identity_loss.default,
    torch.ops.poptorch.set_available_memory.default,
)

VIEWS = frozenset(
    {
        *(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.t.default, aten.permute.default),
        *(aten.transpose.int, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default),
        *(aten.expand.default, aten.select.int, aten.slice.Tensor, aten.split.Tensor, aten.detach.default, aten.alias.default),
        *(aten.clone.default, aten.unbind.int, operator.getitem),
    }
)


@lowers(*SAME)
def same(ctx: EntryContext, source: Operand, *hint: Any, **layout: Any) -> Any:
    return source.value_here


@lowers(torch.ops.poptorch.recomputation_checkpoint.default)
def checkpoint(ctx: EntryContext, source: Operand) -> Any:
    if source.pending is not None and ctx.training:  # what is kept is there, for all that take it
        return source.placed()
    return source.value_here


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def reshape(ctx: EntryContext, source: Operand, size: list[int]) -> Any:
    shape, before = ctx.shape, source.shape
    return source.view(lambda tensor: tensor.reshape(shape), lambda tensor: tensor.reshape(before))


@lowers(aten.view.dtype)
def bits(ctx: EntryContext, source: Operand, dtype: torch.dtype) -> Any:
    """The same bytes as another type as wide, which both have on the IPU, too."""
    before = source.like.dtype
    if before.itemsize != dtype.itemsize or dtype.itemsize > FLOAT.size or dtype is torch.bool is not before:
        raise UnsupportedOperation(f"view: {before} as {dtype}; the bits of two types of the same size, of at most 32, can be")
    return source.placed().reinterpret(ctx.type)


@lowers(aten.t.default)
def transposed(ctx: EntryContext, source: Operand) -> Any:
    if len(source.shape) < 2:
        return source.value
    return source.view(Tensor.transpose, Tensor.transpose)


@lowers(aten.permute.default)
def permuted(ctx: EntryContext, source: Operand, dims: list[int]) -> Any:
    order = [dim % len(dims) for dim in dims]
    back = [order.index(dim) for dim in range(len(order))]
    return source.view(lambda tensor: tensor.dimShuffle(order), lambda tensor: tensor.dimShuffle(back))


@lowers(aten.transpose.int)
def exchanged(ctx: EntryContext, source: Operand, first: int, second: int) -> Any:
    order = list(range(len(source.shape)))
    if not order:
        return source.value
    order[first], order[second] = order[second], order[first]
    return source.view(lambda tensor: tensor.dimShuffle(order), lambda tensor: tensor.dimShuffle(order))


@lowers(aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default, aten.flatten.using_ints)
def with_or_without_ones(ctx: EntryContext, source: Operand, dims: Any = None) -> Any:
    return reshape(ctx, source, [])


@lowers(aten.expand.default)
def expanded(ctx: EntryContext, source: Operand, size: list[int], implicit: bool = False) -> Any:
    wanted = ctx.shape
    if math.prod(wanted) == math.prod(source.shape):
        return reshape(ctx, source, wanted)
    return broadcast(source.placed(), wanted)


def broadcast(tensor: Tensor, wanted: list[int]) -> Tensor:
    """A tensor as one of a shape that it can be broadcast to."""
    tensor = tensor.reshape([1] * (len(wanted) - tensor.rank()) + tensor.shape())
    for dim, (new, old) in enumerate(zip(wanted, tensor.shape(), strict=True)):
        if new != old:
            tensor = tensor.broadcast(new, dim) if new else tensor.slice(0, 0, dim)
    return tensor


# parts


@lowers(aten.select.int, aten.select_copy.int)
def selected(ctx: EntryContext, source: Operand, dim: int, index: int) -> Tensor:
    tensor = source.placed()
    axis = dim % tensor.rank()
    begin = index % tensor.dim(axis)
    return tensor.slice(begin, begin + 1, axis).squeeze([axis])


@lowers(aten.slice.Tensor)
def sliced(ctx: EntryContext, source: Operand, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if source.shape == ctx.shape:
        return source.value
    tensor = source.placed()
    axis = dim % tensor.rank()
    return every(tensor, *slice(start, end, step).indices(tensor.dim(axis)), axis)


def every(tensor: Tensor, begin: int, end: int, step: int, axis: int) -> Tensor:
    """Each `step`-th index of a dimension, from `begin` to before `end`."""
    part = tensor.slice(begin, max(begin, end), axis)
    return part if step == 1 or not part.dim(axis) else part.subSample(step, axis)


@lowers(aten.narrow.default)
def narrowed_to(ctx: EntryContext, source: Operand, dim: int, start: int, length: int) -> Tensor:
    tensor = source.placed()
    axis = dim % tensor.rank()
    begin = start % tensor.dim(axis) if start < 0 else start
    return tensor.slice(begin, begin + length, axis)


@lowers(aten.split.Tensor, aten.split_with_sizes.default, aten.unsafe_split.Tensor)
def split(ctx: EntryContext, source: Operand, sizes: Any, dim: int = 0) -> list[Tensor]:
    tensor = source.placed()
    axis, parts, begin = dim % tensor.rank(), [], 0
    for value in ctx.likes:
        size = value.shape[axis]
        parts.append(tensor.slice(begin, begin + size, axis))
        begin += size
    return parts


@lowers(aten.unbind.int)
def unbound(ctx: EntryContext, source: Operand, dim: int = 0) -> list[Tensor]:
    tensor = source.placed()
    axis = dim % tensor.rank()
    return [tensor.slice(index, index + 1, axis).squeeze([axis]) for index in range(tensor.dim(axis))]


@lowers(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(ctx: EntryContext, source: Operand, offset: int = 0, first: int = 0, second: int = 1) -> Tensor:
    tensor = source.placed()
    a, b = first % tensor.rank(), second % tensor.rank()
    others = [axis for axis in range(tensor.rank()) if axis not in (a, b)]
    matrices = tensor.dimShuffle([*others, a, b])
    rows, columns = matrices.dim(len(others)), matrices.dim(len(others) + 1)
    flat = matrices.flatten(len(others), len(others) + 2)
    begin = offset if offset >= 0 else -offset * columns
    count = ctx.shape[-1]
    if not count or rows * columns == 0:
        return flat.slice(0, 0, len(others))
    return every(flat, begin, begin + (count - 1) * (columns + 1) + 1, columns + 1, len(others))


# the same elements in another order


@lowers(aten.flip.default)
def flipped(ctx: EntryContext, source: Operand, dims: list[int]) -> Any:
    axes = [dim % max(len(ctx.shape), 1) for dim in dims] if ctx.shape else []

    def turn(tensor: Tensor) -> Tensor:
        for axis in axes:
            tensor = tensor.reverse(axis)
        return tensor

    return source.view(turn, turn)


@lowers(aten.roll.default)
def rolled(ctx: EntryContext, source: Operand, shifts: list[int], dims: list[int] = []) -> Any:  # noqa: B006 (PyTorch's)
    shape = ctx.shape

    def turn(tensor: Tensor, sign: int) -> Tensor:
        whole = tensor.flatten() if not dims else tensor
        for shift, axis in zip(shifts, dims or [0], strict=True):
            size = whole.dim(axis % whole.rank())
            if size:
                at_end = (size - sign * shift) % size
                pieces = [whole.slice(at_end, size, axis % whole.rank()), whole.slice(0, at_end, axis % whole.rank())]
                whole = concat(pieces, axis % whole.rank())
        return whole.reshape(shape)

    return source.view(lambda tensor: turn(tensor, 1), lambda tensor: turn(tensor, -1))


@lowers(aten.pixel_shuffle.default)
def pixel_shuffled(ctx: EntryContext, source: Operand, factor: int) -> Tensor:
    *batch, channels, height, width = source.shape
    tensor = source.placed().reshape([math.prod(batch), channels // factor**2, factor, factor, height, width])
    return tensor.dimShuffle([0, 1, 4, 2, 5, 3]).reshape(ctx.shape)


@lowers(aten.pixel_unshuffle.default)
def pixel_unshuffled(ctx: EntryContext, source: Operand, factor: int) -> Tensor:
    *batch, channels, height, width = source.shape
    tensor = source.placed().reshape([math.prod(batch), channels, height // factor, factor, width // factor, factor])
    return tensor.dimShuffle([0, 1, 3, 5, 2, 4]).reshape(ctx.shape)


@lowers(aten.repeat.default)
def repeated(ctx: EntryContext, source: Operand, repeats: list[int]) -> Tensor:
    tensor = source.placed()
    tensor = tensor.reshape([1] * (len(repeats) - tensor.rank()) + tensor.shape())
    for axis, times in enumerate(repeats):
        tensor = tensor.broadcast(times, axis) if times else tensor.slice(0, 0, axis)
    return tensor


@lowers(aten.unfold.default)
def windows(ctx: EntryContext, source: Operand, dim: int, size: int, step: int) -> Tensor:
    """Windows of a dimension, which overlap where `step` is less than their size: views of the same elements."""
    tensor = source.placed()
    if not tensor.rank():
        return tensor.reshape([1]) if size else tensor.reshape([1]).slice(0, 0)
    axis = dim % tensor.rank()
    count = ctx.shape[axis]
    parts = [every(tensor, place, place + (count - 1) * step + 1, step, axis) for place in range(size)]
    return (
        concat([part.expand([part.rank()]) for part in parts], tensor.rank())
        if parts
        else tensor.expand([tensor.rank()]).slice(0, 0, tensor.rank())
    )


@lowers(aten.as_strided.default)
def strided(ctx: EntryContext, source: Operand, size: list[int], stride: list[int], offset: int | None = None) -> Tensor:
    """Elements of a tensor whose elements lie one behind the other, as those of a contiguous one of PyTorch do."""
    value = source.like
    if not value.is_contiguous() or value.storage_offset():
        raise UnsupportedOperation(
            "as_strided of a tensor that is not contiguous; take slices, permute and view, or call contiguous()"
        )
    return elements_at(source.placed(), strided_places(size, stride, offset or 0))


def strided_places(size: list[int], stride: list[int], offset: int) -> npt.NDArray[np.int64]:
    """The places in memory of the elements of a strided tensor."""
    grids = np.indices(size).reshape(len(size), -1) if size else np.zeros((0, 1), np.int64)
    places: npt.NDArray[np.int64] = offset + np.tensordot(np.array(stride, np.int64), grids, 1)
    return places.reshape(size)


def elements_at(tensor: Tensor, places: npt.NDArray[np.int64]) -> Tensor:
    """A view of elements of a tensor, by their places in it when it is flattened."""
    flat, wanted = tensor.flatten() if tensor.rank() else tensor.reshape([1]), places.reshape(-1)
    if not wanted.size:
        return flat.slice(0, 0).reshape(list(places.shape))
    ends = np.flatnonzero(np.diff(wanted) != 1) + 1
    begins = np.concatenate([[0], ends])
    lengths = np.diff(np.concatenate([begins, [wanted.size]]))
    first = wanted[begins]
    parts = [flat.slice(int(begin), int(begin + length)) for begin, length in zip(first, lengths, strict=True)]
    return concat(parts).reshape(list(places.shape))


# tensors of the type of a result


def number(ctx: EntryContext, value: float, shape: list[int], type: ElementType | None = None) -> Tensor:
    """A constant of one number: one element on one tile, seen in each place of a shape."""
    type = type or ctx.type
    given = bool(value) if type is BOOL else float(value) if type in FLOATS else int(value)
    constant = ctx.graph.addConstant(type, [1], given, ctx.name)
    ctx.graph.setTileMapping(constant, 0)
    return broadcast(constant, shape) if shape else constant.reshape([])
