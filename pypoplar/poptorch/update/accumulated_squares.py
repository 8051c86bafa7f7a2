"""Adagrad, Adadelta and Adamax, as PyTorch has them: steps by sums, means and the largest of what gradients were."""

from __future__ import annotations

from pypoplar.popops.expr import Abs, Max, Sqrt
from pypoplar.poptorch.update.adaptive_moments import FIRST, corrected_rate
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import plus
from pypoplar.poptorch.update.group_settings import GroupSettings
from pypoplar.poptorch.update.host_optimizer import TYPES
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind
from pypoplar.poptorch.update.root_mean_square import SQUARES
from pypoplar.program import Sequence

SUM, CHANGES, LARGEST = "sum", "acc_delta", "exp_inf"


def sum_states(settings: GroupSettings) -> list[StateKind]:
    """The sum of squares, which begins with a number of the optimiser's."""
    type, initial = TYPES[settings.fixed["second_order_momentum_accum_type"]], settings.fixed["initial_accumulator_value"]
    return [StateKind(SUM, type, initial)]


def change_states(settings: GroupSettings) -> list[StateKind]:
    """The means of squares, of gradients and of changes."""
    second = TYPES[settings.fixed["second_order_momentum_accum_type"]]
    return [StateKind(SQUARES, second), StateKind(CHANGES, second)]


def largest_states(settings: GroupSettings) -> list[StateKind]:
    """The first moment, and the largest gradient."""
    first, second = (TYPES[settings.fixed[f"{order}_order_momentum_accum_type"]] for order in ("first", "second"))
    return [StateKind(FIRST, first), StateKind(LARGEST, second)]


def divide_by_sum(step: ParameterStep, prog: Sequence) -> None:
    """Adagrad: the gradient over the root of the sum of all squares."""
    weight = step.update.leaf(step.weight)
    gradient = plus(step.scaled_gradient(), step.number("weight_decay"), weight)
    squares = step.state(SUM) + gradient * gradient
    step.update.replace(step.states[SUM], squares)
    step.update.replace(step.weight, weight - step.number("lr") * (gradient / (Sqrt(squares) + step.number("eps"))))
    step.run(prog)


def change_alike(step: ParameterStep, prog: Sequence) -> None:
    """Adadelta: changes as large as those before, by the root of their mean square over that of the gradients."""
    weight, eps, rho = step.update.leaf(step.weight), step.number("eps"), step.number("rho")
    gradient = plus(step.scaled_gradient(), step.number("weight_decay"), weight)
    rest = step.derived("rest_of_rho", DerivedNumber("rest", ("rho",)), "rho")
    squares = rho * step.state(SQUARES) + rest * (gradient * gradient)
    step.update.replace(step.states[SQUARES], squares)
    change = Sqrt(step.state(CHANGES) + eps) / Sqrt(squares + eps) * gradient
    step.update.replace(step.states[CHANGES], rho * step.state(CHANGES) + rest * (change * change))
    step.update.replace(step.weight, weight - step.number("lr") * change)
    step.run(prog)


def divide_by_largest(step: ParameterStep, prog: Sequence) -> None:
    """Adamax: the first moment over the largest gradient, which fades."""
    weight, first = step.update.leaf(step.weight), step.state(FIRST)
    gradient = plus(step.scaled_gradient(), step.number("weight_decay"), weight)
    rest = step.derived("rest_of_beta1", DerivedNumber("rest", ("beta1",)), "beta1")
    first = first + rest * (gradient - first)
    largest = Max(step.number("beta2") * step.state(LARGEST), Abs(gradient) + step.number("eps"))
    step.update.replace(step.states[FIRST], first)
    step.update.replace(step.states[LARGEST], largest)
    step.update.replace(step.weight, weight - corrected_rate(step, step.settings.number("lr")) * (first / largest))
    step.run(prog)
