"""What an entry of the table is given: the operands of its operation, and a context, which it asks for everything else."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from attrs import frozen
from torch import fx

from pypoplar import poplin, popops, poputil
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.capture.origins import operation_name
from pypoplar.poptorch.lowering.integers.integer_ranges import IntegerRange, range_of
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.lowering.values import Back, Constant, Pending, Unplaced
from pypoplar.poptorch.lowering.walks.walk_values import WalkValues
from pypoplar.program import Call, Sequence
from pypoplar.types import UNSIGNED_INT, ElementType

Create = Callable[[], Tensor]


class Operand:
    """A value that an operation takes."""

    __slots__ = ("_context", "_node")

    def __init__(self, context: EntryContext, node: fx.Node) -> None:
        self._context, self._node = context, node

    @property
    def like(self) -> torch.Tensor:
        """A tensor without elements, of the operand's shape, type and strides in PyTorch."""
        return _first(self._node.meta["val"])

    @property
    def shape(self) -> list[int]:
        """Its shape."""
        return list(self.like.shape)

    @property
    def type(self) -> ElementType:
        """Its type on the device."""
        return ELEMENT_TYPES[self.like.dtype]

    @property
    def value(self) -> Any:
        """What it stands for: a tensor, a `Constant`, what waits, or what another entry gave beside tensors."""
        return self._context._walk.value(self._node)

    @property
    def value_here(self) -> Any:
        """The same; a tensor, or what waits, is on the operation's IPU."""
        walk, value = self._context._walk, self.value
        elsewhere = walk.ipus.get(self._node, self._context.ipu) != self._context.ipu
        return self.placed() if elsewhere and isinstance(value, Tensor | Pending) else value

    @property
    def constant(self) -> Constant | None:
        """Its elements, if they are known when the graph is built."""
        return self.value if isinstance(self.value, Constant) else None

    @property
    def pending(self) -> Pending | None:
        """The expression of its elements, if it is one that nobody has computed."""
        return self.value if isinstance(self.value, Pending) else None

    @property
    def is_placed(self) -> bool:
        """Whether it lies somewhere, or is known: it is no input for which the first operation says where it lies."""
        return not isinstance(self.value, Unplaced)

    @property
    def range(self) -> IntegerRange:
        """Between which numbers its elements are, which are integers."""
        return range_of(self._context._walk, self._node)

    @property
    def made_by(self) -> MadeBy:
        """The operation that gave it."""
        return MadeBy(self._context, self._node)

    def placed(self, create: Create | None = None) -> Tensor:
        """Its tensor, on the operation's IPU.

        Where nothing said yet where it lies, `create` makes it, of its shape; without `create` it is spread over the tiles.
        """
        return self._context.tensor(self._node, create)

    def view(self, forth: Back, back: Back) -> Any:
        """A view of it; of an input without a tensor it waits: `back` is the way from the view's shape to its own."""
        value = self.value
        return value.view(forth, back) if isinstance(value, Unplaced) else forth(self.placed())

    def becomes(self, value: Any) -> None:
        """Let it stand for something else from here on: an operation of PyTorch has written to it."""
        self._context._walk.values[self._node] = value


@frozen(eq=False)
class MadeBy:
    """The operation of PyTorch that an operand comes from."""

    _context: EntryContext
    _node: fx.Node

    @property
    def operation(self) -> Any:
        """Which one of PyTorch's; something else for what is an input."""
        return self._node.target

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Its arguments, in which tensors are operands."""
        return self._context.operands(self._node.args)

    @property
    def keywords(self) -> dict[str, Any]:
        """Its arguments that have names."""
        return self._context.operands(self._node.kwargs)


@frozen(eq=False)
class Use:
    """An operation that takes a result of another."""

    _context: EntryContext
    _node: fx.Node

    @property
    def operation(self) -> Any:
        """Which one of PyTorch's."""
        return self._node.target

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Its arguments, as PyTorch's graph has them."""
        return self._node.args

    @property
    def shape(self) -> list[int]:
        """The shape of its (first) result."""
        return list(_first(self._node.meta["val"]).shape)

    @property
    def ipu(self) -> int | None:
        """Where it runs."""
        return self._context._walk.ipus.get(self._node)

    @property
    def operands(self) -> int:
        """How many values it takes."""
        return len(self._node.all_input_nodes)

    @property
    def uses(self) -> list[Use]:
        """What takes its results."""
        return [Use(self._context, user) for user in self._node.users]


