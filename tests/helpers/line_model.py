"""A small model of PyTorch for tests of optimisers, and its batches."""

from __future__ import annotations

import torch
from torch import nn


class Line(nn.Module):  # type: ignore[misc]
    """A layer and its loss; beside them a parameter that is not used, if it is wanted."""

    def __init__(self, *, unused: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3)
        if unused:
            self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.layer(x), labels)


def batch(call: int, dtype: torch.dtype = torch.float32, samples: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    """The inputs and labels of a call."""
    generator = torch.Generator().manual_seed(call)
    return torch.randn(samples, 4, generator=generator).to(dtype), torch.randint(0, 3, (samples,), generator=generator)
