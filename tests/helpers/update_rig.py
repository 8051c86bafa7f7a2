"""Steps of optimisers on a machine of a few tiles, with gradients from the host, beside those of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from pypoplar import IPUModel, popops, poputil
from pypoplar.engine.engine import Engine
from pypoplar.graph.graph import Graph
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.update.accumulation import GradientReduction
from pypoplar.poptorch.update.host_optimizer import HostOptimizer
from pypoplar.poptorch.update.optimizer import DeviceOptimizer
from pypoplar.poptorch.update.parameter_step import TrainedParameter
from pypoplar.program import Sequence

Make = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
SHAPES = {"layer.weight": (3, 5), "layer.bias": (4,), "scale": ()}


def parameters(dtype: torch.dtype = torch.float32, seed: int = 0) -> dict[str, torch.nn.Parameter]:
    """Some parameters, one of them a single number."""
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for name, shape in SHAPES.items()}


def gradients(call: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Gradients whose lengths differ from element to element and from call to call."""
    generator = torch.Generator().manual_seed(100 + call)
    return {
        name: (torch.randn(shape, generator=generator) * 10 ** (torch.rand(shape, generator=generator) * 3 - 2)).to(dtype)
        for name, shape in SHAPES.items()
    }


class UpdateRig:
    """An optimiser on the device. `left_out` names parameters that have no gradient."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        weights: Mapping[str, torch.nn.Parameter],
        accumulated: int = 1,
        reduction: GradientReduction = GradientReduction.MEAN,
        left_out: tuple[str, ...] = (),
    ) -> None:
        model = IPUModel("bow")
        model.numIPUs, model.tilesPerIPU = 1, 4
        device = model.createDevice()
        self.graph = Graph(device.getTarget())
        popops.addCodelets(self.graph)
        self.weights, self.accumulated = dict(weights), accumulated
        self.update = HostOptimizer.read(optimizer, self.weights, reduction)
        update = DeviceOptimizer(self.graph, self.update)
        trained = []
        for name, weight in self.weights.items():
            made = []
            for handle in (name, f"gradient/{name}"):
                tensor = self.graph.addVariable(ELEMENT_TYPES[weight.dtype], list(weight.shape), handle)
                poputil.mapTensorLinearly(self.graph, tensor, 1, 2)
                self.graph.createHostWrite(handle, tensor)
                self.graph.createHostRead(handle, tensor)
                made.append(tensor)
            if name not in left_out:
                trained.append(TrainedParameter(name, *made))
        batch = Sequence()
        behind = update.build(trained, batch, accumulated)
        self.engine = Engine(self.graph, [batch, behind])
        self.engine.load(device)
        for name, weight in self.weights.items():
            self.engine.writeTensor(name, weight.detach().numpy())
        self.set(optimizer)

    def set(self, optimizer: torch.optim.Optimizer) -> None:
        """Give the device an optimiser's numbers."""
        for handle, number in self.update.numbers(optimizer).items():
            self.engine.writeTensor(handle, np.float32(number))

    def step(self, *batches: Mapping[str, torch.Tensor]) -> None:
        """One step with the gradients of as many batches as are accumulated."""
        assert len(batches) == self.accumulated
        for batch in batches:
            for name, gradient in batch.items():
                self.engine.writeTensor(f"gradient/{name}", gradient.numpy())
            self.engine.run(0)
        self.engine.run(1)

    def weight(self, name: str) -> Any:
        """A parameter's elements."""
        return self.engine.readTensor(name).reshape(self.weights[name].shape).astype(np.float32)


def steps_alike(
    make: Make,
    wanted: Make | None = None,
    calls: int = 10,
    change: Callable[[int, torch.optim.Optimizer], bool] | None = None,
    dtype: torch.dtype = torch.float32,
    relative: float = 2e-5,
    absolute: float = 2e-6,
    **rig: Any,
) -> UpdateRig:
    """Compare steps with those that PyTorch makes in float, of `wanted` if it is another optimiser.

    `change` changes an optimiser before a call, and says whether it did.
    """
    mine, theirs = parameters(dtype), {name: torch.nn.Parameter(one.detach().float()) for name, one in parameters(dtype).items()}
    optimizer, other = make(list(mine.values())), (wanted or make)(list(theirs.values()))
    machine = UpdateRig(optimizer, mine, **rig)
    for call in range(calls):
        if change and change(call, optimizer):
            machine.set(optimizer)
            change(call, other)
        batches = [gradients(call * machine.accumulated + batch, dtype) for batch in range(machine.accumulated)]
        machine.step(*batches)
        divisor = 1 if rig.get("reduction") is GradientReduction.SUM else machine.accumulated
        for name, weight in theirs.items():
            weight.grad = None if name in rig.get("left_out", ()) else sum(one[name].float() for one in batches) / divisor
        other.step()
    for name, weight in theirs.items():
        np.testing.assert_allclose(machine.weight(name), weight.detach().numpy(), rtol=relative, atol=absolute, err_msg=name)
    return machine
