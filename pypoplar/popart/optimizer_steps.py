"""Steps of PopART's optimisers that PyTorch's do not make: gradients that are damped from the first one on, and AdaMax."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from pypoplar.popops.expr import Abs, Max
from pypoplar.poptorch.optim.variable_attributes import VariableAttributes
from pypoplar.poptorch.update.adaptive_moments import FIRST, corrected_rate
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import plus, times
from pypoplar.poptorch.update.gradient_descent import VELOCITY
from pypoplar.poptorch.update.group_settings import GroupSettings, has_velocity
from pypoplar.poptorch.update.optimizer import UpdateRule, add_rule
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.program import Sequence
from pypoplar.types import FLOAT

LARGEST = "exp_inf"


class PopartUpdate(torch.optim.Optimizer):
    """An optimiser of PopART for the device alone: groups of parameters, each with all its numbers."""

    def __init__(self, groups: Iterable[dict[str, Any]], loss_scaling: float) -> None:
        super().__init__(groups, {})
        self.loss_scaling = loss_scaling
        numbers = [name for name in self.param_groups[0] if name != "params"]
        self.variable_attrs = VariableAttributes([], [*numbers, "loss_scaling"])

    def step(self, closure: Any = None) -> None:
        """It is the device's."""
        raise NotImplementedError("a step of PopART's optimisers is made on the device")


class DampedDescent(PopartUpdate):
    """Gradient descent as PopART has it."""


class LargestGradient(PopartUpdate):
    """AdaMax as PopART has it."""


def _velocities(settings: GroupSettings) -> list[StateKind]:
    return [StateKind(VELOCITY, FLOAT)] if has_velocity(settings) else []


def _descend(step: ParameterStep, prog: Sequence) -> None:
    """``v = momentum v + (1 - dampening) g; w -= lr v``; with Nesterov's momentum ``w -= lr (g + momentum v)``."""
    weight = step.update.leaf(step.weight)
    gradient = plus(step.scaled_gradient(), step.number("weight_decay"), weight)
    undamped = step.derived("undamped", DerivedNumber("rest", ("dampening",)), "dampening")
    velocity = times(undamped, gradient)
    if VELOCITY in step.states:
        momentum = step.number("momentum")
        velocity = momentum * step.state(VELOCITY) + velocity
        step.update.replace(step.states[VELOCITY], velocity)
        direction = gradient + momentum * velocity if step.fixed("nesterov") else velocity
    else:
        direction = gradient if step.fixed("nesterov") else velocity
    step.update.replace(step.weight, weight - step.number("lr") * direction)
    step.run(prog)


def _largest_states(settings: GroupSettings) -> list[StateKind]:
    return [StateKind(FIRST, FLOAT), StateKind(LARGEST, FLOAT)]


def _divide_by_largest(step: ParameterStep, prog: Sequence) -> None:
    """``m / ((1 - beta1^t) (v + eps))``, in which ``v = max(beta2 v, |g|)`` has no eps."""
    weight, first, decay = step.update.leaf(step.weight), step.state(FIRST), step.number("weight_decay")
    gradient = step.scaled_gradient()
    kept = weight
    if step.fixed("decoupled"):
        kept = times(step.derived("kept", DerivedNumber("kept"), "lr", "weight_decay"), weight)
    else:
        gradient = plus(gradient, decay, weight)
    first = first + step.derived("rest_of_beta1", DerivedNumber("rest", ("beta1",)), "beta1") * (gradient - first)
    largest = Max(step.number("beta2") * step.state(LARGEST), Abs(gradient))
    step.update.replace(step.states[FIRST], first)
    step.update.replace(step.states[LARGEST], largest)
    rate = corrected_rate(step, step.settings.number("lr"))
    step.update.replace(step.weight, kept - rate * (first / (largest + step.number("eps"))))
    step.run(prog)


add_rule(
    UpdateRule("PopartSGD", DampedDescent, ("lr", "momentum", "dampening", "weight_decay"), ("nesterov",), _velocities, _descend)
)
add_rule(
    UpdateRule(
        "PopartAdaMax",
        LargestGradient,
        ("lr", "betas", "eps", "weight_decay"),
        ("decoupled",),
        _largest_states,
        _divide_by_largest,
    )
)
