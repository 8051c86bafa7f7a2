"""Networks train as in PyTorch: from the same weights the losses of all steps, and running statistics, are PyTorch's."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch


class Residual(nn.Module):
    """A block of a ResNet, and a classifier."""

    def __init__(self):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.second, self.norm2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.shortcut, self.norm3 = nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8)
        self.classes = nn.Linear(8, 5)

    def forward(self, x):
        y = self.norm2(self.second(torch.relu(self.norm1(self.first(x)))))
        return self.classes(torch.relu(y + self.norm3(self.shortcut(x))).mean((2, 3)))


class Encoded(nn.Module):
    """An encoder of a transformer, and a classifier of the mean of its elements."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classes = nn.Linear(16, 5)

    def forward(self, x):
        return self.classes(self.encoder(x).mean(1))


class Recurrent(nn.Module):
    """A recurrent layer, and a classifier of its last output."""

    def __init__(self, kind):
        super().__init__()
        self.layer = kind(8, 16, batch_first=True)
        self.classes = nn.Linear(16, 5)

    def forward(self, x):
        return self.classes(self.layer(x)[0][:, -1])


class WithLoss(nn.Module):
    """A classifier whose loss is beside its output."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        output = self.model(x)
        return output, nn.functional.cross_entropy(output, labels)


NETWORKS = {
    "resnet": (Residual, (3, 6, 6), 0.05),
    "transformer": (Encoded, (6, 16), 0.05),
    "lstm": (lambda: Recurrent(nn.LSTM), (7, 8), 0.3),
    "gru": (lambda: Recurrent(nn.GRU), (7, 8), 0.3),
}


def losses(name, type, steps, tiles=12):
    """Losses of each step here and in PyTorch, and both models."""
    make, shape, rate = NETWORKS[name]
    torch.manual_seed(7)
    model = WithLoss(make()).to(type)
    other = copy.deepcopy(model).float()
    optimizers = [torch.optim.SGD(one.parameters(), lr=rate) for one in (model, other)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.poptorch.executor.building.TILES", tiles)
        training = poptorch.trainingModel(model, optimizer=optimizers[0])
        got, wanted = [], []
        for step in range(steps):
            x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(step % 8)).to(type)
            labels = torch.arange(4) % 3
            got.append(float(training(x, labels)[1]))
            loss = other(x.float(), labels)[1]
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
            wanted.append(float(loss.detach()))
    return got, wanted, model, other


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("type", "tolerance"), [(torch.float32, 1e-3), (torch.float16, 3e-2)], ids=["float", "half"])
def test_losses_are_pytorchs(name, type, tolerance):
    got, wanted, model, other = losses(name, type, 5)
    np.testing.assert_allclose(got, wanted, rtol=tolerance)
    for (called, mine), theirs in zip(model.named_buffers(), other.buffers(), strict=True):
        np.testing.assert_allclose(mine.double(), theirs.double(), rtol=tolerance, atol=tolerance, err_msg=called)
