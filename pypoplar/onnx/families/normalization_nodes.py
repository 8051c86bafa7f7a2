"""Normalizations."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.node_call import Expand, NodeCall
from pypoplar.onnx.operator_table import operator


@operator("BatchNormalization")
def batch_normalization(op: NodeCall, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
    """By the mean and variance that are given; where the node trains by those of the batch, which the others move to."""
    epsilon = op.attribute("epsilon", 1e-5)
    if op.attribute("spatial", 1) != 1:
        raise op.error("spatial=0 is missing")
    training = op.attribute("training_mode", 0) if op.opset >= 14 else any(op.outputs[1:])
    scale, bias = scale.to(x.dtype), bias.to(x.dtype)
    if not training:
        return (F.batch_norm(x, mean.to(x.dtype), variance.to(x.dtype), scale, bias, False, 0.0, epsilon),)
    momentum = op.attribute("momentum", 0.9)
    axes = [axis for axis in range(x.dim()) if axis != 1]
    now = torch.mean(x, axes)
    shape = [1, -1, *[1] * (x.dim() - 2)]
    spread = torch.mean((x - now.reshape(shape)) ** 2, axes)
    result = F.batch_norm(x, None, None, scale, bias, True, 0.0, epsilon)
    moved = [
        mean * momentum + now.to(mean.dtype) * (1 - momentum),
        variance * momentum + spread.to(variance.dtype) * (1 - momentum),
    ]
    return (result, *moved, *([now, spread] if len(op.outputs) > 3 else []))


@operator("InstanceNormalization")
def instance_normalization(op: NodeCall, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Each channel of each item by its own mean and variance."""
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, op.attribute("epsilon", 1e-5))


@operator("GroupNormalization", since=21)
def group_normalization(op: NodeCall, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Groups of channels by their means and variances."""
    return F.group_norm(x, op.attribute("num_groups"), scale, bias, op.attribute("epsilon", 1e-5))


@operator("LayerNormalization", since=17)
def layer_normalization(op: NodeCall, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """All from an axis on by their mean and variance."""
    shape = list(x.shape[op.attribute("axis", -1) :])
    if any(op.outputs[1:]) or list(scale.shape) != shape or (bias is not None and list(bias.shape) != shape):
        raise Expand
    return F.layer_norm(x, shape, scale, bias, op.attribute("epsilon", 1e-5))


@operator("LRN")
def local_response(op: NodeCall, x: Tensor) -> Tensor:
    """Divided by a power of the squares of neighbouring channels."""
    size = op.attribute("size")
    alpha, beta, bias = op.attribute("alpha", 1e-4), op.attribute("beta", 0.75), op.attribute("bias", 1.0)
    before = (size - 1) // 2
    padded = F.pad(x * x, [0, 0] * (x.dim() - 2) + [before, size - 1 - before])
    total = sum((padded.narrow(1, one, x.shape[1]) for one in range(1, size)), start=padded.narrow(1, 0, x.shape[1]))
    return x / (bias + alpha / size * total) ** beta


@operator("MeanVarianceNormalization", since=9)
def mean_variance(op: NodeCall, x: Tensor) -> Tensor:
    """By mean and variance over axes."""
    axes = op.attribute("axes") or [0, 2, 3]
    centred = x - torch.mean(x, axes, True)
    return centred / (torch.sqrt(torch.mean(centred * centred, axes, True)) + 1e-9)


@operator("Scaler", domain="ai.onnx.ml")
def scaler(op: NodeCall, x: Tensor) -> Tensor:
    """Without an offset, times a scale."""
    offset = torch.tensor(op.attribute("offset") or [0.0], dtype=torch.float32, device=x.device)
    scale = torch.tensor(op.attribute("scale") or [1.0], dtype=torch.float32, device=x.device)
    return (x.to(torch.float32) - offset) * scale


@operator("LinearRegressor", domain="ai.onnx.ml")
def linear_regressor(op: NodeCall, x: Tensor) -> Tensor:
    """A product with coefficients."""
    targets = op.attribute("targets", 1)
    weights = torch.tensor(op.attribute("coefficients"), dtype=torch.float32, device=x.device).reshape(targets, -1)
    bias = op.attribute("intercepts")
    if op.attribute("post_transform", "NONE") != "NONE":
        raise op.error("post_transform is missing")
    given = None if bias is None else torch.tensor(bias, dtype=torch.float32, device=x.device)
    return F.linear(x.to(torch.float32), weights, given)


def rows_of(x: Tensor, axis: int) -> int:
    """How many rows there are before an axis."""
    return math.prod(x.shape[:axis])
