"""What plans of all kinds do: lay tensors out, and compute."""

from __future__ import annotations

from collections import Counter
from typing import assert_never

from attrs import evolve

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.conv_layout import (
    map_convolution_input,
    map_convolution_output,
    map_convolution_weights,
)
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_vertices import convolve
from pypoplar.poplin.convolution.conv_views import used_input
from pypoplar.poplin.convolution.joined_groups import JoinedPlan
from pypoplar.poplin.convolution.layout.memory_order import MemoryOrder
from pypoplar.poplin.convolution.layout.operand_layout import planned_input, planned_weights
from pypoplar.poplin.convolution.layout.plan_memory import input_memory, weights_memory
from pypoplar.poplin.convolution.plan_choice import AnyPlan
from pypoplar.poplin.convolution.serial_steps import SerialStep, SteppedPlan
from pypoplar.poplin.convolution.supersteps import SuperstepLane
from pypoplar.poplin.convolution.swapped_plan import SwappedPlan
from pypoplar.poplin.partial_sums import add_where_sums_lie
from pypoplar.poputil.naming import below
from pypoplar.program import Copy

Place = tuple[tuple[int, int], ...]  # a range of each dimension of the result


def map_input(graph: Graph, plan: AnyPlan, input: Tensor) -> None:
    """Map an input [groups, batch, channels, *field] to where it is used."""
    match plan:
        case ConvolutionPlan():
            map_convolution_input(graph, plan, input)
        case SwappedPlan():
            map_convolution_weights(graph, plan.inner, plan.as_weights(input))
        case JoinedPlan():
            map_convolution_input(graph, plan.inner, plan.joined_input(input))
        case SteppedPlan():
            for step, own in reversed(plan.steps):
                map_input(graph, own, plan.part(input, step.input))
        case _:
            assert_never(plan)


def map_weights(graph: Graph, plan: AnyPlan, weights: Tensor) -> None:
    """Map weights [groups, output channels, channels, *kernel] likewise."""
    match plan:
        case ConvolutionPlan():
            map_convolution_weights(graph, plan, weights)
        case SwappedPlan():
            map_convolution_input(graph, plan.inner, plan.as_input(weights))
        case JoinedPlan():
            plan.map_weights(graph, weights)
        case SteppedPlan():
            for step, own in reversed(plan.steps):
                map_weights(graph, own, plan.part(weights, step.weights))
        case _:
            assert_never(plan)


def map_output(graph: Graph, plan: AnyPlan, output: Tensor) -> None:
    """Map a result [groups, batch, output channels, *field] as that which is computed."""
    match plan:
        case ConvolutionPlan():
            map_convolution_output(graph, plan, output)
        case SwappedPlan():
            map_convolution_output(graph, plan.inner, plan.turned(output))
        case JoinedPlan():
            map_convolution_output(graph, plan.inner, plan.joined_output(output))
        case SteppedPlan():
            for step, own in reversed(plan.steps):
                map_output(graph, own, plan.part(output, step.result))
        case _:
            assert_never(plan)


def execute(graph: Graph, plan: AnyPlan, input: Tensor, weights: Tensor, lane: SuperstepLane, name: str) -> Tensor:
    """The result of operands that lie anywhere: what lies badly is copied."""
    match plan:
        case ConvolutionPlan():
            input, plan = used_input(plan.form, input), evolve(plan, form=plan.form.of_used_inputs)
            input = planned_input(graph, plan, input, lane.programs, name)
            weights = planned_weights(graph, plan, weights, lane.programs, name)
            return convolve(graph, plan, input, weights, lane, name)
        case SwappedPlan():
            own, others = plan.as_input(weights), plan.as_weights(input)
            return plan.turned_back(execute(graph, plan.inner, own, others, lane, name))
        case JoinedPlan():
            spread, own = plan.spread_weights(graph, weights, below(name, "weights"))
            graph.setInitialValue(spread, 0)  # what is between the weights stays so
            order = plan.weights_order()  # rows of weights are copied at once
            lane.programs.add(Copy(weights.dimShuffle(order), own.dimShuffle(order)))
            return plan.apart(execute(graph, plan.inner, plan.joined_input(input), spread, lane, name))
        case SteppedPlan():
            return _in_steps(graph, plan, input, weights, lane, name)
        case _:
            assert_never(plan)


