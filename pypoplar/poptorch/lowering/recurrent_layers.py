"""Recurrent layers of one direction, forward and backward, each a loop of the device.

Weights are PyTorch's: gates below each other, [gates * size, inputs]. The libraries take them gate by gate and transposed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from attrs import frozen

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.types import FLOAT

Unit = popnn.BasicLstmCellUnit
LSTM_ORDER = [
    Unit.BASIC_LSTM_CELL_INPUT_GATE, Unit.BASIC_LSTM_CELL_FORGET_GATE, Unit.BASIC_LSTM_CELL_CANDIDATE,
    Unit.BASIC_LSTM_CELL_OUTPUT_GATE,
]  # fmt: skip
ACTIVATIONS = {"tanh": popnn.NonLinearityType.TANH, "relu": popnn.NonLinearityType.RELU}


@frozen(eq=False)
class RecurrentCall:
    """One layer's forward pass: what it was given, and what its gradient needs of it."""

    params: Any  # of the libraries; None for layers without gates
    x: Tensor  # in the order of the steps, as is the output
    states: list[Tensor]  # before the first step
    weights: list[Tensor]  # of input and output, as the libraries take them
    biases: Tensor
    output: Tensor
    intermediates: Tensor | None = None


@lowers(torch.ops.poptorch.recurrent_layer.default)
def recurrent_layer(
    ctx: EntryContext, kind: str, x: Operand, h: Operand, c: Operand | None, w_input: Operand, w_output: Operand,
    b_input: Operand | None, b_output: Operand | None, backwards: bool,
) -> tuple[Tensor, Tensor | None, RecurrentCall]:  # fmt: skip
    layer = _LAYERS[kind](ctx, kind, x, h, w_input)
    sequence = x.placed(None if backwards else layer.create_input)
    sequence = sequence.reverse(0) if backwards else sequence
    states = [operand.placed(layer.create_state) for operand in (h, c) if operand is not None]
    weights = [layer.weight(operand, number) for number, operand in enumerate((w_input, w_output))]
    call = layer.forward(sequence, states, weights, layer.biases(b_input, b_output))
    output = call.output.reverse(0) if backwards else call.output
    return output, layer.cell, call


