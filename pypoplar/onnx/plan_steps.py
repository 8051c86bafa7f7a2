"""A graph as it runs: values, the steps that compute them, and the plan that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from attrs import field, frozen

from pypoplar.onnx.node_call import NodeCall


@frozen(eq=False)
class GraphValue:
    """A tensor of the graph: known, with its elements on the host, or of the device "meta" and computed by a step."""

    tensor: torch.Tensor
    name: str
    sources: frozenset[str] = frozenset()  # inputs of the graph that its elements depend on
    weight: str = ""  # the initializer that it is, where that is trained

    @property
    def known(self) -> bool:
        """Whether the elements are known."""
        return self.tensor.device.type != "meta"


@frozen
class NodePlace:
    """Where a model says that a node runs: on which IPU, and in which stage of a pipeline. None: it does not say."""

    ipu: int | None = None
    stage: int | None = None


@frozen(eq=False)
class PlannedNode:
    """A node that the device computes."""

    call: NodeCall
    entry: Callable[..., Any]
    tensors: int
    operands: tuple[GraphValue | None, ...]
    results: tuple[GraphValue | None, ...]
    path: tuple[str, ...]  # of its module
    place: NodePlace

    @property
    def label(self) -> str:
        """How messages name the node."""
        return self.call.label


@frozen(eq=False)
class PlannedBranch:
    """A branch of an If that data choose: its own steps, and what comes out, unless it has problems."""

    steps: tuple[PlannedStep, ...]
    results: tuple[GraphValue, ...]
    problems: tuple[str, ...] = ()


@frozen(eq=False)
class PlannedChoice:
    """An If whose condition the device computes, which runs one of its branches."""

    condition: GraphValue
    then: PlannedBranch
    otherwise: PlannedBranch
    results: tuple[GraphValue | None, ...]
    path: tuple[str, ...]  # of its module
    label: str
    place: NodePlace

    @property
    def operands(self) -> tuple[GraphValue | None, ...]:
        """What it takes: the condition, and what branches use."""
        within = [one for branch in (self.then, self.otherwise) for step in branch.steps for one in step.operands]
        return (self.condition, *within, *self.then.results, *self.otherwise.results)


PlannedStep = PlannedNode | PlannedChoice


@frozen(eq=False)
class GraphPlan:
    """The steps in order, with the values that calls give and take."""

    inputs: tuple[GraphValue, ...]  # that a call gives the device
    steps: tuple[PlannedStep, ...]
    outputs: dict[str, GraphValue]
    weights: dict[str, GraphValue]  # initializers that are trained
    probes: dict[str, GraphValue] = field(factory=dict)  # zeros that are added to tensors, whose gradients they have
