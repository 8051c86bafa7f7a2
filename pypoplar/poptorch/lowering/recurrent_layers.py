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
from torch import fx

from pypoplar import popnn, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.values import Constant
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
    at: GraphLowering, kind: str, x: fx.Node, h: fx.Node, c: fx.Node | None, w_input: fx.Node, w_output: fx.Node,
    b_input: fx.Node | None, b_output: fx.Node | None, backwards: bool,
) -> tuple[Tensor, Tensor | None, RecurrentCall]:  # fmt: skip
    layer = _LAYERS[kind](at, kind, x, h, w_input)
    sequence = at.tensor(x, None if backwards else layer.create_input)
    sequence = sequence.reverse(0) if backwards else sequence
    states = [at.tensor(node, layer.create_state) for node in (h, c) if node is not None]
    weights = [layer.weight(node, number) for number, node in enumerate((w_input, w_output))]
    call = layer.forward(sequence, states, weights, layer.biases(b_input, b_output))
    output = call.output.reverse(0) if backwards else call.output
    return output, layer.cell, call


@lowers(torch.ops.poptorch.recurrent_layer_backward.default)
def recurrent_layer_backward(
    at: GraphLowering, kind: str, slope: fx.Node | None, c_slope: fx.Node | None, x: fx.Node, h: fx.Node, w_input: fx.Node,
    w_output: fx.Node, biased: bool, kept: fx.Node, backwards: bool, wanted: list[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    layer, call = _LAYERS[kind](at, kind, x, h, w_input), at.value(kept)
    if slope is None:
        zeros = np.zeros(call.output.shape(), call.output.elementType().dtype)
        gradient = at.constant(Constant(zeros))
    else:
        gradient = at.tensor(slope)
    gradient = gradient.reverse(0) if backwards and slope is not None else gradient
    cell = None if c_slope is None else at.tensor(c_slope)
    x_slope, states, weights, biases = layer.backward(call, gradient, cell, wanted)
    if x_slope is not None and backwards:
        x_slope = x_slope.reverse(0)
    shaped = [one.dimShuffle([0, 2, 1]).flatten(0, 2) for one in weights]
    return x_slope, *states, *shaped, biases


class _Layer:
    """What the kinds of layers have in common."""

    gates = 1

    def __init__(self, at: GraphLowering, kind: str, x: fx.Node, h: fx.Node, w_input: fx.Node) -> None:
        self.at, self.kind = at, kind
        self.steps, self.batch, self.inputs = at.shape_of(x)
        self.size = at.shape_of(h)[-1]
        self.type = at.type_of(x)
        self.options = {name: value for name, value in at.options.items() if name in ("availableMemoryProportion", "partialsType")}
        self.inference = not any(user.args[1] == 2 and user.users for user in at.node.users)
        self.cell: Tensor | None = None  # after the last step
        self.kernel: Callable[[], tuple[Tensor, ...]] = cache(self.create_kernel)
        self.bias_pair: Callable[[], list[Tensor]] = cache(self.create_biases)

    def weight(self, node: fx.Node, number: int) -> Tensor:
        """Weights [gates, inputs, size]."""
        shape = self.at.shape_of(node)

        def create() -> Tensor:
            return self.kernel()[number].dimShuffle([0, 2, 1]).reshape(shape)

        return self.at.tensor(node, create).reshape([self.gates, self.size, shape[1]]).dimShuffle([0, 2, 1])

    def biases(self, b_input: fx.Node | None, b_output: fx.Node | None) -> Tensor:
        """Those of input and output added up, [gates, size]."""
        if b_input is None or b_output is None:
            return self.at.constant(Constant(np.zeros([self.gates, self.size], self.type.dtype)))
        first, second = self.bias(b_input, 0), self.bias(b_output, 1)
        return popops.add(self.at.graph, first, second, self.at.program, self.at.name).reshape([self.gates, self.size])

    def bias(self, node: fx.Node, number: int) -> Tensor:
        """One of the two that a layer of PyTorch has, [gates * size]."""
        return self.at.tensor(node, lambda: self.bias_pair()[number])

    def create_input(self) -> Tensor:
        return self.at.spread([self.steps, self.batch, self.inputs], self.type)

    def create_state(self) -> Tensor:
        return self.at.spread([self.batch, self.size], self.type)

    def create_kernel(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def create_biases(self) -> list[Tensor]:
        return [self.at.spread([self.gates * self.size], self.type) for _ in range(2)]


class _Lstm(_Layer):
    gates = 4

    def __init__(self, at: GraphLowering, kind: str, x: fx.Node, h: fx.Node, w_input: fx.Node) -> None:
        super().__init__(at, kind, x, h, w_input)
        self.params = popnn.lstm.LstmParams(self.type, self.batch, self.steps, [self.inputs, self.size])
        self.params.cellOrder = LSTM_ORDER
        self.more = (at.name, {**self.options, "inferenceOnly": str(self.inference).lower()}, at.plans)

    def create_input(self) -> Tensor:
        return popnn.lstm.createInput(self.at.graph, self.params, *self.more)

    def create_state(self) -> Tensor:
        return popnn.lstm.createInitialOutput(self.at.graph, self.params, *self.more)

    def create_kernel(self) -> tuple[Tensor, ...]:
        first, second = popnn.lstm.createWeightsKernel(self.at.graph, self.params, *self.more)
        assert first is not None
        return first, second

    def create_biases(self) -> list[Tensor]:
        return [popnn.lstm.createWeightsBiases(self.at.graph, self.params, *self.more).flatten() for _ in range(2)]

    def forward(self, x: Tensor, states: list[Tensor], weights: list[Tensor], biases: Tensor) -> RecurrentCall:
        graph, prog = self.at.graph, self.at.program
        operands = _state(states), x, popnn.lstm.LstmWeights(weights[0], weights[1], biases)
        output, self.cell, kept = popnn.lstm.lstmFwd(graph, self.params, *operands, prog, *self.more)
        return RecurrentCall(self.params, x, states, weights, biases, output, kept)

    def backward(
        self, call: RecurrentCall, gradient: Tensor, cell: Tensor | None, wanted: list[bool]
    ) -> tuple[Tensor | None, list[Tensor], list[Tensor], Tensor]:
        params, more = call.params, (self.at.name, {**self.options, "inferenceOnly": "false"}, self.at.plans)
        params.calcInputGradients = wanted[0]
        state, weights = _state(call.states), popnn.lstm.LstmWeights(call.weights[0], call.weights[1], call.biases)
        assert call.intermediates is not None
        first, x_slope, slopes = popnn.lstm.lstmBwdWithWU(
            self.at.graph, params, self.at.program, state, call.intermediates, weights, call.x, call.output, gradient, cell, *more
        )
        assert first.output is not None
        assert first.cellState is not None
        assert slopes.biases is not None
        biases = slopes.biases.reshape([1, self.gates * self.size])
        return x_slope, [first.output, first.cellState], _weights(slopes), biases


class _Gru(_Layer):
    gates = 3

    def __init__(self, at: GraphLowering, kind: str, x: fx.Node, h: fx.Node, w_input: fx.Node) -> None:
        super().__init__(at, kind, x, h, w_input)
        self.params = popnn.gru.GruParams(self.type, self.batch, self.steps, [self.inputs, self.size])
        self.params.resetAfter = True  # the candidate's product with the output before has a bias of its own
        self.more = (at.name, {**self.options, "inferenceOnly": str(self.inference).lower()}, at.plans)

    def create_input(self) -> Tensor:
        return popnn.gru.createInput(self.at.graph, self.params, *self.more)

    def create_state(self) -> Tensor:
        return popnn.gru.createInitialState(self.at.graph, self.params, *self.more)

    def create_kernel(self) -> tuple[Tensor, ...]:
        return popnn.gru.createWeightsKernel(self.at.graph, self.params, *self.more)

    def create_biases(self) -> list[Tensor]:
        pair = popnn.gru.createWeightsBiases(self.at.graph, self.params, *self.more)
        return [pair.slice(number, number + 1, 1).flatten() for number in range(2)]

    def biases(self, b_input: fx.Node | None, b_output: fx.Node | None) -> Tensor:
        """[gates, 2, size]: of the input's product, and of that of the output before."""
        if b_input is None or b_output is None:
            return self.at.constant(Constant(np.zeros([self.gates, 2, self.size], self.type.dtype)))
        both = self.bias(b_input, 0), self.bias(b_output, 1)
        return concat([one.reshape([self.gates, 1, self.size]) for one in both], 1)

    def forward(self, x: Tensor, states: list[Tensor], weights: list[Tensor], biases: Tensor) -> RecurrentCall:
        graph, prog = self.at.graph, self.at.program
        operands = states[0], x, popnn.gru.GruWeights(weights[0], weights[1], biases)
        output, kept = popnn.gru.gruFwd(graph, self.params, *operands, prog, *self.more)
        return RecurrentCall(self.params, x, states, weights, biases, output, kept)

    def backward(
        self, call: RecurrentCall, gradient: Tensor, cell: Tensor | None, wanted: list[bool]
    ) -> tuple[Tensor | None, list[Tensor | None], list[Tensor], Tensor]:
        params, more = call.params, (self.at.name, {**self.options, "inferenceOnly": "false"}, self.at.plans)
        params.calcInputGradients = wanted[0]
        weights = popnn.gru.GruWeights(call.weights[0], call.weights[1], call.biases)
        assert call.intermediates is not None
        first, x_slope, slopes = popnn.gru.gruBwdWithWU(
            self.at.graph,
            params,
            self.at.program,
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
        return popnn.rnn.createInput(self.at.graph, *sizes, self.type, FLOAT, self.inference, self.at.name, self.at.plans)

    def create_kernel(self) -> tuple[Tensor, ...]:
        graph, name, plans, inference = self.at.graph, self.at.name, self.at.plans, self.inference
        sizes = self.batch, self.inputs, self.size
        first = popnn.rnn.createWeightsInput(graph, self.steps, *sizes, self.type, FLOAT, inference, name, plans)
        second = popnn.rnn.createWeightsFeedback(graph, self.batch, self.size, self.type, FLOAT, inference, name, plans)
        return first.expand([0]), second.expand([0])

    def forward(self, x: Tensor, states: list[Tensor], weights: list[Tensor], biases: Tensor) -> RecurrentCall:
        graph, prog, name, plans = self.at.graph, self.at.program, self.at.name, self.at.plans
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
            self.at.graph, True, ignored, self.at.program, *operands, ACTIVATIONS[self.kind], FLOAT, self.at.name, self.at.plans
        )
        assert w_input is not None
        assert w_output is not None
        assert biases is not None
        state = x_slope.slice(self.inputs, self.inputs + self.size, 2).index([0]) if x_slope is not None and wanted[1] else None
        x_slope = x_slope.slice(0, self.inputs, 2) if x_slope is not None and wanted[0] else None
        weights = [w_input.slice(0, self.inputs).expand([0]), w_output.expand([0])]
        return x_slope, [state, None], weights, biases.reshape([1, self.size])


_LAYERS: dict[str, Callable[..., Any]] = {"lstm": _Lstm, "gru": _Gru, "tanh": _Plain, "relu": _Plain}
