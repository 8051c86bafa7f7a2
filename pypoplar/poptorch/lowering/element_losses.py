"""Losses that are a formula of each element, then left, averaged or added up, and their gradients. They are computed in FLOAT."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Abs, Exp, Log, Log1p, Max, Select, Sigmoid, Signum, expression
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.losses import Reduction
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.reductions import mean_of
from pypoplar.poptorch.lowering.shared_expressions import computed, wide

aten = torch.ops.aten
Formula = Callable[..., Any]


def _reduced(ctx: EntryContext, formula: Formula, operands: list[Operand], reduction: int) -> Tensor:
    """The losses of elements, their mean or their sum."""
    tree, tensors = formula(*wide(*operands)), [operand.placed() for operand in operands]
    if reduction == Reduction.NONE:
        return computed(ctx, tree, *tensors)
    losses = popops.map(ctx.graph, expression(tree), tensors, ctx.program, ctx.name)
    axes = list(range(losses.rank()))
    if reduction == Reduction.MEAN:
        return mean_of(ctx, losses, axes, ctx.type).reshape([])
    params = popops.ReduceParams(popops.Operation.ADD)
    return popops.reduce(ctx.graph, losses, ctx.type, axes, params, ctx.program, ctx.name).reshape([])


def _spread_back(ctx: EntryContext, formula: Formula, operands: list[Operand], reduction: int) -> Tensor:
    """The gradient; the first of the operands is that of the loss."""
    back, *leaves = wide(*operands)
    tree = formula(*leaves) * back
    if reduction == Reduction.MEAN:
        tree = tree * (1 / max(prod(ctx.shape), 1))
    return computed(ctx, tree, *(operand.placed() for operand in operands))


def _given(*operands: Any) -> list[Operand]:
    return [operand for operand in operands if operand is not None]


# squares and distances


@lowers(aten.mse_loss.default)
def squares(ctx: EntryContext, x: Operand, y: Operand, reduction: int = Reduction.MEAN) -> Tensor:
    return _reduced(ctx, lambda x, y: (x - y) * (x - y), [x, y], reduction)


@lowers(aten.mse_loss_backward.default)
def squares_backward(ctx: EntryContext, gradient: Operand, x: Operand, y: Operand, reduction: int) -> Tensor:
    return _spread_back(ctx, lambda x, y: (x - y) * 2.0, [gradient, x, y], reduction)


@lowers(aten.smooth_l1_loss.default)
def smooth_distances(ctx: EntryContext, x: Operand, y: Operand, reduction: int = Reduction.MEAN, beta: float = 1.0) -> Tensor:
    def formula(x: Any, y: Any) -> Any:
        far = Abs(x - y)
        return Select(far * far * (0.5 / beta), far - 0.5 * beta, far < beta)

    return _reduced(ctx, formula, [x, y], reduction)


@lowers(aten.smooth_l1_loss_backward.default)
def smooth_distances_backward(ctx: EntryContext, gradient: Operand, x: Operand, y: Operand, reduction: int, beta: float) -> Tensor:
    def formula(x: Any, y: Any) -> Any:
        return Select((x - y) * (1 / beta), Signum(x - y), Abs(x - y) < beta)

    return _spread_back(ctx, formula, [gradient, x, y], reduction)


@lowers(aten.huber_loss.default)
def huber(ctx: EntryContext, x: Operand, y: Operand, reduction: int = Reduction.MEAN, delta: float = 1.0) -> Tensor:
    def formula(x: Any, y: Any) -> Any:
        far = Abs(x - y)
        return Select(far * far * 0.5, (far - 0.5 * delta) * delta, far <= delta)

    return _reduced(ctx, formula, [x, y], reduction)


@lowers(aten.huber_loss_backward.default)
def huber_backward(ctx: EntryContext, gradient: Operand, x: Operand, y: Operand, reduction: int, delta: float) -> Tensor:
    def formula(x: Any, y: Any) -> Any:
        return Select(x - y, Signum(x - y) * delta, Abs(x - y) <= delta)

    return _spread_back(ctx, formula, [gradient, x, y], reduction)


# two classes


@lowers(aten.binary_cross_entropy.default)
def cross_entropy_of_two(
    ctx: EntryContext, x: Operand, y: Operand, weight: Operand | None = None, reduction: int = Reduction.MEAN
) -> Tensor:
    """Logarithms are -100 at least, as PyTorch has it."""

    def formula(x: Any, y: Any, *weight: Any) -> Any:
        lost = (y - 1.0) * Max(Log1p(-x), -100.0) - y * Max(Log(x), -100.0)
        return lost * weight[0] if weight else lost

    return _reduced(ctx, formula, _given(x, y, weight), reduction)


@lowers(aten.binary_cross_entropy_backward.default)
def cross_entropy_of_two_backward(
    ctx: EntryContext,
    gradient: Operand,
    x: Operand,
    y: Operand,
    weight: Operand | None = None,
    reduction: int = Reduction.MEAN,
) -> Tensor:
    def formula(x: Any, y: Any, *weight: Any) -> Any:
        slope = (x - y) / Max((1.0 - x) * x, 1e-12)
        return slope * weight[0] if weight else slope

    return _spread_back(ctx, formula, _given(gradient, x, y, weight), reduction)


@lowers(aten.binary_cross_entropy_with_logits.default)
def cross_entropy_of_logits(
    ctx: EntryContext,
    x: Operand,
    y: Operand,
    weight: Operand | None = None,
    positive: Operand | None = None,
    reduction: int = Reduction.MEAN,
) -> Tensor:
    """``(1 - y) x + w log(1 + exp(-x))``, where w is 1, or grows with y to the weight of what is positive."""

    def formula(x: Any, y: Any, *weights: Any) -> Any:
        unsure = Log1p(Exp(-Abs(x))) + Max(-x, 0.0)
        if positive is not None:
            unsure = unsure * ((weights[-1] - 1.0) * y + 1.0)
        lost = (1.0 - y) * x + unsure
        return lost * weights[0] if weight is not None else lost

    return _reduced(ctx, formula, _given(x, y, weight, positive), reduction)


@lowers(aten.soft_margin_loss.default)
def soft_margin(ctx: EntryContext, x: Operand, y: Operand, reduction: int = Reduction.MEAN) -> Tensor:
    return _reduced(ctx, lambda x, y: Log1p(Exp(-(x * y))), [x, y], reduction)


@lowers(aten.soft_margin_loss_backward.default)
def soft_margin_backward(ctx: EntryContext, gradient: Operand, x: Operand, y: Operand, reduction: int) -> Tensor:
    return _spread_back(ctx, lambda x, y: -y * Sigmoid(-(x * y)), [gradient, x, y], reduction)
