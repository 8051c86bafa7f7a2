"""Losses, whole, and their gradients."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from attrs import frozen
from torch import fx

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Const, NotEqual, Select, _1, _2, _3
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.values import Constant
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
    at: GraphLowering, input: fx.Node, labels: fx.Node, weight: fx.Node | None, reduction: int, ignored: int
) -> tuple[Tensor, ChosenClasses]:
    """The loss of each sample is ``-weight[label] * input[label]``; those whose label is `ignored` do not count."""
    likelihoods = _class_rows(at.tensor(input))
    chosen = ChosenClasses(*_weights(at, labels, weight, likelihoods, ignored))
    lost = popops.map(
        at.graph, Select(-(_1 * _2), Const(0, at.type), NotEqual(_2, 0)), [likelihoods, chosen.weights], at.program, at.name
    )
    if reduction == Reduction.NONE:
        losses = popops.reduce(at.graph, lost, at.type, [1], ADD, at.program, at.name)
        return losses.reshape(at.shape), chosen
    total = popops.reduce(at.graph, lost, FLOAT, [0, 1], ADD, at.program, at.name)
    mean = _1 / _2 if reduction == Reduction.MEAN else _1
    loss = popops.map(at.graph, Cast(mean, at.type), [total, chosen.total], at.program, at.name)
    return loss.reshape([]), chosen


def _weights(
    at: GraphLowering, labels: fx.Node, weight: fx.Node | None, likelihoods: Tensor, ignored: int
) -> tuple[Tensor, Tensor]:
    """The weights of samples' classes, as rows that are 0 elsewhere, and their sum."""
    rows, classes = likelihoods.shape()
    wanted = at.tensor(labels).reshape([rows])
    if 0 <= ignored < classes:
        masked = Select(Const(-1, INT), _1, _1 == Const(ignored, INT))
        wanted = popops.map(at.graph, masked, [wanted], at.program, at.name)
    weights = at.graph.clone(likelihoods, f"{at.name}/weights")
    popops.encodeOneHot(at.graph, wanted, weights, at.program, at.name)
    if weight is not None:
        popops.mulInPlace(at.graph, weights, at.tensor(weight), at.program, at.name)
    total = popops.reduce(at.graph, weights, FLOAT, [0, 1], ADD, at.program, at.name)
    return weights, total


def _class_rows(tensor: Tensor) -> Tensor:
    """[samples, classes] of a tensor of one sample, or whose second dimension are classes."""
    if tensor.rank() == 1:
        return tensor.reshape([1, tensor.dim(0)])
    last = tensor.dimRoll(1, tensor.rank() - 1)
    return last.flatten(0, last.rank() - 1)


