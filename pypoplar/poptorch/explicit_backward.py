"""What models give has no gradients on the host: `backward()` of it says so, as PopTorch does."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils.weak import WeakTensorKeyDictionary

from pypoplar.errors import PoplarRuntimeError

WHAT = (
    "backward() cannot be called explicitly on outputs of a PopTorch model. If you're using a trainingModel, the backwards pass is "
    "performed automatically when invoking the model. If you're using an inferenceModel, you should use a trainingModel instead."
)

_given = WeakTensorKeyDictionary()  # no attribute of tensors, with which torch.load would not take what torch.save wrote
_plain = torch.Tensor.backward


def refuse_backward(results: Any) -> None:
    """Let `backward()` of these tensors say what is wrong, where PyTorch says that they have no gradient."""
    for one in pytree.tree_leaves(results):
        if isinstance(one, torch.Tensor):
            _given[one] = None
    if torch.Tensor.backward is not _backward:
        torch.Tensor.backward = _backward


def _backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if tensor in _given and not tensor.requires_grad:
        raise PoplarRuntimeError(WHAT)
    return _plain(tensor, *args, **kwargs)


_backward.__doc__ = _plain.__doc__
