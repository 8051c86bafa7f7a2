"""Replicas of the MNIST network: what more of them cost to build, to hold and to run, and what a meeting costs."""

from __future__ import annotations

import importlib.util
import json
import time
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate, in_new_process, seconds
from benchmarks.networks import BATCH, tutorial
from pypoplar import FLOAT, Device, Engine, Graph, IPUModel
from pypoplar.host_memory import resident
from pypoplar.program import CrossReplicaCopy, Repeat, Sequence

STEPS, COPIES = 5, 1000


def replicated(tiles: int, replicas: int) -> Device:
    """So many IPUs of so many tiles."""
    model = IPUModel("bow")
    model.numIPUs, model.tilesPerIPU = replicas, tiles
    return model.createDevice()


class Built(Engine):
    """The engine of a tutorial that is built, and neither loaded nor connected."""

    def load(self, device: Device | None = None) -> None:
        """Nothing is touched."""

    def connectStream(self, name: str, array: Any) -> None:
        """Nothing is read."""


def build(tiles: int, replicas: int) -> Any:
    """The hand-written network on replicas that do not meet: its graph and Engine."""
    cnn, training = tutorial("mnist_cnn"), tutorial("_training")
    device = replicated(tiles, replicas)

    def new_graph(_: int, *libraries: Any) -> tuple[Device, Graph]:
        graph = Graph(device, replicas)
        for library in libraries:
            library.addCodelets(graph)
        return device, graph

    cnn.new_graph, training.Engine = new_graph, Built
    return cnn.build(FLOAT, BATCH, STEPS, 0.03, tiles)


def main(tiles: int, replicas: int) -> None:
    """Print what a process takes that builds and loads the network: the second time, when its code is compiled."""
    build(tiles, replicas)
    begin = time.process_time()
    trainer = build(tiles, replicas)
    taken = time.process_time() - begin
    Engine.load(trainer.engine, trainer.device)
    whole = sum(replica.state.memory.whole.nbytes for replica in trainer.engine._replicas)
    print(json.dumps({"seconds": taken, "tiles": whole, "held": resident() or 0}))


def training_step(tiles: int, replicas: int) -> Any:
    """A call of the network in PyTorch, which adds up gradients, as a function of nothing."""
    import torch

    from pypoplar import poptorch
    from pypoplar.poptorch.executor import building

    building.TILES = tiles
    model = tutorial("poptorch_replicas").Network()
    options = poptorch.Options().replicationFactor(replicas).deviceIterations(STEPS)
    options._Popart.setEngineOptions({"pypoplar.threads": "2"})
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.03))
    images = torch.randn(BATCH * STEPS * replicas, 1, 28, 28)
    labels = torch.arange(len(images)) % 10
    return lambda: training(images, labels)


def meeting_seconds() -> float:
    """A CrossReplicaCopy of 8 bytes between two replicas, in a loop."""
    device = replicated(4, 2)
    graph = Graph(device, 2)
    x = graph.addVariable(FLOAT, [2], "x")
    graph.setTileMapping(x, 0)
    graph.setInitialValue(x, np.zeros(2, np.float32))
    engine = Engine(graph, Repeat(COPIES, Sequence([CrossReplicaCopy(x, x, {0: 1, 1: 0})])))
    engine.load(device)
    return seconds(engine.run, clock=time.process_time) / COPIES


def measure(smoke: bool) -> list[Figure]:
    tiles, many, several = (32, 2, 2) if smoke else (1472, 16, 4)
    one, more = (in_new_process(f"from benchmarks import replicas; replicas.main({tiles}, {number})") for number in (1, many))
    added = more["tiles"] - one["tiles"]
    beyond = (more["held"] - one["held"] - added) / added
    figures = [
        Figure(f"CNN on {tiles} tiles: graph and Engine", one["seconds"], "s", details={"one": one, "more": more}),
        Figure(f"  of {many} replicas, against one", more["seconds"] / one["seconds"], "x", 1.1),
        Figure(f"  memory that {many - 1} more hold beside that of their tiles, against it", beyond, "x", 0.3),
        Figure(f"  memory of the process of {many}, against that of their tiles", more["held"] / more["tiles"], "x"),
        Figure("CrossReplicaCopy of 8 B, 2 replicas", meeting_seconds() * 1e6, "us", 100),
    ]
    if importlib.util.find_spec("torch") is None:
        return [*figures, Figure("a training step of replicas", 0, "", note="PyTorch is not installed")]
    calls = [training_step(32 if smoke else 1472, number) for number in (1, several)]
    own, theirs = (taken / STEPS for taken in alternate(calls, repeats=1 if smoke else 5, clock=time.process_time))
    return [
        *figures,
        Figure(f"CNN in PyTorch: a training step of {several} replicas, processor time", theirs * 1e3, "ms"),
        Figure(f"  against {several} steps of one", theirs / (several * own), "x", 1.0),
    ]


ROW = Row("replicas", measure)
