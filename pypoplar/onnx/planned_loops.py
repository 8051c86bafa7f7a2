"""Loop and Scan of a known count, as the nodes that they consist of; and the table of what has graphs within."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from onnx import GraphProto, NodeProto, helper

from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.node_call import NeedsValue
from pypoplar.onnx.plan_steps import GraphValue

if TYPE_CHECKING:
    from pypoplar.onnx.graph_plan import GraphScope, Planner

MOST_ROUNDS = 2**20  # of a loop that says no count


def attributes(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node by name."""
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def _number(operands: Sequence[GraphValue | None], position: int) -> Any:
    """The value of an operand that has to be known; None if it is left out."""
    value = operands[position] if position < len(operands) else None
    if value is None:
        return None
    if not value.known:
        raise NeedsValue(position, data=False)
    return value.tensor.reshape(-1)[0].item()


def node_path(node: NodeProto, scope: GraphScope, number: int) -> tuple[str, ...]:
    """The path of a node's module."""
    parts = [part.replace(".", "_") for part in node.name.split("/") if part]
    return (*scope.path, *(parts or [f"{node.op_type}_{number}"]))


def loop(
    planner: Planner, node: NodeProto, operands: list[GraphValue | None], scope: GraphScope, label: str, number: int
) -> list[GraphValue | None]:
    """`Loop`: its body as often as it runs."""
    body: GraphProto = attributes(node)["body"]
    count, condition = _number(operands, 0), _number(operands, 1)
    carried = [one for one in operands[2:] if one is not None]
    path = node_path(node, scope, number)
    scanned: list[list[GraphValue]] = [[] for _ in body.output[1 + len(carried) :]]
    names = [one.name for one in body.input]
    goes_on, round_number = condition is not False, 0
    while goes_on and (count is None or round_number < count):
        if round_number >= MOST_ROUNDS:
            raise ModelError(f"{label}: the loop goes round more than {MOST_ROUNDS} times")
        first = [GraphValue(torch.tensor(round_number), names[0]), GraphValue(torch.tensor(True), names[1])]
        bound = dict(zip(names, [*first, *carried], strict=True))
        results = planner.subgraph(body, scope, bound, (*path, f"round_{round_number}"))
        if not results[0].known:
            raise ModelError(f"{label}: whether it goes on depends on data; loops on the IPU have a fixed count")
        goes_on = bool(results[0].tensor.reshape(-1)[0].item())
        carried = results[1 : 1 + len(carried)]
        for rows, result in zip(scanned, results[1 + len(carried) :], strict=True):
            rows.append(result)
        round_number += 1
    if any(not rows for rows in scanned):
        raise ModelError(f"{label}: a loop that does not go round once has no outputs of its rounds")
    return [*carried, *(planner.emit("Stack", rows, label, path, axis=0) for rows in scanned)]


def scan(
    planner: Planner, node: NodeProto, operands: list[GraphValue | None], scope: GraphScope, label: str, number: int
) -> list[GraphValue | None]:
    """`Scan`: its body for each place along an axis."""
    settings = attributes(node)
    body: GraphProto = settings["body"]
    path = node_path(node, scope, number)
    sliced = int(settings["num_scan_inputs"])
    if scope.opsets.get("", 1) < 9:
        return _batched_scan(planner, body, operands, settings, scope, label, path)
    states = [one for one in operands[: len(operands) - sliced] if one is not None]
    inputs = [one for one in operands[len(operands) - sliced :] if one is not None]
    outputs = len(body.output) - len(states)
    axes = list(settings.get("scan_input_axes", [0] * sliced))
    back = list(settings.get("scan_input_directions", [0] * sliced))
    states, rows = _scanned(planner, body, states, inputs, axes, back, scope, label, path)
    ends = list(settings.get("scan_output_axes", [0] * outputs))
    flips = list(settings.get("scan_output_directions", [0] * outputs))
    results = [
        planner.emit("Stack", one[::-1] if flip else one, label, path, axis=int(axis))
        for one, axis, flip in zip(rows, ends, flips, strict=True)
    ]
    return [*states, *results]


def _scanned(  # noqa: PLR0913 (what a Scan has)
    planner: Planner,
    body: GraphProto,
    states: list[GraphValue],
    inputs: list[GraphValue],
    axes: list[int],
    back: list[int],
    scope: GraphScope,
    label: str,
    path: tuple[str, ...],
) -> tuple[list[GraphValue], list[list[GraphValue]]]:
    """The states at the end, and the outputs of each round."""
    lengths = {one.tensor.shape[axis] for one, axis in zip(inputs, axes, strict=True)}
    if len(lengths) != 1:
        raise ModelError(f"{label}: its scanned inputs have other lengths: {sorted(lengths)}")
    (length,) = lengths
    names = [one.name for one in body.input]
    rows: list[list[GraphValue]] = [[] for _ in body.output[len(states) :]]
    for at in range(length):
        now = [
            planner.emit("Select", [one], label, path, axis=int(axis), index=length - 1 - at if reverse else at)
            for one, axis, reverse in zip(inputs, axes, back, strict=True)
        ]
        results = planner.subgraph(body, scope, dict(zip(names, [*states, *now], strict=True)), (*path, f"round_{at}"))
        states = results[: len(states)]
        for row, result in zip(rows, results[len(states) :], strict=True):
            row.append(result)
    return states, rows


def _batched_scan(
    planner: Planner,
    body: GraphProto,
    operands: list[GraphValue | None],
    settings: dict[str, Any],
    scope: GraphScope,
    label: str,
    path: tuple[str, ...],
) -> list[GraphValue | None]:
    """`Scan` of opset 8, which has a batch in front, and lengths that are left out here."""
    if operands[0] is not None:
        raise ModelError(f"{label}: sequence_lens of opset 8 is missing")
    sliced = int(settings["num_scan_inputs"])
    given = [one for one in operands[1:] if one is not None]
    states, inputs = given[: len(given) - sliced], given[len(given) - sliced :]
    back = list(settings.get("directions", [0] * sliced))
    items = []
    for item in range(inputs[0].tensor.shape[0]):
        of_item = [planner.emit("Select", [one], label, path, axis=0, index=item) for one in [*states, *inputs]]
        ends, rows = _scanned(
            planner, body, of_item[: len(states)], of_item[len(states) :], [0] * sliced, back, scope, label, (*path, f"item_{item}")
        )
        items.append([*ends, *(planner.emit("Stack", row, label, path, axis=0) for row in rows)])
    return [planner.emit("Stack", list(of_batch), label, path, axis=0) for of_batch in zip(*items, strict=True)]


def called(
    planner: Planner, node: NodeProto, operands: list[GraphValue | None], scope: GraphScope, label: str, number: int
) -> list[GraphValue | None]:
    """`Call` of ``ai.graphcore``: a graph for its inputs."""
    callee: GraphProto | None = attributes(node).get("callee")
    if callee is None:
        raise ModelError(f"{label}: the attribute callee is missing")
    if len(callee.input) != len(operands):
        raise ModelError(f"{label}: {callee.name} takes {len(callee.input)} inputs, got {len(operands)}")
    bound = {one.name: value for one, value in zip(callee.input, operands, strict=True) if value is not None}
    return list(planner.subgraph(callee, scope, bound, node_path(node, scope, number)))


LOOPS: dict[str, Callable[..., list[GraphValue | None]]] = {"Loop": loop, "Scan": scan}
