"""Medians that leave NaNs out, from sorted elements, among which NaNs are the last."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.nanmedian.dim)
def median_of_numbers(input: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """The lower one of the two in the middle of a dimension; NaN of nothing but NaNs."""
    elements = input.reshape(1) if input.dim() == 0 else input
    values, places = elements.sort(dim)
    middle = ((~elements.isnan()).sum(dim, keepdim=True) - 1).clamp(min=0) // 2
    found = values.gather(dim, middle), places.gather(dim, middle)
    shape = input.shape if input.dim() == 0 else found[0].shape if keepdim else found[0].squeeze(dim).shape
    return found[0].reshape(shape), found[1].reshape(shape)


class _MedianOfAll(torch.autograd.Function):
    """The same of all elements. Those that are equal to it share its gradient, as PyTorch has it."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        value = median_of_numbers(input.reshape(-1), 0)[0]
        ctx.save_for_backward(input, value)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        input, value = ctx.saved_tensors
        equal = (input == value) | (input.isnan() & value.isnan())
        return torch.where(equal, gradients[0] / equal.sum(), 0)


@replaces(aten.nanmedian.default)
def median_of_all_numbers(input: Any) -> Any:
    """The same of all elements."""
    return _MedianOfAll.apply(input)
