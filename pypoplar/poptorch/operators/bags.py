"""Embeddings whose entries are summed, bag by bag."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.nn import functional

from pypoplar.errors import MissingFeature


def _bag(  # noqa: PLR0913 (PyTorch's arguments)
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Bags of one length: rows of indices."""
    if input.dim() != 2 or offsets is not None:
        raise MissingFeature("EmbeddingBag: bags by offsets are missing; indices [bags, entries of a bag] are supported")
    if padding_idx is not None or max_norm is not None or sparse or scale_grad_by_freq:
        raise MissingFeature("EmbeddingBag: padding_idx, max_norm, sparse and scale_grad_by_freq are missing")
    entries = functional.embedding(input, weight)
    if per_sample_weights is not None:
        entries = entries * per_sample_weights.unsqueeze(-1)
    if mode == "max":
        return entries.amax(1)
    return entries.sum(1) if mode == "sum" else entries.mean(1)


@contextlib.contextmanager
def bags_of_one_length() -> Iterator[None]:
    """While a module is exported, bags are sums of embeddings."""
    original = functional.embedding_bag
    functional.embedding_bag = _bag
    try:
        yield
    finally:
        functional.embedding_bag = original
