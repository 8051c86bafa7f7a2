"""Fields made larger or smaller: interpolation, and adaptive means whose windows differ.

All of these work on each dimension by itself. PyTorch's own function of the unit vectors of a dimension gives the matrix that it
multiplies by; the gradient multiplies by its transpose. Nearest neighbours and even windows need no products.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from pypoplar import poplin, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.pooling import even_windows, mean_backward, mean_of_windows, samples

aten = torch.ops.aten
Numbers = list[int]
Line = Callable[[torch.Tensor, int, Any], torch.Tensor]  # of [1, n, size], a size and a scale: [1, n, new size]


def _square(operation: Any) -> Line:
    """A function of fields, of lines."""
    return lambda x, size, scale: operation(x.unsqueeze(2), [1, size], False, None, scale).squeeze(2)


def _aligned_square(operation: Any) -> Line:
    return lambda x, size, scale: operation(x.unsqueeze(2), [1, size], True, None, scale).squeeze(2)


def _matrix(line: Line, size: int, new: int, scale: Any) -> torch.Tensor:
    """[size, new]: what each place gives to each new one."""
    return line(torch.eye(size)[None], new, scale)[0]


def _resampled(ctx: EntryContext, tensor: Tensor, matrices: list[torch.Tensor]) -> Tensor:
    """The last dimensions multiplied by a matrix each."""
    first = tensor.rank() - len(matrices)
    for dim, matrix in enumerate(matrices, first):
        rows, columns = matrix.shape
        if rows == columns and torch.equal(matrix, torch.eye(rows)):
            continue
        last = tensor.dimRoll(dim, tensor.rank() - 1)
        factors = ctx.constant(matrix.contiguous().numpy().astype(tensor.elementType().dtype))
        left = last.reshape([prod(last.shape()[:-1]), rows])
        product = poplin.matMul(ctx.graph, left, factors, ctx.program, ctx.name, ctx.options, ctx.plans)
        tensor = product.reshape([*last.shape()[:-1], columns]).dimRoll(tensor.rank() - 1, dim)
    return tensor


def _enter(forward: Any, backward: Any, line: Line, aligned: Line | None = None) -> None:
    """Enter an interpolation and its gradient; `aligned` is the function of lines for align_corners."""

    def matrices(field: Numbers, sizes: Numbers, more: tuple[Any, ...]) -> list[torch.Tensor]:
        chosen, scales = line, more
        if aligned is not None:
            chosen, scales = (aligned if more[0] else line), more[1:]
        scales = (*scales, *[None] * len(sizes))
        return [_matrix(chosen, *of) for of in zip(field, sizes, scales, strict=False)]

    def resample(ctx: EntryContext, input: Operand, sizes: Numbers, *more: Any) -> Tensor:
        if 0 in ctx.shape:
            return ctx.place(ctx.shape)
        return _resampled(ctx, input.placed(), matrices(input.shape[2:], sizes, more))

    def resample_backward(ctx: EntryContext, gradient: Operand, sizes: Numbers, shape: Numbers, *more: Any) -> Tensor:
        if 0 in ctx.shape:
            return ctx.place(ctx.shape)
        return _resampled(ctx, gradient.placed(), [one.t() for one in matrices(ctx.shape[2:], sizes, more)])

    lowers(forward)(resample)
    lowers(backward)(resample_backward)


def _linear(aligned: bool) -> Line:
    return lambda x, size, scale: aten.upsample_linear1d.default(x, [size], aligned, scale)


LINEAR = _linear(False), _linear(True)
_enter(aten.upsample_linear1d.default, aten.upsample_linear1d_backward.default, *LINEAR)
_enter(aten.upsample_bilinear2d.default, aten.upsample_bilinear2d_backward.default, *LINEAR)
_enter(aten.upsample_trilinear3d.default, aten.upsample_trilinear3d_backward.default, *LINEAR)
for _forward, _backward in (
    (aten.upsample_bicubic2d, aten.upsample_bicubic2d_backward),
    (aten._upsample_bilinear2d_aa, aten._upsample_bilinear2d_aa_backward),
    (aten._upsample_bicubic2d_aa, aten._upsample_bicubic2d_aa_backward),
):
    _enter(_forward.default, _backward.default, _square(_forward.default), _aligned_square(_forward.default))


# nearest neighbours


def _nearest(x: torch.Tensor, size: int, scale: Any) -> torch.Tensor:
    return aten.upsample_nearest1d.default(x, [size], scale)


def _nearest_exact(x: torch.Tensor, size: int, scale: Any) -> torch.Tensor:
    return aten._upsample_nearest_exact1d.default(x, [size], scale)


def _places(line: Line, size: int, new: int, scale: Any) -> list[int]:
    """Where each new element comes from."""
    found: list[int] = _matrix(line, size, new, scale).argmax(0).tolist()
    return found


def _enter_nearest(forward: Any, backward: Any, line: Line) -> None:
    def repeat(ctx: EntryContext, input: Operand, sizes: Numbers, *scales: Any) -> Tensor:
        """A view: nothing is copied."""
        if 0 in ctx.shape:
            return ctx.place(ctx.shape)
        tensor = input.placed()
        for dim, (size, scale) in enumerate(zip(sizes, (*scales, *[None] * len(sizes)), strict=False), 2):
            pieces = [tensor.slice(place, place + 1, dim) for place in _places(line, tensor.dim(dim), size, scale)]
            tensor = concat(pieces, dim)
        return tensor

    def repeat_backward(ctx: EntryContext, gradient: Operand, sizes: Numbers, shape: Numbers, *scales: Any) -> Tensor:
        if 0 in ctx.shape:
            return ctx.place(ctx.shape)
        back, field = gradient.placed(), ctx.shape[2:]
        given = (*scales, *[None] * len(sizes))
        places = [_places(line, *of) for of in zip(field, sizes, given, strict=False)]
        factors = [new // size for size, new in zip(field, sizes, strict=True)]
        even = [[place // factor for place in range(size)] for factor, size in zip(factors, sizes, strict=True) if factor]
        if even == places:
            apart = [number for size, factor in zip(field, factors, strict=True) for number in (size, factor)]
            axes = [3 + 2 * dim for dim in range(len(field))]
            grouped = back.reshape([*ctx.shape[:2], *apart])
            return popops.reduce(ctx.graph, grouped, ctx.type, axes, popops.Operation.ADD, ctx.program, ctx.name)
        matrices = [_matrix(line, *of) for of in zip(field, sizes, given, strict=False)]
        return _resampled(ctx, back, [one.t() for one in matrices])

    lowers(forward)(repeat)
    lowers(backward)(repeat_backward)


_enter_nearest(aten.upsample_nearest1d.default, aten.upsample_nearest1d_backward.default, _nearest)
_enter_nearest(aten.upsample_nearest2d.default, aten.upsample_nearest2d_backward.default, _nearest)
_enter_nearest(aten.upsample_nearest3d.default, aten.upsample_nearest3d_backward.default, _nearest)
_enter_nearest(aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact1d_backward.default, _nearest_exact)
_enter_nearest(aten._upsample_nearest_exact2d.default, aten._upsample_nearest_exact2d_backward.default, _nearest_exact)
_enter_nearest(aten._upsample_nearest_exact3d.default, aten._upsample_nearest_exact3d_backward.default, _nearest_exact)


# adaptive means


def _mean_matrices(field: Numbers, sizes: Numbers) -> list[torch.Tensor]:
    return [
        _matrix(lambda x, count, _: torch.nn.functional.adaptive_avg_pool1d(x, count), size, new, None)
        for size, new in zip(field, sizes, strict=True)
    ]


@lowers(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def adaptive_mean(ctx: EntryContext, input: Operand, sizes: Numbers) -> Tensor:
    if 0 in ctx.shape:
        return ctx.place(ctx.shape)
    field = input.shape[-len(sizes) :]
    tensor, windows = samples(input.placed(), len(sizes)), even_windows(field, sizes)
    if windows is not None:
        return mean_of_windows(ctx, tensor, windows).reshape(ctx.shape)
    return _resampled(ctx, tensor, _mean_matrices(field, sizes)).reshape(ctx.shape)


@lowers(aten._adaptive_avg_pool2d_backward.default, aten._adaptive_avg_pool3d_backward.default)
def adaptive_mean_backward(ctx: EntryContext, gradient: Operand, input: Operand) -> Tensor:
    if 0 in ctx.shape:
        return ctx.place(ctx.shape)
    dimensions = 2 if ctx.operation is aten._adaptive_avg_pool2d_backward.default else 3
    field, sizes = ctx.shape[-dimensions:], gradient.shape[-dimensions:]
    back, windows = samples(gradient.placed(), dimensions), even_windows(field, sizes)
    if windows is not None:
        return mean_backward(ctx, back, samples(input.placed(), dimensions), windows).reshape(ctx.shape)
    return _resampled(ctx, back, [one.t() for one in _mean_matrices(field, sizes)]).reshape(ctx.shape)
