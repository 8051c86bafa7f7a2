"""Norms whose form in PyTorch changes running statistics behind the graph's back, or asks the host for a number of batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.instance_norm.default)
def instance_norm(  # noqa: PLR0913 (PyTorch's arguments)
    input: Any, weight: Any, bias: Any, mean: Any, variance: Any, from_input: bool, momentum: float, eps: float, cudnn: bool
) -> Any:
    """A group norm with a group for each channel; with running statistics a batch norm of them."""
    if not from_input:
        return aten.batch_norm.default(input, weight, bias, mean, variance, False, momentum, eps, cudnn)
    samples, channels, *field = input.shape
    weight, bias = (None if vector is None else vector.to(input.dtype) for vector in (weight, bias))
    return aten.native_group_norm.default(input.contiguous(), weight, bias, samples, channels, prod(field), channels, eps)[0]


@contextlib.contextmanager
def running_statistics_in_the_graph() -> Iterator[None]:
    """While a module is exported, its norms update their running statistics by operations of the graph alone."""
    batch, instance = _BatchNorm.forward, _InstanceNorm._apply_instance_norm

    def batch_norm(self: Any, input: torch.Tensor) -> Any:
        cumulative = self.training and self.momentum is None and self.running_mean is not None
        return _cumulative(self, input) if cumulative else batch(self, input)

    def apply_instance_norm(self: Any, input: torch.Tensor) -> Any:
        if not (self.training and self.track_running_stats):
            return instance(self, input)
        _update(self, input)
        return functional.instance_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)

    _BatchNorm.forward, _InstanceNorm._apply_instance_norm = batch_norm, apply_instance_norm
    try:
        yield
    finally:
        _BatchNorm.forward, _InstanceNorm._apply_instance_norm = batch, instance


def _cumulative(norm: Any, input: torch.Tensor) -> Any:
    """A batch norm whose running statistics are means over all batches: how many there were is a number of the device."""
    norm._check_input_dim(input)
    norm.num_batches_tracked.add_(1)
    mean, variance = torch.zeros_like(norm.running_mean), torch.zeros_like(norm.running_var)
    result = functional.batch_norm(input, mean, variance, norm.weight, norm.bias, True, 1.0, norm.eps)
    for running, new in ((norm.running_mean, mean), (norm.running_var, variance)):
        running.add_((new - running) / norm.num_batches_tracked)
    return result


def _update(norm: Any, input: torch.Tensor) -> None:
    """Running statistics of an instance norm: means over samples of those of each."""
    values = input.detach().flatten(2).to(norm.running_mean.dtype)
    count, momentum = values.shape[-1], norm.momentum or 0.0
    mean = values.mean(-1, keepdim=True)
    difference = values - mean
    variance = (difference * difference).sum((0, 2)) / (values.shape[0] * max(count - 1, 1))
    for running, new in ((norm.running_mean, mean.mean((0, 2))), (norm.running_var, variance)):
        running.mul_(1 - momentum).add_(new * momentum)
