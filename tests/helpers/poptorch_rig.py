"""Runs functions of PyTorch on the simulated IPU, and compares their results and gradients with PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree

from pypoplar import IPUModel, compileGraph, poplin, popnn, popops, poprand
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.capture import capture
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.executor.batches import Batches
from pypoplar.poptorch.executor.compiled import CompiledModel, lower_model
from pypoplar.poptorch.executor.known_graphs.captured_facts import GraphFacts
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.lowering import whole_table  # noqa: F401 (the table's entries)
from pypoplar.poptorch.lowering.walks.model_walk import lower_graph
from pypoplar.poptorch.operators import identity_loss
from pypoplar.poptorch.update.accumulation import GradientReduction, PartOf
from pypoplar.poptorch.update.parameter_step import TrainedParameter, WeightHomes
from pypoplar.program import Sequence

TILES = 16
TOLERANCES = {torch.float32: (1e-5, 1e-6), torch.float16: (6e-3, 2e-3)}  # relative and absolute; of half beside a float result


class Gradients:
    """Takes the place of an optimiser: the host reads gradients, and nothing is updated."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.ahead = graph, Sequence()

    def named(self) -> dict[str, Tensor]:
        return {}

    def build(
        self,
        trained: SequenceOf[TrainedParameter],
        batch: Sequence,
        accumulated: int,
        part_of: PartOf | None = None,
        homes: WeightHomes | None = None,
    ) -> Sequence:
        for one in trained:
            self.graph.createHostRead(f"gradient/{one.name}", one.gradient)
        return Sequence()


class Differentiated(torch.nn.Module):  # type: ignore[misc]
    """A function of parameters; the sum of its first result times fixed numbers is the loss."""

    def __init__(self, function: Callable[..., Any], tensors: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.function = function
        self.tensors = torch.nn.ParameterList([torch.nn.Parameter(tensor.clone()) for tensor in tensors])

    def forward(self, *arguments: torch.Tensor) -> Any:
        results = pytree.tree_leaves(self.function(*self.tensors, *arguments))
        weights = torch.sin(torch.arange(results[0].numel()) * 1.7).reshape(results[0].shape)
        return *results, identity_loss(results[0].float() * weights, "sum")


def compiled(
    module: torch.nn.Module, arguments: tuple[Any, ...], training: bool, tiles: int = TILES, stable_norms: bool = False
) -> CompiledModel:
    """A module on a machine with few tiles; in training its gradients can be read as ``gradient/NAME``."""
    model = IPUModel("bow")
    model.numIPUs, model.tilesPerIPU = 1, tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    for library in (popops, poplin, popnn, poprand):
        library.addCodelets(graph)
    joint = capture(module, arguments, {}, training)
    lowered_graph = lower_graph(graph, joint, training, stable_norms=stable_norms)
    settings = ModelSettings(Batches(1, 1, OutputMode.All), GradientReduction.MEAN, ())
    lowered = lower_model(lowered_graph, settings, Gradients(graph) if training else None)
    result = CompiledModel(
        GraphFacts.of(joint, rounds=False), device, settings, lowered.interface, compileGraph(graph, [lowered.program])
    )
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    result.write({name: tensor.detach() for name, tensor in named})
    return result


def agrees(got: Any, wanted: torch.Tensor, what: str, type: torch.dtype | None = None, scale: float = 1.0) -> None:
    """Assert that a result is PyTorch's, as near as its type, or another `type` that it was computed from, allows.

    `scale` is how large the terms are whose sum a result is.
    """
    array = got.numpy() if isinstance(got, torch.Tensor) else np.asarray(got)
    assert list(array.shape) == list(wanted.shape), f"{what}: shape {list(array.shape)}, PyTorch has {list(wanted.shape)}"
    if wanted.dtype not in TOLERANCES:
        np.testing.assert_array_equal(array, wanted.numpy(), err_msg=what)
        return
    relative, absolute = TOLERANCES[type or wanted.dtype]
    finite = wanted.float()[torch.isfinite(wanted)].abs()
    scale = max(scale, float(finite.max()) if finite.numel() else 0.0)
    np.testing.assert_allclose(
        array.astype(np.float64), wanted.double().numpy(), rtol=relative, atol=absolute * scale, err_msg=what
    )


def check(
    function: Callable[..., Any], *tensors: torch.Tensor, arguments: tuple[Any, ...] = (), gradients: bool = True
) -> CompiledModel:
    """Compare a function's results with PyTorch's, and its gradients by `tensors`; `arguments` have none."""
    if not gradients:
        return _check_forward(function, tensors, arguments)
    module = Differentiated(function, tensors)
    wanted = module(*arguments)
    wanted[-1].backward()
    machine = compiled(module, arguments, training=True)
    coarsest = torch.float16 if any(one.dtype is torch.float16 for one in (*tensors, *arguments)) else None
    *results, loss = machine.run(arguments)
    for number, (got, expected) in enumerate(zip(results, wanted[:-1], strict=True)):
        agrees(got, expected.detach(), f"result {number}", coarsest)
    agrees(loss, wanted[-1].detach(), "the loss", coarsest, max(1.0, float(wanted[0].detach().float().abs().sum())))
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            agrees(machine.engine.readTensor(f"gradient/{name}").reshape(parameter.shape), parameter.grad, f"gradient by {name}")
    return machine


class Plain(torch.nn.Module):  # type: ignore[misc]
    """A function of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.function(*arguments)


def _check_forward(function: Callable[..., Any], tensors: tuple[torch.Tensor, ...], arguments: tuple[Any, ...]) -> CompiledModel:
    given = (*tensors, *arguments)
    machine = compiled(Plain(function), given, training=False)
    with torch.no_grad():
        wanted = pytree.tree_leaves(function(*given))
    for number, (got, expected) in enumerate(zip(machine.run(given), wanted, strict=True)):
        agrees(got, expected, f"result {number}")
    return machine
