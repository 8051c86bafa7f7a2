"""Networks that train, the tutorials' on 1,472 tiles: host time to build them, an epoch, a step against PyTorch's on the CPU."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, in_new_process, peak_bytes, seconds
from pypoplar import FLOAT, resources

BATCH = 8
TIMED = """
import json, sys, time
sys.path.insert(0, {directory!r})
import {script}
from pypoplar import FLOAT
begin = time.perf_counter()
{script}.build(FLOAT, {batch}, 25, {rate}, {tiles})
print(json.dumps({{"seconds": time.perf_counter() - begin}}))
"""


def tutorial(name: str) -> ModuleType:
    """The script of a tutorial as a module."""
    directory = str(resources.directory("tutorials"))
    if directory not in sys.path:
        sys.path.insert(0, directory)
    return __import__(name)


def build_seconds(script: str, batch: int, rate: float, tiles: int) -> tuple[float, float]:
    """Graph and Engine in a new process: without a cache of compiled codelets, and with it."""
    code = TIMED.format(directory=str(resources.directory("tutorials")), script=script, batch=batch, rate=rate, tiles=tiles)
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (float(in_new_process(code, PYPOPLAR_CACHE_DIR=cache)["seconds"]) for _ in range(2))
    return cold, warm


def pytorch_step(network: Callable[[Any], Any], shape: list[int]) -> float | None:
    """Seconds of a training step of a network on random images, the better of one and two threads; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    random = np.random.default_rng(0)
    images = torch.tensor(random.standard_normal((BATCH, *shape), np.float32))
    labels = torch.tensor(random.integers(0, 10, BATCH))
    trained = network(torch)
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.03)

    def step() -> None:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(trained(images), labels).backward()
        optimiser.step()

    return fastest(torch, step)


def fastest(torch: Any, step: Callable[[], None]) -> float:
    """Seconds of a step in PyTorch, the better of one and two threads."""
    taken = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        taken.append(seconds(step, repeats=50, warm=10))
    return min(taken)


def convolutional(torch: Any) -> Any:
    nn = torch.nn
    features = [nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*features, nn.Linear(1600, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def recurrent(torch: Any) -> Any:
    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.linear = torch.nn.LSTM(8, 64, batch_first=True), torch.nn.Linear(64, 10)

        def forward(self, rows: Any) -> Any:
            return self.linear(self.lstm(rows)[0][:, -1])

    return Network()


def step_figures(name: str, own: float, theirs: float | None) -> list[Figure]:
    against = [] if theirs is None else [Figure("  against PyTorch's on the CPU", own / theirs, "x", 10)]
    return [Figure(f"{name}: a training step", own * 1e3, "ms", note="" if theirs else "PyTorch is not installed"), *against]


def measure(smoke: bool) -> list[Figure]:
    tiles = 16 if smoke else 1472
    cnn, lstm, training = (tutorial(name) for name in ("mnist_cnn", "digits_lstm", "_training"))
    figures = []
    if not smoke:
        cold, warm = build_seconds("mnist_cnn", BATCH, 0.03, tiles)
        figures += [
            Figure("CNN on 1472 tiles: graph and Engine, nothing cached", cold, "s", 45),
            Figure("  the same with compiled codelets in the cache", warm, "s", 15),
        ]
    images, labels, *_ = cnn.load(None, 10 if smoke else 100)
    trainer = cnn.build(FLOAT, BATCH, 5 if smoke else 25, 0.03, tiles)
    trainer.write(cnn.initial({name: value.shape for name, value in trainer.read().items()}, 0))
    epoch = seconds(lambda: training.run_epoch(trainer, trainer.TRAIN, BATCH, labels, images=images), repeats=1 if smoke else 3)
    figures.append(Figure("  an epoch of the digits", epoch, "s", 10))
    own = seconds(lambda: trainer.engine.run(trainer.TRAIN), repeats=1 if smoke else 7) / trainer.steps
    figures += step_figures("CNN", own, None if smoke else pytorch_step(convolutional, [1, 28, 28]))

    trainer = lstm.build(FLOAT, BATCH, 5 if smoke else 25, 0.3, tiles)
    trainer.write(lstm.initial({name: value.shape for name, value in trainer.read().items()}, 0))
    own = seconds(lambda: trainer.engine.run(trainer.TRAIN), repeats=1 if smoke else 7) / trainer.steps
    figures += step_figures("LSTM", own, None if smoke else pytorch_step(recurrent, [8, 8]))
    figures.append(Figure("  memory of the process", peak_bytes() / 2**30, "GiB", 2))
    return figures


ROW = Row("networks", measure)
