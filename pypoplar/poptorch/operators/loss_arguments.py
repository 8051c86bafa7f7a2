"""Losses of PyTorch that lose an argument, or look into their data, while a module is exported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from math import log, pi
from typing import Any

import torch
from torch.nn import functional

Hand = Callable[..., Any]


def _gaussian(input: Any, target: Any, var: Any, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    """PyTorch's formula, without its question whether a variance is negative, which data alone answer."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = torch.full_like(input, var)
    elif var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or [a for a, b in zip(var.shape, input.shape, strict=True) if a != b] != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    clamped = var + (var.clamp(min=eps) - var).detach()  # its gradient passes the bound
    losses = 0.5 * (torch.log(clamped) + (input - target) ** 2 / clamped)
    if full:
        losses = losses + 0.5 * log(2 * pi)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _handing(original: Hand) -> Hand:
    """How functions of PyTorch hand on their arguments while they are traced: none of them is left out."""

    def hand(function: Any, relevant: Any, *args: Any, **kwargs: Any) -> Any:
        if function is functional.l1_loss:
            kwargs["weight"] = relevant[2]  # which PyTorch 2.13 forgets
        if function is functional.gaussian_nll_loss:
            return _gaussian(*args, **kwargs)
        if function is functional.ctc_loss:  # lengths are tensors, also where they are constants
            args = (*args[:2], *(torch.as_tensor(lengths) for lengths in args[2:]))
        return original(function, relevant, *args, **kwargs)

    return hand


@contextlib.contextmanager
def losses_of_all_arguments() -> Iterator[None]:
    """While a module is exported, losses take all their arguments, and do not look into tensors."""
    original = functional.handle_torch_function
    functional.handle_torch_function = _handing(original)
    try:
        yield
    finally:
        functional.handle_torch_function = original
