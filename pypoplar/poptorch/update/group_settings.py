"""What an optimiser says of a group of parameters: numbers, which of them may change between calls, and what never does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from attrs import frozen

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.optim import optimizer_kind

NUMBERS: dict[str, tuple[str, ...]] = {
    "SGD": ("lr", "momentum", "dampening", "weight_decay"),
    "Adam": ("lr", "betas", "eps", "weight_decay"),
    "AdamW": ("lr", "betas", "eps", "weight_decay"),
    "RMSprop": ("lr", "alpha", "eps", "weight_decay", "momentum"),
    "LAMB": ("lr", "betas", "eps", "weight_decay", "max_weight_norm"),
    "Adagrad": ("lr", "eps", "weight_decay"),
    "Adadelta": ("lr", "rho", "eps", "weight_decay"),
    "Adamax": ("lr", "betas", "eps", "weight_decay"),
}
FLAGS: dict[str, tuple[str, ...]] = {
    "SGD": ("nesterov", "maximize"),
    "Adam": ("amsgrad", "maximize"),
    "AdamW": ("amsgrad", "maximize"),
    "RMSprop": ("centered", "maximize"),
    "LAMB": ("maximize",),  # which is False: it has none
    "Adagrad": ("maximize",),
    "Adadelta": ("maximize",),
    "Adamax": ("maximize",),
}
SETTINGS: dict[str, tuple[str, ...]] = {}
"""What else decides the program, as it is, of kinds beside PyTorch's."""
ATTRIBUTES: Mapping[str, Any] = {
    "use_combined_accum": False,
    "accum_type": torch.float32,
    "velocity_accum_type": torch.float32,
    "first_order_momentum_accum_type": torch.float32,
    "second_order_momentum_accum_type": torch.float32,
    "bias_correction": True,
    "use_tf_variant": False,
    "max_grad_norm": math.inf,
}
"""What the optimisers of `poptorch.optim` have for all groups, and what PyTorch's, which do not have it, are taken to have."""
USUAL = {"weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0, "eps": 1e-8, "max_weight_norm": 65500.0, "loss_scaling": 1.0}
"""Numbers of PyTorch's optimisers that are constants of the program where they have these values, as in PopTorch."""
ALWAYS_CONSTANT = ("betas", "alpha", "rho")


@frozen
class GroupSettings:
    """The settings of one group. `constant` has the names of the numbers that are constants of the program.

    `fixed` are settings that decide which program it is.
    """

    kind: str
    group: int
    numbers: Mapping[str, float]
    constant: frozenset[str]
    fixed: Mapping[str, Any]

    @staticmethod
    def read(optimizer: torch.optim.Optimizer, kind: str, group: int) -> GroupSettings:
        """The settings of the group with a number, of an optimiser of a `kind`."""
        given = optimizer.param_groups[group]
        combined = bool(getattr(optimizer, "use_combined_accum", False))
        names = (*NUMBERS[kind], *(("velocity_scaling",) if combined else ()))
        values = {name: _number(kind, group, name, given[name]) for name in names if name != "betas"}
        if "betas" in names:
            values |= {f"beta{place}": _number(kind, group, f"betas[{place - 1}]", given["betas"][place - 1]) for place in (1, 2)}
        values["loss_scaling"] = float(getattr(optimizer, "loss_scaling", 1.0))
        known = [name for name in (*names, "loss_scaling") if _is_constant(optimizer, kind, name, given)]
        constant = {part for name in known for part in _parts(name)}
        fixed: dict[str, Any] = {name: bool(given.get(name, False)) for name in FLAGS[kind]}
        fixed |= {name: given[name] for name in SETTINGS.get(kind, ())}
        fixed |= {name: getattr(optimizer, name, usual) for name, usual in ATTRIBUTES.items()}
        fixed["initial_accumulator_value"] = float(given.get("initial_accumulator_value", 0.0))  # of Adagrad
        return GroupSettings(kind, group, values, frozenset(constant), fixed)

    def check_replaces(self, compiled: GroupSettings) -> None:
        """`InvalidOption` unless these settings can take the place of those that a program was compiled for."""
        changed = [name for name, value in self.fixed.items() if value != compiled.fixed[name]]
        if changed:
            told = ", ".join(f"{name} from {compiled.fixed[name]} to {self.fixed[name]}" for name in changed)
            raise InvalidOption(
                f"setOptimizer: {self.kind}, parameter group {self.group}: {told} is another program, and the model is already "
                "compiled; make a new training model"
            )
        other = [name for name in self.numbers if name in compiled.constant and self.numbers[name] != compiled.numbers[name]]
        if other:
            told = ", ".join(f"{name} from {compiled.numbers[name]} to {self.numbers[name]}" for name in other)
            raise InvalidOption(
                f"setOptimizer: {self.kind}, parameter group {self.group}: {told}, which is a constant of the compiled program; "
                f"{_remedy(self.kind, other[0])}"
            )


def has_velocity(settings: GroupSettings) -> bool:
    """Whether there may be a momentum."""
    return settings.numbers["momentum"] != 0 or "momentum" not in settings.constant


def read_groups(optimizer: torch.optim.Optimizer) -> list[GroupSettings]:
    """The settings of all groups. `MissingFeature` for an optimiser that the device does not have."""
    kind = optimizer_kind(optimizer)
    return [GroupSettings.read(optimizer, kind, group) for group in range(len(optimizer.param_groups))]


def _number(kind: str, group: int, name: str, value: Any) -> float:
    """A number, of which PyTorch takes a tensor too."""
    if value is None:  # no longest norm
        return math.inf
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PoplarTypeError(f"{kind}, parameter group {group}: {name} is a number, got {value!r}")
    if math.isnan(value):
        raise InvalidOption(f"{kind}, parameter group {group}: {name} is NaN")
    return float(value)


def _is_constant(optimizer: torch.optim.Optimizer, kind: str, name: str, group: Mapping[str, Any]) -> bool:
    """Whether a number is a constant: what the marks of `poptorch.optim` say, and without them PopTorch's rules."""
    marks = getattr(optimizer, "variable_attrs", None)
    if marks is not None:
        return bool(marks.isConstant(name))
    if name in ALWAYS_CONSTANT:
        return True
    usual = 0.01 if (kind, name) == ("AdamW", "weight_decay") else USUAL.get(name)
    return usual is not None and bool(group.get(name, usual) == usual)


def _parts(name: str) -> tuple[str, ...]:
    return ("beta1", "beta2") if name == "betas" else (name,)


def _remedy(kind: str, name: str) -> str:
    attribute = "betas" if name.startswith("beta") else name
    marked = f"poptorch.optim.{kind} with variable_attrs.markAsVariable({attribute!r})"
    return f"make a {marked} before the model is compiled, or make a new training model"
