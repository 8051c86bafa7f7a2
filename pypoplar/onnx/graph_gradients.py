"""`Gradient` of ONNX's training operators: the steps before it, differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from onnx import NodeProto, helper
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.plan_steps import GraphValue, PlannedChoice, PlannedNode, PlannedStep
from pypoplar.onnx.planned_module import NodeModule

if TYPE_CHECKING:
    from pypoplar.onnx.graph_plan import GraphScope, Planner


def gradient_results(
    planner: Planner, node: NodeProto, operands: Sequence[GraphValue | None], scope: GraphScope, label: str, path: tuple[str, ...]
) -> list[GraphValue | None]:
    """The gradients of `y` by `xs`, at the values that the node is given for `xs` and `zs`."""
    names = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    bound = [text.decode() for text in [*names["xs"], *names.get("zs", [])]]
    given = [one for one in operands if one is not None]
    if len(bound) != len(given):
        raise ModelError(f"{label}: it names {len(bound)} tensors and is given {len(given)}")
    inner = [_found(scope, name, label) for name in bound]
    result = _found(scope, names["y"].decode(), label)
    steps, more = _between(planner.steps, inner, result, label)
    count = len(names["xs"])
    graph = _differentiated(steps, [*inner, *more], result, count, label)

    def entry(call: NodeCall, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The gradients, from the operations that they were traced as."""
        found: tuple[Tensor, ...] = tuple(graph(*tensors))
        return found

    operands_of_step = (*given, *more)
    known = [one.tensor if one.known else None for one in operands_of_step]
    call = NodeCall(node, 1, known, planner.precision, label)
    call.used = {number for number, one in enumerate(known) if one is not None}
    values = [
        GraphValue(torch.empty_like(one.tensor, device="meta"), name, result.sources)
        for name, one in zip(node.output, given[:count], strict=True)
    ]
    planner.steps.append(PlannedNode(call, entry, len(operands_of_step), operands_of_step, tuple(values), path, planner.place))
    return list(values)


def _found(scope: GraphScope, name: str, label: str) -> GraphValue:
    try:
        value = scope.find(name)
    except KeyError:
        raise ModelError(f"{label}: there is no tensor {name}") from None
    if not isinstance(value, GraphValue):
        raise ModelError(f"{label}: {name} is no tensor")
    return value


def _between(
    steps: Sequence[PlannedStep], bound: Sequence[GraphValue], result: GraphValue, label: str
) -> tuple[list[PlannedNode], list[GraphValue]]:
    """The steps from bound values to a result, and further values that they take."""
    producers = {id(value): step for step in steps for value in step.results if value is not None}
    ends = {id(one) for one in bound}
    needed: set[int] = set()
    more: dict[int, GraphValue] = {}
    pending = [result]
    while pending:
        value = pending.pop()
        if id(value) in ends or value.known:
            continue
        step = producers.get(id(value))
        if step is None:
            more[id(value)] = value
        elif id(step) not in needed:
            if isinstance(step, PlannedChoice):
                raise ModelError(f"{label}: there is no gradient of an If whose branch data choose ({step.label})")
            needed.add(id(step))
            pending += [one for one in step.operands if one is not None]
    return [step for step in steps if isinstance(step, PlannedNode) and id(step) in needed], list(more.values())


def _differentiated(steps: Sequence[PlannedNode], inputs: Sequence[GraphValue], result: GraphValue, count: int, label: str) -> Any:
    """The gradients by the first inputs, as a graph of PyTorch's operations."""
    modules = [NodeModule(step) for step in steps]

    def forward(*tensors: Tensor) -> Tensor:
        found = {id(value): tensor for value, tensor in zip(inputs, tensors, strict=True)}
        for step, module in zip(steps, modules, strict=True):
            passed = [step.operands[number] for number in module.passed]
            made = module(*(found.get(id(one), one.tensor) for one in passed if one is not None))
            results = [step.results[number] for number in module.wanted]
            found.update({id(value): tensor for value, tensor in zip(results, made, strict=True)})
        return found[id(result)]

    def gradients(*tensors: Tensor) -> tuple[Tensor, ...]:
        def of_first(*first: Tensor) -> Tensor:
            return forward(*first, *tensors[count:])

        value, back = torch.func.vjp(of_first, *tensors[:count])
        found: tuple[Tensor, ...] = back(torch.ones_like(value))
        return found

    like = [torch.zeros(one.tensor.shape, dtype=one.tensor.dtype) for one in inputs]
    try:
        return make_fx(gradients, tracing_mode="fake")(*like)
    except RuntimeError as problem:
        raise ModelError(f"{label}: there is no gradient: {str(problem).partition(chr(10))[0]}") from None
