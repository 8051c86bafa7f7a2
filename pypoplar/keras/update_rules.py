"""The steps of Keras' optimisers on the device, formula by formula as Keras has them.

They are not those of PyTorch: a velocity has the rate in it, and epsilon stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pypoplar.popops.expr import Max, Min, Pow, Sqrt
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import times
from pypoplar.poptorch.update.group_settings import GroupSettings
from pypoplar.poptorch.update.optimizer import UpdateRule, add_rule
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.program import Sequence
from pypoplar.types import FLOAT

COMMON = ("lr", "weight_decay", "clipvalue")
CLIPS = "clips"  # the flag that there is a `clipvalue`

Names = tuple[str, ...]


class KerasUpdate(torch.optim.Optimizer):
    """An optimiser of Keras, by its kind and numbers, for the device alone: it makes no steps on the host."""

    kind = ""

    def __init__(
        self, groups: list[dict[str, Any]], numbers: dict[str, float], longest: float, scaling: float, flags: dict[str, bool]
    ) -> None:
        super().__init__(groups, {**numbers, **flags})
        self.max_grad_norm = longest  # of all gradients together
        self.loss_scaling = scaling

    def step(self, closure: Any = None) -> None:
        """It is the device's."""
        raise NotImplementedError("a step of Keras' optimisers is made on the device, or by Keras")


def _states(*names: str, **by_flag: str) -> Callable[[GroupSettings], list[StateKind]]:
    def states(settings: GroupSettings) -> list[StateKind]:
        asked = [name for flag, name in by_flag.items() if settings.fixed.get(flag)]
        return [StateKind(name, FLOAT) for name in (*names, *asked)]

    return states


def _gradient(step: ParameterStep) -> Any:
    """The gradient, clipped if the optimiser says so."""
    gradient = step.scaled_gradient()
    if not step.fixed(CLIPS):
        return gradient
    most = step.number("clipvalue")
    return Max(Min(gradient, most), -most)


def _decayed(step: ParameterStep) -> Any:
    """The weight, less what decays of it before the step."""
    weight, decay = step.update.leaf(step.weight), step.number("weight_decay")
    return weight if isinstance(decay, float) and decay == 0 else weight - times(weight * decay, step.number("lr"))


def _replace(step: ParameterStep, state: str, tree: Any) -> Any:
    step.update.replace(step.states[state], tree)
    return tree


def _mean(step: ParameterStep, state: str, rate: str, new: Any) -> Any:
    """A running mean with something new in it; what the rate leaves is computed on the host, exactly."""
    rest = step.derived(f"rest_of_{rate}", DerivedNumber("rest", (rate,)), rate)
    return step.number(rate) * step.state(state) + rest * new


def _finish(step: ParameterStep, weight: Any, prog: Sequence) -> None:
    step.update.replace(step.weight, weight)
    step.run(prog)


def _descend(step: ParameterStep, prog: Sequence) -> None:
    """``w -= lr g``; with momentum ``m = momentum m - lr g; w += m``, or ``w += momentum m - lr g`` with Nesterov's."""
    change = step.number("lr") * _gradient(step)
    if "momentum" not in step.states:
        return _finish(step, _decayed(step) - change, prog)
    momentum = step.number("momentum")
    moved = _replace(step, "momentum", step.state("momentum") * momentum - change)
    return _finish(step, _decayed(step) + (moved * momentum - change if step.fixed("nesterov") else moved), prog)


def _adapt(step: ParameterStep, prog: Sequence) -> None:
    """Adam: the rate has both corrections of bias in it, and epsilon stands beside the uncorrected root."""
    gradient, settings = _gradient(step), step.settings
    first_rate, second_rate, rate = settings.number("beta_1"), settings.number("beta_2"), settings.number("lr")

    def corrected(update: Any, steps: Any) -> Any:
        first, second = (1.0 - Pow(update.leaf(one), steps) for one in (first_rate, second_rate))
        return update.leaf(rate) * Sqrt(second) / first

    alpha = step.update.leaf(step.scalars.scalar("rate", corrected))
    first = _replace(step, "momentum", _mean(step, "momentum", "beta_1", gradient))
    second = _replace(step, "velocity", _mean(step, "velocity", "beta_2", gradient * gradient))
    if "velocity_hat" in step.states:
        second = _replace(step, "velocity_hat", Max(step.state("velocity_hat"), second))
    _finish(step, _decayed(step) - first * alpha / (Sqrt(second) + step.number("epsilon")), prog)


def _normalise(step: ParameterStep, prog: Sequence) -> None:
    """RMSprop: the gradient over the root of the mean of its squares and epsilon."""
    gradient = _gradient(step)
    spread = _replace(step, "velocity", _mean(step, "velocity", "rho", gradient * gradient))
    if "average_gradient" in step.states:
        mean = _replace(step, "average_gradient", _mean(step, "average_gradient", "rho", gradient))
        spread = spread - mean * mean
    change = step.number("lr") * gradient / Sqrt(spread + step.number("epsilon"))
    if "momentum" in step.states:
        change = _replace(step, "momentum", step.number("momentum") * step.state("momentum") + change)
    _finish(step, _decayed(step) - change, prog)


def _sum_squares(step: ParameterStep, prog: Sequence) -> None:
    """Adagrad: the gradient over the root of the sum of its squares and epsilon."""
    gradient = _gradient(step)
    total = _replace(step, "accumulator", step.state("accumulator") + gradient * gradient)
    _finish(step, _decayed(step) - step.number("lr") * gradient / Sqrt(total + step.number("epsilon")), prog)


def _rule(kind: str, numbers: Names, flags: Names, states: Any, step: Any) -> type[KerasUpdate]:
    """A class for a kind, whose steps the device does from now on."""
    made = type(f"Keras{kind}", (KerasUpdate,), {"kind": kind})
    add_rule(UpdateRule(made.__name__, made, (*COMMON, *numbers), (*flags, CLIPS), states, step))
    return made


RULES: dict[str, type[KerasUpdate]] = {
    "SGD": _rule("SGD", ("momentum",), ("has_momentum", "nesterov"), _states(has_momentum="momentum"), _descend),
    "Adam": _rule(
        "Adam", ("beta_1", "beta_2", "epsilon"), ("amsgrad",), _states("momentum", "velocity", amsgrad="velocity_hat"), _adapt
    ),
    "RMSprop": _rule(
        "RMSprop",
        ("rho", "momentum", "epsilon"),
        ("centered", "has_momentum"),
        _states("velocity", centered="average_gradient", has_momentum="momentum"),
        _normalise,
    ),
    "Adagrad": _rule("Adagrad", ("epsilon",), (), _states("accumulator"), _sum_squares),
}
"""The classes by the name of Keras' class; AdamW is Adam, whose weights decay."""
