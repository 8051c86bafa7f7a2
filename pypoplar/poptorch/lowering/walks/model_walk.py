"""The walk through all operations of a model, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, frozen
from torch import fx

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.capture import JointGraph
from pypoplar.poptorch.lowering.entry_context import EndContext
from pypoplar.poptorch.lowering.support import check_supported
from pypoplar.poptorch.lowering.values import Constant, InputVariable
from pypoplar.poptorch.lowering.walks.graph_walk import Course, GraphWalk, Progress, Several
from pypoplar.poptorch.lowering.walks.walk_values import ModelState, WalkValues
from pypoplar.poptorch.options.plan_options import PlanOptions
from pypoplar.program import Sequence

Outline = Callable[[GraphWalk, list[fx.Node]], Several]
WalkOf = Callable[[WalkValues], "ModelWalk"]


@frozen(eq=False)
class LoweredGraph:
    """A joint graph that has been lowered: its program, and what its nodes stand for."""

    joint: JointGraph
    graph: Graph
    program: Sequence
    variables: Mapping[fx.Node, InputVariable]  # of inputs
    host_functions: Mapping[str, Callable[..., None]]  # by handle
    seed: Tensor | None  # of all random operations, UNSIGNED_INT [2], if there are any
    _end: EndContext

    def tensor(self, node: fx.Node) -> Tensor:
        """The tensor of a node; what has none yet is spread over the tiles."""
        return self._end.tensor(node)

    def constant(self, node: fx.Node) -> Constant | None:
        """The elements of a node, if they are known."""
        value = self.value(node)
        return value if isinstance(value, Constant) else None

    def value(self, node: Any) -> Any:
        """What a node stands for; numbers and other plain values stand for themselves."""
        return self._end.value(node) if isinstance(node, fx.Node) else node


@define(eq=False)
class ModelWalk(GraphWalk):
    """The walk through the whole graph."""

    @classmethod
    def beginning(cls, start: WalkValues) -> ModelWalk:
        """One that begins with some values."""
        return cls(start.model, start.program, start.values, start.ipus, start.copies)

    def lowered(self, end: EndContext) -> LoweredGraph:
        """What the walk has made, at its end."""
        return LoweredGraph(*self.made(end))

    def made(self, end: EndContext) -> tuple[Any, ...]:
        """What a `LoweredGraph` of any kind has of the walk, in its order."""
        model = self.model
        return model.joint, model.graph, self.program, model.variables, model.host_functions, model.seed, end


def lower_graph(
    graph: Graph,
    joint: JointGraph,
    training: bool,
    options: PlanOptions | None = None,
    *,
    stable_norms: bool = False,
    loss_gradient: float | Tensor = 1.0,
    ranges: Mapping[fx.Node, tuple[int, int]] | None = None,
    progress: Progress | None = None,
    outline: Outline | None = None,
    walk_of: WalkOf | None = None,
) -> LoweredGraph:
    """Lower all operations of a joint graph; `UnsupportedOperation` tells all that have no entry before anything is added.

    `training` says whether dropout drops, `options` are those of plans; `stable_norms` lets norms sum the squares of differences
    from the mean. The gradient of the loss by itself is `loss_gradient`, a number or FLOAT []. `ranges` are those of integers
    that the host checks, `progress` is called before each operation. What `outline` makes of the operations lowers several of
    them itself, see `Course`. `walk_of` makes a walk of another kind, which begins with some values.
    """
    model = ModelState(graph, joint, training, options or PlanOptions(), stable_norms, loss_gradient, dict(ranges or {}))
    start = WalkValues.of_inputs(model)
    walk = (walk_of or ModelWalk.beginning)(start)
    check_supported(joint, joint.loss_gradient if isinstance(loss_gradient, Tensor) else None)
    operations = [node for node in joint.graph.nodes if node.op == "call_function"]
    several = None if outline is None else outline(walk, operations)
    walk.through(Course(operations, progress, several), 0)
    return walk.lowered(EndContext(walk, model.last))
