"""The float next to another one, towards a third: the whole number of its bits is one more or less."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten
BITS = {torch.float32: torch.int32, torch.float16: torch.int16}


class _Next(torch.autograd.Function):
    """Of two tensors of one shape and of a type of `BITS`."""

    @staticmethod
    def forward(ctx: Any, start: Any, goal: Any) -> Any:
        type = BITS[start.dtype]
        farther = start.view(type).int() + torch.where((goal > start) == (start > 0), 1, -1).int()
        least = torch.where(goal > 0, 1, torch.iinfo(type).min + 1).int()  # the smallest one, with the sign's bit or without
        found = torch.where(start == 0, least, farther).to(type).view(start.dtype)
        found = torch.where(start == goal, goal, found)
        return torch.where(start.isnan() | goal.isnan(), torch.nan, found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError("the derivative for 'nextafter' is not implemented, which PyTorch does not have either")


@replaces(aten.nextafter.default)
def nextafter(input: Any, other: Any) -> Any:
    """For float32 and float16; numbers of 64 bits are float32 on the IPU."""
    start, goal = torch.broadcast_tensors(input, other)
    if goal.dtype is not start.dtype or start.dtype not in (torch.float64, *BITS):
        raise NotImplementedError(f"nextafter of {start.dtype} and {goal.dtype}: expected two of torch.float32 or torch.float16")
    if start.dtype is torch.float64:
        return _Next.apply(start.float(), goal.float()).double()
    return _Next.apply(start, goal)