@lowers(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def negative_log_likelihood_backward(
    at: GraphLowering,
    gradient: fx.Node,
    input: fx.Node,
    labels: fx.Node,
    weight: fx.Node | None,
    reduction: int,
    ignored: int,
    total: fx.Node,
) -> Tensor:
    chosen: ChosenClasses = at.value(total)
    back = at.tensor(gradient)
    if reduction == Reduction.NONE:
        back = back.reshape([chosen.weights.dim(0), 1])
    operands = [chosen.weights, back]
    tree = -(_1 * _2)
    if reduction == Reduction.MEAN:  # where all are ignored the mean is NaN, and the gradient is 0
        share = Cast(-(Cast(_1, FLOAT) * Cast(_2, FLOAT) / _3), at.type)
        tree = Select(share, Const(0, at.type), NotEqual(_1, 0))
        operands.append(chosen.total)
    result = popops.map(at.graph, tree, operands, at.program, at.name)
    shape = at.shape
    if len(shape) < 3:
        return result.reshape(shape)
    return result.reshape([shape[0], *shape[2:], shape[1]]).dimRoll(len(shape) - 1, 1)


@lowers(aten._log_softmax_backward_data.default)
def log_softmax_backward(at: GraphLowering, gradient: fx.Node, output: fx.Node, dim: int, type: torch.dtype) -> Tensor:
    back, result = at.tensor(gradient), at.tensor(output)
    axis = dim % max(back.rank(), 1)
    total = popops.reduce(at.graph, back, FLOAT, [axis], ADD, at.program, at.name).expand([axis])
    tree = Cast(Cast(_1, FLOAT) - popops.expr.Exp(Cast(_2, FLOAT)) * _3, at.type)
    return popops.map(at.graph, tree, [back, result, total], at.program, at.name)


# connectionist temporal classification, by popnn: loss and gradient come from one pass over the paths

IMPOSSIBLE = 65504.0  # popnn's loss of a label that no path gives


@frozen(eq=False)
class PathGradient:
    """What stands for the probabilities of paths that PyTorch saves: the gradient itself."""

    gradient: Tensor  # [steps, samples, classes]


@lowers(aten._ctc_loss.Tensor)
def sequence_loss(
    at: GraphLowering, logs: fx.Node, labels: fx.Node, steps: fx.Node, lengths: fx.Node, blank: int = 0, zero_infinity: bool = False
) -> tuple[Tensor, PathGradient]:
    """The loss of each sample. Where no path gives a label it is infinite and, as in PyTorch, its gradient means nothing."""
    if len(at.shape_of(labels)) != 2 or len(at.shape_of(logs)) != 3:
        raise UnsupportedOperation(
            f"{at.name}: labels of shape {at.shape_of(labels)} for {at.shape_of(logs)} are missing; labels [samples, symbols] of "
            "[steps, samples, classes], with lengths that are tensors, are supported"
        )
    time, samples, classes = at.shape_of(logs)
    symbols = at.shape_of(labels)[1]
    plan = popnn.ctc.plan(at.graph, at.type, at.type, samples, time, symbols, classes)
    operands = at.tensor(logs), _symbols(at, labels, lengths, blank), _unsigned(at, steps), _unsigned(at, lengths)
    options = {"zeroInfinity": "true" if zero_infinity else "false"}
    losses, gradient = popnn.ctc.calcLossAndGradientLogProbabilities(
        at.graph, at.type, *operands, at.program, blank, plan, at.name, options
    )
    if not zero_infinity:
        infinite = Select(Const(float("inf"), at.type), _1, _1 >= Const(IMPOSSIBLE, at.type))
        losses = popops.map(at.graph, infinite, [losses], at.program, at.name)
    return losses, PathGradient(gradient)


def _unsigned(at: GraphLowering, node: fx.Node) -> Tensor:
    return popops.cast(at.graph, at.tensor(node), UNSIGNED_INT, at.program, at.name)


def _symbols(at: GraphLowering, labels: fx.Node, lengths: fx.Node, blank: int) -> Tensor:
    """Labels in which what lies behind their ends is a class, whatever the caller filled it with."""
    samples, symbols = at.shape_of(labels)
    places = at.constant(Constant(np.arange(symbols, dtype=np.int32).reshape(1, symbols)))
    operands = [at.tensor(labels), places, at.tensor(lengths).reshape([samples, 1])]
    type = at.type_of(labels)
    any_class = Const(0 if blank else 1, type)
    return popops.map(at.graph, Cast(Select(_1, any_class, _2 < _3), UNSIGNED_INT), operands, at.program, at.name)


@lowers(aten._ctc_loss_backward.Tensor)
def sequence_loss_backward(
    at: GraphLowering, gradient: fx.Node, logs: fx.Node, labels: fx.Node, steps: fx.Node, lengths: fx.Node, losses: fx.Node,
    paths: fx.Node, blank: int, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    saved: PathGradient = at.value(paths)
    back = at.tensor(gradient).reshape([1, at.shape[1], 1])
    return popops.mul(at.graph, saved.gradient, back, at.program, at.name)