def _in_steps(graph: Graph, plan: SteppedPlan, input: Tensor, weights: Tensor, lane: SuperstepLane, name: str) -> Tensor:
    """The results of all steps, put together."""
    first = plan.first
    if isinstance(first, ConvolutionPlan):  # what all steps have alike is laid out once
        if not plan.steps[0][0].input:
            input = planned_input(graph, first, input, lane.programs, name)
        if not plan.steps[0][0].weights:
            weights = planned_weights(graph, first, weights, lane.programs, name)
    results: dict[Place, Tensor] = {}
    left = Counter(_place(plan, step) for step, _ in plan.steps)
    for number, (step, own) in enumerate(plan.steps):
        operands = plan.part(input, step.input), plan.part(weights, step.weights)
        result = execute(graph, own, *operands, lane, below(name, f"step{number}"))
        place = _place(plan, step)
        left[place] -= 1
        if place in results:
            before = results[place]
            type = before.elementType() if left[place] else plan.types.result
            total = graph.clone(type, before, below(name, f"sum{number}"))
            cs = lane.compute_set(below(name, f"add{number}"))
            order = memory_order(own, "output", result.shape())
            both = [_as_it_lies(tensor, order).expand([0]) for tensor in (before, result)]
            add_where_sums_lie(graph, cs, concat(both), _as_it_lies(total, order))
            result = total
        results[place] = result
    return _joined(results, len(plan.result))


def _as_it_lies(tensor: Tensor, order: MemoryOrder) -> Tensor:
    """A tensor with its dimensions in the order of memory."""
    if len(order.dimensions) > tensor.rank():
        tensor = tensor.reshape([tensor.dim(0) // order.factor, order.factor, *tensor.shape()[1:]])
    return tensor.dimShuffle(list(order.dimensions))


def _place(plan: SteppedPlan, step: SerialStep) -> Place:
    """The part of the result that a step computes: a range of each dimension."""
    return tuple(step.result.get(dimension, (0, size)) for dimension, size in enumerate(plan.result))


def _joined(results: dict[Place, Tensor], rank: int) -> Tensor:
    """Results by their ranges, put together dimension by dimension."""
    for dimension in reversed(range(rank)):
        rows: dict[Place, list[Tensor]] = {}
        for place, tensor in sorted(results.items(), key=lambda item: item[0]):
            rows.setdefault((*place[:dimension], (0, 0), *place[dimension + 1 :]), []).append(tensor)
        results = {place: concat(tensors, dimension) if len(tensors) > 1 else tensors[0] for place, tensors in rows.items()}
    (whole,) = results.values()
    return whole


def memory_order(plan: AnyPlan, operand: str, shape: list[int]) -> MemoryOrder:
    """How the "input", the "weights" or the "output" of this shape lie best in memory."""
    match plan:
        case ConvolutionPlan():
            if operand == "output":
                return MemoryOrder(tuple(plan.output_order()))
            return (input_memory if operand == "input" else weights_memory)(plan, shape)
        case SwappedPlan():
            return MemoryOrder(tuple(getattr(plan, f"{operand}_order")()))
        case JoinedPlan():
            order = tuple(getattr(plan, f"{operand}_order")())
            return MemoryOrder(order, 1 if operand == "weights" else plan.factor)  # weights are of single groups
        case SteppedPlan():
            return _order_of_steps(plan, operand, shape)
        case _:
            assert_never(plan)


def _order_of_steps(plan: SteppedPlan, operand: str, shape: list[int]) -> MemoryOrder:
    """That of the first step, with parts of the channels for each of them."""
    ranges = [getattr(step, "result" if operand == "output" else operand) for step, _ in plan.steps]
    own_shape = [end - begin for begin, end in (ranges[0].get(place, (0, size)) for place, size in enumerate(shape))]
    order = memory_order(plan.first, operand, own_shape)
    if order.factor > 1:
        return order
    cuts = {place: bounds for place, bounds in order.cuts.items() if place not in ranges[0]}
    for place in {"input": (2,), "weights": (1, 2), "output": (2,)}[operand]:
        if place in ranges[0]:
            cuts[place] = _step_bounds(plan, operand, place, shape)
    return evolve(order, cuts=cuts)


def _step_bounds(plan: SteppedPlan, operand: str, dimension: int, shape: list[int]) -> tuple[int, ...]:
    """Where the parts that the plans of the steps have of a dimension begin, and its end."""
    name = "result" if operand == "output" else operand
    several = {getattr(step, name)[dimension]: own for step, own in plan.steps}
    bounds = {shape[dimension]}
    for (begin, end), own in several.items():
        own_shape = [*shape[:dimension], end - begin, *shape[dimension + 1 :]]
        bounds |= {begin + bound for bound in memory_order(own, operand, own_shape).cuts.get(dimension, (0, end - begin))}
    return tuple(sorted(bounds))
