"""What capture hands on: one graph of operations for a step, with where each of them came from."""

from __future__ import annotations

import linecache
from enum import Enum
from typing import Any

import torch
from attrs import frozen
from torch import fx

from pypoplar.codelet.ir.terms import Location, line_text
from pypoplar.poptorch.options.execution_strategies import BlockPlace


class Pass(Enum):
    """The part of a step that an operation belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"


@frozen
class Origin:
    """The operation of the user's module that an operation of the graph was made for."""

    module: str  # its path in the model, such as layer1.conv; empty for the model itself
    operation: str  # such as conv2d
    location: Location | None  # the user's line
    place: BlockPlace | None = None  # its stage and IPU, where a block says them
    scope: str = ""  # of `NameScope`, with slashes
    plan: tuple[tuple[str, str], ...] = ()  # options of its plan that it has by itself

    def __str__(self) -> str:
        return f"{self.operation} of {self.module or 'the model'}{described_line(self.location)}"


def described_line(location: Location | None) -> str:
    """A line of the user's, as it stands behind what messages tell of it: file, number and text; nothing if it is not known."""
    if location is None:
        return ""
    text = linecache.getline(location.file, location.line).strip()
    return f" at {line_text(location)}" + (f": `{text}`" if text else "")


class InputKind(Enum):
    """What an input of the graph is."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"
    ARGUMENT = "argument"


@frozen(eq=False)
class GraphInput:
    """An input of the graph: a parameter or buffer, by its name in the module, a tensor that the module holds, or an argument."""

    kind: InputKind
    name: str
    node: fx.Node
    value: torch.Tensor | None = None  # of a constant


@frozen(eq=False)
class JointGraph:
    """The operations of a step, forward and, where there is a loss, backward.

    Nodes have `meta["val"]` (shape and type), `meta["origin"]` (an `Origin` or None) and `meta["pass"]`.
    """

    graph: fx.Graph
    inputs: tuple[GraphInput, ...]
    outputs: tuple[Any, ...]  # fx nodes or plain values, flattened: what the user's module returns
    structure: Any  # how `outputs` are nested
    loss: fx.Node | None
    gradients: dict[str, fx.Node]  # of parameters, by name
    buffers: dict[str, fx.Node]  # new values of buffers, by name
    changed: dict[str, fx.Node]  # the same of arguments that the module changes in place

    @property
    def loss_gradient(self) -> fx.Node | None:
        """The gradient of the loss by itself, ones, which is where the backward pass begins."""
        ones = torch.ops.aten.ones_like.default
        own = (node for node in self.graph.nodes if node.target is ones and node.meta["pass"] is Pass.BACKWARD)
        return next((node for node in own if node.meta["origin"] is None), None) if self.loss is not None else None

    def arguments(self) -> list[GraphInput]:
        """What a call gives, in the order of the flattened arguments."""
        return [one for one in self.inputs if one.kind is InputKind.ARGUMENT]
