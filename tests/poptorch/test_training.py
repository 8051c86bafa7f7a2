"""Models train as they do in PyTorch: same losses, same weights."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Classifier(nn.Module):
    """A small network whose forward pass has its loss beside its output."""

    def __init__(self, dropped=0.0):
        super().__init__()
        self.first = nn.Linear(12, 9)
        self.drop = nn.Dropout(dropped)
        self.second = nn.Linear(9, 5)

    def forward(self, x, labels=None):
        y = self.second(self.drop(torch.relu(self.first(x))))
        return y if labels is None else (y, nn.functional.cross_entropy(y, labels))


def batch(samples):
    generator = torch.Generator().manual_seed(samples)
    return torch.randn(samples, 12, generator=generator), torch.randint(0, 5, (samples,), generator=generator)


def reference(model, x, labels, size, accumulated=1, rate=0.1):
    """Outputs and losses of each batch of `size`, the model trained meanwhile."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    outputs, losses = [], []
    for number, (some, wanted) in enumerate(zip(x.split(size), labels.split(size), strict=True), 1):
        output, loss = model(some, wanted)
        (loss / accumulated).backward()
        if number % accumulated == 0:
            optimizer.step()
            optimizer.zero_grad()
        outputs.append(output.detach())
        losses.append(loss.detach())
    return torch.cat(outputs), torch.stack(losses)


@pytest.mark.parametrize(("iterations", "accumulated"), [(1, 1), (3, 1), (2, 3)])
def test_a_call_trains_as_pytorch_does(iterations, accumulated):
    torch.manual_seed(3)
    model = Classifier()
    other = copy.deepcopy(model)
    options = poptorch.Options().deviceIterations(iterations).outputMode(poptorch.OutputMode.All)
    options.Training.gradientAccumulation(accumulated)
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(2):
        x, labels = batch(4 * iterations * accumulated)
        outputs, losses = training(x, labels)
        wanted, wanted_losses = reference(other, x, labels, 4, accumulated)
        np.testing.assert_allclose(outputs.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(losses.reshape(-1).numpy(), wanted_losses.numpy(), rtol=1e-5)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_rate_changes_between_calls():
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(4))
    before = model.first.weight.detach().clone()
    optimizer.param_groups[0]["lr"] = 0.0
    training.setOptimizer(optimizer)
    training(*batch(4))
    assert torch.equal(model.first.weight, before)


def test_inference_uses_the_weights_that_training_made():
    model = Classifier(dropped=0.5)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    inference = poptorch.inferenceModel(model)
    x, labels = batch(4)
    before = inference(x)
    training(x, labels)
    after = inference(x)
    assert not torch.equal(before, after)
    np.testing.assert_allclose(after.numpy(), model.eval()(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["Final", "Sum", "EveryN"])
def test_output_modes_say_what_comes_back(mode):
    torch.manual_seed(5)
    model = Classifier()
    x, labels = batch(4 * 6)
    options = poptorch.Options().deviceIterations(6)
    options.outputMode(poptorch.OutputMode[mode], *([2] if mode == "EveryN" else []))
    trained = copy.deepcopy(model)
    training = poptorch.trainingModel(trained, options, torch.optim.SGD(trained.parameters(), lr=0.0))
    _, loss = training(x, labels)
    _, losses = reference(model, x, labels, 4, rate=0.0)
    wanted = {"Final": losses[-1], "Sum": losses.sum(), "EveryN": losses[1::2]}[mode]
    np.testing.assert_allclose(loss.numpy(), wanted.numpy(), rtol=1e-5)


def test_an_operation_without_an_entry_is_told_with_its_module_and_line():
    class Odd(nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x)

    with pytest.raises(poptorch.UnsupportedOperation, match=r"special_bessel_j0.*test_training.py") as caught:
        poptorch.inferenceModel(Odd())(torch.ones(3))
    assert "bessel" in str(caught.value)
