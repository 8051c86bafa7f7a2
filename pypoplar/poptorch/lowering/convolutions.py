"""Convolutions, transposed ones, and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from pypoplar import poplin, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers

aten = torch.ops.aten
Numbers = list[int]


def _field(numbers: Numbers, dimensions: int) -> Numbers:
    return list(numbers) * dimensions if len(numbers) == 1 else list(numbers)


def _params(
    at: GraphLowering, input: fx.Node, weights: fx.Node, field: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int,
) -> poplin.ConvParams:  # fmt: skip
    """Those of a convolution of PyTorch of a field, by weights [outputs, inputs / groups, ...].

    A transposed convolution is the gradient of one whose result is its `input`, and its weights are that one's.
    """
    outputs, channels, *kernel = at.shape_of(weights)
    batch, type = at.shape_of(input)[0], at.type_of(input)
    params = poplin.ConvParams(type, batch, field, kernel, channels, outputs // groups, groups)
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = _field(padding, len(field))
    params.kernelTransform.dilation = _field(dilation, len(field))
    params.outputTransform.stride = _field(stride, len(field))
    return params


def _weights(at: GraphLowering, weights: fx.Node, params: poplin.ConvParams) -> Tensor:
    """Weights [groups, O / groups, C / groups, ...], laid out for the convolution where nothing else placed them."""
    shape = at.shape_of(weights)

    def create() -> Tensor:
        return poplin.createWeights(at.graph, params, f"{at.name}/weights", at.options, at.plans).reshape(shape)

    tensor = at.tensor(weights, create)
    return tensor.reshape([params.numConvGroups, shape[0] // params.numConvGroups, *shape[1:]])


def _input(at: GraphLowering, input: fx.Node, params: poplin.ConvParams) -> Tensor:
    return at.tensor(input, lambda: poplin.createInput(at.graph, params, f"{at.name}/input", at.options, at.plans))


@lowers(aten.convolution.default)
def convolution(
    at: GraphLowering, input: fx.Node, weights: fx.Node, bias: fx.Node | None, stride: Numbers, padding: Numbers, dilation: Numbers,
    transposed: bool, output_padding: Numbers, groups: int,
) -> Tensor:  # fmt: skip
    if 0 in at.shape:
        return at.spread(at.shape)
    field = at.shape[2:] if transposed else at.shape_of(input)[2:]
    params = _params(at, input, weights, field, stride, padding, dilation, groups)
    used = poplin.getGradientParams(params) if transposed else params
    operands = _input(at, input, used), _weights(at, weights, params)
    result = poplin.convolution(at.graph, *operands, used, transposed, at.program, at.name, at.options, at.plans)
    if bias is not None:
        biases = at.tensor(bias, lambda: poplin.createBiases(at.graph, result, f"{at.name}/biases"))
        poplin.addBias(at.graph, result, biases, at.program, at.name)
    return result


@lowers(aten.convolution_backward.default)
def convolution_backward(
    at: GraphLowering, gradient: fx.Node, input: fx.Node, weights: fx.Node, bias_sizes: Any, stride: Numbers, padding: Numbers,
    dilation: Numbers, transposed: bool, output_padding: Numbers, groups: int, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    if 0 in at.shape_of(gradient) or 0 in at.shape_of(input):
        return _nothing(at, (input, weights), bias_sizes, wanted)
    field = at.shape_of(gradient if transposed else input)[2:]
    params = _params(at, input, weights, field, stride, padding, dilation, groups)
    graph, name, more = at.graph, at.name, (at.options, at.plans)
    back = at.tensor(gradient)
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        used = params if transposed else poplin.getGradientParams(params)
        results[0] = poplin.convolution(graph, back, _weights(at, weights, params), used, not transposed, at.program, name, *more)
    if wanted[1]:
        operands = (at.tensor(input), back) if transposed else (back, at.tensor(input))
        deltas = poplin.calculateWeightDeltas(graph, *operands, params, at.program, name, *more)
        results[1] = deltas.reshape(at.shape_of(weights))
    if wanted[2]:
        axes = [0, *range(2, back.rank())]
        add = popops.ReduceParams(popops.Operation.ADD)
        results[2] = popops.reduce(graph, back, back.elementType(), axes, add, at.program, name)
    return tuple(results)


def _nothing(at: GraphLowering, operands: tuple[fx.Node, ...], bias: Numbers, wanted: list[bool]) -> tuple[Tensor | None, ...]:
    """The gradients of a convolution of no samples."""
    shapes = [*(at.shape_of(node) for node in operands), list(bias or ())]
    results = [at.spread(shape) if asked else None for shape, asked in zip(shapes, wanted, strict=True)]
    for result in results:
        if result is not None and result.numElements():
            popops.zero(at.graph, result, at.program, at.name)
    return tuple(results)
