"""Functions of each element, or of each row, that popnn has whole."""

from __future__ import annotations

import torch
from torch import fx

from pypoplar import popnn
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers

aten = torch.ops.aten
Type = popnn.NonLinearityType


@lowers(aten.relu.default)
def relu(at: GraphLowering, input: fx.Node) -> Tensor:
    return popnn.nonLinearity(at.graph, Type.RELU, at.tensor(input), at.program, at.name)


@lowers(aten.threshold_backward.default)
def relu_backward(at: GraphLowering, gradient: fx.Node, output: fx.Node, threshold: float) -> Tensor:
    if threshold != 0:
        raise UnsupportedOperation(f"threshold: a threshold of {threshold} is missing; 0, a ReLU, is supported")
    return popnn.nonLinearityInputGradient(at.graph, Type.RELU, at.tensor(output), at.tensor(gradient), at.program, at.name)


def rows_last(tensor: Tensor, dim: int) -> Tensor:
    """A tensor with a dimension behind the others."""
    return tensor.dimRoll(dim % tensor.rank(), tensor.rank() - 1) if tensor.rank() else tensor.reshape([1])


def rows_back(result: Tensor, dim: int, shape: list[int]) -> Tensor:
    """Undo `rows_last`: the result has this shape."""
    return result.dimRoll(len(shape) - 1, dim % len(shape)) if shape else result.reshape([])


@lowers(aten._softmax.default)
def softmax(at: GraphLowering, input: fx.Node, dim: int, half_to_float: bool) -> Tensor:
    result = popnn.nonLinearity(at.graph, Type.SOFTMAX_STABLE, rows_last(at.tensor(input), dim), at.program, at.name)
    return rows_back(result, dim, at.shape)


@lowers(aten._softmax_backward_data.default)
def softmax_backward(at: GraphLowering, gradient: fx.Node, output: fx.Node, dim: int, type: torch.dtype) -> Tensor:
    operands = rows_last(at.tensor(output), dim), rows_last(at.tensor(gradient), dim)
    result = popnn.nonLinearityInputGradient(at.graph, Type.SOFTMAX_STABLE, *operands, at.program, at.name)
    return rows_back(result, dim, at.shape)


@lowers(aten._log_softmax.default)
def log_softmax(at: GraphLowering, input: fx.Node, dim: int, half_to_float: bool) -> Tensor:
    result = popnn.logSoftmax(at.graph, rows_last(at.tensor(input), dim), at.program, at.name)
    return rows_back(result, dim, at.shape)
