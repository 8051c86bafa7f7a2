"""Numbers that the host computes from an optimiser's, as values for files: a formula by its name, and what a program decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

Numbers = Mapping[str, float]

LEAST_LOGARITHM = -1e4  # of beta: e to the power of it is 0, and so are multiples


@frozen
class DerivedNumber:
    """A number by the name of its formula, which has `parameters` behind the optimiser's numbers."""

    formula: str
    parameters: tuple[Any, ...] = ()

    def of(self, numbers: Numbers) -> float:
        """What it is for an optimiser's numbers."""
        return FORMULAS[self.formula](numbers, *self.parameters)

    @property
    def power_of_loss_scaling(self) -> int:
        """How it goes with the loss scaling: 1 as it does, -1 as its inverse, 0 not at all."""
        return 1 if self == LOSS_SCALING else POWERS.get(self.formula, 0)


LOSS_SCALING = DerivedNumber("itself", ("loss_scaling",))


def _itself(numbers: Numbers, name: str) -> float:
    return numbers[name]


def _rest(numbers: Numbers, name: str) -> float:
    return 1 - numbers[name]


def _logarithm(numbers: Numbers, name: str) -> float:
    return max(math.log(numbers[name]), LEAST_LOGARITHM) if numbers[name] > 0 else LEAST_LOGARITHM


def _kept(numbers: Numbers) -> float:
    return 1 - numbers["lr"] * numbers["weight_decay"]


def _loss_gradient(numbers: Numbers, replicas: int) -> float:
    return numbers["loss_scaling"] / replicas


def _gradient_scale(numbers: Numbers, sign: float, divisor: float) -> float:
    return sign / (numbers["loss_scaling"] * divisor)


def _plain_rate(numbers: Numbers, sign: float, divisor: float) -> float:
    return sign * numbers["lr"] / (numbers["loss_scaling"] * divisor)


def undamped(numbers: Numbers) -> float:
    """Without momentum there is no dampening in PyTorch."""
    return 1 - numbers["dampening"] if numbers["momentum"] else 1.0


def _combined_scale(numbers: Numbers, sign: float, divisor: float) -> float:
    return sign * undamped(numbers) * numbers["velocity_scaling"] / (numbers["loss_scaling"] * divisor)


def _combined_decay(numbers: Numbers) -> float:
    return undamped(numbers) * numbers["velocity_scaling"] * numbers["weight_decay"]


def _combined_rate(numbers: Numbers) -> float:
    return numbers["lr"] / numbers["velocity_scaling"]


FORMULAS: Mapping[str, Callable[..., float]] = {
    "itself": _itself,
    "rest": _rest,
    "logarithm": _logarithm,
    "kept": _kept,
    "loss_gradient": _loss_gradient,
    "gradient_scale": _gradient_scale,
    "plain_rate": _plain_rate,
    "undamped": undamped,
    "combined_scale": _combined_scale,
    "combined_decay": _combined_decay,
    "combined_rate": _combined_rate,
}

POWERS: Mapping[str, int] = {"loss_gradient": 1, "gradient_scale": -1, "plain_rate": -1, "combined_scale": -1}
"""Of formulas that have the loss scaling in them."""
