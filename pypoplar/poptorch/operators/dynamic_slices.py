"""Slices whose place is known when the device runs."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.errors import InvalidOption, PoplarIndexError, PoplarTypeError, TensorShapeError
from pypoplar.poptorch.operators.tensor_arguments import check_number, check_tensor
from pypoplar.tracebacks import public

BACKWARDS = "Taking a slice of a tensor with the end less than the start is not supported."


def _begin(start: torch.Tensor, length: int, size: int) -> int:
    begin = int(start)
    if not 0 <= begin <= length - size:
        raise PoplarIndexError(f"a slice of {size} of {length} begins at 0 to {length - size}, got {begin}")
    return begin


@torch.library.custom_op("poptorch::dynamic_slice", mutates_args=())
def _dynamic_slice(x: torch.Tensor, dim: int, start: torch.Tensor, size: int, step: int) -> torch.Tensor:
    begin = _begin(start, x.shape[dim], size)
    return x.narrow(dim, begin, size).index_select(dim, torch.arange(0, size, step)).clone()


@_dynamic_slice.register_fake
def _(x: torch.Tensor, dim: int, start: torch.Tensor, size: int, step: int) -> torch.Tensor:
    shape = list(x.shape)
    shape[dim] = -(-size // step)
    return x.new_empty(shape)


@torch.library.custom_op("poptorch::dynamic_update", mutates_args=())
def _dynamic_update(x: torch.Tensor, source: torch.Tensor, dim: int, start: torch.Tensor, step: int) -> torch.Tensor:
    size = (source.shape[dim] - 1) * step + 1
    result = x.clone()
    begin = _begin(start, x.shape[dim], size)
    return result.index_copy_(dim, torch.arange(begin, begin + size, step), source)


@_dynamic_update.register_fake
def _(x: torch.Tensor, source: torch.Tensor, dim: int, start: torch.Tensor, step: int) -> torch.Tensor:
    return x.new_empty(x.shape)


def _keep_slice(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, ctx.dim, start, ctx.size, ctx.step = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(start)


def _slice_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    (start,) = ctx.saved_tensors
    zeros = gradient.new_zeros(ctx.shape)
    return torch.ops.poptorch.dynamic_update(zeros, gradient, ctx.dim, start, ctx.step), None, None, None, None


def _keep_update(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, source, ctx.dim, start, ctx.step = inputs
    ctx.shape, ctx.size = source.shape, (source.shape[ctx.dim] - 1) * ctx.step + 1
    ctx.save_for_backward(start)


def _update_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    (start,) = ctx.saved_tensors
    rest = torch.ops.poptorch.dynamic_update(gradient, gradient.new_zeros(ctx.shape), ctx.dim, start, ctx.step)
    return rest, torch.ops.poptorch.dynamic_slice(gradient, ctx.dim, start, ctx.size, ctx.step), None, None, None


_dynamic_slice.register_autograd(_slice_backward, setup_context=_keep_slice)
_dynamic_update.register_autograd(_update_backward, setup_context=_keep_update)


def _check(call: str, x: object, dim: object, start: object, size: object) -> int:
    """The dimension, from 0 on."""
    check_tensor(call, "its first argument", x)
    check_number(call, "dim", dim)
    check_tensor(call, "start", start)
    check_number(call, "size", size)
    assert isinstance(x, torch.Tensor)
    assert isinstance(start, torch.Tensor)
    assert isinstance(dim, int)
    assert isinstance(size, int)
    if size < 1:
        why = "The start and end of a slice must be different" if size == 0 else BACKWARDS
        raise InvalidOption(f"poptorch.{call}: {why}: size is at least 1, got {size}")
    if start.numel() != 1 or start.dtype.is_floating_point or start.dtype is torch.bool:
        raise PoplarTypeError(f"poptorch.{call}: start is one integer, got shape {tuple(start.shape)} of {start.dtype}")
    if not -x.dim() <= dim < x.dim():
        raise PoplarIndexError(f"poptorch.{call}: a tensor of shape {tuple(x.shape)} has no dimension {dim}")
    if size > x.shape[dim]:
        raise TensorShapeError(f"poptorch.{call}: dimension {dim} of shape {tuple(x.shape)} has no slice of {size}")
    return dim % x.dim()


@public
def dynamic_slice(tensor: torch.Tensor, dim: int, start: torch.Tensor, size: int, step: int) -> torch.Tensor:
    """A slice of one dimension whose place is known when the device runs.

    Parameters
    ----------
    tensor:
        What is sliced.
    dim:
        The dimension; a negative one counts from the end.
    start:
        One integer, the first index.
    size:
        The elements that the slice goes over, at least 1.
    step:
        Of these every so manyth is taken.

    Returns
    -------
    torch.Tensor
        Of the same rank, with ``ceil(size / step)`` elements in the dimension. It has a gradient.

    Raises
    ------
    PoplarIndexError
        If there is no such dimension, and on the CPU for a slice that does not lie within it; the device goes on at the
        dimension's beginning.
    TensorShapeError
        For a size beyond that of the dimension.
    PoplarTypeError
        If `start` is no tensor of one integer, or for other arguments of other types.

    Examples
    --------
    >>> import torch
    >>> from pypoplar import poptorch
    >>> poptorch.dynamic_slice(torch.arange(6), 0, torch.tensor(2), 3, 1)
    tensor([2, 3, 4])
    """
    dim = _check("dynamic_slice", tensor, dim, start, size)
    check_number("dynamic_slice", "step", step, 1)
    return _dynamic_slice(tensor, dim, start, size, step)


@public
def dynamic_update(input: torch.Tensor, src: torch.Tensor, dim: int, start: torch.Tensor, size: int) -> torch.Tensor:
    """A tensor with another one in the place of a slice, whose place is known when the device runs.

    Parameters
    ----------
    input:
        The tensor, which stays as it is.
    src:
        What takes the place: of its type, and of the slice's shape.
    dim:
        The dimension; a negative one counts from the end.
    start:
        One integer, the first index.
    size:
        The elements of the dimension that are replaced.

    Returns
    -------
    torch.Tensor
        A new one of the shape of `input`. It has gradients for both.

    Raises
    ------
    PoplarIndexError, TensorShapeError, PoplarTypeError
        As from `dynamic_slice`, and for a `src` of another shape or type.
    """
    call = "dynamic_update"
    dim = _check(call, input, dim, start, size)
    check_tensor(call, "src", src)
    if src.dtype is not input.dtype:
        raise PoplarTypeError(
            f"poptorch.{call}: input and src tensor must have same dtype. ({_on_device(input.dtype)} vs {_on_device(src.dtype)})"
        )
    if src.dim() != input.dim():
        raise TensorShapeError(
            f"poptorch.{call}: input and src tensors must have same dimensionality. ({input.dim()}) vs ({src.dim()})"
        )
    wanted = [*input.shape[:dim], size, *input.shape[dim + 1 :]]
    if list(src.shape) != wanted:
        raise TensorShapeError(f"poptorch.{call}: src has shape {wanted}, got {list(src.shape)}")
    return _dynamic_update(input, src, dim, start, 1)


def _on_device(dtype: torch.dtype) -> torch.dtype:
    """The type that the device has for one of the host."""
    return {torch.int64: torch.int32, torch.float64: torch.float32}.get(dtype, dtype)
