"""Recurrent layers of one direction, whole: each is a loop on the device, forward and backward.

PyTorch's operations are of several layers and directions; they are traced as these operators, one for each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from pypoplar.errors import MissingFeature
from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten
GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}  # by kind of layer

library = torch.library.Library("poptorch", "FRAGMENT")
library.define(
    "recurrent_layer(str kind, Tensor x, Tensor h, Tensor? c, Tensor w_input, Tensor w_output, Tensor? b_input, Tensor? b_output, "
    "bool backwards) -> (Tensor, Tensor, Tensor)"
)
library.define(
    "recurrent_layer_backward(str kind, Tensor? slope, Tensor? c_slope, Tensor x, Tensor h, Tensor w_input, Tensor w_output, "
    "bool biased, Tensor kept, bool backwards, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


@torch.library.register_fake("poptorch::recurrent_layer", lib=library)
def _(  # noqa: PLR0913 (as it is defined)
    kind: str, x: Any, h: Any, c: Any, w_input: Any, w_output: Any, b_input: Any, b_output: Any, backwards: bool
) -> tuple[Any, Any, Any]:
    """The outputs [steps, batch, size], the cell state after the last step, and what stands for what the gradient needs."""
    return x.new_empty([*x.shape[:2], h.shape[-1]]), torch.empty_like(h), x.new_empty([0], dtype=torch.int32)


@torch.library.register_fake("poptorch::recurrent_layer_backward", lib=library)
def _(  # noqa: PLR0913 (as it is defined)
    kind: str, slope: Any, c_slope: Any, x: Any, h: Any, w_input: Any, w_output: Any, biased: bool, kept: Any, backwards: bool,
    wanted: list[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of input, output and cell state before the first step, both weights, and of biases: the sum of both, or two."""
    biases = x.new_empty([2 if kind == "gru" else 1, w_input.shape[0]] if biased else [0])
    whole = torch.empty_like(x), torch.empty_like(h), torch.empty_like(h)
    some = [one if asked else x.new_empty([0]) for one, asked in zip(whole, wanted, strict=True)]
    return *some, torch.empty_like(w_input), torch.empty_like(w_output), biases


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    kind, x, h, _, w_input, w_output, b_input, _, backwards = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, h, w_input, w_output, output[2])
    ctx.layer = kind, b_input is not None, backwards


def _backward(ctx: Any, slope: Any, c_slope: Any, _: Any) -> tuple[Any, ...]:
    kind, biased, backwards = ctx.layer
    x, h, w_input, w_output, kept = ctx.saved_tensors
    needs = ctx.needs_input_grad
    wanted = [needs[1], needs[2], kind == "lstm" and needs[3]]
    x_slope, h_slope, c_first, *weights, biases = torch.ops.poptorch.recurrent_layer_backward(
        kind, slope, c_slope, x, h, w_input, w_output, biased, kept, backwards, wanted
    )
    firsts = [one if asked else None for one, asked in zip((x_slope, h_slope, c_first), wanted, strict=True)]
    of_biases = [biases.select(0, 0), biases.select(0, biases.shape[0] - 1)] if biased else [None, None]
    return None, *firsts, *weights, *of_biases, None


torch.library.register_autograd("poptorch::recurrent_layer", _backward, setup_context=_keep, lib=library)


def _projected(x: Any, h: Any, c: Any, weights: list[Any], projection: Any, backwards: bool) -> tuple[Any, Any]:
    """A layer of an LSTM whose outputs are projections of its state, step by step."""
    w_input, w_output, b_input, b_output = weights
    given = torch.nn.functional.linear(x, w_input, None if b_input is None else b_input + b_output)
    outputs = []
    for step in reversed(range(len(x))) if backwards else range(len(x)):
        enter, forget, new, out = (given[step] + h @ w_output.t()).chunk(4, 1)
        c = forget.sigmoid() * c + enter.sigmoid() * new.tanh()
        h = (out.sigmoid() * c.tanh()) @ projection.t()
        outputs.append(h)
    return torch.stack(outputs[::-1] if backwards else outputs), c


def _layers(  # noqa: PLR0913 (PyTorch's arguments)
    kind: str, x: Any, states: list[Any], weights: list[Any], biased: bool, layers: int, dropout: float, train: bool, both: bool,
    batch_first: bool,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """The outputs of the last layer, and the states of all layers and directions after their last steps."""
    directions = 2 if both else 1
    each = len(weights) // (layers * directions)
    x = x.transpose(0, 1) if batch_first else x
    last: list[list[Any]] = [[] for _ in states]
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            first = [state.select(0, number) for state in states]
            own = list(weights[number * each : (number + 1) * each])
            projection = own.pop() if each % 2 else None
            own = [*own, None, None][:4]
            cell = first[1] if kind == "lstm" else None
            if projection is None:
                y, c, _ = torch.ops.poptorch.recurrent_layer(kind, x, first[0], cell, *own, direction == 1)
            else:
                y, c = _projected(x, first[0], cell, own, projection, direction == 1)
            outputs.append(y)
            for ends, end in zip(last, (y.select(0, 0 if direction else y.shape[0] - 1), c), strict=False):
                ends.append(end)
        x = torch.cat(outputs, -1) if both else outputs[0]
        if dropout and train and layer + 1 < layers:
            x = aten.native_dropout.default(x, dropout, True)[0]
    return x.transpose(0, 1) if batch_first else x, [torch.stack(ends) for ends in last]


@replaces(aten.lstm.input)
def lstm(  # noqa: PLR0913 (PyTorch's arguments)
    input: Any, states: list[Any], weights: list[Any], biased: bool, layers: int, dropout: float, train: bool, both: bool,
    batch_first: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The form of PyTorch's LSTM that a graph holds as one operation."""
    output, last = _layers("lstm", input, list(states), weights, biased, layers, dropout, train, both, batch_first)
    return output, *last


def _enter(kind: str, operation: Any) -> None:
    @replaces(operation)
    def form(  # noqa: PLR0913 (PyTorch's arguments)
        input: Any, state: Any, weights: list[Any], biased: bool, layers: int, dropout: float, train: bool, both: bool,
        batch_first: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        output, last = _layers(kind, input, [state], weights, biased, layers, dropout, train, both, batch_first)
        return output, *last


for _kind, _operation in (("gru", aten.gru.input), ("tanh", aten.rnn_tanh.input), ("relu", aten.rnn_relu.input)):
    _enter(_kind, _operation)


@contextlib.contextmanager
def padded_sequences() -> Iterator[None]:
    """While a module is exported, sequences of different lengths are refused."""
    original = torch._VF._pack_padded_sequence

    def refused(*_: Any) -> Any:
        raise MissingFeature("a PackedSequence has a shape that depends on its data: give recurrent layers padded tensors")

    torch._VF._pack_padded_sequence = refused
    try:
        yield
    finally:
        torch._VF._pack_padded_sequence = original
