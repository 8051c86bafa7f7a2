"""Views by strides that are changed in place, such as the diagonal of `fill_diagonal_`."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


class _Written(torch.autograd.Function):
    """A tensor with a part of it taken from another; PyTorch's own gradient by the tensor is that of the part."""

    @staticmethod
    def forward(ctx: Any, into: Any, source: Any, *place: Any) -> Any:
        ctx.place = place
        return aten.as_strided_scatter.default(into, source, *place)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient, size = gradients[0].contiguous(), ctx.place[0]
        none = torch.zeros(size, dtype=gradient.dtype, device=gradient.device)
        kept = aten.as_strided_scatter.default(gradient, none, *ctx.place)
        return kept, gradient.as_strided(*ctx.place), None, None, None


@replaces(aten.as_strided_scatter.default)
def written(into: Any, source: Any, size: list[int], stride: list[int], storage_offset: int | None = None) -> Any:
    """What PyTorch gives, with gradients by both."""
    return _Written.apply(into, source, size, stride, storage_offset or 0)
