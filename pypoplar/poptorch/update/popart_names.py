"""PopART's names of optimisers' states and numbers, by which `ipu_state` and `ipu_param` of a `state_dict` have them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from attrs import evolve, frozen

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.update.derived_numbers import undamped
from pypoplar.poptorch.update.group_settings import GroupSettings, has_velocity

LOSS_SCALING = "lossScaling_FLOAT"
STEP = "Step___"
SPECIFIC = "___specific___"
MOMENTS = {"exp_avg": "Accl1___", "exp_avg_sq": "Accl2___"}
STATES: Mapping[str, Mapping[str, str]] = {
    "SGD": {"momentum_buffer": "Accl1___"},
    **dict.fromkeys(("Adam", "AdamW", "LAMB"), MOMENTS),
    "RMSprop": {"square_avg": "Accl1___", "grad_avg": "Accl2___", "momentum_buffer": "Accl3___"},
}
"""What stands before a parameter's name, by an optimiser's kind and PyTorch's name of a state."""

Numbers = Mapping[str, float]


@frozen
class PopartNumber:
    """A number of PopART's: how it follows from an optimiser's numbers, and how one of these follows from it and the others."""

    name: str
    number: str
    of: Callable[[Numbers], float]
    solve: Callable[[float, Numbers], float]


def _itself(name: str, number: str) -> PopartNumber:
    return PopartNumber(name, number, lambda numbers: numbers[number], lambda value, _: value)


def _quotient(value: float, divisor: float, otherwise: float) -> float:
    return value / divisor if divisor else otherwise


ADAM = (
    *(_itself("learningRate", "lr"), _itself("weightDecay", "weight_decay"), _itself("adamBeta1", "beta1")),
    *(_itself("adamBeta2", "beta2"), _itself("adamEps", "eps")),
)
NUMBERS: Mapping[str, tuple[PopartNumber, ...]] = {
    **dict.fromkeys(("Adam", "AdamW"), ADAM),
    "LAMB": (*ADAM, _itself("maxWeightNorm", "max_weight_norm")),
    "RMSprop": (
        *(_itself("learningRate", "lr"), _itself("weightDecay", "weight_decay"), _itself("adaptiveAlpha", "alpha")),
        *(_itself("adaptiveMomentum", "momentum"), _itself("adaptiveEps", "eps")),
    ),
}
PLAIN = (  # SGD without velocities
    PopartNumber(
        "scaledLearningRate0",
        "lr",
        lambda numbers: numbers["lr"] / numbers["loss_scaling"],
        lambda value, numbers: value * numbers["loss_scaling"],
    ),
    PopartNumber(
        "weightDecayScaleFactor0",
        "weight_decay",
        lambda numbers: 1 - numbers["lr"] * numbers["weight_decay"],
        lambda value, numbers: _quotient(1 - value, numbers["lr"], numbers["weight_decay"]),
    ),
)


def _with_velocities(variant: int) -> tuple[PopartNumber, ...]:
    """SGD's numbers, combined with the gradients' sums (1) or apart from them (2)."""

    def scale(numbers: Numbers) -> float:
        return numbers["velocity_scaling"] if variant == 1 else 1.0

    return (
        _itself(f"scaledMomentum{variant}", "momentum"),
        PopartNumber(
            f"dampeningScaleFactor{variant}",
            "dampening",
            lambda numbers: undamped(numbers) * scale(numbers) / numbers["loss_scaling"],
            lambda value, numbers: 1 - value * numbers["loss_scaling"] / scale(numbers),
        ),
        PopartNumber(
            f"scaledLearningRate{variant}",
            "lr",
            lambda numbers: numbers["lr"] / scale(numbers),
            lambda value, numbers: value * scale(numbers),
        ),
        PopartNumber(
            "scaledWeightDecay1",
            "weight_decay",
            lambda numbers: undamped(numbers) * scale(numbers) * numbers["weight_decay"],
            lambda value, numbers: _quotient(value, undamped(numbers) * scale(numbers), numbers["weight_decay"]),
        ),
    )


