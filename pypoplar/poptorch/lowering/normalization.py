"""Norms, whole, and their gradients. What a gradient needs of its norm is kept whitened, so that nothing is normalised twice."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from attrs import frozen

from pypoplar import poplin, popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Const, Rsqrt, _1, _2, _3
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.shared_expressions import as_type, mapped
from pypoplar.types import FLOAT

aten = torch.ops.aten
NEIGHBOURS = {"groupNormStridedChannelGrouping": "false"}  # channels next to each other are a group, as in PyTorch


@frozen(eq=False)
class Normalised:
    """What stands for the statistics of a norm: its activations without scale and shift, and the inverse deviations."""

    whitened: Tensor
    deviations: Tensor


def _vector(ctx: EntryContext, operand: Operand | None, acts: Tensor, otherwise: float) -> Tensor:
    """A channel's factors or summands, in the type of the activations [N, C, ...]; a constant where a norm has none."""
    type, channels = acts.elementType(), acts.dim(1)
    if operand is None:
        return ctx.constant(np.full([channels], otherwise, type.dtype))

    def create() -> Tensor:
        return popnn.createNormGamma(ctx.graph, acts, ctx.name).reshape(operand.shape)

    vector = operand.placed(create if operand.type is type else None).flatten()
    return as_type(ctx, vector, type)


# batch norm: statistics of each channel


