"""Functions of Keras that are captured in another form than that in which they run on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.utils._pytree as pytree
from keras.src.backend.common.stateless_scope import get_stateless_scope
from keras.src.backend.torch import core as keras_core
from keras.src.backend.torch import nn as keras_nn
from keras.src.backend.torch import numpy as keras_numpy
from keras.src.layers.convolutional.base_conv import BaseConv
from keras.src.losses import loss as keras_loss

from pypoplar.errors import MissingFeature
from pypoplar.keras.left_out_operations import LeftOutOperations


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
    if values.dtype is torch.float32:
        return torch.mean(values)
    count = values.numel()
    return torch.sum(values) / (float(np.float16(count)) if values.dtype is torch.float16 else count)


_with_bias = BaseConv.call


def _convolved(mode: LeftOutOperations) -> Callable[..., Any]:
    """Keras' forward pass of a convolution, which has its bias in it."""

    def call(layer: Any, inputs: Any) -> Any:
        alone = type(layer).convolution_op is BaseConv.convolution_op and inputs.dtype is torch.float32
        if not alone or not layer.use_bias or layer.bias.dtype != "float32":
            return _with_bias(layer, inputs)
        mode.bias = keras_core.convert_to_tensor(layer.bias)
        outputs = layer.convolution_op(inputs, layer.kernel)
        return outputs if layer.activation is None else layer.activation(outputs)

    return call


def _size(x: Any) -> int:
    """How many elements there are, a number: Keras' function of this name gives a tensor, whose value a graph does not know."""
    return int(keras_core.convert_to_tensor(x).numel())


@contextlib.contextmanager
def captured_functions(stable: bool) -> Iterator[None]:
    """Within it branches are chosen element by element, and norms are `stable` if that is asked for."""
    with contextlib.ExitStack() as stack:
        mode = stack.enter_context(LeftOutOperations())
        stack.enter_context(mock.patch.object(BaseConv, "call", _convolved(mode)))
        stack.enter_context(mock.patch.object(keras_loss, "reduce_values", _reduce))
        stack.enter_context(mock.patch.object(keras_core, "cond", _cond))
        stack.enter_context(mock.patch.object(keras_numpy, "size", _size))
        if stable:
            stack.enter_context(mock.patch.object(keras_nn, "moments", _moments))
        yield