def state_name(settings: GroupSettings, state: str, parameter: str) -> str:
    """The name of a parameter's state; PyTorch's own for what PopART does not have."""
    prefix = STATES.get(settings.kind, {}).get(state)
    if settings.kind == "SGD" and settings.fixed["use_combined_accum"]:
        prefix = "Accl___"
    return f"{state}/{parameter}" if prefix is None else f"{prefix}{parameter}"


def numbers_by_name(groups: list[GroupSettings], parameters: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """The numbers of all groups; `parameters` are the group of each, by name."""
    named = {LOSS_SCALING: torch.tensor(groups[0].numbers["loss_scaling"])}
    for parameter, group in parameters.items():
        for one in _numbers_of(groups[group]):
            named[f"{one.name}{SPECIFIC}{parameter}"] = torch.tensor(one.of(groups[group].numbers))
    return named


def groups_from_names(
    named: Mapping[str, Any], given: list[GroupSettings], wanted: list[GroupSettings], parameters: Mapping[str, int]
) -> list[GroupSettings]:
    """The groups that the device is `given`, with other numbers where the named ones are others.

    Numbers are single there. Those that an optimiser has now, which are `wanted`, are taken whole where they are the same.
    `InvalidOption` where parameters of one group have several, and for names that the groups do not have.
    """
    known = {LOSS_SCALING, *numbers_by_name(given, parameters)}
    other = sorted(set(named) - known)
    if other:
        raise InvalidOption(f"the state is that of another model's optimiser: its ipu_param has {', '.join(other[:4])}")
    scaling = PopartNumber(LOSS_SCALING, "loss_scaling", lambda numbers: numbers["loss_scaling"], lambda value, _: value)
    groups = []
    for number, (has, wants) in enumerate(zip(given, wanted, strict=True)):
        own = [parameter for parameter, group in parameters.items() if group == number]
        numbers = _resolved(scaling, has.numbers, wants.numbers, _common(named, LOSS_SCALING, [LOSS_SCALING], number))
        for one in _numbers_of(has):
            value = _common(named, one.name, [f"{one.name}{SPECIFIC}{parameter}" for parameter in own], number)
            numbers = _resolved(one, numbers, wants.numbers, value)
        groups.append(evolve(has, numbers=numbers))
    return groups


def are_several(loaded: Mapping[str, Mapping[str, Any]], groups: list[GroupSettings], parameters: Mapping[str, int]) -> bool:
    """Whether parameters of one group have numbers or steps of their own in a state by PopART's names."""
    states, numbers = loaded["ipu_state"], loaded["ipu_param"]
    for number, settings in enumerate(groups):
        own = [parameter for parameter, group in parameters.items() if group == number]
        named = [[f"{one.name}{SPECIFIC}{parameter}" for parameter in own] for one in _numbers_of(settings)]
        values = [{float(numbers[name]) for name in names if name in numbers} for names in named]
        values.append({float(states[f"{STEP}{parameter}"]) for parameter in own if f"{STEP}{parameter}" in states})
        if any(len(of_one) > 1 for of_one in values):
            return True
    return False


def _numbers_of(settings: GroupSettings) -> tuple[PopartNumber, ...]:
    if settings.kind != "SGD":
        return NUMBERS.get(settings.kind, ())
    if not has_velocity(settings):
        return PLAIN
    return _with_velocities(1 if settings.fixed["use_combined_accum"] else 2)


def _common(named: Mapping[str, Any], what: str, names: list[str], group: int) -> float | None:
    """The value that all of these names have; None where none is there."""
    values = {float(named[name]) for name in names if name in named}
    if len(values) > 1:
        raise InvalidOption(
            f"ipu_param: the parameters of group {group} have {len(values)} values of {what}; on the device a group has one: make "
            "a group for each"
        )
    return values.pop() if values else None


def _resolved(one: PopartNumber, numbers: Numbers, wanted: Numbers, value: float | None) -> Numbers:
    """Numbers of which one follows from a value of single precision, unless it has that already."""
    if value is None or _same(one.of(numbers), value):
        return numbers
    with contextlib.suppress(KeyError):
        taken = {**numbers, one.number: wanted[one.number]}
        if _same(one.of(taken), value):
            return taken
    return {**numbers, one.number: one.solve(value, numbers)}


def _same(number: float, value: float) -> bool:
    return bool(np.float32(number) == np.float32(value))
