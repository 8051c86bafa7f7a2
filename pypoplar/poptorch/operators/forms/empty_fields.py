"""Resampling of fields without elements, where PyTorch's capture fails on its own account of sizes."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.nn import functional


def interpolate(input: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
    """`torch.nn.functional.interpolate`: a batch of nothing stays one, other fields without elements are PyTorch's error."""
    if input.numel():
        return functional.interpolate(input, *arguments, **named)
    if not prod(input.shape[1:]):
        raise RuntimeError(f"Non-empty {input.dim()}D data tensor expected but got a tensor with sizes {list(input.shape)}")
    shape = functional.interpolate(input.new_zeros((1, *input.shape[1:])), *arguments, **named).shape[1:]
    return input.reshape(0, prod(input.shape[1:]))[:, :1].expand(0, prod(shape)).reshape(0, *shape)
