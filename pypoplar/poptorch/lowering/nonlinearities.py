"""Functions of each element, or of each row, that popnn has whole, and those that need more than one element's formula."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from pypoplar import popnn, popops, poprand
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Cast, Const, Expr, Max, Select, Sigmoid, _1, _2
from pypoplar.poptorch.lowering.activations import leaky_relu, leaky_relu_backward, log_sigmoid
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.types import FLOAT, HALF

aten = torch.ops.aten
Type = popnn.NonLinearityType
GELUS = {"none": Type.GELU_ERF, "tanh": Type.GELU}
FLOATS = FLOAT, HALF


def computed(at: GraphLowering, tree: Any, *tensors: Tensor) -> Tensor:
    """An expression of FLOATs, of tensors that become FLOATs, rounded once to the type of the node."""
    return popops.map(at.graph, rounded(at, tree), list(tensors), at.program, at.name)


def rounded(at: GraphLowering, tree: Any) -> Expr:
    return Cast(tree, at.type) if at.type is not FLOAT else tree


def wide(at: GraphLowering, *nodes: fx.Node) -> list[Any]:
    """Placeholders of nodes' tensors, as FLOATs."""
    leaves = (popops.expr.PlaceHolder(number) for number in range(1, len(nodes) + 1))
    return [leaf if at.type_of(node) is FLOAT else Cast(leaf, FLOAT) for leaf, node in zip(leaves, nodes, strict=True)]


def _applied(at: GraphLowering, type: Type, input: fx.Node) -> Tensor:
    return popnn.nonLinearity(at.graph, type, at.tensor(input), at.program, at.name)


def _differentiated(at: GraphLowering, type: Type, saved: fx.Node, gradient: fx.Node) -> Tensor:
    return popnn.nonLinearityInputGradient(at.graph, type, at.tensor(saved), at.tensor(gradient), at.program, at.name)


@lowers(aten.relu.default)
def relu(at: GraphLowering, input: fx.Node) -> Tensor:
    if at.type in FLOATS:
        return _applied(at, Type.RELU, input)
    return popops.map(at.graph, Max(_1, Const(0, at.type)), [at.tensor(input)], at.program, at.name)


@lowers(aten.threshold_backward.default)
def threshold_backward(at: GraphLowering, gradient: fx.Node, saved: fx.Node, threshold: float) -> Tensor:
    if threshold == 0:
        return _differentiated(at, Type.RELU, saved, gradient)
    back, x = wide(at, gradient, saved)
    return computed(at, Select(0.0, back, x <= threshold), at.tensor(gradient), at.tensor(saved))


@lowers(aten.gelu.default)
def gelu(at: GraphLowering, input: fx.Node, *, approximate: str = "none") -> Tensor:
    return _applied(at, GELUS[approximate], input)


@lowers(aten.gelu_backward.default)
def gelu_backward(at: GraphLowering, gradient: fx.Node, input: fx.Node, *, approximate: str = "none") -> Tensor:
    return _differentiated(at, GELUS[approximate], input, gradient)


@lowers(aten.silu.default)
def silu(at: GraphLowering, input: fx.Node) -> Tensor:
    return _applied(at, Type.SWISH, input)


@lowers(aten.silu_backward.default)
def silu_backward(at: GraphLowering, gradient: fx.Node, input: fx.Node) -> Tensor:
    return _differentiated(at, Type.SWISH, input, gradient)


@lowers(aten.sigmoid_backward.default)
def sigmoid_backward(at: GraphLowering, gradient: fx.Node, output: fx.Node) -> Tensor:
    return _differentiated(at, Type.SIGMOID, output, gradient)


@lowers(aten.tanh_backward.default)
def tanh_backward(at: GraphLowering, gradient: fx.Node, output: fx.Node) -> Tensor:
    return _differentiated(at, Type.TANH, output, gradient)


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(at: GraphLowering, input: fx.Node) -> tuple[Tensor, Any]:
    """The second result is what PyTorch saves for the gradient, which here is computed from the input alone."""
    (x,) = wide(at, input)
    result = computed(at, log_sigmoid(x), at.tensor(input))
    return result, result


@lowers(aten._prelu_kernel_backward.default)
def prelu_backward(at: GraphLowering, gradient: fx.Node, input: fx.Node, slope: fx.Node) -> list[Tensor]:
    back, x, factor = wide(at, gradient, input, slope)
    of_input = Select(back, back * factor, x > 0.0)
    of_slope = Select(0.0, back * x, x > 0.0)
    tensors = [at.tensor(node) for node in (gradient, input, slope)]
    return popops.map(at.graph, [rounded(at, of_input), rounded(at, of_slope)], tensors, at.program, at.name)


@lowers(aten.glu.default)
def gated(at: GraphLowering, input: fx.Node, dim: int = -1) -> Tensor:
    (x, gate), _ = _halves(at, input, dim)
    value, door = wide(at, input, input)
    return computed(at, value * Sigmoid(door), x, gate)


@lowers(aten.glu_backward.default)
def gated_backward(at: GraphLowering, gradient: fx.Node, input: fx.Node, dim: int) -> Tensor:
    (x, gate), axis = _halves(at, input, dim)
    value, door, back = wide(at, input, input, gradient)
    opened = Sigmoid(door)
    trees = [rounded(at, back * opened), rounded(at, back * value * opened * (1.0 - opened))]
    results = popops.map(at.graph, trees, [x, gate, at.tensor(gradient)], at.program, at.name)
    return concat(results, axis)


