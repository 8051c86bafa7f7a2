"""Distances and margins of labels, which PyTorch has kernels for and no composition with gradients."""

from __future__ import annotations

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.dist.default)
def dist(input: torch.Tensor, other: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    """The norm of a difference of two tensors."""
    return torch.linalg.vector_norm(input - other, p)


@replaces(aten.pdist.default)
def pdist(input: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    """The distances of each row of a matrix and those behind it."""
    rows = input.shape[0]
    first, second = torch.triu_indices(rows, rows, 1, device=input.device)
    return torch.linalg.vector_norm(input[first] - input[second], p, 1)


@replaces(aten.multilabel_margin_loss.default)
def multilabel_margin_loss(input: torch.Tensor, target: torch.Tensor, reduction: int = 1) -> torch.Tensor:
    """By how much other classes are not 1 below each label, the labels being those before the first that is negative."""
    classes = input.shape[-1]
    labels = (target >= 0).to(torch.int32).cumprod(-1).bool()
    places = target.clamp(0)
    is_label = ((torch.arange(classes, device=input.device) == places[..., None]) & labels[..., None]).any(-2)
    margins = 1 - input.gather(-1, places)[..., None] + input[..., None, :]
    counted = labels[..., None] & ~is_label[..., None, :]
    losses = torch.where(counted, margins.clamp(0), 0.0).sum((-1, -2)) / classes
    return losses.mean() if reduction == 1 else losses.sum() if reduction == 2 else losses  # PyTorch's numbers of reductions