class EntryContext:
    """An operation that is lowered: what its results are, how it is named and placed, and where it is added."""

    def __init__(self, walk: WalkValues, node: fx.Node) -> None:
        self._walk, self._node, self._model = walk, node, walk.model
        self._operands: dict[fx.Node, Operand] = {}
        self.ipu = walk.ipus.get(node, 0)
        self.graph: Graph = walk.model.parts[self.ipu]  # as the operation's IPU has it

    # the operation

    @property
    def program(self) -> Sequence:
        """What the operation is added to."""
        return self._walk.program

    @property
    def operation(self) -> Any:
        """Which one of PyTorch's it is."""
        return self._node.target

    @property
    def operation_name(self) -> str:
        """Its name without namespace and overload, such as conv2d."""
        return operation_name(self._node)

    @cached_property
    def name(self) -> str:
        """The name of what is made for it: module, pass, operation."""
        return name_of(self._node)

    @property
    def plans(self) -> poplin.PlanningCache:
        """The plans of its IPU."""
        return self._model.plans[self.ipu]

    @property
    def options(self) -> dict[str, str]:
        """The options of its plan."""
        origin = self._node.meta.get("origin")
        options = self._model.options.of(operation_name(self._node), self.ipu, self._model.proportions.get(id(origin)))
        return options if origin is None else {**options, **dict(origin.plan)}

    @property
    def training(self) -> bool:
        """Whether the model trains."""
        return self._model.training

    @property
    def stable_norms(self) -> bool:
        """Whether norms sum the squares of differences from the mean."""
        return self._model.stable_norms

    def mark(self, key: str) -> Any:
        """What capture has written down for the operation, None if it has not."""
        return self._node.meta.get(key)

    def operands(self, arguments: Any) -> Any:
        """Arguments with operands in the place of nodes."""
        return fx.map_arg(arguments, self._operand)

    def _operand(self, node: fx.Node) -> Operand:
        if node not in self._operands:
            self._operands[node] = Operand(self, node)
        return self._operands[node]

    # its results

    @property
    def likes(self) -> list[torch.Tensor]:
        """Tensors without elements like its results; None for one that is left out."""
        value = self._node.meta["val"]
        return list(value) if isinstance(value, list | tuple) else [value]

    @property
    def type(self) -> ElementType:
        """The element type of the (first) result."""
        return ELEMENT_TYPES[_first(self._node.meta["val"]).dtype]

    @property
    def types(self) -> list[ElementType]:
        """The element types of all results; of one that is left out, that of the first."""
        return [self.type if one is None else ELEMENT_TYPES[one.dtype] for one in self.likes]

    @property
    def shape(self) -> list[int]:
        """The shape of the (first) result."""
        return list(_first(self._node.meta["val"]).shape)

    @property
    def uses(self) -> list[Use]:
        """What takes its result."""
        return [Use(self, user) for user in self._node.users]

    def uses_of(self, number: int) -> list[Use]:
        """What takes one of its results, where it has several."""
        parts = [user for user in self._node.users if user.target is operator.getitem and user.args[1] == number]
        return [Use(self, user) for part in parts for user in part.users]

    # what it may ask for

    def place(self, shape: list[int], type: ElementType | None = None, name: str | None = None) -> Tensor:
        """A new variable, spread over the tiles."""
        tensor = self.graph.addVariable(type or self.type, shape, name or self.name)
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def constant(self, elements: npt.ArrayLike) -> Tensor:
        """A constant of the graph with these elements, spread over the tiles."""
        return self._of_constant(Constant(np.asarray(elements)))

    def _of_constant(self, value: Constant) -> Tensor:
        number, array = value.number, value.array
        type = ELEMENT_TYPES[torch.from_numpy(np.empty(0, array.dtype)).dtype]
        given = number if number is not None else np.ascontiguousarray(array)
        tensor = self.graph.addConstant(type, list(array.shape), given, self.name)
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def compute(self, pending: Pending) -> Tensor:
        """The elements of an expression."""
        return popops.map(self.graph, pending.tree, list(pending.operands), self.program, self.name)

    def call(self, handle: str, inputs: list[Tensor], outputs: list[Tensor], function: Callable[..., None]) -> None:
        """Call a function of the host with arrays, flat, of the inputs, and of the outputs to fill."""
        handle = f"{handle}/{len(self._model.host_functions)}"
        signature = [[(one.elementType(), one.numElements()) for one in several] for several in (inputs, outputs)]
        link = self._model.graph.addHostFunction(handle, *signature)
        self.program.add(Call(link, [one.flatten() for one in inputs], [one.flatten() for one in outputs], name=self.name))
        self._model.host_functions[handle] = function

    def drawing(self) -> int:
        """A number that no other random operation of the step has."""
        self._walk.drawings += 1
        return self._walk.drawings

    def random_seed(self) -> Tensor:
        """The seed of all random operations of the step; where stages overlap, of those of the operation's IPU."""
        model = self._model
        if model.seed is None:
            model.seed = self.place([2], UNSIGNED_INT, "seed")
        if model.seeds is None:
            return model.seed
        if self.ipu not in model.seeds:
            model.seeds[self.ipu] = self.place([2], UNSIGNED_INT, f"seed/ipu{self.ipu}")
        return model.seeds[self.ipu]

    def tensor_of(self, operand: Operand) -> Tensor:
        """The tensor of another context's operand, on this operation's IPU."""
        return self.tensor(operand._node)

    # values of nodes, which walks ask for

    def value(self, node: fx.Node) -> Any:
        """What a node stands for."""
        return self._walk.value(node)

    def tensor(self, node: fx.Node, create: Create | None = None) -> Tensor:
        """The tensor of a node, see `Operand.placed`."""
        values = self._walk.values
        value = self.value(node)
        if isinstance(value, Unplaced):
            variable, like = value.variable, _first(node.meta["val"])
            value.place((create or (lambda: self.place(list(like.shape), ELEMENT_TYPES[like.dtype], variable.name)))())
            variable.ipu = self.ipu
            value = self.value(node)
        if isinstance(value, Pending):
            value = values[node] = self.compute(value)
        if isinstance(value, Constant):
            self._note_range(node, value)
            value = values[node] = self._of_constant(value)
            self._walk.ipus[node] = self.ipu  # a constant is where it is needed first
        assert isinstance(value, Tensor), f"{node} is {value!r}"
        return self.here(node, value)

    def here(self, node: fx.Node, value: Tensor) -> Tensor:
        """A tensor on the operation's IPU: copied there, once, if it is on another."""
        walk = self._walk
        if walk.ipus[node] == self.ipu:
            return value
        if (node, self.ipu) not in walk.copies:
            walk.copies[node, self.ipu] = self.from_ipu(value)
        return walk.copies[node, self.ipu]

    def from_ipu(self, value: Tensor) -> Tensor:
        """A copy of another IPU's tensor on the operation's own."""
        return poputil.copyToIpu(self._model.graph, value, self.program, self.ipu, f"{self.name}/fromIpu")

    def _note_range(self, node: fx.Node, value: Constant) -> None:
        """Keep what the elements of a constant are, if they are integers, which its tensor does not tell."""
        if value.array.size and value.array.dtype.kind in "iu":
            self._model.ranges[node] = int(value.array.min()), int(value.array.max())