@lowers(aten._native_batch_norm_legit_functional.default)
def batch_norm_with_new_statistics(
    ctx: EntryContext, input: Operand, weight: Operand | None, bias: Operand | None, mean: Operand, variance: Operand,
    training: bool, momentum: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    """The result, its statistics, and the new running mean and variance."""
    if not training:
        scaled = batch_norm_by_running_statistics(ctx, input, weight, bias, mean, variance, momentum, eps)
        return *scaled, mean.placed(), variance.placed()
    result, kept, batch_mean = _batch_norm(ctx, input, weight, bias, eps)
    count = prod(input.shape) // max(input.shape[1], 1)
    unbiased = count / max(count - 1, 1)
    inverse = Cast(_2, FLOAT)
    batch_variance = (Const(1.0, FLOAT) / (inverse * inverse) - Const(eps, FLOAT)) * Const(unbiased, FLOAT)
    news = (
        _moved(ctx, mean, batch_mean, Cast(_2, FLOAT), momentum, 3),
        _moved(ctx, variance, kept.deviations, batch_variance, momentum, 4),
    )
    return result, kept, kept, *news


def _moved(ctx: EntryContext, old: Operand, operand: Tensor, new: Any, momentum: float, number: int) -> Tensor:
    """A running statistic that goes a part of its way to `new`, an expression of `operand`; computed in float, rounded once."""
    kept, part = Const(1 - momentum, FLOAT), Const(momentum, FLOAT)
    tree = Cast(kept * Cast(_1, FLOAT) + part * new, ctx.types[number])
    return mapped(ctx, tree, old.placed(), operand)


def _batch_norm(
    ctx: EntryContext, input: Operand, weight: Operand | None, bias: Operand | None, eps: float
) -> tuple[Tensor, Normalised, Tensor]:
    acts = input.placed()
    graph, prog, name = ctx.graph, ctx.program, ctx.name
    mean, deviation = popnn.bn.batchNormStatistics(graph, acts, eps, prog, False, ctx.stable_norms, FLOAT, name)
    if weight is None and bias is None:
        whitened = popnn.bn.batchNormWhiten(graph, acts, mean, deviation, prog, name)
        return whitened, Normalised(whitened, deviation), mean
    vectors = _vector(ctx, weight, acts, 1), _vector(ctx, bias, acts, 0)
    result, whitened = popnn.bn.batchNormalise(graph, acts, *vectors, mean, deviation, prog, name)
    return result, Normalised(whitened, deviation), mean


@lowers(aten._native_batch_norm_legit.no_stats)
def batch_norm_without_statistics(
    ctx: EntryContext, input: Operand, weight: Operand | None, bias: Operand | None, training: bool, momentum: float, eps: float
) -> tuple[Any, ...]:
    result, kept, _ = _batch_norm(ctx, input, weight, bias, eps)
    return result, kept, kept


@lowers(aten.native_batch_norm.default)
def native_batch_norm(
    ctx: EntryContext, input: Operand, weight: Operand | None, bias: Operand | None, mean: Operand | None,
    variance: Operand | None, training: bool, momentum: float, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    """The form that would change running statistics itself: those of a batch are taken without them alone."""
    if training and mean is None:
        return batch_norm_without_statistics(ctx, input, weight, bias, training, momentum, eps)
    if training or mean is None or variance is None:
        raise UnsupportedOperation(
            "native_batch_norm: running statistics of a batch norm in training are missing here; torch.nn.BatchNorm and "
            "torch.nn.functional.batch_norm are supported"
        )
    return batch_norm_by_running_statistics(ctx, input, weight, bias, mean, variance, momentum, eps)


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm_by_running_statistics(
    ctx: EntryContext, input: Operand, weight: Operand | None, bias: Operand | None, mean: Operand, variance: Operand,
    momentum: float, eps: float,
) -> tuple[Tensor, None, None]:  # fmt: skip
    """One scale and shift of each channel."""
    acts = input.placed()
    scale = _scale(ctx, weight, variance, acts, eps)
    shift = Cast(Cast(_1, FLOAT) - Cast(_2, FLOAT) * _3, ctx.type)
    operands = [_vector(ctx, bias, acts, 0), mean.placed(), scale]
    addend = popops.map(ctx.graph, shift, operands, ctx.program, ctx.name)
    factor = as_type(ctx, scale, ctx.type)
    return popnn.bn.batchNormalise(ctx.graph, acts, factor, addend, ctx.program, ctx.name), None, None


def _scale(ctx: EntryContext, weight: Operand | None, variance: Operand, acts: Tensor, eps: float) -> Tensor:
    """What each channel is multiplied by, FLOAT [C]."""
    tree = Cast(_1, FLOAT) * Rsqrt(Cast(_2, FLOAT) + Const(eps, FLOAT))
    operands = [_vector(ctx, weight, acts, 1), variance.placed()]
    return popops.map(ctx.graph, tree, operands, ctx.program, ctx.name)


@lowers(aten.native_batch_norm_backward.default)
def batch_norm_backward(
    ctx: EntryContext, gradient: Operand, input: Operand, weight: Operand | None, mean: Operand | None, variance: Operand | None,
    saved: Operand | None, saved_deviation: Operand | None, training: bool, eps: float, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    graph, prog, name, back = ctx.graph, ctx.program, ctx.name, gradient.placed()
    if training:
        assert saved is not None
        kept: Normalised = saved.value
    else:
        assert mean is not None
        assert variance is not None
        kept = _whitened_by_running_statistics(ctx, input, mean, variance, eps)
    results: list[Tensor | None] = [None, None, None]
    if wanted[0] and training:
        gamma = _vector(ctx, weight, back, 1)
        results[0] = popnn.bn.batchNormGradients(graph, kept.whitened, back, kept.deviations, gamma, prog, FLOAT, name)
    elif wanted[0]:
        assert variance is not None
        scale = as_type(ctx, _scale(ctx, weight, variance, back, eps), back.elementType())
        results[0] = poplin.normGradients(graph, back, scale, prog, name)
    if wanted[1] or wanted[2]:
        slopes = popnn.bn.batchNormParamGradients(graph, kept.whitened, back, prog, FLOAT, name)
        results[1:] = _of_parameters(ctx, slopes, wanted)
    return tuple(results)


def _whitened_by_running_statistics(ctx: EntryContext, input: Operand, mean: Operand, variance: Operand, eps: float) -> Normalised:
    acts = input.placed()
    inverse = Cast(Rsqrt(Cast(_1, FLOAT) + Const(eps, FLOAT)), acts.elementType())
    deviation = mapped(ctx, inverse, variance.placed())
    means = as_type(ctx, mean.placed(), acts.elementType())
    whitened = popnn.bn.batchNormWhiten(ctx.graph, acts, means, deviation, ctx.program, ctx.name)
    return Normalised(whitened, deviation)


def _of_parameters(ctx: EntryContext, slopes: tuple[Tensor, Tensor], wanted: list[bool]) -> list[Tensor | None]:
    """The gradients of factors and summands, in their types, where they are wanted."""
    return [as_type(ctx, slope, ctx.types[number]) if wanted[number] else None for number, slope in enumerate(slopes, 1)]


# layer norm: statistics of each row


@lowers(aten.native_layer_norm.default)
def layer_norm(
    ctx: EntryContext, input: Operand, normalized: list[int], weight: Operand | None, bias: Operand | None, eps: float
) -> tuple[Any, ...]:
    graph, prog, name = ctx.graph, ctx.program, ctx.name
    acts = _rows(ctx, input, normalized)
    statistics = popnn.ln.layerNormStatistics(graph, acts, eps, prog, False, ctx.stable_norms, FLOAT, name)
    if weight is None and bias is None:
        whitened = popnn.ln.layerNormWhiten(graph, acts, *statistics, prog, name)
        result = whitened
    else:
        vectors = _vector(ctx, weight, acts, 1), _vector(ctx, bias, acts, 0)
        result, whitened = popnn.ln.layerNormalise(graph, acts, *vectors, *statistics, prog, name)
    kept = Normalised(whitened, statistics[1])
    return result.reshape(ctx.shape), kept, kept


def _rows(ctx: EntryContext, input: Operand, normalized: list[int]) -> Tensor:
    """[rows, elements of a row], where a row is what is normalised."""
    tensor = input.placed()
    outer = tensor.shape()[: tensor.rank() - len(normalized)]
    return tensor.reshape([prod(outer), prod(normalized)])


@lowers(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    ctx: EntryContext, gradient: Operand, input: Operand, normalized: list[int], saved: Operand, saved_deviation: Operand,
    weight: Operand | None, bias: Operand | None, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    graph, prog, name, kept = ctx.graph, ctx.program, ctx.name, saved.value
    back = _rows(ctx, gradient, normalized)
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        gamma = _vector(ctx, weight, back, 1)
        slope = popnn.ln.layerNormGradients(graph, kept.whitened, back, kept.deviations, gamma, prog, FLOAT, name)
        results[0] = slope.reshape(input.shape)
    if wanted[1] or wanted[2]:
        slopes = popnn.ln.layerNormParamGradients(graph, kept.whitened, back, prog, FLOAT, name)
        shaped = slopes[0].reshape(normalized), slopes[1].reshape(normalized)
        results[1:] = _of_parameters(ctx, shaped, wanted)
    return tuple(results)


# group norm: statistics of neighbouring channels of each sample; with a group for each channel it is an instance norm


@lowers(aten.native_group_norm.default)
def group_norm(
    ctx: EntryContext, input: Operand, weight: Operand | None, bias: Operand | None, samples: int, channels: int, field: int,
    groups: int, eps: float,
) -> tuple[Any, ...]:  # fmt: skip
    graph, prog, name = ctx.graph, ctx.program, ctx.name
    acts = input.placed().reshape([samples, channels, field])
    stable = ctx.stable_norms
    statistics = popnn.gn.groupNormStatistics(graph, acts, eps, prog, groups, False, stable, FLOAT, name, NEIGHBOURS)
    if weight is None and bias is None:
        whitened = popnn.gn.groupNormWhiten(graph, acts, *statistics, prog, name, NEIGHBOURS)
        result = whitened
    else:
        vectors = _vector(ctx, weight, acts, 1), _vector(ctx, bias, acts, 0)
        result, whitened = popnn.gn.groupNormalise(graph, acts, *vectors, *statistics, prog, name, NEIGHBOURS)
    kept = Normalised(whitened, statistics[1])
    return result.reshape(ctx.shape), kept, kept


@lowers(aten.native_group_norm_backward.default)
def group_norm_backward(
    ctx: EntryContext, gradient: Operand, input: Operand, saved: Operand, saved_deviation: Operand, weight: Operand | None,
    samples: int, channels: int, field: int, groups: int, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    graph, prog, name, kept = ctx.graph, ctx.program, ctx.name, saved.value
    back = gradient.placed().reshape([samples, channels, field])
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        gamma = _vector(ctx, weight, back, 1)
        operands = kept.whitened, back, kept.deviations, gamma
        slope = popnn.gn.groupNormGradients(graph, *operands, prog, FLOAT, name, NEIGHBOURS)
        results[0] = slope.reshape(input.shape)
    if wanted[1] or wanted[2]:
        slopes = popnn.gn.groupNormParamGradients(graph, kept.whitened, back, prog, FLOAT, name, NEIGHBOURS)
        results[1:] = _of_parameters(ctx, slopes, wanted)
    return tuple(results)
