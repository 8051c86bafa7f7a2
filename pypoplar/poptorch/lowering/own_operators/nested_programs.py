"""Loops and choices: the operations between two marks go into a program of their own."""

from __future__ import annotations

import torch
from attrs import define
from torch import fx

from pypoplar import popops, poputil
from pypoplar.errors import MissingFeature
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators  # noqa: F401 (makes them known to PyTorch)
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.values import Pending
from pypoplar.program import Copy, If, Repeat, Sequence

SEED_STEP = 0x9E3779B9  # between the seeds of a loop's rounds


@define(eq=False)
class NestedProgram:
    """A body that is being lowered: the mark at which it begins, and what is taken up again behind it."""

    start: fx.Node
    outside: Sequence
    copies: dict[tuple[fx.Node, int], Tensor]
    drawings: int
    carried: list[Tensor]  # what a round of a loop finds and leaves, and what bodies of a choice give

    @classmethod
    def begin(cls, at: GraphLowering, carried: list[Tensor]) -> NestedProgram:
        """Let operations from here on go into a new program. What is known of values before is computed first."""
        node = at.node
        for waiting in [one for one, value in at.values.items() if isinstance(value, Pending)]:
            at.node = waiting
            at.values[waiting] = at.compute(at.values[waiting])
        at.node = node
        nested = cls(node, at.program, dict(at.copies), at.drawings, carried)
        at.program = Sequence()
        return nested

    def end(self, at: GraphLowering, call: str) -> Sequence:
        """The program of the body; operations go where they went before."""
        _check_kept(self.start, at.node, call)
        inner, at.program, at.copies = at.program, self.outside, self.copies
        return inner

    def left_open(self) -> MissingFeature:
        """What to raise where none of a body's results is used, and so no mark ends it, but something else of it is."""
        origin = self.start.meta.get("origin")
        return MissingFeature(f"poptorch.for_loop: what its body computes is used outside: return it ({origin})")


def _check_kept(start: fx.Node, end: fx.Node, call: str) -> None:
    """`MissingFeature` where operations outside use what is computed between two marks."""
    within, node = {end}, start.next
    while node is not end:
        within.add(node)
        node = node.next
    if start.target is torch.ops.poptorch.start_if_block.default:  # the condition itself is asked for behind its bodies
        within -= set(start.users)
    for node in within - {end}:
        if any(user not in within for user in node.users):
            raise MissingFeature(f"poptorch.{call}: {node.meta.get('origin')} in its body is used outside: return it")


def _tensors(at: GraphLowering, nodes: list[fx.Node]) -> list[Tensor]:
    return [at.tensor(node) for node in nodes]


def _apart(at: GraphLowering, sources: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
    """Tensors that do not change while `kept` are written: copies of those that are parts of them."""
    numbers = {number for tensor in kept for number in tensor.variable_numbers()}
    return [
        one if numbers.isdisjoint(one.variable_numbers()) else poputil.duplicate(at.graph, one, at.program, at.name)
        for one in sources
    ]


def _copied(at: GraphLowering, sources: list[Tensor], targets: list[Tensor]) -> None:
    for source, target in zip(_apart(at, sources, targets), targets, strict=True):
        at.program.add(Copy(source, target, name=at.name))


def _carried(at: GraphLowering, given: list[Tensor]) -> list[Tensor]:
    """New tensors with the elements of others."""
    carried = [at.spread(one.shape(), one.elementType()) for one in given]
    _copied(at, given, carried)
    return carried


def _results(at: GraphLowering, nested: NestedProgram) -> list[Tensor]:
    """What a body that has been lowered carries, which is on the IPU where it began."""
    for node in (at.node, *at.node.users):
        at.ipus[node] = at.ipus[nested.start]
    return nested.carried


@lowers(torch.ops.poptorch.start_for_loop.default)
def start_loop(at: GraphLowering, inputs: list[fx.Node]) -> list[Tensor]:
    carried = _carried(at, _tensors(at, inputs))
    at.nested.append(NestedProgram.begin(at, carried))
    return carried


@lowers(torch.ops.poptorch.end_for_loop.default)
def end_loop(at: GraphLowering, outputs: list[fx.Node], inputs: list[fx.Node], count: int) -> list[Tensor]:
    nested: NestedProgram = at.nested.pop()
    _copied(at, _tensors(at, outputs), nested.carried)
    draws = at.drawings > nested.drawings
    if draws:  # every round draws other numbers; behind the loop the seed is what it was
        popops.addInPlace(at.graph, at.random_seed().slice(0, 1), SEED_STEP, at.program, at.name)
    body = nested.end(at, "for_loop")
    at.program.add(Repeat(count, body, name=at.name))
    if draws:
        popops.addInPlace(at.graph, at.random_seed().slice(0, 1), -SEED_STEP * count % 2**32, at.program, at.name)
    return _results(at, nested)


@lowers(torch.ops.poptorch.start_if_block.default)
def start_then(at: GraphLowering, condition: list[fx.Node]) -> list[Tensor]:
    predicate = _tensors(at, condition)
    at.nested.append(NestedProgram.begin(at, []))
    return predicate


@lowers(torch.ops.poptorch.start_else_block.default)
def start_else(at: GraphLowering, outputs: list[fx.Node], condition: list[fx.Node]) -> list[Tensor]:
    results = _carried(at, _tensors(at, outputs))
    then = at.nested.pop().end(at, "cond")
    at.nested.append(NestedProgram.begin(at, results))
    at.thens.append(then)
    return results


@lowers(torch.ops.poptorch.end_if_block.default)
def end_choice(at: GraphLowering, outputs: list[fx.Node], others: list[fx.Node], condition: list[fx.Node]) -> list[Tensor]:
    nested: NestedProgram = at.nested.pop()
    _copied(at, _tensors(at, outputs), nested.carried)
    otherwise = nested.end(at, "cond")
    (predicate,) = _tensors(at, condition)
    at.program.add(If(predicate.flatten()[0], at.thens.pop(), otherwise, name=at.name))
    return _results(at, nested)