class EndContext(EntryContext):
    """What is behind the last operation, on no IPU of its own: tensors are where they are, and have the last one's name."""

    def __init__(self, walk: WalkValues, node: fx.Node) -> None:
        super().__init__(walk, node)
        self.graph = walk.model.graph

    def here(self, node: fx.Node, value: Tensor) -> Tensor:
        """A tensor, wherever it is."""
        return value


@frozen(eq=False)
class Body:
    """What the operations of a loop's round, or of one side of a choice, have become."""

    program: Sequence
    carried: list[Tensor]  # what a round of a loop finds and leaves, and what the sides of a choice give
    draws: bool  # whether it draws random numbers


@frozen(eq=False)
class EndOfBody:
    """What the entry of a mark that ends a body is given: the mark as the body's last operation and as one of what is around it."""

    inside: EntryContext
    outside: EntryContext
    bodies: list[Body]  # those that begin with the same operation, this one last


def name_of(node: fx.Node) -> str:
    """The name of what is made for an operation: module, pass, operation."""
    origin = node.meta.get("origin")
    scope = origin.scope.split("/") if origin and origin.scope else []
    parts = [*scope, *(origin.module.split(".") if origin and origin.module else []), node.meta["pass"].value]
    return "/".join([*parts, origin.operation if origin else node.name])


def _first(value: Any) -> Any:
    """The first tensor of what an operation gives."""
    return next(one for one in value if one is not None) if isinstance(value, list | tuple) else value
