"""Adam, with and without a decay of weights apart from the gradients, and the moments that LAMB has of it."""

from __future__ import annotations

from typing import Any

from pypoplar.popops.expr import Max, Sqrt
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import plus, times
from pypoplar.poptorch.update.group_settings import GroupSettings
from pypoplar.poptorch.update.host_optimizer import TYPES
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.poptorch.update.step_scalars import bias_correction
from pypoplar.program import Sequence

FIRST, SECOND, LARGEST = "exp_avg", "exp_avg_sq", "max_exp_avg_sq"


def moment_states(settings: GroupSettings) -> list[StateKind]:
    """Both moments, and the largest second one for amsgrad."""
    first, second = (TYPES[settings.fixed[f"{order}_order_momentum_accum_type"]] for order in ("first", "second"))
    largest = [StateKind(LARGEST, second)] if settings.fixed.get("amsgrad") else []
    return [StateKind(FIRST, first), StateKind(SECOND, second), *largest]


def update_moments(step: ParameterStep, gradient: Any) -> tuple[Any, Any]:
    """The moments with this step's gradient in them."""
    first, second = step.state(FIRST), step.state(SECOND)
    rest1 = step.derived("rest_of_beta1", DerivedNumber("rest", ("beta1",)), "beta1")
    rest2 = step.derived("rest_of_beta2", DerivedNumber("rest", ("beta2",)), "beta2")
    first = first + rest1 * (gradient - first)
    second = step.number("beta2") * second + rest2 * (gradient * gradient)
    step.update.replace(step.states[FIRST], first)
    step.update.replace(step.states[SECOND], second)
    return first, second


def corrected_root(step: ParameterStep) -> Any:
    """What the root of a second moment is multiplied by to correct its bias."""
    if not step.fixed("bias_correction"):
        return 1.0
    correction = bias_correction(step.settings, "beta2")
    return step.update.leaf(step.scalars.scalar("root_correction", lambda update, steps: 1.0 / Sqrt(correction(update, steps))))


def corrected_rate(step: ParameterStep, rate: Any) -> Any:
    """A number or tensor divided by what corrects the bias of a first moment."""
    if not step.fixed("bias_correction"):
        return step.update.leaf(rate)
    correction = bias_correction(step.settings, "beta1")
    return step.update.leaf(step.scalars.scalar("rate", lambda update, steps: update.leaf(rate) / correction(update, steps)))


def adapt(step: ParameterStep, prog: Sequence) -> None:
    """The step of Adam and AdamW, which also take amsgrad."""
    settings, weight, gradient = step.settings, step.update.leaf(step.weight), step.scaled_gradient()
    if settings.compiled.kind == "AdamW":
        kept = step.derived("kept", DerivedNumber("kept"), "lr", "weight_decay")
        decayed = times(kept, weight)
    else:
        decayed, gradient = weight, plus(gradient, step.number("weight_decay"), weight)
    first, second = update_moments(step, gradient)
    if LARGEST in step.states:
        second = Max(step.state(LARGEST), second)
        step.update.replace(step.states[LARGEST], second)
    length = times(corrected_root(step), Sqrt(second)) + step.number("eps")
    step.update.replace(step.weight, decayed - corrected_rate(step, settings.number("lr")) * (first / length))
    step.run(prog)
