"""From a module and its options to a compiled model."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen

from pypoplar import poplin, popnn, popops, poprand
from pypoplar.device import Device, IPUModel
from pypoplar.graph.graph import Graph
from pypoplar.poptorch.capture import CaptureError, JointGraph, capture
from pypoplar.poptorch.executor.compiled import CompiledModel, SavedExecutable
from pypoplar.poptorch.executor.index_ranges import ranges_of_indices
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.executor.tensor_names import named_tensors
from pypoplar.poptorch.lowering import operations  # noqa: F401 (the table's entries)
from pypoplar.poptorch.lowering.ipu_placement import ipus_needed, stages_of
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.support import unsupported
from pypoplar.poptorch.operators import name_calls
from pypoplar.poptorch.update.host_state import HostState
from pypoplar.poptorch.update.optimizer import DeviceOptimizer
from pypoplar.poptorch.user_log import say_once

TILES = 1472  # of a Bow


@frozen(eq=False)
class Built:
    """A compiled model, what its optimiser does, and what it was compiled for."""

    compiled: CompiledModel
    update: DeviceOptimizer | None
    states: HostState | None  # of the optimiser
    joint: JointGraph
    names: list[str]  # of tensors that can be anchored


def build(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    settings: ModelSettings,
    optimizer: torch.optim.Optimizer | None,
    saved: SavedExecutable | None = None,
) -> Built:
    """Compile a module for arguments like these; it trains if there is an optimiser. What was `saved` is not compiled."""
    batches = settings.batches
    first_args, first_kwargs = pytree.tree_map(
        lambda leaf: batches.first(leaf, "an argument") if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
    )
    try:
        joint = capture(module, first_args, first_kwargs, optimizer is not None, settings.strategy)
    except CaptureError as problem:
        raise problem.and_also([] if problem.rest is None else unsupported(problem.rest)) from problem.__cause__
    name_calls(joint.graph)
    settings.check_pipeline(stages_of(joint), optimizer is not None)
    ipus = ipus_needed(joint, settings.rounds)
    for ipu in settings.plans.proportions:
        if ipu >= ipus:
            say_once(f"Options.setAvailableMemoryProportion: IPU{ipu} changes nothing; the model takes {ipus}, from IPU0 on")
    device = make_device(ipus, settings.chip)
    graph = new_graph(device)
    lowering = GraphLowering(graph, joint, optimizer is not None, settings.plans, settings.stable_norms)
    lowering.ranges.update(ranges_of_indices(joint))
    update = None
    if optimizer is not None:
        parameters = dict(module.named_parameters(remove_duplicate=False))
        update = DeviceOptimizer(graph, optimizer, parameters, settings.reduction)
        assert joint.loss is not None
        lowering.loss_gradient = update.loss_scaling(joint.loss.meta["val"].dtype)
    lowering.run()
    key = "" if update is None else update.described()
    compiled = CompiledModel(lowering, device, settings, update, key, saved)
    states = None if update is None else HostState(update, compiled.engine, batches.iterations)
    return Built(compiled, update, states, joint, list(named_tensors(joint)))


def make_device(ipus: int, chip: str = "bow") -> Device:
    """So many chips of a kind."""
    model = IPUModel(chip)
    model.numIPUs, model.tilesPerIPU = ipus, min(TILES, model.tilesPerIPU)
    return model.createDevice()


def new_graph(device: Device) -> Graph:
    """A graph for a device, with the device code of the libraries."""
    graph = Graph(device.getTarget())
    for library in (popops, poplin, popnn, poprand):
        library.addCodelets(graph)
    return graph
