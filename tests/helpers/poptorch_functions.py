"""Functions of PyTorch joined to one, so that one graph tests them all, and tensors that they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Function = Callable[..., Any]


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    """The same numbers for a shape and a seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


def of_all(*functions: Function) -> Function:
    """One function whose results are those of several."""
    return lambda *tensors: [function(*tensors) for function in functions]


def total_of(*functions: Function) -> Function:
    """All elements of several functions' results, each function's times another number, so that gradients differ."""

    def total(*tensors: torch.Tensor) -> torch.Tensor:
        results = [function(*tensors).float().reshape(-1) for function in functions]
        return torch.cat([result * (number + 1) / len(results) for number, result in enumerate(results)])

    return total
