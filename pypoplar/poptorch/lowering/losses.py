"""Losses, whole, and their gradients."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from attrs import frozen

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Const, NotEqual, Select, _1, _2, _3
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.shared_expressions import mapped
from pypoplar.types import FLOAT, INT, UNSIGNED_INT

aten = torch.ops.aten
ADD = popops.ReduceParams(popops.Operation.ADD)


class Reduction(IntEnum):
    """What PyTorch writes for how the losses of samples become one."""

    NONE = 0
    MEAN = 1
    SUM = 2


@frozen(eq=False)
class ChosenClasses:
    """What the gradient of a negative log-likelihood needs of its forward pass."""

    weights: Tensor  # [samples, classes]: the weight of a sample's class, elsewhere 0
    total: Tensor  # the sum of all weights, FLOAT []


@lowers(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def negative_log_likelihood(
    ctx: EntryContext, input: Operand, labels: Operand, weight: Operand | None, reduction: int, ignored: int
) -> tuple[Tensor, ChosenClasses]:
    """The loss of each sample is ``-weight[label] * input[label]``; those whose label is `ignored` do not count."""
    likelihoods = _class_rows(input.placed())
    chosen = ChosenClasses(*_weights(ctx, labels, weight, likelihoods, ignored))
    lost = mapped(ctx, Select(-(_1 * _2), Const(0, ctx.type), NotEqual(_2, 0)), likelihoods, chosen.weights)
    if reduction == Reduction.NONE:
        losses = popops.reduce(ctx.graph, lost, ctx.type, [1], ADD, ctx.program, ctx.name)
        return losses.reshape(ctx.shape), chosen
    total = popops.reduce(ctx.graph, lost, FLOAT, [0, 1], ADD, ctx.program, ctx.name)
    mean = _1 / _2 if reduction == Reduction.MEAN else _1
    loss = mapped(ctx, Cast(mean, ctx.type), total, chosen.total)
    return loss.reshape([]), chosen


def _weights(
    ctx: EntryContext, labels: Operand, weight: Operand | None, likelihoods: Tensor, ignored: int
) -> tuple[Tensor, Tensor]:
    """The weights of samples' classes, as rows that are 0 elsewhere, and their sum."""
    rows, classes = likelihoods.shape()
    wanted = labels.placed().reshape([rows])
    if 0 <= ignored < classes:
        masked = Select(Const(-1, INT), _1, _1 == Const(ignored, INT))
        wanted = mapped(ctx, masked, wanted)
    weights = ctx.graph.clone(likelihoods, f"{ctx.name}/weights")
    popops.encodeOneHot(ctx.graph, wanted, weights, ctx.program, ctx.name)
    if weight is not None:
        popops.mulInPlace(ctx.graph, weights, weight.placed(), ctx.program, ctx.name)
    total = popops.reduce(ctx.graph, weights, FLOAT, [0, 1], ADD, ctx.program, ctx.name)
    return weights, total


def _class_rows(tensor: Tensor) -> Tensor:
    """[samples, classes] of a tensor of one sample, or whose second dimension are classes."""
    if tensor.rank() == 1:
        return tensor.reshape([1, tensor.dim(0)])
    last = tensor.dimRoll(1, tensor.rank() - 1)
    return last.flatten(0, last.rank() - 1)


