"""The steps of Keras' optimisers on the device, formula by formula as Keras has them.

They are not those of PyTorch: a velocity has the rate in it, and epsilon stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from attrs import frozen

from pypoplar import popops
from pypoplar.keras.weight_constraints import constrain
from pypoplar.popops.expr import Equal, Floor, Gt, Max, Min, Pow, Select, Sqrt
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import ElementUpdate, times
from pypoplar.poptorch.update.group_settings import GroupSettings
from pypoplar.poptorch.update.optimizer import SQUARES, UpdateRule, add_rule
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.program import Sequence
from pypoplar.types import FLOAT

COMMON = ("lr", "weight_decay", "clipvalue", "clipnorm", "ema_momentum")
CLIPS, CLIPS_NORM = "clips", "clips_norm"  # the flags that there is a `clipvalue`, and a `clipnorm`
AVERAGES, OVERWRITES = (
    "averages",
    "overwrites",
)  # that weights have moving averages; after how many steps these become the weights, 0: never
SKIPS = "skips"  # that a step is left out where a gradient is not finite
CONSTRAINT = "constraint"  # that of a parameter, None where it has none
LONGEST = 3e38  # of gradients, where one that is longer is not finite

Names = tuple[str, ...]


@frozen
class ConstantNumbers:
    """Which numbers are constants of the program: those that are 0, and the scale of a loss that stays."""

    names: frozenset[str]

    def isConstant(self, name: str) -> bool:
        """Whether a number is one."""
        return name in self.names


class KerasUpdate(torch.optim.Optimizer):
    """An optimiser of Keras, by its kind and numbers, for the device alone: it makes no steps on the host."""

    kind = ""

    def __init__(
        self, groups: list[dict[str, Any]], numbers: dict[str, float], longest: float, scaling: float, flags: dict[str, bool]
    ) -> None:
        super().__init__(groups, {**numbers, **flags})
        self.max_grad_norm = longest  # of all gradients together
        self.loss_scaling = scaling
        zeros = {name for name in ("weight_decay", "momentum") if all(not group.get(name) for group in self.param_groups)}
        self.variable_attrs = ConstantNumbers(frozenset(zeros if flags[SKIPS] else zeros | {"loss_scaling"}))

    def step(self, closure: Any = None) -> None:
        """It is the device's."""
        raise NotImplementedError("a step of Keras' optimisers is made on the device, or by Keras")


def _states(*names: str, **by_flag: str) -> Callable[[GroupSettings], list[StateKind]]:
    def states(settings: GroupSettings) -> list[StateKind]:
        asked = [name for flag, name in by_flag.items() if settings.fixed.get(flag)]
        return [StateKind(name, FLOAT) for name in (*names, *asked)]

    return states


def _gradient(step: ParameterStep, prog: Sequence) -> Any:
    """The gradient, clipped if the optimiser says so."""
    if step.fixed(CLIPS_NORM):
        return step.scaled_gradient() * step.update.leaf(_shortening(step, prog))
    gradient = step.scaled_gradient()
    if not step.fixed(CLIPS):
        return gradient
    most = step.number("clipvalue")
    return Max(Min(gradient, most), -most)


def _shortening(step: ParameterStep, prog: Sequence) -> Any:
    """What makes the gradient of a parameter, which is alone in its group, no longer than `clipnorm`: FLOAT []."""
    name = f"{step.name}/clip"
    (squares,) = popops.reduceMany(step.graph, [popops.SingleReduceOp(step.gradient, [0], SQUARES, FLOAT)], [], prog, name)
    clip = step.graph.addVariable(FLOAT, [], name)
    step.graph.setTileMapping(clip, 0)
    update = ElementUpdate(step.graph, [clip])
    most, scale = update.leaf(step.settings.number("clipnorm")), update.leaf(step.gradient_scale())
    update.replace(clip, most / Max(Sqrt(update.leaf(squares) * (scale * scale)), most))
    update.add_to(prog, name)
    return clip


def _kept(step: ParameterStep, new: Any, old: Any) -> Any:
    """What is new, or what was there where the step is left out: then the clip of gradients is 0 or NaN."""
    return Select(new, old, Gt(step.update.leaf(step.clip), 0.0)) if step.fixed(SKIPS) and step.clip is not None else new


