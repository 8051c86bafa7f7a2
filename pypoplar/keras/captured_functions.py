"""Functions of Keras that are captured in another form than that in which they run on the host."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.utils._pytree as pytree
from keras.src.backend.common.stateless_scope import get_stateless_scope
from keras.src.backend.torch import core as keras_core
from keras.src.backend.torch import nn as keras_nn
from keras.src.losses import loss as keras_loss
from torch.overrides import TorchFunctionMode

from pypoplar.errors import MissingFeature


def _moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance, as Keras' function of this name has them but for how they are summed, in FLOAT."""
    values = x.float()
    mean = torch.mean(values, dim=axes, keepdim=True)
    variance = torch.mean(torch.square(values - mean), dim=axes, keepdim=True)
    both = (mean, variance) if keepdims else (torch.squeeze(mean, axes), torch.squeeze(variance, axes))
    return both[0].to(x.dtype), both[1].to(x.dtype)


def _cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Both branches, of each of their tensors the one that the predicate chooses; `MissingFeature` where one sets a variable."""
    if not isinstance(pred, torch.Tensor):
        return true_fn() if pred else false_fn()
    before = dict(get_stateless_scope().state_mapping)
    results = [branch() for branch in (true_fn, false_fn)]
    after = get_stateless_scope().state_mapping
    if before.keys() != after.keys() or any(before[key] is not after[key] for key in before):
        raise MissingFeature(
            "keras.ops.cond: a branch sets a variable, and on the IPU both are computed: set it by keras.ops.where"
        )
    return pytree.tree_map(lambda chosen, other: torch.where(pred, chosen, other), *results)


_reduced = keras_loss.reduce_values


def _reduce(values: torch.Tensor, sample_weight: Any = None, reduction: Any = "sum_over_batch_size") -> torch.Tensor:
    """Keras' function of this name; how many values there are is a number, which Keras computes from a tensor of the shape."""
    if reduction not in ("sum_over_batch_size", "mean") or values.dim() == 0 or not values.numel():
        return _reduced(values, sample_weight, reduction)
    count = values.numel()
    return torch.sum(values) / (float(np.float16(count)) if values.dtype is torch.float16 else count)


class _WithoutConversions(TorchFunctionMode):
    """Leaves out what changes no values, and takes long to capture.

    Those are conversions of tensors to what they are already, of which Keras has two before each operation, and Keras' orders of
    elements in memory: on the device they are its own.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.to and _changes_nothing(*args, **(kwargs or {})):
            return args[0]
        if func is torch.Tensor.contiguous and sys._getframe(1).f_globals.get("__name__") == keras_nn.__name__:
            return args[0]
        return func(*args, **(kwargs or {}))


def _changes_nothing(tensor: torch.Tensor, *asked: Any, **named: Any) -> bool:
    for one in (*asked, *named.values()):
        if isinstance(one, torch.dtype):
            changes = one is not tensor.dtype
        elif isinstance(one, str | torch.device):
            changes = torch.device(one).type != tensor.device.type
        else:
            changes = one is not None
        if changes:
            return False
    return True


@contextlib.contextmanager
def captured_functions(stable: bool) -> Iterator[None]:
    """Within it branches are chosen element by element, and norms are `stable` if that is asked for."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_WithoutConversions())
        stack.enter_context(mock.patch.object(keras_loss, "reduce_values", _reduce))
        stack.enter_context(mock.patch.object(keras_core, "cond", _cond))
        if stable:
            stack.enter_context(mock.patch.object(keras_nn, "moments", _moments))
        yield
