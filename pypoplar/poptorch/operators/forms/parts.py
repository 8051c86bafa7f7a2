"""Parts whose changes PyTorch's gradients of the whole do not know (`unsafe_chunk`): they lie in its memory as slices do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def unsafe_chunk(input: torch.Tensor, chunks: int, dim: int = 0) -> tuple[torch.Tensor, ...]:
    """Slices as by `chunk`."""
    return _slices(input, torch.chunk(input, chunks, dim), dim)


def unsafe_split(input: torch.Tensor, split_size: int, dim: int = 0) -> tuple[torch.Tensor, ...]:
    """Slices as by `split`."""
    return _slices(input, torch.split(input, split_size, dim), dim)


def unsafe_split_with_sizes(input: torch.Tensor, split_sizes: list[int], dim: int = 0) -> tuple[torch.Tensor, ...]:
    """Slices as by `split_with_sizes`."""
    return _slices(input, torch.split_with_sizes(input, split_sizes, dim), dim)


def _slices(whole: torch.Tensor, parts: tuple[torch.Tensor, ...], dim: int) -> tuple[torch.Tensor, ...]:
    """The parts one by one: PyTorch lets each be changed in place, as it does not those that an operation gives together."""
    extents = [part.shape[dim] for part in parts]
    return tuple(whole.narrow(dim, sum(extents[:number]), extent) for number, extent in enumerate(extents))


PARTS: dict[Any, Callable[..., Any]] = {
    getattr(owner, form.__name__): form
    for owner in (torch, torch.Tensor)
    for form in (unsafe_chunk, unsafe_split, unsafe_split_with_sizes)
}
"""By function of PyTorch; export would hold what it gives for copies."""