def _decayed(step: ParameterStep) -> Any:
    """The weight, less what decays of it before the step."""
    weight, decay = step.update.leaf(step.weight), step.number("weight_decay")
    return weight if isinstance(decay, float) and decay == 0 else weight - times(weight * decay, step.number("lr"))


def _replace(step: ParameterStep, state: str, tree: Any) -> Any:
    step.update.replace(step.states[state], _kept(step, tree, step.state(state)))
    return tree


def _mean(step: ParameterStep, state: str, rate: str, new: Any) -> Any:
    """A running mean with something new in it; what the rate leaves is computed on the host, exactly."""
    rest = step.derived(f"rest_of_{rate}", DerivedNumber("rest", (rate,)), rate)
    return step.number(rate) * step.state(state) + rest * new


def _finish(step: ParameterStep, weight: Any, prog: Sequence) -> None:
    if step.fixed(AVERAGES):
        weight = _averaged(step, weight)
    step.update.replace(step.weight, _kept(step, weight, step.update.leaf(step.weight)))
    step.run(prog)
    if step.fixed(CONSTRAINT) is not None:
        constrain(step.graph, step.parameters[0].weight, step.fixed(CONSTRAINT), prog, f"{step.name}/constraint")


def _averaged(step: ParameterStep, weight: Any) -> Any:
    """The weight, of which the moving average takes up its part; after so many steps the average itself."""
    momentum, every = step.settings.number("ema_momentum"), float(step.fixed(OVERWRITES))
    share = step.scalars.scalar("ema_momentum", lambda update, steps: Select(0.0, update.leaf(momentum), Equal(steps, 1.0)))
    share = step.update.leaf(share)
    average = _replace(step, "average", share * step.state("average") + (1.0 - share) * weight)
    if not every:
        return weight
    overwrites = step.scalars.scalar("overwrites", lambda _, steps: Select(1.0, 0.0, Equal(Floor(steps / every) * every, steps)))
    return Select(average, weight, Gt(step.update.leaf(overwrites), 0.0))


def _descend(step: ParameterStep, prog: Sequence) -> None:
    """``w -= lr g``; with momentum ``m = momentum m - lr g; w += m``, or ``w += momentum m - lr g`` with Nesterov's."""
    change = step.number("lr") * _gradient(step, prog)
    if "momentum" not in step.states:
        return _finish(step, _decayed(step) - change, prog)
    momentum = step.number("momentum")
    moved = _replace(step, "momentum", step.state("momentum") * momentum - change)
    return _finish(step, _decayed(step) + (moved * momentum - change if step.fixed("nesterov") else moved), prog)


def _adapt(step: ParameterStep, prog: Sequence) -> None:
    """Adam: the rate has both corrections of bias in it, and epsilon stands beside the uncorrected root."""
    gradient, settings = _gradient(step, prog), step.settings
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
    gradient = _gradient(step, prog)
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
    gradient = _gradient(step, prog)
    total = _replace(step, "accumulator", step.state("accumulator") + gradient * gradient)
    _finish(step, _decayed(step) - step.number("lr") * gradient / Sqrt(total + step.number("epsilon")), prog)


def _rule(kind: str, numbers: Names, flags: Names, states: Any, step: Any) -> type[KerasUpdate]:
    """A class for a kind, whose steps the device does from now on."""
    made = type(f"Keras{kind}", (KerasUpdate,), {"kind": kind})

    def of_parameters(settings: GroupSettings) -> list[StateKind]:
        return [*states(settings), *([StateKind("average", FLOAT)] if settings.fixed[AVERAGES] else [])]

    def skipping(parameters: ParameterStep, prog: Sequence) -> None:
        if parameters.fixed(SKIPS):
            parameters.scalars.made = parameters.clip
            parameters.scalars.scalar("made", lambda _, steps: steps)  # so that steps are counted
        step(parameters, prog)

    add_rule(
        UpdateRule(
            made.__name__,
            made,
            (*COMMON, *numbers),
            (*flags, CLIPS, CLIPS_NORM, AVERAGES, SKIPS),
            of_parameters,
            skipping,
            (OVERWRITES, CONSTRAINT),
        )
    )
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
