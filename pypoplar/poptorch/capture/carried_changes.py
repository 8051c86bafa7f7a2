"""What bodies of loops and choices change in place of tensors from outside goes on through their marks, such as running statistics.

A loop's body stands in the graph once: what it changes would be computed once, from what there was before the loop. So a changed
tensor becomes one more argument and result of the body, and of the two bodies of a choice one more result.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from pypoplar.poptorch import operators  # noqa: F401 (makes the marks known to PyTorch)
from pypoplar.poptorch.capture.written_operands import Owners, written_operands

aten, own = torch.ops.aten, torch.ops.poptorch
OPENING = (own.start_for_loop.default, own.start_if_block.default)


def carry_changes(module: fx.GraphModule) -> None:
    """Have the marks of an exported graph, before its decompositions, hand on what is changed between them; inner ones first."""
    graph = module.graph
    owners = Owners(graph)
    marks: list[fx.Node] = []
    for node in list(graph.nodes):
        if node.target in OPENING or node.target is own.start_else_block.default:
            marks.append(node)
        elif node.target is own.end_for_loop.default:
            _carry_through_loop(marks.pop(), node, owners)
        elif node.target is own.end_if_block.default:
            between = marks.pop()
            _carry_through_choice(marks.pop(), between, node, owners)
    graph.lint()
    module.recompile()


def _changed(start: fx.Node, end: fx.Node, owners: Owners) -> list[fx.Node]:
    """The tensors from before `start` that operations between two marks change, each once."""
    before: set[fx.Node] = set()
    node = start.prev
    while node.op != "root":
        before.add(node)
        node = node.prev
    changed: dict[fx.Node, None] = {}
    node = start.next
    while node is not end:
        for operand in written_operands(node):
            owner = owners.of(operand)
            if owner is not None and owner in before:
                changed[owner] = None
        node = node.next
    return list(changed)


def _carry_through_loop(start: fx.Node, end: fx.Node, owners: Owners) -> None:
    changed = _changed(start, end, owners)
    if not changed:
        return
    behind = _Behind(start)
    within = [behind.result(start, len(start.args[0]) + number) for number in range(len(changed))]
    for tensor, value in zip(changed, within, strict=True):
        behind.copy(tensor, value)
    outputs, inputs, count = end.args
    start.args = ([*start.args[0], *changed],)
    end.args = ([*outputs, *changed], [*inputs, *within], count)
    _take_results(end, len(outputs), changed)


def _carry_through_choice(start: fx.Node, between: fx.Node, end: fx.Node, owners: Owners) -> None:
    """The second body finds what there was before the first one; behind it there is what the chosen one left."""
    changed = list(dict.fromkeys([*_changed(start, between, owners), *_changed(start, end, owners)]))
    if not changed:
        return
    with start.graph.inserting_before(start):
        first = [_marked_as(start, start.graph.call_function(aten.clone.default, (tensor,))) for tensor in changed]
    behind = _Behind(between)
    count = len(between.args[0])
    results = [behind.result(between, count + number) for number in range(len(changed))]
    for tensor, value in zip(changed, first, strict=True):
        behind.copy(tensor, value)
    between.args = ([*between.args[0], *changed], between.args[1])
    outputs, others, condition = end.args
    end.args = ([*outputs, *changed], [*others, *results], condition)
    _take_results(end, count, changed)


def _take_results(end: fx.Node, count: int, changed: list[fx.Node]) -> None:
    """Behind a mark, changed tensors are its results from number `count` on."""
    behind = _Behind(end)
    results = [behind.result(end, count + number) for number in range(len(changed))]
    for tensor, value in zip(changed, results, strict=True):
        behind.copy(tensor, value)


class _Behind:
    """Adds operations behind a mark, in order; they are of its line and its layer."""

    def __init__(self, mark: fx.Node) -> None:
        self.mark = self.last = mark

    def result(self, mark: fx.Node, number: int) -> fx.Node:
        return self._add(operator.getitem, (mark, number))

    def copy(self, target: fx.Node, source: fx.Node) -> fx.Node:
        return self._add(aten.copy_.default, (target, source))

    def _add(self, target: Any, args: tuple[Any, ...]) -> fx.Node:
        with self.mark.graph.inserting_after(self.last):
            self.last = _marked_as(self.mark, self.mark.graph.call_function(target, args))
        return self.last


def _marked_as(mark: fx.Node, node: fx.Node) -> fx.Node:
    """A new node with what a mark tells of itself but for its value."""
    node.meta = {name: value for name, value in mark.meta.items() if name != "val"}
    return node
