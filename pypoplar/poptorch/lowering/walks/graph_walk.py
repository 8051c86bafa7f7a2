"""A walk through operations of a joint graph, each of which adds what it becomes to the walk's program.

Values are tensors, or something that is known of them earlier: constants, which PyTorch itself computes; expressions of elements
that wait for their only user; inputs that have no tiles yet, since the first operation that uses one says where it wants it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from attrs import define
from torch import fx

from pypoplar import popops
from pypoplar.errors import PoplarError
from pypoplar.graph.location import at
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import EntryContext
from pypoplar.poptorch.lowering.folding import folded, folds, narrowed
from pypoplar.poptorch.lowering.lowering_table import TABLE
from pypoplar.poptorch.lowering.values import Constant, Pending
from pypoplar.poptorch.lowering.walks.user_lines import show_line
from pypoplar.poptorch.lowering.walks.walk_values import WalkValues

Progress = Callable[[int, int, str], None]
Several = Callable[["GraphWalk", int], int]


@define(eq=False)
class Course:
    """The operations of a model in their order.

    `progress(done, total, module)` is called before each. `several` lowers a number of them itself, from a position on, and says
    how many.
    """

    operations: list[fx.Node]
    progress: Progress | None = None
    several: Several | None = None

    def tell(self, position: int) -> None:
        """Say that an operation comes next."""
        if self.progress is not None:
            origin = self.operations[position].meta.get("origin")
            self.progress(position, len(self.operations), origin.module if origin else "")


BODIES: dict[Any, Callable[[GraphWalk, Course, int], int]] = {}
"""What walks from a mark of the graph to behind that which belongs to it, see `nested_walks`."""


@define(eq=False)
class GraphWalk(WalkValues):
    """One walk. Kinds of walks differ in what they begin with, and at which operations they end."""

    ENDS: ClassVar[tuple[Any, ...]] = ()  # marks of the graph that belong to what is around the walk

    def through(self, course: Course, position: int) -> int:
        """Lower operations from a position on; where the walk ends."""
        operations = course.operations
        while position < len(operations):
            node = operations[position]
            if node.target in self.ENDS:
                return position
            course.tell(position)
            self.comes_to(node)
            if node.target in BODIES:
                position = BODIES[node.target](self, course, position)
                continue
            lowered = 0 if course.several is None else course.several(self, position)
            if not lowered:
                self.lower(node)
            position += lowered or 1
        self.ended()
        return position

    def comes_to(self, node: fx.Node) -> None:
        """Called before an operation of the graph is lowered, alone or with others."""

    def ended(self) -> None:
        """Called behind the last operation of the graph."""

    def context(self, node: fx.Node) -> EntryContext:
        """What the entry of an operation is given."""
        return EntryContext(self, node)

    def lower(self, node: fx.Node) -> None:
        """Lower one operation, as from the user's line."""
        self.model.last, steps = node, len(self.program)
        self.values[node] = from_line_of(node, lambda: self._value_of(node))
        if len(self.program) == steps and not isinstance(self.values[node], Pending):
            self.model.views_of_values.add(node)

    def _value_of(self, node: fx.Node) -> Any:
        if node is self.model.first_gradient:
            return self._scaled_loss(self.context(node))
        if node.target is operator.getitem:
            return self.values[node.args[0]][node.args[1]]
        if folds(node, self._is_known):
            return folded(node, self.values.__getitem__)
        context = self.context(node)
        args, kwargs = context.operands((node.args, node.kwargs))
        return TABLE[node.target](context, *args, **kwargs)

    def _is_known(self, node: fx.Node) -> bool:
        return isinstance(self.values[node], Constant)

    def _scaled_loss(self, context: EntryContext) -> Any:
        """The gradient of the loss by itself: ones, times its scaling."""
        scaling = self.model.loss_gradient
        if not isinstance(scaling, Tensor):
            return Constant(narrowed(torch.full(context.shape, scaling, dtype=context.likes[0].dtype)))
        if context.ipu:  # the host writes it to the first
            scaling = context.from_ipu(scaling)
        if context.type is not scaling.elementType():
            scaling = popops.cast(context.graph, scaling, context.type, context.program, context.name)
        return scaling.reshape(context.shape)

    def compute_pending(self) -> None:
        """Compute all expressions that wait, each for itself."""
        for node in [one for one, value in self.values.items() if isinstance(value, Pending)]:
            self.values[node] = self.context(node).compute(self.values[node])


def from_line_of(node: fx.Node, act: Callable[[], Any]) -> Any:
    """The result of `act`, as from the user's line that an operation is of; errors name it."""
    origin = node.meta.get("origin")
    line = origin.location if origin else None
    try:
        with at(line):
            return act()
    except PoplarError as problem:
        if line is not None:
            show_line(problem, line)
        if origin is not None and problem.args and isinstance(problem.args[0], str) and str(origin) not in problem.args[0]:
            problem.args = (f"{problem.args[0]} ({origin})", *problem.args[1:])
        raise
    except Exception as problem:  # of PyTorch, which computes constants
        if line is not None:
            show_line(problem, line)
        problem.add_note(f"{origin or node}")
        raise
