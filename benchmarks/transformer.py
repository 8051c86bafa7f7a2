"""The transformer of the tutorials at batch 4 on 1,472 tiles: host time to build it, and a step against PyTorch's on the CPU."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, peak_bytes, seconds
from benchmarks.networks import build_seconds, fastest, step_figures, tutorial
from pypoplar import FLOAT

BATCH = 4
RATE = 0.001


def small(script: ModuleType) -> None:
    """Make the network fit on a few tiles."""
    script.LAYERS, script.UNITS, script.TOKENS, script.HIDDEN = 1, 16, 8, 2  # type: ignore[attr-defined]


def pytorch_step(script: ModuleType) -> float | None:
    """Seconds of a step of the same network in PyTorch; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    nn, functional = torch.nn, torch.nn.functional

    class Network(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = (
                nn.Embedding(script.BYTES, script.UNITS),
                nn.Parameter(torch.zeros(script.TOKENS, script.UNITS)),
            )
            sizes = script.UNITS, script.HEADS, 4 * script.UNITS, 0.0
            layers = [
                nn.TransformerEncoderLayer(*sizes, functional.gelu, batch_first=True, norm_first=True) for _ in range(script.LAYERS)
            ]
            self.layers = nn.Sequential(*layers, nn.LayerNorm(script.UNITS), nn.Linear(script.UNITS, script.BYTES))

        def forward(self, tokens: Any) -> Any:
            return self.layers(self.table(tokens) + self.places)

    network = Network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE)
    tokens, labels = script.masked(script.texts()[0][:BATCH], np.random.default_rng(0))
    goals = torch.tensor(np.where(labels > script.BYTES, -100, labels.astype(np.int64)).ravel())
    texts = torch.tensor(tokens.astype(np.int64))

    def step() -> None:
        optimiser.zero_grad()
        functional.cross_entropy(network(texts).reshape(-1, script.BYTES), goals).backward()
        optimiser.step()

    return fastest(torch, step)


def measure(smoke: bool) -> list[Figure]:
    script, tiles = tutorial("transformer"), 8 if smoke else 1472
    figures = []
    if smoke:
        small(script)
    else:
        cold, warm = build_seconds("transformer", BATCH, RATE, tiles)
        figures += [
            Figure("Transformer on 1472 tiles: graph and Engine, nothing cached", cold, "s", 60),
            Figure("  the same with compiled codelets in the cache", warm, "s", 30),
        ]
    trainer = script.build(FLOAT, BATCH, 5, RATE, tiles)
    trainer.write(script.initial({name: value.shape for name, value in trainer.read().items()}, 0))
    own = seconds(lambda: trainer.engine.run(trainer.TRAIN), repeats=1 if smoke else 7) / trainer.steps
    figures += step_figures("Transformer", own, None if smoke else pytorch_step(script))
    figures.append(Figure("  memory of the process", peak_bytes() / 2**30, "GiB", 2))
    return figures


ROW = Row("transformer", measure)
