"""Steps of optimisers, random numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

TRAINING = "ai.onnx.preview.training"


def _lists(op: NodeCall, operands: tuple[Tensor, ...], each: int) -> list[list[Tensor]]:
    count = (len(operands) - 2) // each
    return [list(operands[2 + kind * count : 2 + (kind + 1) * count]) for kind in range(each)]


@operator("Adagrad", domain=TRAINING)
def adagrad(op: NodeCall, *operands: Tensor) -> tuple[Tensor, ...]:
    """Steps by the sums of squared gradients."""
    rate, count = operands[0], operands[1]
    rate = rate / (1 + count.to(rate.dtype) * op.attribute("decay_factor", 0.0))
    new, sums = [], []
    for x, gradient, total in zip(*_lists(op, operands, 3), strict=True):
        g = op.attribute("norm_coefficient", 0.0) * x + gradient
        h = total + g * g
        new.append(x - rate * g / (torch.sqrt(h) + op.attribute("epsilon", 0.0)))
        sums.append(h)
    return (*new, *sums)


@operator("Momentum", domain=TRAINING)
def momentum(op: NodeCall, *operands: Tensor) -> tuple[Tensor, ...]:
    """Steps with momentum, of Nesterov's kind or the usual."""
    rate, count = operands[0], operands[1]
    alpha, beta = op.attribute("alpha"), op.attribute("beta")
    new, moved = [], []
    for x, gradient, velocity in zip(*_lists(op, operands, 3), strict=True):
        g = op.attribute("norm_coefficient") * x + gradient
        adjusted = torch.where(count > 0, torch.full_like(rate, beta), torch.ones_like(rate))
        v = alpha * velocity + adjusted * g
        new.append(x - rate * (g + alpha * v) if op.attribute("mode") == "nesterov" else x - rate * v)
        moved.append(v)
    return (*new, *moved)


@operator("Adam", domain=TRAINING)
def adam(op: NodeCall, *operands: Tensor) -> tuple[Tensor, ...]:
    """Steps by moving means of gradients and of their squares."""
    rate, count = operands[0], operands[1]
    alpha, beta = op.attribute("alpha", 0.9), op.attribute("beta", 0.999)
    times = count.to(rate.dtype)
    corrected = (
        rate * torch.sqrt(1 - torch.pow(torch.full_like(rate, beta), times)) / (1 - torch.pow(torch.full_like(rate, alpha), times))
    )
    adjusted = torch.where(count > 0, corrected, rate)
    new, means, squares = [], [], []
    for x, gradient, mean, square in zip(*_lists(op, operands, 4), strict=True):
        g = op.attribute("norm_coefficient", 0.0) * x + gradient
        v = alpha * mean + (1 - alpha) * g
        h = beta * square + (1 - beta) * g * g
        x = x - adjusted * v / (torch.sqrt(h) + op.attribute("epsilon", 1e-6))
        new.append((1 - op.attribute("norm_coefficient_post", 0.0)) * x)
        means.append(v)
        squares.append(h)
    return (*new, *means, *squares)


def _like(op: NodeCall, x: Tensor) -> Tensor:
    code = op.attribute("dtype")
    return torch.zeros(x.shape, dtype=x.dtype if code is None else op.dtype(code), device=x.device)


@operator("RandomNormalLike")
def random_normal_like(op: NodeCall, x: Tensor) -> Tensor:
    """Normal numbers in the shape of the operand."""
    return torch.randn_like(_like(op, x)) * op.attribute("scale", 1.0) + op.attribute("mean", 0.0)


@operator("RandomUniformLike")
def random_uniform_like(op: NodeCall, x: Tensor) -> Tensor:
    """Uniform numbers in the shape of the operand."""
    low, high = op.attribute("low", 0.0), op.attribute("high", 1.0)
    return torch.rand_like(_like(op, x)) * (high - low) + low


@operator("Bernoulli", since=15)
def bernoulli(op: NodeCall, x: Tensor) -> Tensor:
    """1 with the probability that each element is."""
    code = op.attribute("dtype")
    return (torch.rand_like(x) < x).to(x.dtype if code is None else op.dtype(code))
