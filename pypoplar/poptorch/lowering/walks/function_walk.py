"""The walk through operations that become a function of the graph."""

from __future__ import annotations

from typing import Any, Self

from attrs import define
from torch import fx

from pypoplar.poptorch.lowering.walks.graph_walk import GraphWalk
from pypoplar.program import Sequence


class ReachesOutside(Exception):
    """An operation asks for a value that is neither its operand nor made in its run."""


class ValuesInside(dict[fx.Node, Any]):
    """What nodes stand for in a function."""

    def __missing__(self, node: fx.Node) -> Any:
        raise ReachesOutside(node)


@define(eq=False)
class FunctionWalk(GraphWalk):
    """A walk with values of its own, on one IPU; what it draws is nothing to the walk around it."""

    @classmethod
    def within(cls, outer: GraphWalk, inside: ValuesInside, ipu: int, name: str) -> Self:
        """One that begins with values `inside`."""
        return cls(outer.model, Sequence(name=name), inside, {**outer.ipus, **dict.fromkeys(inside, ipu)}, {}, outer.drawings)
