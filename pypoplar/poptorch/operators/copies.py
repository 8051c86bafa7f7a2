"""Copies into parts of tensors, as ``x[0] = y`` makes them, in a form that has gradients."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.replacements import replaces


@replaces(torch.ops.aten.copy.default)
def copied(into: Any, source: Any, non_blocking: bool = False) -> Any:
    """What is copied, in the type and the shape of what it is copied into; PyTorch has no gradient of the copy itself."""
    return source.to(into.dtype).expand(into.shape).clone()
