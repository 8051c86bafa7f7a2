"""RMSprop, as PyTorch and as TensorFlow have it."""

from __future__ import annotations

from pypoplar.popops.expr import Max, Sqrt
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import plus
from pypoplar.poptorch.update.gradient_descent import VELOCITY
from pypoplar.poptorch.update.group_settings import GroupSettings, has_velocity
from pypoplar.poptorch.update.host_optimizer import TYPES
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.program import Sequence

SQUARES, MEANS = "square_avg", "grad_avg"


def mean_states(settings: GroupSettings) -> list[StateKind]:
    """The mean of squares, that of gradients if it is centred, and the velocity if there is a momentum."""
    first, second = (TYPES[settings.fixed[f"{order}_order_momentum_accum_type"]] for order in ("first", "second"))
    means = [StateKind(MEANS, first)] if settings.fixed["centered"] else []
    velocity = [StateKind(VELOCITY, first)] if has_velocity(settings) else []
    return [StateKind(SQUARES, second, 1.0 if settings.fixed["use_tf_variant"] else 0.0), *means, *velocity]


def normalise(step: ParameterStep, prog: Sequence) -> None:
    """The step: the gradient over the root of the mean of its squares; with TensorFlow's variant eps is below the root."""
    weight, tensorflows = step.update.leaf(step.weight), step.fixed("use_tf_variant")
    gradient = plus(step.scaled_gradient(), step.number("weight_decay"), weight)
    rest = step.derived("rest_of_alpha", DerivedNumber("rest", ("alpha",)), "alpha")
    spread = squares = step.number("alpha") * step.state(SQUARES) + rest * (gradient * gradient)
    step.update.replace(step.states[SQUARES], squares)
    if MEANS in step.states:
        means = step.state(MEANS)
        means = means + rest * (gradient - means)
        step.update.replace(step.states[MEANS], means)
        spread = Max(squares - means * means, 0.0)  # which rounding can bring below 0
    eps, rate = step.number("eps"), step.number("lr")
    direction = gradient / (Sqrt(spread + eps) if tensorflows else Sqrt(spread) + eps)
    if tensorflows:
        direction = rate * direction
    if VELOCITY in step.states:
        direction = step.number("momentum") * step.state(VELOCITY) + direction
        step.update.replace(step.states[VELOCITY], direction)
    step.update.replace(step.weight, weight - (direction if tensorflows else rate * direction))
    step.run(prog)
