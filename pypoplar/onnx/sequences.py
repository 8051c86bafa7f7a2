"""Sequences of tensors: lists of values while a graph is planned, of which the device sees the tensors alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from attrs import frozen
from onnx import NodeProto, helper

from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.node_call import NeedsValue
from pypoplar.onnx.plan_steps import GraphValue

if TYPE_CHECKING:
    from pypoplar.onnx.graph_plan import GraphScope, Planner


@frozen(eq=False)
class ValueSequence:
    """Values in a row."""

    items: tuple[GraphValue, ...]
    name: str


@frozen(eq=False)
class SequenceNode:
    """A node of sequences: what it is given, with where it is."""

    planner: Planner
    node: NodeProto
    operands: list[GraphValue | ValueSequence | None]
    label: str
    path: tuple[str, ...]

    def attribute(self, name: str, default: int) -> int:
        """A whole number among the attributes."""
        return next((int(helper.get_attribute_value(one)) for one in self.node.attribute if one.name == name), default)

    def items(self, operand: int = 0) -> tuple[GraphValue, ...]:
        """The values of an operand that is a sequence."""
        found = self.operands[operand]
        if not isinstance(found, ValueSequence):
            raise ModelError(f"{self.label}: its input {operand} ({self.node.input[operand]}) is no sequence")
        return found.items

    def value(self, operand: int) -> GraphValue:
        """An operand that is a tensor."""
        found = self.operands[operand]
        if not isinstance(found, GraphValue):
            raise ModelError(f"{self.label}: its input {operand} ({self.node.input[operand]}) is no tensor")
        return found

    def has(self, operand: int) -> bool:
        """Whether there is such an operand."""
        return operand < len(self.operands) and self.operands[operand] is not None

    def place(self, operand: int, length: int, default: int, past: int = 0) -> int:
        """A place in a sequence of a length, or one behind its end where `past` is 1."""
        if not self.has(operand):
            return default
        value = self.value(operand)
        if not value.known:
            raise NeedsValue(operand, data=False)
        index = int(value.tensor.reshape(-1)[0].item())
        if not -length <= index < length + past:
            raise ModelError(f"{self.label}: the place {index} is not in a sequence of {length}")
        return index + length if index < 0 else index

    def list_of(self, items: tuple[GraphValue, ...]) -> list[GraphValue | ValueSequence | None]:
        """The node's one result, a sequence."""
        return [ValueSequence(items, self.node.output[0])]


Results = list[GraphValue | ValueSequence | None]


def _construct(at: SequenceNode) -> Results:
    return at.list_of(tuple(at.value(one) for one in range(len(at.operands))))


def _empty(at: SequenceNode) -> Results:
    return at.list_of(())


def _insert(at: SequenceNode) -> Results:
    items = at.items()
    place = at.place(2, len(items), len(items), past=1)
    return at.list_of((*items[:place], at.value(1), *items[place:]))


def _erase(at: SequenceNode) -> Results:
    items = at.items()
    place = at.place(1, len(items), len(items) - 1)
    return at.list_of((*items[:place], *items[place + 1 :]))


def _at(at: SequenceNode) -> Results:
    items = at.items()
    return [items[at.place(1, len(items), 0)]]


def _length(at: SequenceNode) -> Results:
    return [GraphValue(torch.tensor(len(at.items())), at.node.output[0])]


def _joined(at: SequenceNode) -> Results:
    name = "Stack" if at.attribute("new_axis", 0) else "Join"
    return [at.planner.emit(name, at.items(), at.label, at.path, axis=at.attribute("axis", 0))]


def _split(at: SequenceNode) -> Results:
    value = at.value(0)
    axis = at.attribute("axis", 0) % value.tensor.dim()
    size = value.tensor.shape[axis]
    sizes = _parts(at, size)
    items, begin = [], 0
    for one in sizes:
        part = at.planner.emit("Part", [value], at.label, at.path, axis=axis, begin=begin, size=one)
        if not at.has(1) and not at.attribute("keepdims", 1):
            part = at.planner.emit("Select", [part], at.label, at.path, axis=axis, index=0)
        items.append(part)
        begin += one
    return at.list_of(tuple(items))


def _parts(at: SequenceNode, size: int) -> list[int]:
    if not at.has(1):
        return [1] * size
    given = at.value(1)
    if not given.known:
        raise NeedsValue(1, data=False)
    if given.tensor.dim():
        sizes = [int(one) for one in given.tensor]
        if sum(sizes) != size:
            raise ModelError(f"{at.label}: the parts {sizes} make {sum(sizes)}, and there are {size}")
        return sizes
    each = int(given.tensor)
    return [min(each, size - begin) for begin in range(0, size, each)]


def _mapped(at: SequenceNode, scope: GraphScope) -> Results:
    body = next(one.g for one in at.node.attribute if one.name == "body")
    rounds = len(at.items())
    rows = []
    for number in range(rounds):
        given = [one.items[number] if isinstance(one, ValueSequence) else one for one in at.operands]
        bound = {one.name: value for one, value in zip(body.input, given, strict=False) if value is not None}
        rows.append(at.planner.subgraph(body, scope, bound, (*at.path, f"item_{number}")))
    return [ValueSequence(tuple(row[position] for row in rows), name) for position, name in enumerate(at.node.output)]


FORMS: dict[str, Callable[[SequenceNode], Results]] = {
    "ConcatFromSequence": _joined,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
SEQUENCE_OPERATORS = (*FORMS, "SequenceMap")


def sequence_results(
    planner: Planner,
    node: NodeProto,
    operands: list[GraphValue | ValueSequence | None],
    scope: GraphScope,
    label: str,
    path: tuple[str, ...],
) -> Results:
    """What a node of sequences gives."""
    at = SequenceNode(planner, node, operands, label, path)
    return _mapped(at, scope) if node.op_type == "SequenceMap" else FORMS[node.op_type](at)