def _halves(at: GraphLowering, input: fx.Node, dim: int) -> tuple[list[Tensor], int]:
    tensor = at.tensor(input)
    axis = dim % tensor.rank()
    size = tensor.dim(axis) // 2
    return [tensor.slice(0, size, axis), tensor.slice(size, 2 * size, axis)], axis


# leaky ReLUs of random slopes


@lowers(aten.rrelu_with_noise_functional.default)
def randomly_leaky(
    at: GraphLowering,
    input: fx.Node,
    noise: fx.Node,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: None = None,
) -> tuple[Tensor, Tensor]:
    """In training each element that is not above 0 has a slope of its own; the second result are the slopes."""
    x, slope = wide(at, input, input)
    tensor = at.tensor(input)
    if not training:
        return (computed(at, leaky_relu(x, (lower + upper) / 2), tensor),) * 2
    slopes = poprand.uniform(at.graph, at.random_seed(), at.drawing(), tensor, at.type, lower, upper, at.program, at.name)
    positive = popops.map(at.graph, rounded(at, Select(1.0, slope, x > 0.0)), [tensor, slopes], at.program, at.name)
    return computed(at, x * slope, tensor, positive), positive


@lowers(aten.rrelu_with_noise.default)
def randomly_leaky_in_place(at: GraphLowering, input: fx.Node, noise: fx.Node, *args: Any, **kwargs: Any) -> Tensor:
    """The slopes are written to `noise`."""
    result, at.values[noise] = randomly_leaky(at, input, noise, *args, **kwargs)
    return result


@lowers(aten.rrelu_with_noise_backward.default)
def randomly_leaky_backward(
    at: GraphLowering,
    gradient: fx.Node,
    input: fx.Node,
    noise: fx.Node,
    lower: float,
    upper: float,
    training: bool,
    of_result: bool,
) -> Tensor:
    back, x = wide(at, gradient, input)
    if not training:
        tree = leaky_relu_backward(back, x, (lower + upper) / 2, of_result)
        return computed(at, tree, at.tensor(gradient), at.tensor(input))
    return computed(at, back * x, at.tensor(gradient), at.tensor(noise))


# rows


def rows_last(tensor: Tensor, dim: int) -> Tensor:
    """A tensor with a dimension behind the others."""
    return tensor.dimRoll(dim % tensor.rank(), tensor.rank() - 1) if tensor.rank() else tensor.reshape([1])


def rows_back(result: Tensor, dim: int, shape: list[int]) -> Tensor:
    """Undo `rows_last`: the result has this shape."""
    return result.dimRoll(len(shape) - 1, dim % len(shape)) if shape else result.reshape([])


def _rows(at: GraphLowering, input: fx.Node, dim: int) -> Tensor:
    """Rows of a node, of the type of the result."""
    tensor = at.tensor(input)
    if tensor.elementType() is not at.type:
        tensor = popops.cast(at.graph, tensor, at.type, at.program, at.name)
    return rows_last(tensor, dim)


@lowers(aten._softmax.default)
def softmax(at: GraphLowering, input: fx.Node, dim: int, half_to_float: bool) -> Tensor:
    rows = _rows(at, input, dim)
    if rows.numElements() == 0:
        return at.tensor(input)
    return rows_back(popnn.nonLinearity(at.graph, Type.SOFTMAX_STABLE, rows, at.program, at.name), dim, at.shape)


@lowers(aten._safe_softmax.default)
def safe_softmax(at: GraphLowering, input: fx.Node, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """The softmax in which rows that are nothing but minus infinity give 0."""
    rows = _rows(at, input, dim)
    if rows.numElements() == 0:
        return at.tensor(input)
    result = popnn.nonLinearity(at.graph, Type.SOFTMAX_STABLE, rows, at.program, at.name)
    largest = popops.reduce(at.graph, rows, [rows.rank() - 1], popops.Operation.MAX, at.program, at.name)
    operands = [result, largest.expand([largest.rank()])]
    kept = Select(Const(0.0, at.type), _1, _2 == Const(float("-inf"), at.type))
    popops.mapInPlace(at.graph, kept, operands, at.program, at.name)
    return rows_back(result, dim, at.shape)


@lowers(aten._softmax_backward_data.default)
def softmax_backward(at: GraphLowering, gradient: fx.Node, output: fx.Node, dim: int, type: torch.dtype) -> Tensor:
    rows, back = rows_last(at.tensor(output), dim), rows_last(at.tensor(gradient), dim)
    if rows.numElements() == 0:
        return at.tensor(gradient)
    result = popnn.nonLinearityInputGradient(at.graph, Type.SOFTMAX_STABLE, rows, back, at.program, at.name)
    if result.elementType() is not at.type:
        result = popops.cast(at.graph, result, at.type, at.program, at.name)
    return rows_back(result, dim, at.shape)


@lowers(aten._log_softmax.default)
def log_softmax(at: GraphLowering, input: fx.Node, dim: int, half_to_float: bool) -> Tensor:
    rows = _rows(at, input, dim)
    if rows.numElements() == 0:
        return at.tensor(input)
    return rows_back(popnn.logSoftmax(at.graph, rows, at.program, at.name), dim, at.shape)
