"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Const, Equal, Select
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import plus, times
from pypoplar.poptorch.update.group_settings import GroupSettings, has_velocity
from pypoplar.poptorch.update.host_optimizer import TYPES
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.poptorch.update.settings import Settings
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, ElementType

VELOCITY = "momentum_buffer"


def is_combined(settings: GroupSettings, accumulated: int) -> bool:
    """Whether gradients are added to velocities as they come; without momentum and accumulation PopTorch ignores that."""
    return bool(settings.fixed["use_combined_accum"]) and (has_velocity(settings) or accumulated > 1)


def descent_states(settings: GroupSettings, type: ElementType, combined: bool) -> list[StateKind]:
    """The velocity, if there is a momentum."""
    if combined:
        return [StateKind(VELOCITY, type)]
    return [StateKind(VELOCITY, TYPES[settings.fixed["velocity_accum_type"]])] if has_velocity(settings) else []


def descend(step: ParameterStep, prog: Sequence) -> None:
    """``v = momentum v + (1 - dampening) g; w -= lr v``, with the first gradient undamped, as PyTorch has it."""
    settings = step.settings
    if step.clip is None and not step.states:
        _descend_plainly(step, prog)
        return
    if step.clip is None and _is_plain_momentum(settings.compiled):
        _descend_with_momentum(step, prog)
        return
    weight = step.update.leaf(step.weight)
    direction = plus(step.scaled_gradient(), step.number("weight_decay"), weight)
    if step.states:
        momentum = step.number("momentum")
        velocity = momentum * step.state(VELOCITY) + times(_damping(step), direction)
        step.update.replace(step.states[VELOCITY], velocity)
        direction = direction + momentum * velocity if step.fixed("nesterov") else velocity
    step.update.replace(step.weight, weight - step.number("lr") * direction)
    step.run(prog)


def _descend_plainly(step: ParameterStep, prog: Sequence) -> None:
    """``w = (1 - lr weight_decay) w - lr g``, which popops has vertices for."""
    sign, divisor = (-1.0 if step.fixed("maximize") else 1.0), step.divisor
    compiled = step.settings.compiled
    decays = compiled.numbers["weight_decay"] != 0 or "weight_decay" not in compiled.constant
    sources = ("lr", "loss_scaling", *(("weight_decay",) if decays else ()))

    scale: Any = step.settings.derived("plain_rate", DerivedNumber("plain_rate", (sign, divisor)), *sources)
    if decays:
        keep: Any = step.settings.derived("kept", DerivedNumber("kept"), *sources)
        popops.scaledSubtractFrom(step.graph, step.weight, keep, step.gradient, scale, prog, step.name)
    else:
        popops.scaledSubtractFrom(step.graph, step.weight, step.gradient, scale, prog, step.name)


def _is_plain_momentum(settings: GroupSettings) -> bool:
    """Whether velocities take gradients as they are, and weights velocities."""
    without = all(settings.numbers[name] == 0 and name in settings.constant for name in ("weight_decay", "dampening"))
    return without and not settings.fixed["nesterov"]


def _descend_with_momentum(step: ParameterStep, prog: Sequence) -> None:
    """``v = momentum v + g; w -= lr v``, two calls that popops has vertices for: together they are quicker than one codelet."""
    sign, divisor = (-1.0 if step.fixed("maximize") else 1.0), step.divisor
    sources = ("momentum", "loss_scaling")
    keep: Any = step.settings.derived("kept_velocity", DerivedNumber("itself", ("momentum",)), *sources)
    scale: Any = step.settings.derived("new_velocity", DerivedNumber("gradient_scale", (sign, divisor)), *sources)
    velocity = step.states[VELOCITY]
    popops.scaledAddTo(step.graph, velocity, keep, step.gradient, scale, prog, step.name)
    popops.scaledSubtractFrom(step.graph, step.weight, velocity, step.settings.number("lr"), prog, step.name)


def _damping(step: ParameterStep) -> Any:
    """What gradients are multiplied by on their way into velocities."""
    settings = step.settings
    undamped = settings.derived("undamped", DerivedNumber("undamped"), "momentum", "dampening")
    if isinstance(undamped, float) and undamped == 1:
        return undamped

    def after_the_first(update: Any, steps: Any) -> Any:
        other = update.leaf(undamped)
        return Select(Const(1.0, FLOAT), Const(other, FLOAT) if isinstance(other, float) else other, Equal(steps, 1.0))

    return step.update.leaf(step.scalars.scalar("damping", after_the_first))


def combined_scale(settings: Settings, divisor: float) -> float | Tensor:
    """What gradients are multiplied by when they are added to velocities."""
    sign = -1.0 if settings.compiled.fixed["maximize"] else 1.0
    scale = DerivedNumber("combined_scale", (sign, divisor))
    return settings.derived("combined_scale", scale, "momentum", "dampening", "velocity_scaling", "loss_scaling")


def descend_combined(step: ParameterStep, prog: Sequence) -> None:
    """The step where velocities, scaled, have the gradients in them already; all gradients are damped, as PopART has it."""
    weight, velocity = step.update.leaf(step.weight), step.state(VELOCITY)
    decay = step.derived(
        "combined_decay",
        DerivedNumber("combined_decay"),
        *("momentum", "dampening", "velocity_scaling", "weight_decay"),
    )
    velocity = plus(velocity, decay, weight)
    rate = step.derived("combined_rate", DerivedNumber("combined_rate"), "lr", "velocity_scaling")
    step.update.replace(step.weight, weight - rate * velocity)
    step.update.replace(step.states[VELOCITY], step.number("momentum") * velocity)
    step.run(prog)
