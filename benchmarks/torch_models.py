"""Models of PyTorch through `pypoplar.poptorch`: capture and lowering, and a step against the hand-written tutorial's."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate, seconds
from benchmarks.networks import BATCH, convolutional, tutorial
from pypoplar import FLOAT

STEPS = 25  # of a call


def measure(smoke: bool) -> list[Figure]:
    try:
        import torch
    except ImportError:
        return [Figure("models of PyTorch", 0, "", note="PyTorch is not installed")]
    figures = step_figures(torch, smoke)
    building = [("CNN", trained(torch, convolutional(torch)), images(torch, BATCH, 10), 5)]
    if not smoke:
        building.append(("BERT-tiny", trained(torch, encoder(torch)), tokens(torch), 15))
    for name, model, given, goal in building:
        figures.append(Figure(f"{name}: capture and lowering", lowering_seconds(model, given, 16 if smoke else 1472), "s", goal))
    return figures


def step_figures(torch: Any, smoke: bool) -> list[Figure]:
    """The CNN's training step, in host time and predicted cycles, against that of the tutorial."""
    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    building.TILES = 16 if smoke else 1472
    steps = 5 if smoke else STEPS
    model = trained(torch, convolutional(torch))
    options = poptorch.Options().deviceIterations(steps)
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.03))
    given = images(torch, BATCH * steps, 10)
    training(*given)
    cycles = training.cycleCount() / steps

    cnn = tutorial("mnist_cnn")
    trainer = cnn.build(FLOAT, BATCH, steps, 0.03, building.TILES)
    trainer.write(cnn.initial({name: value.shape for name, value in trainer.read().items()}, 0))
    pixels = np.random.default_rng(0).standard_normal((BATCH * steps, 784), np.float32)
    labels = np.random.default_rng(0).integers(0, 10, BATCH * steps, np.uint32)
    calls = [lambda: training(*given), lambda: trainer.run(trainer.TRAIN, labels=labels, images=pixels)]
    own, hand = (taken / steps for taken in alternate(calls, repeats=1 if smoke else 7))
    execution = trainer.prediction().execution
    assert execution is not None, "it has run"
    by_hand = execution.totalCycles.total / steps
    return [
        Figure("CNN through the front end: a training step", own * 1e3, "ms"),
        Figure("  against the hand-written tutorial", own / hand, "x", 1.3),
        Figure("  predicted cycles", cycles, "cycles"),
        Figure("  against the hand-written tutorial", cycles / by_hand, "x", 1.3),
    ]


def lowering_seconds(model: Any, given: tuple[Any, ...], tiles: int) -> float:
    """Capture and lowering of a training model, without its Engine."""
    from pypoplar.poptorch.capture import capture
    from pypoplar.poptorch.executor import building
    from pypoplar.poptorch.lowering.walks.model_walk import lower_graph

    building.TILES = tiles

    def lower() -> None:
        graph = building.new_graph(building.make_device(1))
        lower_graph(graph, capture(model, given, {}, True), True)

    return seconds(lower, repeats=1, warm=0)


def trained(torch: Any, network: Any) -> Any:
    """A network with its loss beside its output."""

    class WithLoss(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any, labels: Any) -> Any:
            y = self.network(x)
            return y, torch.nn.functional.cross_entropy(y, labels)

    return WithLoss()


def encoder(torch: Any) -> Any:
    """A transformer of the size of BERT-tiny: 2 layers of 128 units and 2 heads, 30,522 tokens, 128 of them a sample."""

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(128, 2, 512, 0.1, "gelu", batch_first=True)
            self.tokens, self.places = torch.nn.Embedding(30522, 128), torch.nn.Parameter(torch.zeros(128, 128))
            self.layers, self.head = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(128, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(self.tokens(x) + self.places)[:, 0])

    return Encoder()


def images(torch: Any, count: int, classes: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 1, 28, 28, generator=generator), torch.randint(0, classes, (count,), generator=generator)


def tokens(torch: Any) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 30522, (2, 128), generator=generator), torch.randint(0, 2, (2,), generator=generator)


ROW = Row("torch_models", measure)
