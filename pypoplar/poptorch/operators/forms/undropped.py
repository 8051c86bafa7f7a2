"""Dropouts that drop nothing give their operand itself: a change in place of one is one of the other."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

NAMES = "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"


@contextlib.contextmanager
def undropped_operands() -> Iterator[None]:
    """While a module is exported, as PyTorch runs it; export would copy what is not dropped."""
    before = [(owner, name, getattr(owner, name)) for owner in (torch, torch._VF) for name in NAMES]
    for owner, name, function in before:
        setattr(owner, name, _form(function))
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def _form(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def form(input: Any, p: float, train: bool) -> Any:
        return function(input, p, train) if train and p else input

    return form