@lowers(torch.ops.poptorch.recurrent_layer_backward.default)
def recurrent_layer_backward(
    ctx: EntryContext, kind: str, slope: Operand | None, c_slope: Operand | None, x: Operand, h: Operand, w_input: Operand,
    w_output: Operand, biased: bool, kept: Operand, backwards: bool, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    layer, call = _LAYERS[kind](ctx, kind, x, h, w_input), kept.value
    if slope is None:
        zeros = np.zeros(call.output.shape(), call.output.elementType().dtype)
        gradient = ctx.constant(zeros)
    else:
        gradient = slope.placed()
    gradient = gradient.reverse(0) if backwards and slope is not None else gradient
    cell = None if c_slope is None else c_slope.placed()
    x_slope, states, weights, biases = layer.backward(call, gradient, cell, wanted)
    if x_slope is not None and backwards:
        x_slope = x_slope.reverse(0)
    shaped = [one.dimShuffle([0, 2, 1]).flatten(0, 2) for one in weights]
    return x_slope, *states, *shaped, biases


class _Layer:
    """What the kinds of layers have in common."""

    gates = 1

    def __init__(self, ctx: EntryContext, kind: str, x: Operand, h: Operand, w_input: Operand) -> None:
        self.ctx, self.kind = ctx, kind
        self.steps, self.batch, self.inputs = x.shape
        self.size = h.shape[-1]
        self.type = x.type
        self.options = {name: value for name, value in ctx.options.items() if name in ("availableMemoryProportion", "partialsType")}
        self.inference = not ctx.uses_of(2)
        self.cell: Tensor | None = None  # after the last step
        self.kernel: Callable[[], tuple[Tensor, ...]] = cache(self.create_kernel)
        self.bias_pair: Callable[[], list[Tensor]] = cache(self.create_biases)

    def weight(self, operand: Operand, number: int) -> Tensor:
        """Weights [gates, inputs, size]."""
        shape = operand.shape

        def create() -> Tensor:
            return self.kernel()[number].dimShuffle([0, 2, 1]).reshape(shape)

        return operand.placed(create).reshape([self.gates, self.size, shape[1]]).dimShuffle([0, 2, 1])

    def biases(self, b_input: Operand | None, b_output: Operand | None) -> Tensor:
        """Those of input and output added up, [gates, size]."""
        if b_input is None or b_output is None:
            return self.ctx.constant(np.zeros([self.gates, self.size], self.type.dtype))
        first, second = self.bias(b_input, 0), self.bias(b_output, 1)
        return popops.add(self.ctx.graph, first, second, self.ctx.program, self.ctx.name).reshape([self.gates, self.size])

    def bias(self, operand: Operand, number: int) -> Tensor:
        """One of the two that a layer of PyTorch has, [gates * size]."""
        return operand.placed(lambda: self.bias_pair()[number])

    def create_input(self) -> Tensor:
        return self.ctx.place([self.steps, self.batch, self.inputs], self.type)

    def create_state(self) -> Tensor:
        return self.ctx.place([self.batch, self.size], self.type)

    def create_kernel(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def create_biases(self) -> list[Tensor]:
        return [self.ctx.place([self.gates * self.size], self.type) for _ in range(2)]


class _Lstm(_Layer):
    gates = 4

    def __init__(self, ctx: EntryContext, kind: str, x: Operand, h: Operand, w_input: Operand) -> None:
        super().__init__(ctx, kind, x, h, w_input)
        self.params = popnn.lstm.LstmParams(self.type, self.batch, self.steps, [self.inputs, self.size])
        self.params.cellOrder = LSTM_ORDER
        self.more = (ctx.name, {**self.options, "inferenceOnly": str(self.inference).lower()}, ctx.plans)

    def create_input(self) -> Tensor:
        return popnn.lstm.createInput(self.ctx.graph, self.params, *self.more)

    def create_state(self) -> Tensor:
        return popnn.lstm.createInitialOutput(self.ctx.graph, self.params, *self.more)

    def create_kernel(self) -> tuple[Tensor, ...]:
        first, second = popnn.lstm.createWeightsKernel(self.ctx.graph, self.params, *self.more)
        assert first is not None
        return first, second

    def create_biases(self) -> list[Tensor]:
        return [popnn.lstm.createWeightsBiases(self.ctx.graph, self.params, *self.more).flatten() for _ in range(2)]

    def forward(self, x: Tensor, states: list[Tensor], weights: list[Tensor], biases: Tensor) -> RecurrentCall:
        graph, prog = self.ctx.graph, self.ctx.program
        operands = _state(states), x, popnn.lstm.LstmWeights(weights[0], weights[1], biases)
        output, self.cell, kept = popnn.lstm.lstmFwd(graph, self.params, *operands, prog, *self.more)
        return RecurrentCall(self.params, x, states, weights, biases, output, kept)

    def backward(
        self, call: RecurrentCall, gradient: Tensor, cell: Tensor | None, wanted: list[bool]
    ) -> tuple[Tensor | None, list[Tensor], list[Tensor], Tensor]:
        params, more = call.params, (self.ctx.name, {**self.options, "inferenceOnly": "false"}, self.ctx.plans)
        params.calcInputGradients = wanted[0]
        state, weights = _state(call.states), popnn.lstm.LstmWeights(call.weights[0], call.weights[1], call.biases)
        assert call.intermediates is not None
        first, x_slope, slopes = popnn.lstm.lstmBwdWithWU(
            self.ctx.graph, params, self.ctx.program, state, call.intermediates, weights, call.x, call.output, gradient, cell, *more
        )
        assert first.output is not None
        assert first.cellState is not None
        assert slopes.biases is not None
        biases = slopes.biases.reshape([1, self.gates * self.size])
        return x_slope, [first.output, first.cellState], _weights(slopes), biases


class _Gru(_Layer):
    gates = 3

    def __init__(self, ctx: EntryContext, kind: str, x: Operand, h: Operand, w_input: Operand) -> None:
        super().__init__(ctx, kind, x, h, w_input)
        self.params = popnn.gru.GruParams(self.type, self.batch, self.steps, [self.inputs, self.size])
        self.params.resetAfter = True  # the candidate's product with the output before has a bias of its own
        self.more = (ctx.name, {**self.options, "inferenceOnly": str(self.inference).lower()}, ctx.plans)

    def create_input(self) -> Tensor:
        return popnn.gru.createInput(self.ctx.graph, self.params, *self.more)

    def create_state(self) -> Tensor:
        return popnn.gru.createInitialState(self.ctx.graph, self.params, *self.more)

    def create_kernel(self) -> tuple[Tensor, ...]:
        return popnn.gru.createWeightsKernel(self.ctx.graph, self.params, *self.more)

    def create_biases(self) -> list[Tensor]:
        pair = popnn.gru.createWeightsBiases(self.ctx.graph, self.params, *self.more)
        return [pair.slice(number, number + 1, 1).flatten() for number in range(2)]

    def biases(self, b_input: Operand | None, b_output: Operand | None) -> Tensor:
        """[gates, 2, size]: of the input's product, and of that of the output before."""
        if b_input is None or b_output is None:
            return self.ctx.constant(np.zeros([self.gates, 2, self.size], self.type.dtype))
        both = self.bias(b_input, 0), self.bias(b_output, 1)
        return concat([one.reshape([self.gates, 1, self.size]) for one in both], 1)

    def forward(self, x: Tensor, states: list[Tensor], weights: list[Tensor], biases: Tensor) -> RecurrentCall:
        graph, prog = self.ctx.graph, self.ctx.program
        operands = states[0], x, popnn.gru.GruWeights(weights[0], weights[1], biases)
        output, kept = popnn.gru.gruFwd(graph, self.params, *operands, prog, *self.more)
        return RecurrentCall(self.params, x, states, weights, biases, output, kept)

    def backward(
        self, call: RecurrentCall, gradient: Tensor, cell: Tensor | None, wanted: list[bool]
    ) -> tuple[Tensor | None, list[Tensor | None], list[Tensor], Tensor]:
        params, more = call.params, (self.ctx.name, {**self.options, "inferenceOnly": "false"}, self.ctx.plans)
        params.calcInputGradients = wanted[0]
        weights = popnn.gru.GruWeights(call.weights[0], call.weights[1], call.biases)
        assert call.intermediates is not None
        first, x_slope, slopes = popnn.gru.gruBwdWithWU(
            self.ctx.graph,
            params,
            self.ctx.program,
            call.states[0],
            call.intermediates,
            weights,
            call.x,
            call.output,
            gradient,
            *more,
        )
        assert slopes.biases is not None
        return x_slope, [first, None], _weights(slopes), slopes.biases.dimShuffle([1, 0, 2]).flatten(1, 3)


def _state(tensors: list[Tensor]) -> popnn.lstm.LstmState:
    output, cell = tensors
    return popnn.lstm.LstmState(output, cell)


def _weights(slopes: Any) -> list[Tensor]:
    return [slopes.inputWeights, slopes.outputWeights]


class _Plain(_Layer):
    """A layer without gates."""

    def create_input(self) -> Tensor:
        sizes = self.steps, self.batch, self.inputs, self.size
        return popnn.rnn.createInput(self.ctx.graph, *sizes, self.type, FLOAT, self.inference, self.ctx.name, self.ctx.plans)

    def create_kernel(self) -> tuple[Tensor, ...]:
        graph, name, plans, inference = self.ctx.graph, self.ctx.name, self.ctx.plans, self.inference
        sizes = self.batch, self.inputs, self.size
        first = popnn.rnn.createWeightsInput(graph, self.steps, *sizes, self.type, FLOAT, inference, name, plans)
        second = popnn.rnn.createWeightsFeedback(graph, self.batch, self.size, self.type, FLOAT, inference, name, plans)
        return first.expand([0]), second.expand([0])

    def forward(self, x: Tensor, states: list[Tensor], weights: list[Tensor], biases: Tensor) -> RecurrentCall:
        graph, prog, name, plans = self.ctx.graph, self.ctx.program, self.ctx.name, self.ctx.plans
        first, second = (one.squeeze([0]) for one in weights)
        weighted = popnn.rnn.forwardWeightInput(graph, x, first, prog, FLOAT, self.inference, name, plans)
        operands = states[0], weighted, biases.flatten(), first, second, x, ACTIVATIONS[self.kind]
        output = popnn.rnn.rnnFwdSequence(graph, prog, *operands, FLOAT, self.inference, name, plans)
        return RecurrentCall(None, x, states, [first, second], biases.flatten(), output)

    def backward(
        self, call: RecurrentCall, gradient: Tensor, cell: Tensor | None, wanted: list[bool]
    ) -> tuple[Tensor | None, list[Tensor | None], list[Tensor], Tensor]:
        """The gradient of the first state is that of a further input, the output before: its first step's."""
        x, first = call.x, call.weights[0]
        if wanted[1]:
            before = concat([call.states[0].expand([0]), call.output.slice(0, self.steps - 1)])
            x, first = concat([x, before], 2), concat([first, call.weights[1]])
        operands = call.states[0], call.output, call.biases, first, call.weights[1], gradient.dimShuffle([1, 0, 2]), x
        ignored = not (wanted[0] or wanted[1])
        x_slope, w_input, w_output, biases = popnn.rnn.rnnBwdSequence(
            self.ctx.graph, True, ignored, self.ctx.program, *operands, ACTIVATIONS[self.kind], FLOAT, self.ctx.name, self.ctx.plans
        )
        assert w_input is not None
        assert w_output is not None
        assert biases is not None
        state = x_slope.slice(self.inputs, self.inputs + self.size, 2).index([0]) if x_slope is not None and wanted[1] else None
        x_slope = x_slope.slice(0, self.inputs, 2) if x_slope is not None and wanted[0] else None
        weights = [w_input.slice(0, self.inputs).expand([0]), w_output.expand([0])]
        return x_slope, [state, None], weights, biases.reshape([1, self.size])


_LAYERS: dict[str, Callable[..., Any]] = {"lstm": _Lstm, "gru": _Gru, "tanh": _Plain, "relu": _Plain}
