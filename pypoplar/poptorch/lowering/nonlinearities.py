"""Functions of each element, or of each row, that popnn has whole, and those that need more than one element's formula."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar import popnn, popops, poprand
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Const, Max, Select, Sigmoid, _1, _2
from pypoplar.poptorch.lowering.activations import leaky_relu, leaky_relu_backward, log_sigmoid
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, computed, mapped, rounded, wide

aten = torch.ops.aten
Type = popnn.NonLinearityType
GELUS = {"none": Type.GELU_ERF, "tanh": Type.GELU}


def _applied(ctx: EntryContext, type: Type, input: Operand) -> Tensor:
    return popnn.nonLinearity(ctx.graph, type, input.placed(), ctx.program, ctx.name)


def _differentiated(ctx: EntryContext, type: Type, saved: Operand, gradient: Operand) -> Tensor:
    return popnn.nonLinearityInputGradient(ctx.graph, type, saved.placed(), gradient.placed(), ctx.program, ctx.name)


@lowers(aten.relu.default)
def relu(ctx: EntryContext, input: Operand) -> Tensor:
    if ctx.type in FLOATS:
        return _applied(ctx, Type.RELU, input)
    return mapped(ctx, Max(_1, Const(0, ctx.type)), input.placed())


@lowers(aten.threshold_backward.default)
def threshold_backward(ctx: EntryContext, gradient: Operand, saved: Operand, threshold: float) -> Tensor:
    if threshold == 0:
        return _differentiated(ctx, Type.RELU, saved, gradient)
    back, x = wide(gradient, saved)
    return computed(ctx, Select(0.0, back, x <= threshold), gradient.placed(), saved.placed())


@lowers(aten.gelu.default)
def gelu(ctx: EntryContext, input: Operand, *, approximate: str = "none") -> Tensor:
    return _applied(ctx, GELUS[approximate], input)


@lowers(aten.gelu_backward.default)
def gelu_backward(ctx: EntryContext, gradient: Operand, input: Operand, *, approximate: str = "none") -> Tensor:
    return _differentiated(ctx, GELUS[approximate], input, gradient)


@lowers(aten.silu.default)
def silu(ctx: EntryContext, input: Operand) -> Tensor:
    return _applied(ctx, Type.SWISH, input)


@lowers(aten.silu_backward.default)
def silu_backward(ctx: EntryContext, gradient: Operand, input: Operand) -> Tensor:
    return _differentiated(ctx, Type.SWISH, input, gradient)


@lowers(aten.sigmoid_backward.default)
def sigmoid_backward(ctx: EntryContext, gradient: Operand, output: Operand) -> Tensor:
    return _differentiated(ctx, Type.SIGMOID, output, gradient)


@lowers(aten.tanh_backward.default)
def tanh_backward(ctx: EntryContext, gradient: Operand, output: Operand) -> Tensor:
    return _differentiated(ctx, Type.TANH, output, gradient)


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(ctx: EntryContext, input: Operand) -> tuple[Tensor, Any]:
    """The second result is what PyTorch saves for the gradient, which here is computed from the input alone."""
    (x,) = wide(input)
    result = computed(ctx, log_sigmoid(x), input.placed())
    return result, result


@lowers(aten._prelu_kernel_backward.default)
def prelu_backward(ctx: EntryContext, gradient: Operand, input: Operand, slope: Operand) -> list[Tensor]:
    back, x, factor = wide(gradient, input, slope)
    of_input = Select(back, back * factor, x > 0.0)
    of_slope = Select(0.0, back * x, x > 0.0)
    tensors = [operand.placed() for operand in (gradient, input, slope)]
    return popops.map(ctx.graph, [rounded(ctx, of_input), rounded(ctx, of_slope)], tensors, ctx.program, ctx.name)


@lowers(aten.glu.default)
def gated(ctx: EntryContext, input: Operand, dim: int = -1) -> Tensor:
    (x, gate), _ = _halves(ctx, input, dim)
    value, door = wide(input, input)
    return computed(ctx, value * Sigmoid(door), x, gate)


@lowers(aten.glu_backward.default)
def gated_backward(ctx: EntryContext, gradient: Operand, input: Operand, dim: int) -> Tensor:
    (x, gate), axis = _halves(ctx, input, dim)
    value, door, back = wide(input, input, gradient)
    opened = Sigmoid(door)
    trees = [rounded(ctx, back * opened), rounded(ctx, back * value * opened * (1.0 - opened))]
    results = popops.map(ctx.graph, trees, [x, gate, gradient.placed()], ctx.program, ctx.name)
    return concat(results, axis)


def _halves(ctx: EntryContext, input: Operand, dim: int) -> tuple[list[Tensor], int]:
    tensor = input.placed()
    axis = dim % tensor.rank()
    size = tensor.dim(axis) // 2
    return [tensor.slice(0, size, axis), tensor.slice(size, 2 * size, axis)], axis


# leaky ReLUs of random slopes


@lowers(aten.rrelu_with_noise_functional.default)
def randomly_leaky(
    ctx: EntryContext,
    input: Operand,
    noise: Operand,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: None = None,
) -> tuple[Tensor, Tensor]:
    """In training each element that is not above 0 has a slope of its own; the second result are the slopes."""
    x, slope = wide(input, input)
    tensor = input.placed()
    if not training:
        return (computed(ctx, leaky_relu(x, (lower + upper) / 2), tensor),) * 2
    slopes = poprand.uniform(ctx.graph, ctx.random_seed(), ctx.drawing(), tensor, ctx.type, lower, upper, ctx.program, ctx.name)
    positive = mapped(ctx, rounded(ctx, Select(1.0, slope, x > 0.0)), tensor, slopes)
    return computed(ctx, x * slope, tensor, positive), positive


@lowers(aten.rrelu_with_noise.default)
def randomly_leaky_in_place(ctx: EntryContext, input: Operand, noise: Operand, *args: Any, **kwargs: Any) -> Tensor:
    """The slopes are written to `noise`."""
    result, slopes = randomly_leaky(ctx, input, noise, *args, **kwargs)
    noise.becomes(slopes)
    return result


@lowers(aten.rrelu_with_noise_backward.default)
def randomly_leaky_backward(
    ctx: EntryContext,
    gradient: Operand,
    input: Operand,
    noise: Operand,
    lower: float,
    upper: float,
    training: bool,
    of_result: bool,
) -> Tensor:
    back, x = wide(gradient, input)
    if not training:
        tree = leaky_relu_backward(back, x, (lower + upper) / 2, of_result)
        return computed(ctx, tree, gradient.placed(), input.placed())
    return computed(ctx, back * x, gradient.placed(), noise.placed())


# rows


def rows_last(tensor: Tensor, dim: int) -> Tensor:
    """A tensor with a dimension behind the others."""
    return tensor.dimRoll(dim % tensor.rank(), tensor.rank() - 1) if tensor.rank() else tensor.reshape([1])


def rows_back(result: Tensor, dim: int, shape: list[int]) -> Tensor:
    """Undo `rows_last`: the result has this shape."""
    return result.dimRoll(len(shape) - 1, dim % len(shape)) if shape else result.reshape([])


def _rows(ctx: EntryContext, input: Operand, dim: int) -> Tensor:
    """Rows of an operand, of the type of the result."""
    tensor = input.placed()
    tensor = as_type(ctx, tensor, ctx.type)
    return rows_last(tensor, dim)


@lowers(aten._softmax.default)
def softmax(ctx: EntryContext, input: Operand, dim: int, half_to_float: bool) -> Tensor:
    rows = _rows(ctx, input, dim)
    if rows.numElements() == 0:
        return input.placed()
    return rows_back(popnn.nonLinearity(ctx.graph, Type.SOFTMAX_STABLE, rows, ctx.program, ctx.name), dim, ctx.shape)


@lowers(aten._safe_softmax.default)
def safe_softmax(ctx: EntryContext, input: Operand, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """The softmax in which rows that are nothing but minus infinity give 0."""
    rows = _rows(ctx, input, dim)
    if rows.numElements() == 0:
        return input.placed()
    result = popnn.nonLinearity(ctx.graph, Type.SOFTMAX_STABLE, rows, ctx.program, ctx.name)
    largest = popops.reduce(ctx.graph, rows, [rows.rank() - 1], popops.Operation.MAX, ctx.program, ctx.name)
    operands = [result, largest.expand([largest.rank()])]
    kept = Select(Const(0.0, ctx.type), _1, _2 == Const(float("-inf"), ctx.type))
    popops.mapInPlace(ctx.graph, kept, operands, ctx.program, ctx.name)
    return rows_back(result, dim, ctx.shape)


@lowers(aten._softmax_backward_data.default)
def softmax_backward(ctx: EntryContext, gradient: Operand, output: Operand, dim: int, type: torch.dtype) -> Tensor:
    rows, back = rows_last(output.placed(), dim), rows_last(gradient.placed(), dim)
    if rows.numElements() == 0:
        return gradient.placed()
    result = popnn.nonLinearityInputGradient(ctx.graph, Type.SOFTMAX_STABLE, rows, back, ctx.program, ctx.name)
    result = as_type(ctx, result, ctx.type)
    return rows_back(result, dim, ctx.shape)


@lowers(aten._log_softmax.default)
def log_softmax(ctx: EntryContext, input: Operand, dim: int, half_to_float: bool) -> Tensor:
    rows = _rows(ctx, input, dim)
    if rows.numElements() == 0:
        return input.placed()
    return rows_back(popnn.logSoftmax(ctx.graph, rows, ctx.program, ctx.name), dim, ctx.shape)
