"""Facts of a graph as text. Nothing of it is executed but operations of PyTorch on indices, of those that the host computes."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from pypoplar.poptorch.capture import InputKind
from pypoplar.poptorch.executor.index_ranges import CheckedIndex, IndexRange
from pypoplar.poptorch.executor.known_graphs.captured_facts import GraphFacts, PlainResult, StateTensor

PLAIN = (type(None), bool, int, float, str)
NAMES = ("arguments", "gradients", "buffers", "changed", "named")  # of facts that are names
TORCH = (torch.dtype, torch.layout, torch.memory_format)
GETITEM = "getitem"


class NoText(Exception):
    """Something has no such form."""


def to_text(facts: GraphFacts) -> str | None:
    """What `of_text` makes equal facts of, but for their `structure`; None where something has no such form."""
    try:
        told = {
            **{name: getattr(facts, name) for name in NAMES},
            "state": [[one.name, one.kind.value] for one in facts.state],
            "results": [None if one is None else [_plain(one.value)] for one in facts.results],
            "indices": [_index_told(one) for one in facts.indices],
            **{name: getattr(facts, name) for name in ("ipus", "stages", "operations", "lines")},
        }
    except NoText:
        return None
    return json.dumps(told)


def of_text(text: str, structure: Any, constants: Mapping[str, Any]) -> GraphFacts:
    """The facts, with the `structure` of results and the values of constants, by name, of the program that was exported."""
    told = json.loads(text)
    names: dict[str, tuple[str, ...]] = {name: tuple(told[name]) for name in NAMES}
    return GraphFacts(
        arguments=names["arguments"],
        state=tuple(StateTensor(name, InputKind(kind)) for name, kind in told["state"]),
        results=tuple(None if one is None else PlainResult(one[0]) for one in told["results"]),
        structure=structure,
        gradients=names["gradients"],
        buffers=names["buffers"],
        changed=names["changed"],
        indices=tuple(_index(one, constants) for one in told["indices"]),
        named=names["named"],
        ipus=int(told["ipus"]),
        stages=int(told["stages"]),
        operations=str(told["operations"]),
        lines=str(told["lines"]),
    )


def _plain(value: Any) -> Any:
    if type(value) not in PLAIN:
        raise NoText
    return value


# indices: inputs, then the operations that compute them, each by its number


def _index_told(index: CheckedIndex) -> dict[str, Any]:
    inputs = [*index.arguments, *index.constants]
    numbers = {node: number for number, node in enumerate([*inputs, *index.steps])}
    if index.range.index not in numbers:
        raise NoText
    return {
        "arguments": list(index.arguments.values()),
        "constants": list(index.constant_names.values()),
        "steps": [[_target_told(step.target), _told(step.args, numbers), _told(step.kwargs, numbers)] for step in index.steps],
        "index": numbers[index.range.index],
        "range": [index.range.least, index.range.most, index.range.ignored, index.range.operation],
    }


def _target_told(target: Any) -> str:
    if target is operator.getitem:
        return GETITEM
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        raise NoText
    return str(target).removeprefix("aten.")


def _told(value: Any, numbers: Mapping[fx.Node, int]) -> Any:
    """An argument of an operation: a list with its kind first, where it is none of JSON's own."""
    match value:
        case fx.Node():
            if value not in numbers:
                raise NoText
            return ["node", numbers[value]]
        case list() | tuple():
            return ["list", [_told(one, numbers) for one in value]]
        case dict():
            return ["dict", {name: _told(one, numbers) for name, one in value.items()}]
        case torch.device():
            return ["device", str(value)]
        case _ if isinstance(value, TORCH):
            return ["torch", str(value).removeprefix("torch.")]
    return _plain(value)


def _index(told: Mapping[str, Any], constants: Mapping[str, Any]) -> CheckedIndex:
    graph = fx.Graph()
    arguments = {graph.placeholder(f"argument{number}"): name for number, name in enumerate(told["arguments"])}
    named = {graph.placeholder(f"constant{number}"): name for number, name in enumerate(told["constants"])}
    nodes = [*arguments, *named]
    for target, args, kwargs in told["steps"]:
        nodes.append(graph.call_function(_target(target), tuple(_value(args, nodes)), _value(kwargs, nodes)))
    least, most, ignored, operation = told["range"]
    checked = IndexRange(nodes[told["index"]], least, most, ignored, operation)
    known = {node: constants[name] for node, name in named.items()}
    return CheckedIndex(checked, tuple(nodes[len(arguments) + len(named) :]), arguments, known, named)


def _target(text: str) -> Any:
    if text == GETITEM:
        return operator.getitem
    name, _, overload = text.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload)


def _value(told: Any, nodes: list[fx.Node]) -> Any:
    if not isinstance(told, list):
        return told
    kind, value = told
    match kind:
        case "node":
            return nodes[value]
        case "list":
            return [_value(one, nodes) for one in value]
        case "dict":
            return {name: _value(one, nodes) for name, one in value.items()}
        case "device":
            return torch.device(value)
        case "torch":
            return getattr(torch, value)
    raise ValueError(f"an argument is {kind!r}")
