"""Convolutions as their planner sees them, run by a plan, and what they are in NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from library_programs import new_graph, run
from numpy.typing import NDArray

from pypoplar import Engine
from pypoplar import program as programs
from pypoplar.poplin.convolution.layout.memory_order import in_order
from pypoplar.poplin.convolution.plan_choice import AnyPlan
from pypoplar.poplin.convolution.plan_execution import execute, map_input, map_weights, memory_order
from pypoplar.poplin.convolution.sliding_axis import SlidingAxis
from pypoplar.poplin.convolution.supersteps import Supersteps

Array = NDArray[Any]
Sizes = tuple[int, int, int, int]  # groups, batch, input and output channels of a group


def axis(size: int, kernel: int, lower: int = 0, upper: int | None = None, dilation: int = 1, stride: int = 1) -> SlidingAxis:
    """An axis with padding; the same at both ends if one is given."""
    extent = size + lower + (lower if upper is None else upper) - (kernel - 1) * dilation
    return SlidingAxis(size, kernel, lower, dilation, stride, (extent - 1) // stride + 1)


def numbers(sizes: Sizes, axes: Sequence[SlidingAxis], dtype: Any, seed: int = 0) -> tuple[Array, Array]:
    """An input and weights of small eighths: all products and sums of not too many are exact in float."""
    groups, batch, depth, columns = sizes
    random = np.random.default_rng(seed)
    shapes = (groups, batch, depth, *(axis.size for axis in axes)), (groups, columns, depth, *(axis.kernel for axis in axes))
    input, weights = ((random.integers(-8, 9, shape) / 8).astype(dtype) for shape in shapes)
    return input, weights


def convolved(input: Array, weights: Array, axes: Sequence[SlidingAxis]) -> Array:
    """The convolution in float64, an element of the kernel after the other."""
    outs = [axis.out for axis in axes]
    result = np.zeros((*input.shape[:2], weights.shape[1], *outs))
    for place in np.ndindex(*weights.shape[3:]):
        seen = input.astype(np.float64)
        for number, (axis, k) in enumerate(zip(axes, place, strict=True)):
            index = np.arange(axis.out) * axis.stride - axis.lower + k * axis.dilation
            inside = (index >= 0) & (index < axis.size)
            shape = [-1 if dim == 3 + number else 1 for dim in range(seen.ndim)]
            seen = np.take(seen, np.clip(index, 0, axis.size - 1), 3 + number) * inside.reshape(shape)
        result += np.einsum("gnc...,goc->gno...", seen, weights[(slice(None),) * 3 + place].astype(np.float64))
    return result


def run_plan(plan: AnyPlan, tiles: int, input: Array, weights: Array, mode: Any = "native") -> tuple[Array, Engine]:
    """What the plan computes, with operands that lie as it wants them."""
    graph, device = new_graph(tiles)
    x = in_order(graph, plan.types.operands, [*input.shape], memory_order(plan, "input", [*input.shape]), "x")
    w = in_order(graph, plan.types.operands, [*weights.shape], memory_order(plan, "weights", [*weights.shape]), "w")
    map_input(graph, plan, x)
    map_weights(graph, plan, w)
    for tensor, name in ((x, "x"), (w, "w")):
        graph.createHostWrite(name, tensor)
    prog = programs.Sequence()
    supersteps = Supersteps(graph)
    result = execute(graph, plan, x, w, supersteps.lane(), "conv")
    supersteps.add_to(prog)
    read, engine = run(graph, device, prog, {"x": input, "w": weights}, {"y": result}, mode)
    return read["y"], engine
