"""Pooling of fields of one to three dimensions, with samples or without.

A max pool makes no indices: its gradient is found from what was pooled and from the largest elements. Where a window has its
largest element in several places PyTorch gives the gradient to the first, here all of them have an equal part of it.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from itertools import pairwise
from typing import Any

import torch
from attrs import frozen

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn import pooling
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poputil.placement.kept_layouts import channels_together

aten = torch.ops.aten
Numbers = SequenceOf[int]
MAX, AVG, SUM = popnn.PoolingType.MAX, popnn.PoolingType.AVG, popnn.PoolingType.SUM
OPTIONS = {"useFloatPartialsWhereBeneficial": "true"}  # halves are added up as floats, as PyTorch does


@frozen
class Windows:
    """Windows over a field: their sizes, what lies between them, what is added at the lower ends, and how many there are."""

    kernel: Numbers
    stride: Numbers
    padding: Numbers
    counts: Numbers

    @staticmethod
    def of(field: Numbers, counts: Numbers, kernel: Numbers, stride: Numbers, padding: Numbers) -> Windows:
        """Those of PyTorch's numbers, of which one may stand for all."""
        sizes = _for_each(kernel, field)
        return Windows(sizes, _for_each(stride, field) if stride else sizes, _for_each(padding, field), counts)

    def params(self, ctx: EntryContext, type: popnn.PoolingType, tensor: Tensor) -> pooling.PoolParams:
        """popnn's for a tensor: what the windows do not reach is cut off, what they lack is added."""
        batch, channels, *field = tensor.shape()
        reach = [(n - 1) * step + size for n, step, size in zip(self.counts, self.stride, self.kernel, strict=True)]
        upper = [end - size - lower for end, size, lower in zip(reach, field, self.padding, strict=True)]
        operands = field, self.kernel, self.stride, self.padding, upper, channels, batch
        return pooling.PoolParams(type, *operands, tensor.elementType())


def _for_each(numbers: Numbers, field: Numbers) -> Numbers:
    return list(numbers) * len(field) if len(numbers) == 1 else list(numbers)


def samples(tensor: Tensor, dimensions: int) -> Tensor:
    """[samples, channels, field...] of a tensor that may be one sample."""
    return tensor.reshape([1, *tensor.shape()]) if tensor.rank() == dimensions + 1 else tensor


# largest elements


@frozen(eq=False)
class PooledPlaces:
    """What stands for the indices of a max pool."""

    params: pooling.PoolParams
    pooled: Tensor


def _largest(ctx: EntryContext, input: Operand, windows: Windows, gradients: Any) -> tuple[Tensor, PooledPlaces | None]:
    _refuse_use_of_indices(ctx, gradients)
    if 0 in ctx.shape:
        return ctx.place(ctx.shape), None
    tensor = samples(input.placed(), len(windows.kernel))
    params = windows.params(ctx, MAX, tensor)
    pooled = pooling.pool(ctx.graph, params, tensor, ctx.program, ctx.name)
    return pooled.reshape(ctx.shape), PooledPlaces(params, pooled)


def _refuse_use_of_indices(ctx: EntryContext, gradients: Any) -> None:
    if any(use.operation != gradients for use in ctx.uses_of(1)):
        raise UnsupportedOperation(
            f"{ctx.name}: the places of a max pool's largest elements are not made; return_indices=False is supported"
        )


def _largest_backward(ctx: EntryContext, gradient: Operand, input: Operand, indices: Operand) -> Tensor:
    places: PooledPlaces | None = indices.value
    if places is None:
        return ctx.place(ctx.shape)
    dimensions = len(places.params.kernelShape)
    operands = samples(input.placed(), dimensions), places.pooled, samples(gradient.placed(), dimensions)
    return pooling.poolInputGradient(ctx.graph, places.params, *operands, True, ctx.program, ctx.name).reshape(ctx.shape)


