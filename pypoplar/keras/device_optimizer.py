"""An optimiser of Keras and its counterpart on the device: its numbers before a call, its variables after it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import keras
import torch
from attrs import define, field, frozen

from pypoplar.errors import MissingFeature
from pypoplar.keras.update_rules import CLIPS, RULES, KerasUpdate
from pypoplar.poptorch.executor import PoplarExecutor

STEP = "step"


@frozen
class KerasKind:
    """What an optimiser of Keras has: its numbers, its flags, and the lists of its variables by their names on the device."""

    rule: str
    numbers: dict[str, str]  # on the device, and in Keras
    flags: dict[str, str]
    variables: dict[str, str]


_ADAM = KerasKind(
    "Adam",
    {"beta_1": "beta_1", "beta_2": "beta_2", "epsilon": "epsilon"},
    {"amsgrad": "amsgrad"},
    {"momentum": "_momentums", "velocity": "_velocities", "velocity_hat": "_velocity_hats"},
)
KINDS: dict[str, KerasKind] = {
    "SGD": KerasKind("SGD", {"momentum": "momentum"}, {"nesterov": "nesterov"}, {"momentum": "momentums"}),
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "RMSprop": KerasKind(
        "RMSprop",
        {"rho": "rho", "momentum": "momentum", "epsilon": "epsilon"},
        {"centered": "centered"},
        {"velocity": "_velocities", "momentum": "_momentums", "average_gradient": "_average_gradients"},
    ),
    "Adagrad": KerasKind("Adagrad", {"epsilon": "epsilon"}, {}, {"accumulator": "_accumulators"}),
}
REFUSED = {
    "clipnorm": "global_clipnorm and clipvalue are there",
    "use_ema": "",
    "gradient_accumulation_steps": "model.set_gradient_accumulation_options accumulates gradients",
}


def kind_of(optimizer: Any) -> KerasKind:
    """The kind of an optimiser of Keras; `MissingFeature` for others, and for what the device's steps do not have."""
    name = type(optimizer).__name__
    if name == "LossScaleOptimizer":
        return kind_of(optimizer.inner_optimizer)
    kind = KINDS.get(name)
    if kind is None or not isinstance(optimizer, getattr(keras.optimizers, name)):
        raise MissingFeature(f"the optimizer {name} is not there on the IPU; there are {', '.join(KINDS)}")
    for argument, instead in REFUSED.items():
        if getattr(optimizer, argument):
            raise MissingFeature(f"{name}: {argument} is not there on the IPU yet{f'; {instead}' if instead else ''}")
    return kind


@define(eq=False)
class OptimizerPair:
    """Keras' optimiser, whose variables are right between calls, and what the device makes steps by."""

    optimizer: Any  # Keras'
    variables: list[Any]  # Keras' trainable ones
    device: KerasUpdate = field(init=False)
    kind: KerasKind = field(init=False)
    told: dict[str, float] = field(init=False, factory=dict)  # numbers that the device has

    def __attrs_post_init__(self) -> None:
        self.kind = kind_of(self.optimizer)
        if not self.optimizer.built:
            self.optimizer.build(self.variables)
        self._refuse_constraints()
        flags = {name: bool(getattr(self.inner, one)) for name, one in self.kind.flags.items()}
        flags[CLIPS] = self.inner.clipvalue is not None
        if "momentum" in self.kind.numbers:
            flags["has_momentum"] = self.inner.momentum != 0
        longest = self.inner.global_clipnorm
        numbers = self.numbers()
        self.told = dict(numbers)
        decay, scaling = numbers.pop("weight_decay"), numbers.pop("loss_scaling")
        groups = [{"params": params, "weight_decay": rate} for params, rate in self._by_decay(decay) if params]
        self.device = RULES[self.kind.rule](groups, numbers, math.inf if longest is None else float(longest), scaling, flags)

    @property
    def inner(self) -> Any:
        """The optimiser that has the formula: within one that scales losses, the one in it."""
        return getattr(self.optimizer, "inner_optimizer", self.optimizer)

    def _refuse_constraints(self) -> None:
        for variable in self.variables:
            if variable.constraint is not None:
                name = type(variable.constraint).__name__
                raise MissingFeature(f"the constraint {name} of {variable.path} is not there on the IPU")

    def _by_decay(self, decay: float) -> Iterator[tuple[list[torch.Tensor], float]]:
        decays = [bool(decay) and bool(self.inner._use_weight_decay(variable)) for variable in self.variables]
        for wanted, rate in ((True, decay), (False, 0.0)):
            yield [one.value for one, does in zip(self.variables, decays, strict=True) if does is wanted], rate

    def numbers(self) -> dict[str, float]:
        """Keras' numbers now; the rate of a schedule is that of the next step."""
        own, clip = self.inner, self.inner.clipvalue
        scaling = self.optimizer.dynamic_scale if self.optimizer is not own else own.loss_scale_factor
        found = {name: getattr(own, one) for name, one in self.kind.numbers.items()}
        found |= {"lr": own.learning_rate, "weight_decay": own.weight_decay or 0.0}
        found |= {"clipvalue": 0.0 if clip is None else clip, "loss_scaling": 1.0 if scaling is None else scaling}
        return {name: _plain(number) for name, number in found.items()}

    @property
    def rate_changes(self) -> bool:
        """Whether each step has a rate of its own, by a schedule."""
        return isinstance(self.inner._learning_rate, keras.optimizers.schedules.LearningRateSchedule)

    # before and after calls

    def give(self, executor: PoplarExecutor) -> None:
        """Give the device numbers that have changed, and the states that Keras' variables are."""
        numbers = self.numbers()
        changed = {name for name, number in numbers.items() if self.told.get(name) != number}
        for group in self.device.param_groups:
            for name in changed & group.keys() - {"weight_decay"}:
                group[name] = numbers[name]
            if group["weight_decay"]:
                group["weight_decay"] = numbers["weight_decay"]
        self.device.loss_scaling = numbers["loss_scaling"]
        self._set_states()
        executor.setOptimizer(self.device)
        self.told = numbers

    def _states(self) -> Iterator[tuple[Any, dict[str, torch.Tensor]]]:
        """Keras' tensors of each trained parameter, by the states' names on the device."""
        lists = {name: getattr(self.inner, one, None) for name, one in self.kind.variables.items()}
        for place, variable in enumerate(self.variables):
            index = self.inner._get_variable_index(variable)
            yield self.variables[place].value, {name: several[index].value for name, several in lists.items() if several}

    def _set_states(self) -> None:
        """Let the device's optimiser have Keras' own tensors, so that what changes them is seen."""
        steps = torch.tensor(_plain(self.inner.iterations))
        with torch.no_grad():
            for parameter, tensors in self._states():
                if tensors:
                    self.device.state[parameter] = {**{name: one.detach() for name, one in tensors.items()}, STEP: steps}

    def take(self, steps: int) -> None:
        """Give Keras' variables what the device has after so many steps."""
        held = self.device.state
        with torch.no_grad():
            for parameter, tensors in self._states():
                for name, tensor in tensors.items():
                    tensor.copy_(held[parameter][name])
        self.inner._iterations.assign_add(steps)
        self._set_states()


def _plain(number: Any) -> float:
    """A number of Keras, which may be a variable or a tensor."""
    return float(number.value if isinstance(number, keras.Variable) else number)
