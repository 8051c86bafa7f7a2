"""Norms, whole, and their gradients. What a gradient needs of its norm is kept whitened, so that nothing is normalised twice."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from attrs import frozen
from torch import fx

from pypoplar import poplin, popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Const, Rsqrt, _1, _2, _3
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.values import Constant
from pypoplar.types import FLOAT, ElementType

aten = torch.ops.aten
NEIGHBOURS = {"groupNormStridedChannelGrouping": "false"}  # channels next to each other are a group, as in PyTorch


@frozen(eq=False)
class Normalised:
    """What stands for the statistics of a norm: its activations without scale and shift, and the inverse deviations."""

    whitened: Tensor
    deviations: Tensor


def _vector(at: GraphLowering, node: fx.Node | None, acts: Tensor, otherwise: float) -> Tensor:
    """A channel's factors or summands, in the type of the activations [N, C, ...]; a constant where a norm has none."""
    type, channels = acts.elementType(), acts.dim(1)
    if node is None:
        return at.constant(Constant(np.full([channels], otherwise, type.dtype)))

    def create() -> Tensor:
        return popnn.createNormGamma(at.graph, acts, at.name).reshape(at.shape_of(node))

    vector = at.tensor(node, create if at.type_of(node) is type else None).flatten()
    return _cast(at, vector, type)


def _cast(at: GraphLowering, tensor: Tensor, type: ElementType) -> Tensor:
    return tensor if tensor.elementType() is type else popops.cast(at.graph, tensor, type, at.program, at.name)


# batch norm: statistics of each channel