@lowers(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool(
    ctx: EntryContext,
    input: Operand,
    kernel: Numbers,
    stride: Numbers = (),
    padding: Numbers = (0,),
    dilation: Numbers = (1,),
    ceil: bool = False,
) -> tuple[Tensor, PooledPlaces | None]:
    if any(step != 1 for step in dilation):
        raise UnsupportedOperation(f"{ctx.name}: a max pool's dilation of {dilation} is missing; 1 is supported")
    flat = ctx.operation is aten.max_pool2d_with_indices.default
    dimensions = 2 if flat else 3
    backward = aten.max_pool2d_with_indices_backward if flat else aten.max_pool3d_with_indices_backward
    windows = Windows.of(input.shape[-dimensions:], ctx.shape[-dimensions:], kernel, stride, padding)
    return _largest(ctx, input, windows, backward.default)


@lowers(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def max_pool_backward(
    ctx: EntryContext,
    gradient: Operand,
    input: Operand,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil: bool,
    indices: Operand,
) -> Tensor:
    return _largest_backward(ctx, gradient, input, indices)


@lowers(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(ctx: EntryContext, input: Operand, counts: Numbers) -> tuple[Tensor, PooledPlaces | None]:
    field = input.shape[-len(counts) :]
    windows = even_windows(field, counts)
    if windows is None:
        raise UnsupportedOperation(
            f"{ctx.name}: an adaptive max pool of {field} to {list(counts)} has windows of several sizes; sizes of which one "
            "divides the other are supported"
        )
    flat = ctx.operation is aten.adaptive_max_pool2d.default
    return _largest(ctx, input, windows, (aten.adaptive_max_pool2d_backward if flat else aten.adaptive_max_pool3d_backward).default)


@lowers(aten.adaptive_max_pool2d_backward.default, aten.adaptive_max_pool3d_backward.default)
def adaptive_max_pool_backward(ctx: EntryContext, gradient: Operand, input: Operand, indices: Operand) -> Tensor:
    return _largest_backward(ctx, gradient, input, indices)


def even_windows(field: Numbers, counts: Numbers) -> Windows | None:
    """The windows of an adaptive pool, if they have one size and lie equally far apart in each dimension."""
    kernel, stride = [], []
    for size, count in zip(field, counts, strict=True):
        begins = [number * size // count for number in range(count)]
        ends = [-((number + 1) * size // -count) for number in range(count)]
        sizes = {end - begin for begin, end in zip(begins, ends, strict=True)}
        steps = {after - before for before, after in pairwise(begins)}
        if len(sizes) != 1 or len(steps) > 1 or 0 in steps:
            return None
        kernel.append(sizes.pop())
        stride.append(steps.pop() if steps else size)
    return Windows(kernel, stride, [0] * len(kernel), list(counts))


# means


def mean_of_windows(ctx: EntryContext, tensor: Tensor, windows: Windows) -> Tensor:
    """The means of what windows have of [samples, channels, field...] without padding."""
    return pooling.pool(ctx.graph, windows.params(ctx, AVG, tensor), tensor, ctx.program, ctx.name, OPTIONS)


def mean_backward(ctx: EntryContext, back: Tensor, input: Tensor, windows: Windows, type: popnn.PoolingType = AVG) -> Tensor:
    """The gradient of means, or sums, by `input`, which says the shape and how many channels lie side by side."""
    params = windows.params(ctx, type, input)
    grouped = channels_together(ctx.graph, input)
    return pooling.poolInputGradient(ctx.graph, params, grouped, back, ctx.program, ctx.name, OPTIONS)


def _padded(ctx: EntryContext, tensor: Tensor, windows: Windows, counted: bool) -> tuple[Tensor, Windows]:
    """Padding that counts is made of zeros; then it is none to the windows."""
    if not counted or not any(windows.padding):
        return tensor, windows
    ends = [0, 0, *windows.padding]
    return popops.pad(ctx.graph, tensor, ends, ends), Windows(
        windows.kernel, windows.stride, [0] * len(windows.padding), windows.counts
    )


@lowers(aten.avg_pool2d.default, aten.avg_pool3d.default)
def mean_pool(
    ctx: EntryContext,
    input: Operand,
    kernel: Numbers,
    stride: Numbers = (),
    padding: Numbers = (0,),
    ceil: bool = False,
    counted: bool = True,
    divisor: int | None = None,
) -> Tensor:
    dimensions = 2 if ctx.operation is aten.avg_pool2d.default else 3
    if 0 in ctx.shape:
        return ctx.place(ctx.shape)
    windows = Windows.of(input.shape[-dimensions:], ctx.shape[-dimensions:], kernel, stride, padding)
    tensor = samples(input.placed(), dimensions)
    if divisor is None:
        return mean_of_windows(ctx, *_padded(ctx, tensor, windows, counted)).reshape(ctx.shape)
    total = pooling.pool(ctx.graph, windows.params(ctx, SUM, tensor), tensor, ctx.program, ctx.name, OPTIONS)
    popops.mulInPlace(ctx.graph, total, 1 / divisor, ctx.program, ctx.name)
    return total.reshape(ctx.shape)


@lowers(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def mean_pool_backward(
    ctx: EntryContext,
    gradient: Operand,
    input: Operand,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil: bool,
    counted: bool,
    divisor: int | None,
) -> Tensor:
    dimensions = 2 if ctx.operation is aten.avg_pool2d_backward.default else 3
    if 0 in ctx.shape:
        return ctx.place(ctx.shape)
    windows = Windows.of(ctx.shape[-dimensions:], gradient.shape[-dimensions:], kernel, stride, padding)
    tensor, back = samples(input.placed(), dimensions), samples(gradient.placed(), dimensions)
    if divisor is not None:
        back = popops.mul(ctx.graph, back, 1 / divisor, ctx.program, ctx.name)
        return mean_backward(ctx, back, tensor, windows, SUM).reshape(ctx.shape)
    padded, apart = _padded(ctx, tensor, windows, counted)
    result = mean_backward(ctx, back, padded, apart)
    if padded is not tensor:
        begins = [0, 0, *windows.padding]
        result = result.slice(begins, [begin + size for begin, size in zip(begins, tensor.shape(), strict=True)])
    return result.reshape(ctx.shape)