@lowers(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def negative_log_likelihood_backward(
    ctx: EntryContext,
    gradient: Operand,
    input: Operand,
    labels: Operand,
    weight: Operand | None,
    reduction: int,
    ignored: int,
    total: Operand,
) -> Tensor:
    chosen: ChosenClasses = total.value
    back = gradient.placed()
    if reduction == Reduction.NONE:
        back = back.reshape([chosen.weights.dim(0), 1])
    operands = [chosen.weights, back]
    tree = -(_1 * _2)
    if reduction == Reduction.MEAN:  # where all are ignored the mean is NaN, and the gradient is 0
        share = Cast(-(Cast(_1, FLOAT) * Cast(_2, FLOAT) / _3), ctx.type)
        tree = Select(share, Const(0, ctx.type), NotEqual(_1, 0))
        operands.append(chosen.total)
    result = popops.map(ctx.graph, tree, operands, ctx.program, ctx.name)
    shape = ctx.shape
    if len(shape) < 3:
        return result.reshape(shape)
    return result.reshape([shape[0], *shape[2:], shape[1]]).dimRoll(len(shape) - 1, 1)


@lowers(aten._log_softmax_backward_data.default)
def log_softmax_backward(ctx: EntryContext, gradient: Operand, output: Operand, dim: int, type: torch.dtype) -> Tensor:
    back, result = gradient.placed(), output.placed()
    if not back.rank():
        back, result = back.expand([0]), result.expand([0])  # a row of one
    axis = dim % back.rank()
    total = popops.reduce(ctx.graph, back, FLOAT, [axis], ADD, ctx.program, ctx.name).expand([axis])
    tree = Cast(Cast(_1, FLOAT) - popops.expr.Exp(Cast(_2, FLOAT)) * _3, ctx.type)
    return mapped(ctx, tree, back, result, total).reshape(ctx.shape)


# connectionist temporal classification, by popnn: loss and gradient come from one pass over the paths

IMPOSSIBLE = 65504.0  # popnn's loss of a label that no path gives


@frozen(eq=False)
class PathGradient:
    """What stands for the probabilities of paths that PyTorch saves: the gradient itself."""

    gradient: Tensor  # [steps, samples, classes]


@lowers(aten._ctc_loss.Tensor)
def sequence_loss(
    ctx: EntryContext, logs: Operand, labels: Operand, steps: Operand, lengths: Operand, blank: int = 0, zero_infinity: bool = False
) -> tuple[Tensor, PathGradient]:
    """The loss of each sample. Where no path gives a label it is infinite and, as in PyTorch, its gradient means nothing."""
    if len(labels.shape) != 2 or len(logs.shape) != 3:
        raise UnsupportedOperation(
            f"{ctx.name}: labels of shape {labels.shape} for {logs.shape} are missing; labels [samples, symbols] of "
            "[steps, samples, classes], with lengths that are tensors, are supported"
        )
    time, samples, classes = logs.shape
    symbols = labels.shape[1]
    plan = popnn.ctc.plan(ctx.graph, ctx.type, ctx.type, samples, time, symbols, classes)
    operands = logs.placed(), _symbols(ctx, labels, lengths, blank), _unsigned(ctx, steps), _unsigned(ctx, lengths)
    options = {"zeroInfinity": "true" if zero_infinity else "false"}
    losses, gradient = popnn.ctc.calcLossAndGradientLogProbabilities(
        ctx.graph, ctx.type, *operands, ctx.program, blank, plan, ctx.name, options
    )
    if not zero_infinity:
        infinite = Select(Const(float("inf"), ctx.type), _1, _1 >= Const(IMPOSSIBLE, ctx.type))
        losses = mapped(ctx, infinite, losses)
    return losses, PathGradient(gradient)


def _unsigned(ctx: EntryContext, operand: Operand) -> Tensor:
    return popops.cast(ctx.graph, operand.placed(), UNSIGNED_INT, ctx.program, ctx.name)


def _symbols(ctx: EntryContext, labels: Operand, lengths: Operand, blank: int) -> Tensor:
    """Labels in which what lies behind their ends is a class, whatever the caller filled it with."""
    samples, symbols = labels.shape
    places = ctx.constant(np.arange(symbols, dtype=np.int32).reshape(1, symbols))
    operands = [labels.placed(), places, lengths.placed().reshape([samples, 1])]
    type = labels.type
    any_class = Const(0 if blank else 1, type)
    return popops.map(ctx.graph, Cast(Select(_1, any_class, _2 < _3), UNSIGNED_INT), operands, ctx.program, ctx.name)


@lowers(aten._ctc_loss_backward.Tensor)
def sequence_loss_backward(
    ctx: EntryContext, gradient: Operand, logs: Operand, labels: Operand, steps: Operand, lengths: Operand, losses: Operand,
    paths: Operand, blank: int, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    saved: PathGradient = paths.value
    back = gradient.placed().reshape([1, ctx.shape[1], 1])
    return popops.mul(ctx.graph, saved.gradient, back, ctx.program, ctx.name)