@lowers(aten._native_batch_norm_legit_functional.default)
def batch_norm_with_new_statistics(
    at: GraphLowering, input: fx.Node, weight: fx.Node | None, bias: fx.Node | None, mean: fx.Node, variance: fx.Node,
    training: bool, momentum: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    """The result, its statistics, and the new running mean and variance."""
    if not training:
        scaled = batch_norm_by_running_statistics(at, input, weight, bias, mean, variance, momentum, eps)
        return *scaled, at.tensor(mean), at.tensor(variance)
    result, kept, batch_mean = _batch_norm(at, input, weight, bias, eps)
    count = prod(at.shape_of(input)) // max(at.shape_of(input)[1], 1)
    unbiased = count / max(count - 1, 1)
    inverse = Cast(_2, FLOAT)
    batch_variance = (Const(1.0, FLOAT) / (inverse * inverse) - Const(eps, FLOAT)) * Const(unbiased, FLOAT)
    news = (
        _moved(at, mean, batch_mean, Cast(_2, FLOAT), momentum, 3),
        _moved(at, variance, kept.deviations, batch_variance, momentum, 4),
    )
    return result, kept, kept, *news


def _moved(at: GraphLowering, old: fx.Node, operand: Tensor, new: Any, momentum: float, number: int) -> Tensor:
    """A running statistic that goes a part of its way to `new`, an expression of `operand`; computed in float, rounded once."""
    kept, part = Const(1 - momentum, FLOAT), Const(momentum, FLOAT)
    tree = Cast(kept * Cast(_1, FLOAT) + part * new, at.types[number])
    return popops.map(at.graph, tree, [at.tensor(old), operand], at.program, at.name)


def _batch_norm(
    at: GraphLowering, input: fx.Node, weight: fx.Node | None, bias: fx.Node | None, eps: float
) -> tuple[Tensor, Normalised, Tensor]:
    acts = at.tensor(input)
    graph, prog, name = at.graph, at.program, at.name
    mean, deviation = popnn.bn.batchNormStatistics(graph, acts, eps, prog, False, at.stable_norms, FLOAT, name)
    if weight is None and bias is None:
        whitened = popnn.bn.batchNormWhiten(graph, acts, mean, deviation, prog, name)
        return whitened, Normalised(whitened, deviation), mean
    vectors = _vector(at, weight, acts, 1), _vector(at, bias, acts, 0)
    result, whitened = popnn.bn.batchNormalise(graph, acts, *vectors, mean, deviation, prog, name)
    return result, Normalised(whitened, deviation), mean


@lowers(aten._native_batch_norm_legit.no_stats)
def batch_norm_without_statistics(
    at: GraphLowering, input: fx.Node, weight: fx.Node | None, bias: fx.Node | None, training: bool, momentum: float, eps: float
) -> tuple[Any, ...]:
    result, kept, _ = _batch_norm(at, input, weight, bias, eps)
    return result, kept, kept


@lowers(aten.native_batch_norm.default)
def native_batch_norm(
    at: GraphLowering, input: fx.Node, weight: fx.Node | None, bias: fx.Node | None, mean: fx.Node | None,
    variance: fx.Node | None, training: bool, momentum: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    """The form that would change running statistics itself: those of a batch are taken without them alone."""
    if training and mean is None:
        return batch_norm_without_statistics(at, input, weight, bias, training, momentum, eps)
    if training or mean is None or variance is None:
        raise UnsupportedOperation(
            "native_batch_norm: running statistics of a batch norm in training are missing here; torch.nn.BatchNorm and "
            "torch.nn.functional.batch_norm are supported"
        )
    return batch_norm_by_running_statistics(at, input, weight, bias, mean, variance, momentum, eps)


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm_by_running_statistics(
    at: GraphLowering, input: fx.Node, weight: fx.Node | None, bias: fx.Node | None, mean: fx.Node, variance: fx.Node,
    momentum: float, eps: float,
) -> tuple[Tensor, None, None]:  # fmt: skip
    """One scale and shift of each channel."""
    acts = at.tensor(input)
    scale = _scale(at, weight, variance, acts, eps)
    shift = Cast(Cast(_1, FLOAT) - Cast(_2, FLOAT) * _3, at.type)
    operands = [_vector(at, bias, acts, 0), at.tensor(mean), scale]
    addend = popops.map(at.graph, shift, operands, at.program, at.name)
    factor = _cast(at, scale, at.type)
    return popnn.bn.batchNormalise(at.graph, acts, factor, addend, at.program, at.name), None, None


def _scale(at: GraphLowering, weight: fx.Node | None, variance: fx.Node, acts: Tensor, eps: float) -> Tensor:
    """What each channel is multiplied by, FLOAT [C]."""
    tree = Cast(_1, FLOAT) * Rsqrt(Cast(_2, FLOAT) + Const(eps, FLOAT))
    operands = [_vector(at, weight, acts, 1), at.tensor(variance)]
    return popops.map(at.graph, tree, operands, at.program, at.name)


@lowers(aten.native_batch_norm_backward.default)
def batch_norm_backward(
    at: GraphLowering, gradient: fx.Node, input: fx.Node, weight: fx.Node | None, mean: fx.Node | None, variance: fx.Node | None,
    saved: fx.Node | None, saved_deviation: fx.Node | None, training: bool, eps: float, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    graph, prog, name, back = at.graph, at.program, at.name, at.tensor(gradient)
    if training:
        kept: Normalised = at.value(saved)
    else:
        assert mean is not None
        assert variance is not None
        kept = _whitened_by_running_statistics(at, input, mean, variance, eps)
    results: list[Tensor | None] = [None, None, None]
    if wanted[0] and training:
        gamma = _vector(at, weight, back, 1)
        results[0] = popnn.bn.batchNormGradients(graph, kept.whitened, back, kept.deviations, gamma, prog, FLOAT, name)
    elif wanted[0]:
        assert variance is not None
        scale = _cast(at, _scale(at, weight, variance, back, eps), back.elementType())
        results[0] = poplin.normGradients(graph, back, scale, prog, name)
    if wanted[1] or wanted[2]:
        slopes = popnn.bn.batchNormParamGradients(graph, kept.whitened, back, prog, FLOAT, name)
        results[1:] = _of_parameters(at, slopes, wanted)
    return tuple(results)


def _whitened_by_running_statistics(at: GraphLowering, input: fx.Node, mean: fx.Node, variance: fx.Node, eps: float) -> Normalised:
    acts = at.tensor(input)
    inverse = Cast(Rsqrt(Cast(_1, FLOAT) + Const(eps, FLOAT)), acts.elementType())
    deviation = popops.map(at.graph, inverse, [at.tensor(variance)], at.program, at.name)
    means = _cast(at, at.tensor(mean), acts.elementType())
    whitened = popnn.bn.batchNormWhiten(at.graph, acts, means, deviation, at.program, at.name)
    return Normalised(whitened, deviation)


def _of_parameters(at: GraphLowering, slopes: tuple[Tensor, Tensor], wanted: list[bool]) -> list[Tensor | None]:
    """The gradients of factors and summands, in their types, where they are wanted."""
    return [_cast(at, slope, at.types[number]) if wanted[number] else None for number, slope in enumerate(slopes, 1)]


# layer norm: statistics of each row


@lowers(aten.native_layer_norm.default)
def layer_norm(
    at: GraphLowering, input: fx.Node, normalized: list[int], weight: fx.Node | None, bias: fx.Node | None, eps: float
) -> tuple[Any, ...]:
    graph, prog, name = at.graph, at.program, at.name
    acts = _rows(at, input, normalized)
    statistics = popnn.ln.layerNormStatistics(graph, acts, eps, prog, False, at.stable_norms, FLOAT, name)
    if weight is None and bias is None:
        whitened = popnn.ln.layerNormWhiten(graph, acts, *statistics, prog, name)
        result = whitened
    else:
        vectors = _vector(at, weight, acts, 1), _vector(at, bias, acts, 0)
        result, whitened = popnn.ln.layerNormalise(graph, acts, *vectors, *statistics, prog, name)
    kept = Normalised(whitened, statistics[1])
    return result.reshape(at.shape), kept, kept


def _rows(at: GraphLowering, input: fx.Node, normalized: list[int]) -> Tensor:
    """[rows, elements of a row], where a row is what is normalised."""
    tensor = at.tensor(input)
    outer = tensor.shape()[: tensor.rank() - len(normalized)]
    return tensor.reshape([prod(outer), prod(normalized)])


@lowers(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    at: GraphLowering, gradient: fx.Node, input: fx.Node, normalized: list[int], saved: fx.Node, saved_deviation: fx.Node,
    weight: fx.Node | None, bias: fx.Node | None, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    graph, prog, name, kept = at.graph, at.program, at.name, at.value(saved)
    back = _rows(at, gradient, normalized)
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        gamma = _vector(at, weight, back, 1)
        slope = popnn.ln.layerNormGradients(graph, kept.whitened, back, kept.deviations, gamma, prog, FLOAT, name)
        results[0] = slope.reshape(at.shape_of(input))
    if wanted[1] or wanted[2]:
        slopes = popnn.ln.layerNormParamGradients(graph, kept.whitened, back, prog, FLOAT, name)
        shaped = slopes[0].reshape(normalized), slopes[1].reshape(normalized)
        results[1:] = _of_parameters(at, shaped, wanted)
    return tuple(results)


# group norm: statistics of neighbouring channels of each sample; with a group for each channel it is an instance norm


@lowers(aten.native_group_norm.default)
def group_norm(
    at: GraphLowering, input: fx.Node, weight: fx.Node | None, bias: fx.Node | None, samples: int, channels: int, field: int,
    groups: int, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    graph, prog, name = at.graph, at.program, at.name
    acts = at.tensor(input).reshape([samples, channels, field])
    stable = at.stable_norms
    statistics = popnn.gn.groupNormStatistics(graph, acts, eps, prog, groups, False, stable, FLOAT, name, NEIGHBOURS)
    if weight is None and bias is None:
        whitened = popnn.gn.groupNormWhiten(graph, acts, *statistics, prog, name, NEIGHBOURS)
        result = whitened
    else:
        vectors = _vector(at, weight, acts, 1), _vector(at, bias, acts, 0)
        result, whitened = popnn.gn.groupNormalise(graph, acts, *vectors, *statistics, prog, name, NEIGHBOURS)
    kept = Normalised(whitened, statistics[1])
    return result.reshape(at.shape), kept, kept


@lowers(aten.native_group_norm_backward.default)
def group_norm_backward(
    at: GraphLowering, gradient: fx.Node, input: fx.Node, saved: fx.Node, saved_deviation: fx.Node, weight: fx.Node | None,
    samples: int, channels: int, field: int, groups: int, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    graph, prog, name, kept = at.graph, at.program, at.name, at.value(saved)
    back = at.tensor(gradient).reshape([samples, channels, field])
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        gamma = _vector(at, weight, back, 1)
        operands = kept.whitened, back, kept.deviations, gamma
        slope = popnn.gn.groupNormGradients(graph, *operands, prog, FLOAT, name, NEIGHBOURS)
        results[0] = slope.reshape(at.shape_of(input))
    if wanted[1] or wanted[2]:
        slopes = popnn.gn.groupNormParamGradients(graph, kept.whitened, back, prog, FLOAT, name, NEIGHBOURS)
        results[1:] = _of_parameters(at, slopes, wanted)
    return tuple(results)
