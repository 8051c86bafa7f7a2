"""Loops and choices: the operations between two marks go into a program of their own."""

from __future__ import annotations

from typing import Self

import torch
from attrs import define, field
from torch import fx

from pypoplar import popops, poputil
from pypoplar.errors import MissingFeature
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.entry_context import EntryContext
from pypoplar.poptorch.lowering.lowering_table import lowers_from
from pypoplar.poptorch.lowering.walks.graph_walk import Course, GraphWalk, from_line_of
from pypoplar.program import Copy, If, Repeat, Sequence

SEED_STEP = 0x9E3779B9  # between the seeds of a loop's rounds
own = torch.ops.poptorch


@define(eq=False)
class NestedWalk(GraphWalk):
    """A walk from a mark of the graph on, with values of the walk around it and a program of its own."""

    outer: GraphWalk = field(kw_only=True)
    start: fx.Node = field(kw_only=True)  # the mark
    carried: list[Tensor] = field(kw_only=True)  # what a round of a loop finds and leaves, and what bodies of a choice give

    @classmethod
    def begun(cls, outer: GraphWalk, start: fx.Node, carried: list[Tensor]) -> Self:
        """The walk behind a mark. What is known of values before is computed first."""
        outer.compute_pending()
        given = outer.model, Sequence(), outer.values, outer.ipus, dict(outer.copies), outer.drawings
        return cls(*given, outer=outer, start=start, carried=carried)

    def end(self, mark: fx.Node, call: str) -> Sequence:
        """The program of the body, which ends at another mark."""
        _check_kept(self.start, mark, call)
        self.outer.drawings = self.drawings
        return self.program

    def results(self, mark: fx.Node) -> list[Tensor]:
        """What is carried, which is on the IPU where the body began."""
        for node in (mark, *mark.users):
            self.ipus[node] = self.ipus[self.start]
        return self.carried

    def ended(self) -> None:
        """None of the results of a body is used, and so no mark ends it, but something else of it is."""
        origin = self.start.meta.get("origin")
        raise MissingFeature(f"poptorch.for_loop: what its body computes is used outside: return it ({origin})")


@define(eq=False)
class LoopBody(NestedWalk):
    """The walk through what a loop repeats."""

    ENDS = (own.end_for_loop.default,)


@define(eq=False)
class ThenBranch(NestedWalk):
    """The walk through what a choice does if its condition is true."""

    ENDS = (own.start_else_block.default,)


@define(eq=False)
class ElseBranch(NestedWalk):
    """The walk through what a choice does else."""

    ENDS = (own.end_if_block.default,)


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


def _tensors(context: EntryContext, nodes: list[fx.Node]) -> list[Tensor]:
    return [context.tensor(node) for node in nodes]


def _apart(context: EntryContext, sources: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
    """Tensors that do not change while `kept` are written: copies of those that are parts of them."""
    numbers = {number for tensor in kept for number in tensor.variable_numbers()}
    return [
        one if numbers.isdisjoint(one.variable_numbers()) else poputil.duplicate(context.graph, one, context.program, context.name)
        for one in sources
    ]


def _copied(context: EntryContext, sources: list[Tensor], targets: list[Tensor]) -> None:
    for source, target in zip(_apart(context, sources, targets), targets, strict=True):
        context.program.add(Copy(source, target, name=context.name))


def _carried(context: EntryContext, given: list[Tensor]) -> list[Tensor]:
    """New tensors with the elements of others."""
    carried = [context.place(one.shape(), one.elementType()) for one in given]
    _copied(context, given, carried)
    return carried


# each takes a walk from a mark to behind the one that ends what begins there


@lowers_from(own.start_for_loop.default, own.end_for_loop.default)
def loop(walk: GraphWalk, course: Course, position: int) -> int:
    start = course.operations[position]
    body = from_line_of(start, lambda: _begin_loop(walk, start))
    position = body.through(course, position + 1)
    course.tell(position)
    end = course.operations[position]
    from_line_of(end, lambda: _end_loop(walk, body, end))
    return position + 1


def _begin_loop(walk: GraphWalk, start: fx.Node) -> LoopBody:
    (inputs,) = start.args
    context = walk.context(start)
    carried = _carried(context, _tensors(context, inputs))
    walk.values[start] = carried
    return LoopBody.begun(walk, start, carried)


def _end_loop(walk: GraphWalk, body: LoopBody, end: fx.Node) -> None:
    outputs, _, count = end.args
    inside, outside = body.context(end), walk.context(end)
    _copied(inside, _tensors(inside, outputs), body.carried)
    draws = body.drawings > walk.drawings
    if draws:  # every round draws other numbers; behind the loop the seed is what it was
        popops.addInPlace(inside.graph, inside.random_seed().slice(0, 1), SEED_STEP, inside.program, inside.name)
    program = body.end(end, "for_loop")
    outside.program.add(Repeat(count, program, name=outside.name))
    if draws:
        back = -SEED_STEP * count % 2**32
        popops.addInPlace(outside.graph, outside.random_seed().slice(0, 1), back, outside.program, outside.name)
    walk.values[end] = body.results(end)


@lowers_from(own.start_if_block.default, own.start_else_block.default, own.end_if_block.default)
def choice(walk: GraphWalk, course: Course, position: int) -> int:
    start = course.operations[position]
    then = from_line_of(start, lambda: _begin_then(walk, start))
    position = then.through(course, position + 1)
    course.tell(position)
    middle = course.operations[position]
    otherwise = from_line_of(middle, lambda: _begin_else(walk, then, middle))
    position = otherwise.through(course, position + 1)
    course.tell(position)
    end = course.operations[position]
    from_line_of(end, lambda: _end_choice(walk, then, otherwise, end))
    return position + 1


def _begin_then(walk: GraphWalk, start: fx.Node) -> ThenBranch:
    (condition,) = start.args
    predicate = _tensors(walk.context(start), condition)
    walk.values[start] = predicate
    return ThenBranch.begun(walk, start, [])


def _begin_else(walk: GraphWalk, then: ThenBranch, middle: fx.Node) -> ElseBranch:
    outputs, _ = middle.args
    context = then.context(middle)
    results = _carried(context, _tensors(context, outputs))
    then.end(middle, "cond")
    walk.values[middle] = results
    return ElseBranch.begun(walk, middle, results)


def _end_choice(walk: GraphWalk, then: ThenBranch, otherwise: ElseBranch, end: fx.Node) -> None:
    outputs, _, condition = end.args
    inside, outside = otherwise.context(end), walk.context(end)
    _copied(inside, _tensors(inside, outputs), otherwise.carried)
    program = otherwise.end(end, "cond")
    (predicate,) = _tensors(outside, condition)
    outside.program.add(If(predicate.flatten()[0], then.program, program, name=outside.name))
    walk.values[end] = otherwise.results(end)
