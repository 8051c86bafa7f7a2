"""From a module and its options to a compiled model."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen

from pypoplar import poplin, popnn, popops, poprand
from pypoplar.device import Device, IPUModel
from pypoplar.graph.graph import Graph
from pypoplar.poptorch.capture import JointGraph, capture
from pypoplar.poptorch.enums import ReductionType
from pypoplar.poptorch.executor.batches import Batches
from pypoplar.poptorch.executor.compiled import CompiledModel
from pypoplar.poptorch.lowering import operations  # noqa: F401 (the table's entries)
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.options import Options
from pypoplar.poptorch.update.optimizer import DeviceOptimizer

TILES = 1472  # of a Bow


@frozen(eq=False)
class Built:
    """A compiled model, what its optimiser does, and what it was compiled for."""

    compiled: CompiledModel
    update: DeviceOptimizer | None
    joint: JointGraph
    arguments: list[Any]  # descriptions of a call's flattened arguments


def build(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    optimizer: torch.optim.Optimizer | None,
) -> Built:
    """Compile a module for arguments like these; it trains if there is an optimiser."""
    batches = batches_of(options)
    first_args, first_kwargs = pytree.tree_map(
        lambda leaf: batches.first(leaf, "an argument") if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
    )
    joint = capture(module, first_args, first_kwargs, training=optimizer is not None)
    device = make_device(1)
    graph = new_graph(device)
    lowering = GraphLowering(graph, joint, optimizer is not None, product_options(options))
    lowering.run()
    update = None if optimizer is None else DeviceOptimizer(graph, optimizer, dict(module.named_parameters()))
    mean = options.Training.accumulation_and_replication_reduction_type is ReductionType.Mean
    compiled = CompiledModel(lowering, device, batches, update, mean)
    return Built(compiled, update, joint, describe(args, kwargs))


def batches_of(options: Options) -> Batches:
    """How options cut a call's batch. The output mode is no longer the default here."""
    accumulated = options.Training.gradient_accumulation
    return Batches(options.device_iterations, accumulated, options.output_mode, options.output_return_period)


def describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Shapes and types of tensors among a call's flattened arguments, and the others themselves."""
    return [
        (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf for leaf in pytree.tree_leaves((args, kwargs))
    ]


def product_options(options: Options) -> dict[str, str]:
    """What plans of products and convolutions are told."""
    told = {}
    proportion = options.available_memory_proportion.get(0)
    if proportion is not None:
        told["availableMemoryProportion"] = str(proportion)
    return told


def make_device(ipus: int) -> Device:
    """So many Bows."""
    model = IPUModel("bow")
    model.numIPUs, model.tilesPerIPU = ipus, TILES
    return model.createDevice()


def new_graph(device: Device) -> Graph:
    """A graph for a device, with the device code of the libraries."""
    graph = Graph(device.getTarget())
    for library in (popops, poplin, popnn, poprand):
        library.addCodelets(graph)
    return graph
