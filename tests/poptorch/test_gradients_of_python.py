"""Parts of a forward pass without gradients have none on the IPU; gradients that Python makes or changes are refused."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from pypoplar import poptorch
from pypoplar.poptorch import CaptureError


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


class Network(nn.Module):
    """Two layers and something between them."""

    def __init__(self, between):
        super().__init__()
        self.inner, self.outer = nn.Linear(5, 4), nn.Linear(4, 3)
        self.register_buffer("mean", torch.zeros(4))
        self.between = between

    def forward(self, x):
        y = self.outer(self.between(self, torch.tanh(self.inner(x))))
        return y, nn.functional.mse_loss(y, torch.ones(3, 3))


def without(network, h):
    with torch.no_grad():
        k = h * 2
        with torch.enable_grad():
            again = network.outer.weight.sum() * h
        network.mean.mul_(0.9).add_(h.mean(0))
    return h + k + again + network.mean


def inference_mode(network, h):
    with torch.inference_mode():
        k = h * 2
    return h + k


def straight_through(network, h):
    return h + (torch.sign(h) - h).detach()


def checkpointed(network, h):
    return checkpoint(lambda z: torch.tanh(z) * 2, h, use_reentrant=True)


def made_and_changed_without(network, h):
    rows = h.flatten()
    with torch.no_grad():
        largest = rows.abs().max()
        largest.clamp_(min=2).mul_(3)
    return h / largest


def copied_into_a_buffer_without(network, h):
    with torch.no_grad():
        network.mean.copy_(network.inner.bias)
    return h + network.mean


@pytest.mark.parametrize(
    "between",
    [without, inference_mode, straight_through, checkpointed, made_and_changed_without, copied_into_a_buffer_without],
)
def test_what_has_no_gradient_in_pytorch_has_none_here(between):
    model = Network(between)
    other = copy.deepcopy(model)
    x = torch.randn(3, 5)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5))
    optimizer = torch.optim.SGD(other.parameters(), lr=0.5)
    for _ in range(2):
        training(x)
        optimizer.zero_grad()
        other(x)[1].backward()
        optimizer.step()
    for mine, theirs in zip([*model.parameters(), model.mean], [*other.parameters(), other.mean], strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-6)


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


def own_gradient(network, h):
    return Tripled.apply(h)


def hooked(network, h):
    h.register_hook(lambda gradient: gradient * 10)
    return h


def changed_in_place(network, h):
    h = h * 1
    with torch.no_grad():
        h.mul_(2)
    return h


def written_where_gradients_are_on(network, h):
    with torch.no_grad():
        k = torch.zeros(3, 4)
    k[0] = h[0]
    with torch.no_grad():
        k[1] = 1
    return h + k


def written_of_what_was_written(network, h):
    with torch.no_grad():
        k, again = torch.zeros(3, 4), torch.zeros(3, 4)
    k.copy_(h)
    again.copy_(k * 2)
    with torch.no_grad():
        again.mul_(2)
    return h + again


@pytest.mark.parametrize(
    ("between", "told"),
    [
        (own_gradient, r"Tripled is a torch.autograd.Function.*detach\(\).*: `return Tripled.apply\(h\)`"),
        (hooked, r"Tensor.register_hook: .*test_gradients_of_python.py:\d+: `h.register_hook"),
        (changed_in_place, "changed in place where gradients are off"),
        (written_where_gradients_are_on, r"changed in place where gradients are off.*: `k\[1\] = 1`"),
        (written_of_what_was_written, r"changed in place where gradients are off.*: `again.mul_\(2\)`"),
    ],
)
def test_gradients_of_python_are_refused_in_training(between, told):
    with pytest.raises(CaptureError, match=told):
        poptorch.trainingModel(Network(between))(torch.randn(3, 5))
    wanted = Network(between)
    x = torch.randn(3, 5)
    np.testing.assert_allclose(poptorch.inferenceModel(wanted)(x)[0].numpy(), wanted(x)[0].detach().numpy(), rtol=1e-4, atol=1e-6)


def test_hooks_of_layers_and_parameters_are_told_at_once():
    model = Network(straight_through)
    model.inner.register_full_backward_hook(lambda *_: None)
    model.outer.weight.register_hook(lambda gradient: gradient * 2)
    with pytest.raises(CaptureError, match=r"(?s)inner has a backward hook.*the parameter outer.weight has a hook"):
        poptorch.trainingModel(model)(torch.randn(3, 5))


@pytest.mark.parametrize("normalised", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_spectral_norms_train_with_the_vectors_that_they_change_without_gradients(normalised):
    torch.manual_seed(0)
    model = Network(lambda _, h: h)
    model.inner = normalised(model.inner)
    host, x = copy.deepcopy(model), torch.randn(3, 5)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(host.parameters(), lr=0.1)
    for _ in range(2):
        y, _ = training(x)
        wanted, loss = host(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(y, wanted.detach())
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, host.state_dict()[name])
