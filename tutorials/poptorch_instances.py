"""The network of `poptorch_replicas` in several processes, which share its replicas.

Four replicas train in one process, or in two that have two of them each and meet by MPI where replicas do. The losses
are the same to the bit. It needs PyTorch and MPI, the extras ``pytorch`` and ``mpi``; in one process PyTorch alone.

    pypoplar tutorial poptorch_instances 1               an epoch in one process
    poprun --num-replicas 4 --num-instances 2 python poptorch_instances.py 1
                                                         the same in two, of a copy: `pypoplar tutorial poptorch_instances --copy .`

What to look at
- Without `poprun` there is one instance, and `popdist.poptorch.Options` has one replica; the script takes four then.
- `DataLoader` gives an instance the images of its replicas, of every batch of all: no image is left out or comes twice.
- `popdist.allGather` brings together what instances have on the host. What replicas have is added up on the device.
- Every instance runs the whole script. What only one should do stands behind `getInstanceIndex() == 0`.

Exercises
1. Let each replica take 16 images of a step. How many calls has an epoch then?
"""

import sys

import numpy as np
import torch
from poptorch_replicas import Network, arguments, digits

from pypoplar import FileLoadError, popdist, poptorch
from pypoplar.popdist import poptorch as instances


def make_options(chosen):
    """Options of a model whose replicas are those of all instances, or all of one process."""
    if popdist.isPopdistEnvSet():
        return instances.Options(ipus_per_replica=1)
    return poptorch.Options().replicationFactor(chosen.replicas)


def all_losses(losses, steps):
    """The losses of all replicas, in the order in which one process has them: step by step."""
    gathered = popdist.allGather(losses.numpy())
    return np.moveaxis(gathered.reshape(len(gathered), steps, -1), 0, 1).reshape(steps, -1)


def main(given=None):
    chosen = arguments(given)
    (images, labels), _ = digits(chosen.data)
    torch.manual_seed(chosen.seed)
    model = Network()
    options = make_options(chosen).deviceIterations(chosen.steps)
    options.outputMode(poptorch.OutputMode.All)
    data = poptorch.DataLoader(options, torch.utils.data.TensorDataset(images, labels), batch_size=chosen.batch, shuffle=True)
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=chosen.rate))
    for epoch in range(1, chosen.epochs + 1):
        losses = [all_losses(training(some, wanted)[1].reshape(-1), chosen.steps) for some, wanted in data]
        if popdist.getInstanceIndex() == 0:
            mean = float(np.concatenate(losses).mean())
            print(f"Epoch {epoch}: {len(losses)} calls of {losses[0].size} losses, their mean {mean:.4f} ({mean.hex()})")


if __name__ == "__main__":
    try:
        main()
    except FileLoadError as problem:
        sys.exit(f"poptorch_instances: {problem}")
