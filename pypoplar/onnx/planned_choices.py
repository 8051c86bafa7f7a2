"""If: the branch that is taken, where its condition is known; else both of them, of which the device runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from onnx import GraphProto, NodeProto

from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.node_call import NeedsValue
from pypoplar.onnx.onnx_types import DEVICE_TYPES, dtype_name, type_problem
from pypoplar.onnx.plan_steps import GraphValue, PlannedBranch, PlannedChoice
from pypoplar.onnx.planned_loops import attributes, node_path

if TYPE_CHECKING:
    from pypoplar.onnx.graph_plan import GraphScope, Planner


def choice(
    planner: Planner, node: NodeProto, operands: list[GraphValue | None], scope: GraphScope, label: str, number: int
) -> list[GraphValue | None]:
    """`If`: the branch that its condition says, or a step that chooses."""
    graphs: dict[str, GraphProto] = attributes(node)
    path = node_path(node, scope, number)
    condition = operands[0]
    if condition is None:
        raise ModelError(f"{label}: its condition is left out")
    if condition.tensor.numel() != 1:
        raise ModelError(f"{label}: its condition {condition.name} has one element, got shape {list(condition.tensor.shape)}")
    if condition.known:
        taken = graphs["then_branch" if condition.tensor.item() else "else_branch"]
        return list(planner.subgraph(taken, scope, {}, path))
    if condition.sources and condition.sources <= planner.weights.keys():
        raise NeedsValue(0, data=False)  # which keeps the weights as they are
    then = planner.branch(graphs["then_branch"], scope, (*path, "then"))
    otherwise = planner.branch(graphs["else_branch"], scope, (*path, "else"))
    problems = [*then.problems, *otherwise.problems] or _unlike(then, otherwise, label)
    if problems:
        if planner.can_be_given(condition):
            raise NeedsValue(0, data=False)  # the branch that is not taken need not run here
        planner.problems += problems[:-1]
        raise ModelError(problems[-1])
    results = _results(node, condition, then, otherwise, label)
    planner.steps.append(PlannedChoice(condition, then, otherwise, tuple(results), path, label, planner.place))
    return results


def _unlike(then: PlannedBranch, otherwise: PlannedBranch, label: str) -> list[str]:
    """What of two branches' results cannot be chosen by data."""
    if len(then.results) != len(otherwise.results):
        return [f"{label}: then_branch has {len(then.results)} outputs, and else_branch {len(otherwise.results)}"]
    told = []
    for number, pair in enumerate(zip(then.results, otherwise.results, strict=True)):
        if not all(isinstance(one, GraphValue) for one in pair):
            told.append(f"{label}: data choose the branch, whose outputs have to be tensors; output {number} is a sequence")
            continue
        shapes = [f"{dtype_name(one.tensor.dtype)} {list(one.tensor.shape)}" for one in pair]
        if shapes[0] != shapes[1]:
            told.append(
                f"{label}: data choose the branch, so both give the same types and shapes; output {number} is {shapes[0]} of "
                f"then_branch and {shapes[1]} of else_branch"
            )
    return told


def _results(
    node: NodeProto, condition: GraphValue, then: PlannedBranch, otherwise: PlannedBranch, label: str
) -> list[GraphValue | None]:
    results: list[GraphValue | None] = []
    for name, first, second in zip(node.output, then.results, otherwise.results, strict=True):
        if first.tensor.dtype not in DEVICE_TYPES:
            raise ModelError(f"{label}: it gives {name} as {type_problem(first.tensor.dtype)}")
        sources = condition.sources | first.sources | second.sources
        results.append(GraphValue(torch.empty_like(first.tensor, device="meta"), name, sources))
    return results
