"""Recurrent layers give PyTorch's results and gradients, each in one loop."""

import pytest
import torch
from poptorch_rig import check
from torch import nn

from pypoplar import poptorch


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


def check_layer(layer: nn.Module, x: torch.Tensor, *states: torch.Tensor):
    """Compare a layer's outputs and last states, and its gradients by arguments and parameters."""
    parameters = dict(layer.named_parameters())

    def call(x, *given):
        first = given[len(parameters) :]
        more = [tuple(first) if len(first) == 2 else first[0]] if first else []
        return torch.func.functional_call(layer, dict(zip(parameters, given, strict=False)), (x, *more))

    return check(call, x, *(parameter.detach() for parameter in parameters.values()), *states)


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_layers_with_states_are_pytorchs(kind, type):
    torch.manual_seed(1)
    states = [random(1, 3, 6, type=type, seed=seed) for seed in range(2 if kind is nn.LSTM else 1)]
    check_layer(kind(4, 6).to(type), random(5, 3, 4, type=type), *states)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_several_layers_in_both_directions_are_pytorchs(kind):
    torch.manual_seed(1)
    check_layer(kind(4, 3, 2, bidirectional=True, batch_first=True, bias=False), random(2, 5, 4))


def test_a_last_states_gradient_is_pytorchs():
    torch.manual_seed(1)
    layer = nn.LSTM(4, 3, 2)
    parameters = dict(layer.named_parameters())

    def call(x, *given):
        _, (h, c) = torch.func.functional_call(layer, dict(zip(parameters, given, strict=True)), (x,))
        return h[1] + c[0]

    check(call, random(5, 2, 4), *(parameter.detach() for parameter in parameters.values()))


def test_rectified_layers_and_single_samples_are_pytorchs():
    torch.manual_seed(1)
    check_layer(nn.RNN(4, 3, nonlinearity="relu"), random(3, 4))


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell])
def test_cells_are_pytorchs(kind):
    torch.manual_seed(1)
    check_layer(kind(4, 3), random(2, 4))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # PyTorch's own, on the CPU
@pytest.mark.parametrize("biased", [True, False])
def test_layers_whose_outputs_are_projected_are_pytorchs(biased):
    torch.manual_seed(1)
    check_layer(nn.LSTM(4, 6, 2, bias=biased, bidirectional=True, proj_size=3), random(5, 2, 4))
    check_layer(nn.LSTM(4, 6, bias=biased, batch_first=True, proj_size=3), random(2, 5, 4))


def test_a_packed_sequence_is_told():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(4, 6)

        def forward(self, x):
            x = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
            return self.layer(x)[1][0]

    with pytest.raises(poptorch.Error, match="PackedSequence"):
        poptorch.inferenceModel(Packed())(random(5, 2, 4))
