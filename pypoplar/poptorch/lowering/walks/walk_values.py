"""What is known of a graph while it is lowered: by the whole model, and by one walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from attrs import Factory, define, field
from torch import fx

from pypoplar import poplin
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.capture import InputKind, JointGraph
from pypoplar.poptorch.lowering.folding import narrowed
from pypoplar.poptorch.lowering.ipu_placement import ipus_of_nodes
from pypoplar.poptorch.lowering.own_entries.memory_hints import own_proportions
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.lowering.values import Constant, InputVariable, Unplaced
from pypoplar.poptorch.options.plan_options import PlanOptions
from pypoplar.program import Sequence


@define(eq=False)
class ModelState:
    """What all walks of a model have in common."""

    graph: Graph
    joint: JointGraph
    training: bool  # whether dropout drops
    options: PlanOptions  # of plans
    stable_norms: bool  # whether norms sum the squares of differences from the mean
    loss_gradient: float | Tensor  # what the gradient of the loss by itself is taken to be, a number or FLOAT []
    ranges: dict[fx.Node, tuple[int, int]]  # of integers, least and most: of constants, and of what the host checks
    parts: list[Graph] = Factory(lambda self: _parts(self.graph), takes_self=True)  # the graph as each IPU has it
    plans: list[poplin.PlanningCache] = Factory(lambda self: [poplin.PlanningCache() for _ in self.parts], takes_self=True)
    proportions: dict[int, float] = Factory(lambda self: own_proportions(self.joint), takes_self=True)
    variables: dict[fx.Node, InputVariable] = Factory(lambda self: _variables(self.joint), takes_self=True)
    first_gradient: fx.Node | None = Factory(lambda self: self.joint.loss_gradient, takes_self=True)
    seed: Tensor | None = None  # of all random operations, UNSIGNED_INT [2], if there are any
    seeds: dict[int, Tensor] | None = None  # where stages overlap: of the random operations of each IPU
    host_functions: dict[str, Callable[..., None]] = field(factory=dict)  # by handle
    last: fx.Node = Factory(lambda self: next(iter(self.joint.graph.nodes)), takes_self=True)  # that was lowered
    views_of_values: set[fx.Node] = field(factory=set)  # operations that have added nothing to a program


@define(eq=False)
class WalkValues:
    """What nodes stand for in a walk, on which IPU, and the program to which its operations are added."""

    model: ModelState
    program: Sequence
    values: dict[fx.Node, Any]
    ipus: dict[fx.Node, int]  # where the value of a node is
    copies: dict[tuple[fx.Node, int], Tensor]  # of values, on other IPUs
    drawings: int = 0  # by random operations

    def value(self, node: fx.Node) -> Any:
        """What a node stands for. An input, and each view of it, stands for its tensor as soon as it has one."""
        value = self.values[node]
        if isinstance(value, Unplaced) and value.variable.tensor is not None:
            self.values[node], self.ipus[node] = value.of_tensor(), value.variable.ipu
            return self.values[node]
        return value

    @staticmethod
    def of_inputs(model: ModelState) -> WalkValues:
        """Those before the first operation."""
        values: dict[fx.Node, Any] = {}
        for one in model.joint.inputs:
            if one.kind is InputKind.CONSTANT and one.value is not None:
                values[one.node] = Constant(narrowed(one.value))
            elif one.node in model.variables:
                values[one.node] = Unplaced(model.variables[one.node])
        return WalkValues(model, Sequence(), values, ipus_of_nodes(model.joint), {})


def _parts(graph: Graph) -> list[Graph]:
    target = graph.getTarget()
    if target.getNumIPUs() == 1:
        return [graph]
    tiles = target.getTilesPerIPU()
    return [graph.createVirtualGraph(first, first + tiles) for first in range(0, target.getNumTiles(), tiles)]


def _variables(joint: JointGraph) -> dict[fx.Node, InputVariable]:
    """Those of inputs that are tensors."""
    given = [(one, one.node.meta.get("val")) for one in joint.inputs]
    return {
        one.node: InputVariable(one.name, ELEMENT_TYPES[value.dtype], list(value.shape))
        for one, value in given
        if isinstance(value, torch.Tensor) and value.dtype in ELEMENT_TYPES
    }
