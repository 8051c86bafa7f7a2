"""Walks a joint graph and adds what each of its operations becomes to a program.

Values are tensors, or something that is known of them earlier: constants, which PyTorch itself computes; expressions of elements
that wait for their only user; inputs that have no tiles yet, since the first operation that uses one says where it wants it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx

from pypoplar import poplin, popops, poputil
from pypoplar.errors import PoplarError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.capture import InputKind, JointGraph
from pypoplar.poptorch.capture.origins import operation_name
from pypoplar.poptorch.lowering.folding import folded, folds, narrowed
from pypoplar.poptorch.lowering.ipu_placement import ipus_of_nodes
from pypoplar.poptorch.lowering.lines import at_line
from pypoplar.poptorch.lowering.lowering_table import TABLE
from pypoplar.poptorch.lowering.own_operators.memory_hints import own_proportions
from pypoplar.poptorch.lowering.support import check_supported
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.lowering.values import Back, Constant, InputVariable, Pending, Unplaced
from pypoplar.poptorch.options.plan_options import PlanOptions
from pypoplar.program import Sequence
from pypoplar.types import UNSIGNED_INT, ElementType

Create = Callable[[], Tensor]
Progress = Callable[[int, int, str], None]
Outline = Callable[[list[fx.Node]], Callable[[int], int]]


class GraphLowering:
    """The state of a walk. Entries of the table take what they need from it; `node` is the operation that is lowered now."""

    def __init__(
        self, graph: Graph, joint: JointGraph, training: bool, options: PlanOptions | None = None, stable_norms: bool = False
    ) -> None:
        """`options` are those of plans; `training` says whether dropout drops.

        `stable_norms` lets norms sum the squares of differences from the mean.
        """
        self.joint, self.training, self.plan_options = joint, training, options or PlanOptions()
        self.proportions = own_proportions(joint)
        self.stable_norms = stable_norms
        self.program = Sequence()
        self.whole = graph
        self.parts = _parts(graph)
        self.caches = [poplin.PlanningCache() for _ in self.parts]
        self.ipus: dict[fx.Node, int] = ipus_of_nodes(joint)  # where the value of a node is
        self.copies: dict[tuple[fx.Node, int], Tensor] = {}  # of values, on other IPUs
        self.walks = False
        self.variables = {
            one.node: self._variable(one.node, one.name)
            for one in joint.inputs
            if isinstance(one.node.meta.get("val"), torch.Tensor) and one.node.meta["val"].dtype in ELEMENT_TYPES
        }
        self.values: dict[fx.Node, Any] = {}
        self.seed: Tensor | None = None  # of all random operations, UNSIGNED_INT [2], if there are any
        self.ranges: dict[fx.Node, tuple[int, int]] = {}  # of integers, least and most: of constants, and of what the host checks
        self.loss_gradient: float | Tensor = 1.0  # what the gradient of the loss by itself is taken to be, a number or FLOAT []
        self.drawings = 0
        self.nested: list[Any] = []  # bodies of loops and choices that are being lowered
        self.thens: list[Sequence] = []  # the first bodies of choices whose second is being lowered
        self.host_functions: dict[str, Callable[..., None]] = {}  # by handle
        for one in joint.inputs:
            if one.kind is InputKind.CONSTANT and one.value is not None:
                self.values[one.node] = Constant(narrowed(one.value))
            elif one.node in self.variables:
                self.values[one.node] = Unplaced(self.variables[one.node])
        self.first_gradient: fx.Node | None = None
        self.views_of_values: set[fx.Node] = set()  # operations that have added nothing to the program
        self.node: fx.Node = next(iter(joint.graph.nodes))

    # what entries ask for

    @property
    def ipu(self) -> int:
        """The IPU of the operation that is lowered now."""
        return self.ipus.get(self.node, 0)

    @property
    def graph(self) -> Graph:
        """The graph, while operations are lowered as the operation's IPU has it."""
        return self.parts[self.ipu] if self.walks else self.whole

    @property
    def plans(self) -> poplin.PlanningCache:
        """The plans of the operation's IPU."""
        return self.caches[self.ipu]

    @property
    def options(self) -> dict[str, str]:
        """The options of the operation's plan."""
        proportion = self.proportions.get(id(self.node.meta.get("origin")))
        return self.plan_options.of(operation_name(self.node), self.ipu, proportion)

    @property
    def name(self) -> str:
        """The name of what is made for this operation: module, pass, operation."""
        return self.name_of(self.node)

    def name_of(self, node: fx.Node) -> str:
        """The name of what is made for an operation."""
        origin = node.meta.get("origin")
        scope = origin.scope.split("/") if origin and origin.scope else []
        parts = [*scope, *(origin.module.split(".") if origin and origin.module else []), node.meta["pass"].value]
        return "/".join([*parts, origin.operation if origin else node.name])

    @property
    def type(self) -> ElementType:
        """The element type of this operation's (first) result."""
        return self.type_of(self.node)

    @property
    def types(self) -> list[ElementType]:
        """The element types of all this operation's results; of one that is left out, that of the first."""
        values = self.node.meta["val"]
        return [self.type if one is None else ELEMENT_TYPES[one.dtype] for one in values]

    @property
    def shape(self) -> list[int]:
        """The shape of this operation's (first) result."""
        return self.shape_of(self.node)

    def type_of(self, node: fx.Node) -> ElementType:
        """The type of a node's (first) result on the device."""
        return ELEMENT_TYPES[_first(node.meta["val"]).dtype]

    def shape_of(self, node: fx.Node) -> list[int]:
        """The shape of a node's (first) result."""
        return list(_first(node.meta["val"]).shape)

    def value(self, node: Any) -> Any:
        """What a node stands for; numbers and other plain arguments stand for themselves."""
        return self.values[node] if isinstance(node, fx.Node) else node

    def tensor(self, node: fx.Node, create: Create | None = None) -> Tensor:
        """The tensor of a node. Where nothing said yet where it lies, `create` makes it, of the node's shape; else it is spread."""
        value = self.values[node]
        if isinstance(value, Unplaced):
            if value.variable.tensor is None:
                value.place((create or (lambda: self.spread(self.shape_of(node), self.type_of(node), value.variable.name)))())
                value.variable.ipu = self.ipu
            self._settle(value.variable)
            value = self.values[node]
        if isinstance(value, Pending):
            value = self.values[node] = self.compute(value)
        if isinstance(value, Constant):
            self._note_range(node, value)
            value = self.values[node] = self.constant(value)
            self.ipus[node] = self.ipu  # a constant is where it is needed first
        assert isinstance(value, Tensor), f"{node} is {value!r}"
        return self.here(node, value)

    def _note_range(self, node: fx.Node, value: Constant) -> None:
        """Keep what the elements of a constant are, if they are integers, which its tensor does not tell."""
        if value.array.size and value.array.dtype.kind in "iu":
            self.ranges[node] = int(value.array.min()), int(value.array.max())

    def here(self, node: fx.Node, value: Tensor) -> Tensor:
        """A tensor on the IPU of the operation that is lowered now: copied there, once, if it is on another."""
        ipu = self.ipu
        if not self.walks or self.ipus[node] == ipu:
            return value
        if (node, ipu) not in self.copies:
            self.copies[node, ipu] = poputil.copyToIpu(self.whole, value, self.program, ipu, f"{self.name}/fromIpu")
        return self.copies[node, ipu]

    def is_known(self, node: fx.Node) -> bool:
        """Whether a node stands for a constant."""
        return isinstance(self.values[node], Constant)

    def spread(self, shape: list[int], type: ElementType | None = None, name: str | None = None) -> Tensor:
        """A new variable, spread over the tiles."""
        tensor = self.graph.addVariable(type or self.type, shape, name or self.name)
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def constant(self, value: Constant) -> Tensor:
        """A constant of the graph."""
        number = value.number
        array = np.asarray(value.array)
        type = ELEMENT_TYPES[torch.from_numpy(np.empty(0, array.dtype)).dtype]
        given = number if number is not None else np.ascontiguousarray(array)
        tensor = self.graph.addConstant(type, list(array.shape), given, self.name)
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def compute(self, pending: Pending) -> Tensor:
        """The elements of an expression."""
        return popops.map(self.graph, pending.tree, list(pending.operands), self.program, self.name)

    def drawing(self) -> int:
        """A number that no other random operation of the step has."""
        self.drawings += 1
        return self.drawings

    def random_seed(self) -> Tensor:
        """The seed of all random operations of the step."""
        if self.seed is None:
            self.seed = self.spread([2], UNSIGNED_INT, "seed")
        return self.seed

    # the walk

    def run(self, at: Progress | None = None, outline: Outline | None = None) -> None:
        """Lower all operations; `UnsupportedOperation` tells all that have no entry before anything is added.

        `at(done, total, module)` is called before each. What `outline` makes of the operations lowers several of them itself, from
        a position on, and says how many.
        """
        scaled = isinstance(self.loss_gradient, Tensor)
        check_supported(self.joint, self.joint.loss_gradient if scaled else None)
        self.walks = True
        self.first_gradient = self.joint.loss_gradient
        operations = [node for node in self.joint.graph.nodes if node.op == "call_function"]
        several = None if outline is None else outline(operations)
        done = 0
        while done < len(operations):
            node = operations[done]
            if at is not None:
                origin = node.meta.get("origin")
                at(done, len(operations), origin.module if origin else "")
            lowered = 0 if several is None else several(done)
            if not lowered:
                self.lower(node)
            done += lowered or 1
        if self.nested:
            raise self.nested[-1].left_open()
        self.walks = False

    def lower(self, node: fx.Node) -> None:
        """Lower one operation, as from the user's line."""
        self.node, steps = node, len(self.program)
        origin = node.meta.get("origin")
        try:
            self.values[node] = at_line(origin.location if origin else None, lambda: self._value_of(node))
        except PoplarError as problem:
            if origin is not None and problem.args and isinstance(problem.args[0], str) and str(origin) not in problem.args[0]:
                problem.args = (f"{problem.args[0]} ({origin})", *problem.args[1:])
            raise
        except Exception as problem:  # of PyTorch, which computes constants
            problem.add_note(f"{origin or node}")
            raise
        if len(self.program) == steps and not isinstance(self.values[node], Pending):
            self.views_of_values.add(node)

    def _value_of(self, node: fx.Node) -> Any:
        if node is self.first_gradient:
            return self._scaled_loss(node)
        if node.target is operator.getitem:
            return self.values[node.args[0]][node.args[1]]
        if folds(node, self.is_known):
            return folded(node, self.value)
        return TABLE[node.target](self, *node.args, **node.kwargs)

    def _scaled_loss(self, node: fx.Node) -> Any:
        """The gradient of the loss by itself: ones, times its scaling."""
        scaling = self.loss_gradient
        if not isinstance(scaling, Tensor):
            dtype = node.meta["val"].dtype
            return Constant(narrowed(torch.full(self.shape, scaling, dtype=dtype)))
        if self.ipu:  # the host writes it to the first
            scaling = poputil.copyToIpu(self.whole, scaling, self.program, self.ipu, f"{self.name}/fromIpu")
        if self.type is not scaling.elementType():
            scaling = popops.cast(self.graph, scaling, self.type, self.program, self.name)
        return scaling.reshape(self.shape)

    # inputs that have no tensor yet

    def _variable(self, node: fx.Node, name: str) -> InputVariable:
        return InputVariable(name, self.type_of(node), self.shape_of(node))

    def view(self, source: fx.Node, forth: Back, back: Back | None) -> Any:
        """A view of a node's value; of an input without a tensor it waits, if there is a way `back` to the input's shape."""
        value = self.values[source]
        if isinstance(value, Unplaced) and value.variable.tensor is None and back is not None:
            return Unplaced(value.variable, (*value.back, back))
        return forth(self.tensor(source))

    def _settle(self, variable: InputVariable) -> None:
        """Give all views of an input that has a tensor now theirs."""
        views = [node for node, value in self.values.items() if isinstance(value, Unplaced) and value.variable is variable]
        now = self.node
        for node in views:
            self.node = node
            self.ipus[node] = variable.ipu
            self.values[node] = variable.tensor if node.op == "placeholder" else TABLE[node.target](self, *node.args, **node.kwargs)
        self.node = now


def _parts(graph: Graph) -> list[Graph]:
    """The graph as each IPU has it."""
    target = graph.getTarget()
    if target.getNumIPUs() == 1:
        return [graph]
    tiles = target.getTilesPerIPU()
    return [graph.createVirtualGraph(first, first + tiles) for first in range(0, target.getNumTiles(), tiles)]


def _first(value: Any) -> Any:
    """The first tensor of what an operation gives."""
    return next(one for one in value if one is not None) if isinstance(value, list | tuple) else value
