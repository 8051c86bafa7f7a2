"""The float next to another one, towards a third: the whole number of its bits is one more or less."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten
SIGN = -(1 << 31)  # its bit alone


class _Next(torch.autograd.Function):
    """Of two float32 tensors of one shape."""

    @staticmethod
    def forward(ctx: Any, start: Any, goal: Any) -> Any:
        bits = start.view(torch.int32)
        farther = bits + torch.where((goal > start) == (start > 0), 1, -1).to(torch.int32)
        least = torch.where(goal > 0, 1, SIGN + 1).to(torch.int32)
        found = torch.where(start == 0, least, farther).view(torch.float32)
        found = torch.where(start == goal, goal, found)
        return torch.where(start.isnan() | goal.isnan(), torch.nan, found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError("the derivative for 'nextafter' is not implemented, which PyTorch does not have either")


@replaces(aten.nextafter.default)
def nextafter(input: Any, other: Any) -> Any:
    """For float32; numbers of 64 bits are such on the IPU."""
    start, goal = torch.broadcast_tensors(input, other)
    if start.dtype not in (torch.float32, torch.float64) or goal.dtype is not start.dtype:
        raise NotImplementedError(f"nextafter of {start.dtype} and {goal.dtype}: expected two of torch.float32")
    return _Next.apply(start.float(), goal.float()).to(start.dtype)
