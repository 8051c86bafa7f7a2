"""One call of map that replaces tensors by what is computed from them, from others and from numbers, all in FLOAT."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops import expr
from pypoplar.program import Sequence
from pypoplar.types import FLOAT

Number = float | expr.Expr


@define(eq=False)
class ElementUpdate:
    """Trees over the elements of tensors. What replaces a tensor is rounded once to its type."""

    graph: Graph
    targets: list[Tensor]
    others: list[Tensor] = field(factory=list)
    leaves: dict[int, expr.Expr] = field(factory=dict)  # by place among all tensors
    trees: dict[int, expr.Expr] = field(factory=dict)  # by place among the targets

    def leaf(self, operand: Tensor | float) -> Any:
        """The expression of a tensor's elements, in FLOAT; a number is one already."""
        if not isinstance(operand, Tensor):
            return operand
        tensors = [*self.targets, *self.others]
        place = next((place for place, tensor in enumerate(tensors) if tensor is operand), len(tensors))
        if place == len(tensors):
            self.others.append(operand)
        if place not in self.leaves:
            elements = expr.PlaceHolder(place + 1)
            self.leaves[place] = elements if operand.elementType() is FLOAT else expr.Cast(elements, FLOAT)
        return self.leaves[place]

    def replace(self, target: Tensor, tree: Number) -> None:
        """Let a tensor become what an expression of FLOAT says."""
        place = next(place for place, tensor in enumerate(self.targets) if tensor is target)
        whole = tree if isinstance(tree, expr.Expr) else expr.Const(tree, FLOAT)
        self.trees[place] = whole if target.elementType() is FLOAT else expr.Cast(whole, target.elementType())

    def add_to(self, prog: Sequence, name: str) -> None:
        """Extend a program by the call."""
        assert len(self.trees) == len(self.targets), "what is a target is replaced"
        trees = [self.trees[place] for place in range(len(self.targets))]
        popops.mapInPlace(self.graph, trees, [*self.targets, *self.others], prog, name)


def times(number: Number, tree: Any) -> Any:
    """A product, which is not computed with the constant 1."""
    return tree if isinstance(number, float) and number == 1 else number * tree


def plus(tree: Any, number: Number, other: Any) -> Any:
    """`tree` plus `number` times `other`, which is not computed with the constant 0."""
    return tree if isinstance(number, float) and number == 0 else tree + times(number, other)
