"""Embeddings whose entries are summed, bag by bag."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from pypoplar.errors import MissingFeature


def _bag(  # noqa: PLR0913 (PyTorch's arguments)
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Rows of indices, or bags that begin at offsets: each entry then knows its bag."""
    if padding_idx is not None or max_norm is not None or sparse or scale_grad_by_freq:
        raise MissingFeature("EmbeddingBag: padding_idx, max_norm, sparse and scale_grad_by_freq are missing")
    if offsets is not None:
        input = input.to(torch.promote_types(input.dtype, offsets.dtype))
    entries = functional.embedding(input, weight)
    if per_sample_weights is not None:
        entries = entries * per_sample_weights.unsqueeze(-1)
    if offsets is not None:
        return _by_offsets(entries, offsets[:-1] if include_last_offset else offsets, mode)
    if mode == "max":
        return entries.amax(1)
    return entries.sum(1) if mode == "sum" else entries.mean(1)


def _by_offsets(entries: Any, offsets: Any, mode: str) -> Any:
    """Bags of entries, each from its offset up to the next one; those without entries are zeros."""
    count = offsets.shape[0]
    bag = torch.searchsorted(offsets, torch.arange(len(entries), dtype=offsets.dtype), right=True) - 1
    none = torch.zeros(count, entries.shape[1], dtype=entries.dtype)
    if mode == "max":
        return none.index_reduce(0, bag, entries, "amax", include_self=False)
    total = none.index_add(0, bag, entries)
    if mode == "sum":
        return total
    behind = torch.cat([offsets[1:], torch.full((1,), len(entries), dtype=offsets.dtype)])
    return total / (behind - offsets).clamp(min=1).to(entries.dtype).unsqueeze(1)


@contextlib.contextmanager
def bags_as_sums() -> Iterator[None]:
    """While a module is exported, bags are sums, means or maxima of embeddings."""
    original = functional.embedding_bag
    functional.embedding_bag = _bag
    try:
        yield
    finally:
        functional.embedding_bag = original
