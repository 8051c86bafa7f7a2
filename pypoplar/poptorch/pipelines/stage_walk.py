"""The walk through a model whose stages overlap: what an operation becomes is added to the program of its segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
from attrs import define, field, frozen
from torch import fx

from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import Create, EndContext, EntryContext
from pypoplar.poptorch.lowering.values import Pending
from pypoplar.poptorch.lowering.walks.model_walk import LoweredGraph, ModelWalk
from pypoplar.poptorch.lowering.walks.walk_values import WalkValues
from pypoplar.poptorch.pipelines.checkpoints import KeptOperations
from pypoplar.poptorch.pipelines.recomputation import KeptVariables
from pypoplar.poptorch.pipelines.stage_segments import Segment, StageSegments
from pypoplar.program import Sequence


class StageContext(EntryContext):
    """An operation of a stage. What waits to be computed on another IPU is computed there, in its own segment."""

    def tensor(self, node: fx.Node, create: Create | None = None) -> Tensor:
        """The tensor of a node, see `Operand.placed`."""
        walk = self._walk
        if isinstance(walk.values[node], Pending) and walk.ipus[node] != self.ipu and isinstance(walk, StageWalk):
            walk.compute(node)
        return super().tensor(node, create)


@define(eq=False)
class StageWalk(ModelWalk):
    """The walk through a graph in segments, each with a program of its own."""

    segments: StageSegments = field(kw_only=True)
    programs: dict[Segment, Sequence] = field(kw_only=True)
    checkpoints: KeptOperations | None = field(kw_only=True)

    @staticmethod
    def through_segments(segments: StageSegments, checkpoints: KeptOperations | None) -> Callable[[WalkValues], ModelWalk]:
        """What makes a walk with these segments; where they are computed again, with what is put aside."""

        def begin(start: WalkValues) -> ModelWalk:
            programs = {one: Sequence() for one in segments.segments}
            start.model.seeds = {}
            first = programs[segments.segments[0]]
            known = start.model, first, start.values, start.ipus, start.copies
            return StageWalk(*known, segments=segments, programs=programs, checkpoints=checkpoints)

        return begin

    def comes_to(self, node: fx.Node) -> None:
        """Let what follows be of the segment of an operation."""
        self.program = self.programs[self.segments.of[node]]

    def lower(self, node: fx.Node) -> None:
        """Lower one operation; what is put aside is there for all that take it."""
        super().lower(node)
        chosen = self.checkpoints
        if chosen is not None and chosen.again is None and node in chosen.kept and isinstance(self.values[node], Pending):
            self.compute(node)

    def kept_variables(self) -> KeptVariables | None:
        """The variables that are put aside; None where nothing is computed again."""
        chosen = self.checkpoints
        if chosen is None:
            return None
        again = None if chosen.again is None else self._variables_of(chosen.again)
        return KeptVariables(self._variables_of(chosen.kept) - (again or frozenset()), again)

    def _variables_of(self, nodes: Iterable[fx.Node]) -> frozenset[int]:
        return frozenset(number for node in nodes if node in self.values for number in variables_of(self.values[node]))

    def context(self, node: fx.Node) -> EntryContext:
        """What the entry of an operation is given."""
        return StageContext(self, node)

    def compute(self, node: fx.Node) -> None:
        """Compute an expression that waits, in its own segment."""
        program = self.program
        self.comes_to(node)
        self.values[node] = self.context(node).compute(self.values[node])
        self.program = program

    def compute_pending(self) -> None:
        """Compute all expressions that wait, each for itself and in its own segment."""
        for node in [one for one, value in self.values.items() if isinstance(value, Pending)]:
            self.compute(node)

    def lowered(self, end: EndContext) -> LoweredGraph:
        """What the walk has made, at its end."""
        return StagedGraph(*self.made(end), walk=self)


@frozen(eq=False)
class StagedGraph(LoweredGraph):
    """A graph that has been lowered by segments."""

    walk: StageWalk = field(kw_only=True)

    @property
    def segments(self) -> StageSegments:
        """Which operations each segment has."""
        return self.walk.segments

    @property
    def programs(self) -> dict[Segment, Sequence]:
        """The programs of the segments, which may be extended."""
        return self.walk.programs

    def tensor(self, node: fx.Node) -> Tensor:
        """The tensor of a node; what has to be computed for it is of the node's segment."""
        if node in self.walk.segments.of:
            self.walk.comes_to(node)
        return super().tensor(node)


def variables_of(value: Any) -> set[int]:
    """The variables, by number, of the tensors of what an operation has become."""
    if isinstance(value, Tensor):
        return set(value.variable_numbers())
    parts = value if isinstance(value, list | tuple) else ()
    if attrs.has(type(value)) and not isinstance(value, Pending):
        parts = tuple(getattr(value, one.name) for one in attrs.fields(type(value)))
    return set[int]().union(*map(variables_of, parts))
