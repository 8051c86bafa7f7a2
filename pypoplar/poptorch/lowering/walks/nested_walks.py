"""The walks through loops and choices: operations between two marks of the graph go into a program of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Self

import torch
from attrs import define, field
from torch import fx

from pypoplar.errors import MissingFeature
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.entry_context import Body, EndOfBody
from pypoplar.poptorch.lowering.lowering_table import TABLE
from pypoplar.poptorch.lowering.walks.graph_walk import BODIES, Course, GraphWalk, from_line_of
from pypoplar.program import Sequence

own = torch.ops.poptorch


@define(eq=False)
class NestedWalk(GraphWalk):
    """A walk from a mark of the graph on, with values of the walk around it and a program of its own."""

    CALL: ClassVar[str]  # by which users know it
    outer: GraphWalk = field(kw_only=True)
    start: fx.Node = field(kw_only=True)  # the mark, which stands for what is carried

    @classmethod
    def begun(cls, outer: GraphWalk, start: fx.Node) -> Self:
        """The walk behind a mark. What is known of values before is computed first."""
        outer.compute_pending()
        given = outer.model, Sequence(), outer.values, outer.ipus, dict(outer.copies), outer.drawings
        return cls(*given, outer=outer, start=start)

    @property
    def carried(self) -> list[Tensor]:
        """What the entry of the mark has made for the body."""
        carried: list[Tensor] = self.values[self.start]
        return carried

    def end(self, mark: fx.Node, bodies: list[Body]) -> None:
        """What the body computes is known; let its entry say what the mark that ends it stands for."""
        draws = self.drawings > self.outer.drawings
        body = Body(self.program, self.carried, draws)
        inside, outside = self.context(mark), self.outer.context(mark)
        args, kwargs = inside.operands((mark.args, mark.kwargs))
        self.values[mark] = TABLE[mark.target](EndOfBody(inside, outside, [*bodies, body]), *args, **kwargs)
        _check_kept(self.start, mark, self.CALL)
        self.outer.drawings = self.drawings
        bodies.append(body)

    def ended(self) -> None:
        """None of the results of a body is used, and so no mark ends it, but something else of it is."""
        origin = self.start.meta.get("origin")
        raise MissingFeature(f"poptorch.for_loop: what its body computes is used outside: return it ({origin})")


@define(eq=False)
class LoopBody(NestedWalk):
    """The walk through what a loop repeats."""

    CALL, ENDS = "for_loop", (own.end_for_loop.default,)


@define(eq=False)
class ThenBranch(NestedWalk):
    """The walk through what a choice does if its condition is true."""

    CALL, ENDS = "cond", (own.start_else_block.default,)


@define(eq=False)
class ElseBranch(NestedWalk):
    """The walk through what a choice does else."""

    CALL, ENDS = "cond", (own.end_if_block.default,)


def _through(*kinds: type[NestedWalk]) -> Callable[[GraphWalk, Course, int], int]:
    """What walks from a mark, through bodies of these kinds, to behind the mark that ends the last one."""

    def through(walk: GraphWalk, course: Course, position: int) -> int:
        bodies: list[Body] = []
        nested = from_line_of(course.operations[position], partial(_first, walk, course.operations[position], kinds[0]))
        for following in (*kinds[1:], None):
            position = nested.through(course, position + 1)
            course.tell(position)
            nested = from_line_of(
                course.operations[position], partial(_next, nested, course.operations[position], bodies, following)
            )
        return position + 1

    return through


def _first(walk: GraphWalk, mark: fx.Node, kind: type[NestedWalk]) -> NestedWalk:
    context = walk.context(mark)
    args, kwargs = context.operands((mark.args, mark.kwargs))
    walk.values[mark] = TABLE[mark.target](context, *args, **kwargs)
    return kind.begun(walk, mark)


def _next(nested: NestedWalk, mark: fx.Node, bodies: list[Body], following: type[NestedWalk] | None) -> NestedWalk | None:
    """The walk behind the end of another; None if that was the last, whose results are on the IPU where it began."""
    nested.end(mark, bodies)
    if following is not None:
        return following.begun(nested.outer, mark)
    for node in (mark, *mark.users):
        nested.ipus[node] = nested.ipus[nested.start]
    return None


def _check_kept(start: fx.Node, end: fx.Node, call: str) -> None:
    """`MissingFeature` where operations outside use what is computed between two marks."""
    within, node = {end}, start.next
    while node is not end:
        within.add(node)
        node = node.next
    if start.target is own.start_if_block.default:  # the condition itself is asked for behind its bodies
        within -= set(start.users)
    for node in within - {end}:
        if any(user not in within for user in node.users):
            raise MissingFeature(f"poptorch.{call}: {node.meta.get('origin')} in its body is used outside: return it")


BODIES[own.start_for_loop.default] = _through(LoopBody)
BODIES[own.start_if_block.default] = _through(ThenBranch, ElseBranch)
