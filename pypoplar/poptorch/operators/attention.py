"""Attention in the form that devices compute: products, masks, one softmax, dropout."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from math import sqrt
from typing import Any

import torch
from torch.nn.modules import transformer

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.scaled_dot_product_attention.default)
def attention(
    query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0, causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """The weights of a row that its mask hides altogether are 0, as in PyTorch."""
    if enable_gqa:
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3) for one in (key, value))
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    if causal:
        earlier = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
        later = torch.zeros(earlier.shape, dtype=query.dtype).masked_fill(earlier.logical_not(), -torch.inf)
        scores = scores + later
    if mask is None:
        weights = torch.softmax(scores, -1)  # a row has one element at least, where `causal` hides others too
    else:
        hidden = scores.masked_fill(mask.logical_not(), -torch.inf) if mask.dtype is torch.bool else scores + mask
        weights = aten._safe_softmax.default(hidden, -1)
    if dropout:
        weights = aten.native_dropout.default(weights, dropout, True)[0]
    return weights @ value


@replaces(aten.view.default)
def view(tensor: Any, size: list[int]) -> Any:
    """A view of what another form made need not lie as PyTorch's own result would."""
    return tensor.reshape(size)


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """While a module is exported, layers of transformers call operations, and not PyTorch's one kernel of the CPU.

    Nor do they look into a mask whether it is causal: it is so if the caller says it, and is added in any case.
    """
    fast, detect = torch.backends.mha.get_fastpath_enabled(), transformer._detect_is_causal_mask
    torch.backends.mha.set_fastpath_enabled(False)
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: bool(is_causal)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        transformer._detect_is_causal_mask = detect
