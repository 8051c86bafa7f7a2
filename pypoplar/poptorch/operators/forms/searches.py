"""Where values are among others, by comparing all of them; elements that a mask chooses; rows that are repeated."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    sorted_sequence: Any, value: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Any:  # fmt: skip
    """How many elements of each row come before a value: the row is compared with all of them."""
    rows = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    values = value if isinstance(value, torch.Tensor) else torch.full((), value, dtype=rows.dtype)
    behind = _behind(rows.unsqueeze(-2), values.reshape(-1, 1) if rows.dim() == 1 else values.unsqueeze(-1), right, side)
    shape = values.shape if rows.dim() == 1 else behind.shape[:-1]
    return behind.sum(-1).reshape(shape).to(torch.int32 if out_int32 else torch.int64)


def _behind(rows: Any, values: Any, right: bool, side: str | None) -> Any:
    """Whether values come behind elements; NaN does behind all."""
    return ~(rows > values) if right or side == "right" else ~(rows >= values)


@replaces(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(value: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Between which boundaries values lie."""
    return searchsorted(boundaries, value, out_int32=out_int32, right=right)


@replaces(aten.isin.Tensor_Tensor, aten.isin.Tensor_Scalar, aten.isin.Scalar_Tensor)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether elements are among others."""
    first, second = (one if isinstance(one, torch.Tensor) else torch.full((), one) for one in (elements, test_elements))
    found = (first.reshape(-1, 1) == second.reshape(1, -1)).any(1).reshape(first.shape)
    return ~found if invert else found


@replaces(aten.masked_scatter.default)
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """The elements of a source, in order, where a mask is true. Those that it has not are zeros."""
    into, chosen = torch.broadcast_tensors(input, mask)
    number = chosen.reshape(-1).to(torch.int32).cumsum(0) - 1
    there = chosen.reshape(-1) & (number < source.numel())
    taken = source.reshape(-1).index_select(0, torch.where(there, number, 0))
    values = torch.where(there, taken, torch.zeros((), dtype=source.dtype))
    return torch.where(chosen, values.reshape(into.shape), into)


@replaces(aten.repeat_interleave.Tensor)
def repeated_numbers(repeats: Any, *, output_size: int | None = None) -> Any:
    """Each number so often as `repeats` tells; how many there are in all has to be said."""
    if output_size is None:  # PyTorch's error, which capture explains
        return aten.repeat_interleave.Tensor(repeats, output_size=output_size)
    ends = repeats.cumsum(0).to(torch.int32)
    return (ends.reshape(1, -1) <= torch.arange(output_size, dtype=torch.int32).reshape(-1, 1)).sum(1)


@replaces(aten.repeat_interleave.self_Tensor)
def repeated_rows(input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
    """Each row so often as `repeats` tells."""
    whole, dim = (input.reshape(-1), 0) if dim is None else (input, dim)
    each = repeats.expand(whole.shape[dim]) if repeats.numel() == 1 else repeats
    return whole.index_select(dim, repeated_numbers(each, output_size=output_size))
