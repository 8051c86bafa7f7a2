"""LAMB: Adam whose step is as long as each parameter's weights allow."""

from __future__ import annotations

import math

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.popops.expr import Const, Max, Min, Select, Sqrt
from pypoplar.poptorch.update.adaptive_moments import corrected_root, update_moments
from pypoplar.poptorch.update.element_update import ElementUpdate, plus, times
from pypoplar.poptorch.update.parameter_step import ParameterStep
from pypoplar.poptorch.update.step_scalars import bias_correction
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import FLOAT

SQUARES = popops.ReduceParams(popops.Operation.SQUARE_ADD)
SHORTEST = 1e-30  # of a direction: what is divided by is not 0


def adapt_layerwise(step: ParameterStep, prog: Sequence) -> None:
    """The step: the direction of Adam with its decay of weights, as long as the weights of each parameter."""
    direction = step.graph.clone(FLOAT, step.weight, f"{step.name}/direction")
    step.update = ElementUpdate(step.graph, [direction, *step.states.values()])
    first, second = update_moments(step, step.scaled_gradient())
    length = times(corrected_root(step), Sqrt(second)) + step.number("eps")
    if step.fixed("bias_correction"):
        correction = bias_correction(step.settings, "beta1")
        first = step.update.leaf(step.scalars.scalar("first_correction", lambda *now: 1.0 / correction(*now))) * first
    step.update.replace(direction, plus(first / length, step.number("weight_decay"), step.update.leaf(step.weight)))
    step.run(prog)
    _move(step, direction, prog)


def _move(step: ParameterStep, direction: Tensor, prog: Sequence) -> None:
    """Take each parameter's direction, at its own rate, from its weights, all in one compute set."""
    graph, sizes = step.graph, [one.weight.numElements() for one in step.parameters]
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    weights = [step.weight.slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    directions = [direction.slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    rates = _rates(step, weights, directions, prog)
    moving = graph.addComputeSet(step.name)
    for place, (weight, part) in enumerate(zip(weights, directions, strict=True)):
        vertex = templateVertex("popops::ScaledSubtractTensor", weight.elementType(), FLOAT, FLOAT)
        add_element_vertices(graph, moving, vertex, "A", {"A": weight, "B": part}, edges={"scaleB": rates[place]})
    prog.add(Execute(moving))


def _rates(step: ParameterStep, weights: list[Tensor], directions: list[Tensor], prog: Sequence) -> Tensor:
    """The rate of each parameter, FLOAT [parameters]: the learning rate times length of weights over length of direction."""
    reductions = [popops.SingleReduceOp(one, [0], SQUARES, FLOAT) for one in (*weights, *directions)]
    squares = [one.reshape([1]) for one in popops.reduceMany(step.graph, reductions, [], prog, f"{step.name}/lengths")]
    longest = step.settings.number("max_weight_norm")
    rates = step.graph.addVariable(FLOAT, [len(weights)], f"{step.name}/rates")
    step.graph.setTileMapping(rates, 0)
    update = ElementUpdate(step.graph, [rates])
    of_weights, of_direction = (Sqrt(update.leaf(concat(half))) for half in (squares[: len(weights)], squares[len(weights) :]))
    unbounded = not isinstance(longest, Tensor) and longest == math.inf
    bounded = of_weights if unbounded else Min(of_weights, update.leaf(longest))
    trust = Select(bounded / Max(of_direction, SHORTEST), Const(1.0, FLOAT), bounded > 0.0)
    update.replace(rates, trust * update.leaf(step.settings.number("lr")))
    update.add_to(prog, f"{step.name}/rates")
    return rates
