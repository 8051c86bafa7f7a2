"""Recurrent layers: those that PyTorch has, and step by step all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from attrs import frozen
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

Activation = Callable[[Tensor], Tensor]
CELLS = {"LSTM": 4, "GRU": 3, "RNN": 1}  # gates
USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
ORDER = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}  # ONNX's gates as PyTorch has them


@operator("LSTM")
def lstm(op: NodeCall) -> tuple[Tensor | None, ...]:
    """Long short-term memory."""
    return layer(op, "LSTM")


@operator("GRU")
def gru(op: NodeCall) -> tuple[Tensor | None, ...]:
    """Gated recurrent units."""
    return layer(op, "GRU")


@operator("RNN")
def rnn(op: NodeCall) -> tuple[Tensor | None, ...]:
    """An Elman network."""
    return layer(op, "RNN")


def layer(op: NodeCall, kind: str) -> tuple[Tensor | None, ...]:
    """A layer of one or two directions."""
    x = op.tensor(0)
    assert x is not None
    if op.attribute("layout", 0):
        x = x.transpose(0, 1)
    state = _states(op, x, kind)
    if _usual(op, kind):
        outputs, ends = _pytorch_layer(op, x, kind, state)
    else:
        outputs, ends = _steps(op, x, kind, state)
    if op.attribute("layout", 0):
        outputs, ends = outputs.permute(2, 0, 1, 3), [one.transpose(0, 1) for one in ends]
    return (outputs, *ends)


def _hidden(op: NodeCall) -> int:
    """How many elements a state has, which the weights say, too."""
    weight, given = op.tensor(2), op.attribute("hidden_size")
    assert weight is not None
    if given not in (None, weight.shape[-1]):
        raise op.error(f"hidden_size is {given}, and {op.operand_name(2)} has shape {list(weight.shape)}")
    return int(weight.shape[-1])


def _directions(op: NodeCall) -> int:
    return 2 if op.attribute("direction", "forward") == "bidirectional" else 1


def _states(op: NodeCall, x: Tensor, kind: str) -> list[Tensor]:
    """The states before the first step: of directions, items and hidden elements."""
    shape = (_directions(op), x.shape[1], _hidden(op))
    states = []
    for operand in (5, 6) if kind == "LSTM" else (5,):
        given = op.tensor(operand)
        if given is not None and op.attribute("layout", 0):
            given = given.transpose(0, 1)
        states.append(torch.zeros(shape, dtype=x.dtype, device=x.device) if given is None else given)
    return states


def _usual(op: NodeCall, kind: str) -> bool:
    """Whether PyTorch has this layer."""
    names = [one.lower() for one in op.attribute("activations") or USUAL[kind] * _directions(op)]
    plain = names == [one.lower() for one in USUAL[kind] * _directions(op)]
    direction = op.attribute("direction", "forward") != "reverse"
    options = op.attribute("clip") is None and not op.attribute("input_forget", 0) and not op.has(4)
    linear = kind != "GRU" or bool(op.attribute("linear_before_reset", 0))
    return plain and direction and options and linear and not (kind == "LSTM" and op.has(7))


def _pytorch_layer(op: NodeCall, x: Tensor, kind: str, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    def weights(w: Tensor, r: Tensor, b: Tensor | None) -> list[Tensor]:
        made = []
        for direction in range(w.shape[0]):
            made += [_reordered(w[direction], kind), _reordered(r[direction], kind)]
            if b is not None:
                first, second = b[direction].chunk(2)
                made += [_reordered(first, kind), _reordered(second, kind)]
        return made

    flat = op.prepared("weights", weights, 1, 2, 3)
    directions, biased = _directions(op), op.has(3)
    rest = (flat, biased, 1, 0.0, False, directions == 2, False)
    if kind == "LSTM":
        outputs, *ends = torch.lstm(x, state, *rest)
    else:
        function = torch.gru if kind == "GRU" else torch.rnn_tanh
        outputs, *ends = function(x, state[0], *rest)
    steps, items, _ = x.shape
    return outputs.reshape(steps, items, directions, -1).transpose(1, 2), list(ends)


def _reordered(x: Tensor, kind: str) -> Tensor:
    parts = x.chunk(CELLS[kind])
    return torch.cat([parts[one] for one in ORDER[kind]])


# step by step


@frozen(eq=False)
class Cell:
    """What a direction of a layer computes with."""

    kind: str
    w: Tensor  # [gates x hidden, input]
    r: Tensor
    input_bias: Tensor | None
    state_bias: Tensor | None
    peepholes: Sequence[Tensor]
    activations: Sequence[Activation]
    clip: float | None
    forget: bool
    linear: bool

    def step(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        """The states after a step."""
        return {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.kind](x, states)

    def _cut(self, x: Tensor) -> Tensor:
        return x if self.clip is None else torch.clamp(x, -self.clip, self.clip)

    def _gates(self, x: Tensor, h: Tensor) -> Tensor:
        total = torch.matmul(x, self.w.t()) + torch.matmul(h, self.r.t())
        if self.input_bias is not None and self.state_bias is not None:
            total = total + self.input_bias + self.state_bias
        return total

    def _rnn(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        return [self.activations[0](self._cut(self._gates(x, states[0])))]

    def _lstm(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        h, c = states
        i, o, f, g = self._gates(x, h).chunk(4, -1)
        if self.peepholes:
            i, f = i + self.peepholes[0] * c, f + self.peepholes[2] * c
        gate, act, out = self.activations
        entered = gate(self._cut(i))
        kept = 1 - entered if self.forget else gate(self._cut(f))
        cell = kept * c + entered * act(self._cut(g))
        if self.peepholes:
            o = o + self.peepholes[1] * cell
        return [gate(self._cut(o)) * out(cell), cell]

    def _gru(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        (h,) = states
        wz, wr, wh = self.w.chunk(3)
        rz, rr, rh = self.r.chunk(3)
        first = [None] * 3 if self.input_bias is None else list(self.input_bias.chunk(3))
        second = [None] * 3 if self.state_bias is None else list(self.state_bias.chunk(3))
        gate, act = self.activations
        z = gate(self._cut(_affine(x, wz, first[0]) + _affine(h, rz, second[0])))
        r = gate(self._cut(_affine(x, wr, first[1]) + _affine(h, rr, second[1])))
        inner = r * _affine(h, rh, second[2]) if self.linear else _affine(r * h, rh, second[2])
        new = act(self._cut(_affine(x, wh, first[2]) + inner))
        return [(1 - z) * new + z * h]


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = torch.matmul(x, weight.t())
    return product if bias is None else product + bias


def _activation(op: NodeCall, name: str, alpha: float | None, beta: float | None) -> Activation:
    def of(default: float, given: float | None) -> float:
        return default if given is None else given

    known: dict[str, Activation] = {
        "relu": torch.relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "affine": lambda x: of(1.0, alpha) * x + of(0.0, beta),
        "leakyrelu": lambda x: torch.where(x < 0, of(0.01, alpha) * x, x),
        "thresholdedrelu": lambda x: torch.where(x > of(1.0, alpha), x, torch.zeros_like(x)),
        "scaledtanh": lambda x: of(1.0, alpha) * torch.tanh(of(1.0, beta) * x),
        "hardsigmoid": lambda x: torch.clamp(of(0.2, alpha) * x + of(0.5, beta), 0.0, 1.0),
        "elu": lambda x: torch.where(x < 0, of(1.0, alpha) * torch.expm1(x), x),
        "softsign": lambda x: x / (1 + torch.abs(x)),
        "softplus": lambda x: torch.log1p(torch.exp(x)),
    }
    if name.lower() not in known:
        raise op.error(f"there is no activation {name!r}")
    return known[name.lower()]


WITH_BETA = ("affine", "hardsigmoid", "scaledtanh")
WITH_ALPHA = (*WITH_BETA, "elu", "leakyrelu", "thresholdedrelu")


def _scaling(names: Sequence[str], position: int, given: Sequence[float], kinds: Sequence[str]) -> float | None:
    """The number of an activation: those given belong to those that take one, in their order."""
    if names[position].lower() not in kinds:
        return None
    before = len([one for one in names[:position] if one.lower() in kinds])
    return given[before] if before < len(given) else None


def _cell(op: NodeCall, kind: str, direction: int) -> Cell:
    w, r, b, p = op.tensor(1), op.tensor(2), op.tensor(3), op.tensor(7) if kind == "LSTM" else None
    assert w is not None
    assert r is not None
    names = op.attribute("activations") or USUAL[kind] * _directions(op)
    alphas, betas = op.attribute("activation_alpha") or [], op.attribute("activation_beta") or []
    each = len(USUAL[kind])
    activations = []
    for position in range(direction * each, direction * each + each):
        alpha = _scaling(names, position, alphas, WITH_ALPHA)
        activations.append(_activation(op, names[position], alpha, _scaling(names, position, betas, WITH_BETA)))
    first, second = (None, None) if b is None else b[direction].chunk(2)
    return Cell(
        kind,
        w[direction],
        r[direction],
        first,
        second,
        [] if p is None else p[direction].chunk(3),
        activations,
        op.attribute("clip"),
        bool(op.attribute("input_forget", 0)),
        bool(op.attribute("linear_before_reset", 0)),
    )


def _steps(op: NodeCall, x: Tensor, kind: str, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    outputs, ends = [], []
    for direction in range(_directions(op)):
        back = direction == 1 or op.attribute("direction", "forward") == "reverse"
        rows, last = _direction(op, x, _cell(op, kind, direction), [one[direction] for one in state], back)
        outputs.append(rows)
        ends.append(last)
    return torch.stack(outputs, 1), [torch.stack(of_state, 0) for of_state in zip(*ends, strict=True)]


def _direction(op: NodeCall, x: Tensor, cell: Cell, states: list[Tensor], back: bool) -> tuple[Tensor, list[Tensor]]:
    lengths = op.tensor(4)
    rows: list[Tensor] = []
    for at in reversed(range(x.shape[0])) if back else range(x.shape[0]):
        new = cell.step(x[at], states)
        row = new[0]
        if lengths is not None:
            live = (lengths > at).unsqueeze(1)
            new = [torch.where(live, one, before) for one, before in zip(new, states, strict=True)]
            row = torch.where(live, row, torch.zeros_like(row))
        states = new
        rows.append(row)
    return torch.stack(rows[::-1] if back else rows, 0), states
