"""The walk through a model in phases: each phase has a program of its own, before which its weights come from streaming memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field, frozen
from torch import fx

from pypoplar.poptorch.capture import InputKind, JointGraph, Pass
from pypoplar.poptorch.lowering.entry_context import EndContext
from pypoplar.poptorch.lowering.ipu_placement import by_block
from pypoplar.poptorch.lowering.walks.model_walk import LoweredGraph, ModelWalk
from pypoplar.poptorch.lowering.walks.walk_values import WalkValues
from pypoplar.poptorch.options.execution_strategies import PhasedExecution
from pypoplar.program import Sequence


@frozen
class PhaseKey:
    """A phase, and in which pass, where the passes have phases of their own."""

    number: int
    backward: bool = False


@frozen(eq=False)
class PhaseTurn:
    """Operations of a phase that follow each other, with their program."""

    phase: PhaseKey
    program: Sequence


def phases_of_nodes(joint: JointGraph, strategy: PhasedExecution) -> dict[fx.Node, PhaseKey]:
    """The phase of each operation."""
    numbers = by_block(joint, lambda place: place.phase)
    apart = strategy.separates_backward
    return {node: PhaseKey(number, apart and node.meta["pass"] is Pass.BACKWARD) for node, number in numbers.items()}


@define(eq=False)
class PhaseWalk(ModelWalk):
    """The walk through a graph whose operations have phases."""

    phases: Mapping[fx.Node, PhaseKey] = field(kw_only=True)
    turns: list[PhaseTurn] = field(kw_only=True, factory=list)
    turn_of: dict[fx.Node, PhaseTurn] = field(kw_only=True, factory=dict)

    @staticmethod
    def through_phases(phases: Mapping[fx.Node, PhaseKey]) -> Callable[[WalkValues], ModelWalk]:
        """What makes a walk with these phases."""
        return lambda start: PhaseWalk(start.model, start.program, start.values, start.ipus, start.copies, phases=phases)

    def comes_to(self, node: fx.Node) -> None:
        """Let what follows be of the phase of an operation."""
        phase = self.phases[node]
        if not self.turns or self.turns[-1].phase != phase:
            self.program = Sequence() if self.turns else self.program
            self.turns.append(PhaseTurn(phase, self.program))
        self.turn_of[node] = self.turns[-1]

    def lowered(self, end: EndContext) -> LoweredGraph:
        """What the walk has made, at its end."""
        return PhasedGraph(*self.made(end), walk=self)


@frozen(eq=False)
class PhasedGraph(LoweredGraph):
    """A graph that has been lowered by phases. Its `program` is that of the last turn."""

    walk: PhaseWalk = field(kw_only=True)

    @property
    def turns(self) -> list[PhaseTurn]:
        """The turns of phases, in their order."""
        return self.walk.turns

    def users(self) -> dict[str, set[PhaseTurn]]:
        """The turns whose operations read each parameter, by its name, themselves or through views of it."""
        walk = self.walk
        views: dict[fx.Node, set[fx.Node]] = {}  # the parameters that a node is a view of
        users: dict[fx.Node, set[PhaseTurn]] = {}
        for one in self.joint.inputs:
            if one.kind is InputKind.PARAMETER and one.node in self.variables:
                views[one.node], users[one.node] = {one.node}, set()
        for node, turn in walk.turn_of.items():
            read = set[fx.Node]().union(*(views.get(given, ()) for given in node.all_input_nodes))
            for parameter in read:
                users[parameter].add(turn)
            if read and node in walk.model.views_of_values:
                views[node] = read
        return {one.name: users[one.node] for one in self.joint.inputs if one.node in users}
