"""What two instances do by mistake, one after another: each of them is told, and both can go on."""

import numpy as np

from pypoplar import Graph, IPUModel, PoplarError, popdist
from pypoplar.engine.engine import Engine
from pypoplar.program import Sequence

me = popdist.getInstanceIndex()
popdist.registerCommunicator([0, 1], 1)


def graph_of(replicas):
    model = IPUModel("tiny")
    model.numIPUs = replicas
    Engine(Graph(model.createDevice(), replicas), Sequence())


MISTAKES = {
    "shapes": lambda: popdist.allReduceSum(np.zeros(2 + me)),
    "types": lambda: popdist.allGather(np.zeros(2, np.float32 if me else np.int32)),
    "number and array": lambda: popdist.allReduceSum([3] if me else 3),
    "roots": lambda: popdist.broadcast(3, root=me),
    "calls": lambda: popdist.allGather(3) if me else popdist.synchronize(),
    "communicators": lambda: popdist.allReduceSum(3, communicatorId=me),
    "members": lambda: popdist.registerCommunicator([0, 1] if me else [0], 2),
    "replicas": lambda: graph_of(8),
}
for name, mistake in MISTAKES.items():
    try:
        mistake()
        told = "nothing"
    except PoplarError as error:
        told = f"{type(error).__name__}: {error}"
    print(f"{name}|{me}|{told}\n", end="", flush=True)
assert popdist.allReduceSum(me) == 1
