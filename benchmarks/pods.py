"""A pod: routes and prices of messages between 64 IPUs, and what many replicas cost to price beside one."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, seconds
from pypoplar import Target
from pypoplar.compiler.exchange.exchange_costs import Messages, link_cycles, link_flows
from pypoplar.executable.exchange_account import MESSAGE

STAGES, WIDTH, ROWS = 4, 256, 32


def messages_between(target: Target, count: int) -> Messages:
    """So many messages from random tiles to random tiles of other IPUs, sorted by receiver."""
    drawn = np.random.default_rng(0)
    tiles, per_ipu = target.getNumTiles(), target.getTilesPerIPU()
    rows = np.zeros(count, MESSAGE)
    source = drawn.integers(0, tiles, count)
    apart = drawn.integers(1, target.getNumIPUs(), count) * per_ipu
    rows["source"], rows["destination"] = source, (source + apart) % tiles
    rows["bytes"] = 4 * drawn.integers(1, 64, count)
    order = np.argsort(rows["destination"], kind="stable")
    return Messages(rows[order], 256 * drawn.integers(0, 2000, count))


def predicted(tiles: int, replicas: int) -> float:
    """Seconds of the processor for what a training step in four stages would cost, on so many replicas of four IPUs."""
    import torch
    from torch import nn

    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    building.TILES = tiles
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH)) for _ in range(2 * STAGES)))
    for stage in range(STAGES):
        poptorch.BeginBlock(model[2 * stage], f"stage{stage}", ipu_id=stage)
    options = poptorch.Options().replicationFactor(replicas)
    options.Training.gradientAccumulation(2 * STAGES)
    training = poptorch.trainingModel(WithLoss.of(model), options, torch.optim.SGD(model.parameters(), lr=0.1))
    begin = time.process_time()
    training.predict(torch.zeros(2 * STAGES * replicas * ROWS, WIDTH))
    return time.process_time() - begin


class WithLoss:
    """Makes a module that gives the mean of another's result as its loss."""

    @staticmethod
    def of(model: Any) -> Any:
        """The module."""
        from torch import nn

        from pypoplar import poptorch

        class Mean(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, x: Any) -> Any:
                return poptorch.identity_loss(self.model(x), "mean")

        return Mean()


def measure(smoke: bool) -> list[Figure]:
    target = Target.createIPUTarget(64, 8 if smoke else 1472, "bow", opts={"ipuLinkTopology": "torus", "ipuLinkDomainSize": "16"})
    sent = messages_between(target, 1000 if smoke else 1_000_000)

    def price() -> None:
        link_cycles(target, link_flows(target, sent))

    taken = seconds(price, clock=time.process_time)
    figures = [Figure(f"routes and prices of {len(sent.rows):,} messages between 64 IPUs", taken, "s", 0.5)]
    if importlib.util.find_spec("torch") is None:
        return [*figures, Figure("predictions of replicas", 0, "", note="PyTorch is not installed")]
    tiles = 8 if smoke else 1472
    predicted(tiles, 2)  # compiles code
    one, many = (min(predicted(tiles, number) for _ in range(1 if smoke else 2)) for number in (1, 16))
    return [
        *figures,
        Figure("prediction of a training step on 4 IPUs", one, "s"),
        Figure("  of 16 replicas, 64 IPUs, against it", many / one, "x", 1.1),
    ]


ROW = Row("pods", measure)
