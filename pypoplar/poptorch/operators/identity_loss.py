"""A mark: this value is what is minimised."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.errors import InvalidOption

REDUCTIONS = {"sum": 0, "mean": 1, "none": 2, 0: 0, 1: 1, 2: 2}


@torch.library.custom_op("poptorch::identity_loss", mutates_args=())
def _identity_loss(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@_identity_loss.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
    return gradient.clone()


_identity_loss.register_autograd(_backward)


def identity_loss(x: torch.Tensor, reduction: str | int) -> torch.Tensor:
    """Mark a value as the loss of a training model.

    Parameters
    ----------
    x:
        The value; one that is no single number has to be reduced.
    reduction:
        "sum", "mean", or "none" for the value as it is; or PopTorch's numbers of them, 0, 1 and 2.

    Returns
    -------
    torch.Tensor
        The value, reduced.

    Raises
    ------
    InvalidOption
        For another reduction.
    """
    if reduction not in REDUCTIONS:
        raise InvalidOption(f"identity_loss: reduction is 'sum', 'mean' or 'none', got {reduction!r}")
    number = REDUCTIONS[reduction]
    reduced = x.sum() if number == 0 else x.mean() if number == 1 else x
    return _identity_loss(reduced)
