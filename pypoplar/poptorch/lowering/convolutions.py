"""Convolutions, transposed ones, and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar import poplin, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers

aten = torch.ops.aten
Numbers = list[int]


def _field(numbers: Numbers, dimensions: int) -> Numbers:
    return list(numbers) * dimensions if len(numbers) == 1 else list(numbers)


def _params(
    ctx: EntryContext, input: Operand, weights: Operand, field: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int,
) -> poplin.ConvParams:  # fmt: skip
    """Those of a convolution of PyTorch of a field, by weights [outputs, inputs / groups, ...].

    A transposed convolution is the gradient of one whose result is its `input`, and its weights are that one's.
    """
    outputs, channels, *kernel = weights.shape
    batch, type = input.shape[0], input.type
    params = poplin.ConvParams(type, batch, field, kernel, channels, outputs // groups, groups)
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = _field(padding, len(field))
    params.kernelTransform.dilation = _field(dilation, len(field))
    params.outputTransform.stride = _field(stride, len(field))
    return params


def _weights(ctx: EntryContext, weights: Operand, params: poplin.ConvParams) -> Tensor:
    """Weights [groups, O / groups, C / groups, ...], laid out for the convolution where nothing else placed them."""
    shape = weights.shape

    def create() -> Tensor:
        return poplin.createWeights(ctx.graph, params, f"{ctx.name}/weights", ctx.options, ctx.plans).reshape(shape)

    tensor = weights.placed(create)
    return tensor.reshape([params.numConvGroups, shape[0] // params.numConvGroups, *shape[1:]])


def _input(ctx: EntryContext, input: Operand, params: poplin.ConvParams) -> Tensor:
    return input.placed(lambda: poplin.createInput(ctx.graph, params, f"{ctx.name}/input", ctx.options, ctx.plans))


@lowers(aten.convolution.default)
def convolution(
    ctx: EntryContext, input: Operand, weights: Operand, bias: Operand | None, stride: Numbers, padding: Numbers, dilation: Numbers,
    transposed: bool, output_padding: Numbers, groups: int,
) -> Tensor:  # fmt: skip
    if 0 in ctx.shape:
        return ctx.place(ctx.shape)
    field = ctx.shape[2:] if transposed else input.shape[2:]
    params = _params(ctx, input, weights, field, stride, padding, dilation, groups)
    used = poplin.getGradientParams(params) if transposed else params
    operands = _input(ctx, input, used), _weights(ctx, weights, params)
    result = poplin.convolution(ctx.graph, *operands, used, transposed, ctx.program, ctx.name, ctx.options, ctx.plans)
    if bias is not None:
        biases = bias.placed(lambda: poplin.createBiases(ctx.graph, result, f"{ctx.name}/biases"))
        poplin.addBias(ctx.graph, result, biases, ctx.program, ctx.name)
    return result


@lowers(aten.convolution_backward.default)
def convolution_backward(
    ctx: EntryContext, gradient: Operand, input: Operand, weights: Operand, bias_sizes: Any, stride: Numbers, padding: Numbers,
    dilation: Numbers, transposed: bool, output_padding: Numbers, groups: int, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    if 0 in gradient.shape or 0 in input.shape:
        return _nothing(ctx, (input, weights), bias_sizes, wanted)
    field = (gradient if transposed else input).shape[2:]
    params = _params(ctx, input, weights, field, stride, padding, dilation, groups)
    graph, name, more = ctx.graph, ctx.name, (ctx.options, ctx.plans)
    back = gradient.placed()
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        used = params if transposed else poplin.getGradientParams(params)
        results[0] = poplin.convolution(graph, back, _weights(ctx, weights, params), used, not transposed, ctx.program, name, *more)
    if wanted[1]:
        operands = (input.placed(), back) if transposed else (back, input.placed())
        deltas = poplin.calculateWeightDeltas(graph, *operands, params, ctx.program, name, *more)
        results[1] = deltas.reshape(weights.shape)
    if wanted[2]:
        axes = [0, *range(2, back.rank())]
        add = popops.ReduceParams(popops.Operation.ADD)
        results[2] = popops.reduce(graph, back, back.elementType(), axes, add, ctx.program, name)
    return tuple(results)


def _nothing(ctx: EntryContext, operands: tuple[Operand, ...], bias: Numbers, wanted: list[bool]) -> tuple[Tensor | None, ...]:
    """The gradients of a convolution of no samples."""
    shapes = [*(one.shape for one in operands), list(bias or ())]
    results = [ctx.place(shape) if asked else None for shape, asked in zip(shapes, wanted, strict=True)]
    for result in results:
        if result is not None and result.numElements():
            popops.zero(ctx.graph, result, ctx.program, ctx.name)
    return tuple(results)
