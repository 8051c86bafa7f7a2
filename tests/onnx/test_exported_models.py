"""A model that PyTorch has exported gives and costs what the module itself does under poptorch."""

import io

import pytest
import torch
from torch import nn

import pypoplar.onnx
from pypoplar import poptorch


class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(400, 32), nn.Linear(32, 10)

    def forward(self, x):
        for conv in (self.conv1, self.conv2):
            x = torch.max_pool2d(torch.relu(conv(x)), 2)
        return torch.log_softmax(self.fc2(torch.relu(self.fc1(torch.flatten(x, 1)))), 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(2))
        self.bn1, self.bn2 = nn.BatchNorm2d(16), nn.BatchNorm2d(16)

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + x)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(16, 32, 2)

    def forward(self, x):
        return self.lstm(x)[0]


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)


MODELS = {
    "mnist": (Mnist, (4, 1, 28, 28)),
    "block": (Block, (2, 16, 8, 8)),
    "encoder": (encoder, (2, 10, 32)),
    "lstm": (Lstm, (7, 3, 16)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of PyTorch's exporter
@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_cycles_are_those_of_the_module(name):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    module, x, file = make().eval(), torch.randn(shape), io.BytesIO()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        kept = torch.onnx.TrainingMode.PRESERVE  # norms stay nodes of their own
        torch.onnx.export(module, (x,), file, dynamo=False, input_names=["x"], training=kept, do_constant_folding=False)
        own = poptorch.inferenceModel(module)
        wanted = own(x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    loaded = pypoplar.onnx.load(file.getvalue())
    (result,) = loaded(x=x.numpy()).values()
    torch.testing.assert_close(torch.from_numpy(result), wanted, rtol=1e-6, atol=1e-6)
    assert abs(loaded.cycleCount() / own.cycleCount() - 1) <= 0.05
