"""An optimiser of Keras and its counterpart on the device: its numbers before a call, its variables after it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import keras
import torch
from attrs import define, field, frozen

from pypoplar.errors import MissingFeature
from pypoplar.keras.update_rules import AVERAGES, CLIPS, CLIPS_NORM, CONSTRAINT, LONGEST, OVERWRITES, RULES, SKIPS, KerasUpdate
from pypoplar.keras.weight_constraints import constraint_of
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
REFUSED = {"gradient_accumulation_steps": "model.set_gradient_accumulation_options accumulates gradients"}
AVERAGE = "average"


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
            raise MissingFeature(f"{name}: {argument} is not there on the IPU yet; {instead}")
    return kind


@define(eq=False)
class OptimizerPair:
    """Keras' optimiser, whose variables are right between calls, and what the device makes steps by."""

    optimizer: Any  # Keras'
    variables: list[Any]  # Keras' trainable ones
    device: KerasUpdate = field(init=False)
    kind: KerasKind = field(init=False)
    told: dict[str, float] = field(init=False, factory=dict)  # numbers that the device has
    flags: dict[str, Any] = field(init=False)
    fixed: Any = field(init=False)  # what steps are compiled for

    def __attrs_post_init__(self) -> None:
        self.kind = kind_of(self.optimizer)
        if not self.optimizer.built:
            self.optimizer.build(self.variables)
        self.flags = self._flags()
        numbers = self.numbers()
        self.told = dict(numbers)
        decay, scaling = numbers.pop("weight_decay"), numbers.pop("loss_scaling")
        longest = LONGEST if self.inner.global_clipnorm is None else float(self.inner.global_clipnorm)
        longest = longest if self.flags[SKIPS] or self.inner.global_clipnorm is not None else math.inf
        self.fixed = self._fixed()
        self.device = RULES[self.kind.rule](self._groups(decay), numbers, longest, scaling, self.flags)

    def _flags(self) -> dict[str, Any]:
        """What of the optimiser is in the program."""
        own = self.inner
        flags: dict[str, Any] = {name: bool(getattr(own, one)) for name, one in self.kind.flags.items()}
        flags |= {CLIPS: own.clipvalue is not None, CLIPS_NORM: own.clipnorm is not None, SKIPS: own is not self.optimizer}
        flags |= {AVERAGES: bool(own.use_ema), OVERWRITES: (own.use_ema and own.ema_overwrite_frequency) or 0, CONSTRAINT: None}
        if "momentum" in self.kind.numbers:
            flags["has_momentum"] = own.momentum != 0
        return flags

    def is_of(self, optimizer: Any, trained: list[Any]) -> bool:
        """Whether it is still an optimiser's, for these variables, and says the same but for its numbers."""
        same = self.optimizer is optimizer and [*map(id, self.variables)] == [*map(id, trained)]
        return same and self.fixed == self._fixed()

    def _fixed(self) -> Any:
        own = self.inner
        constraints = [constraint_of(one) for one in self.variables]
        return self._flags(), own.global_clipnorm, own.loss_scale_factor, bool(own.weight_decay), constraints

    @property
    def inner(self) -> Any:
        """The optimiser that has the formula: within one that scales losses, the one in it."""
        return getattr(self.optimizer, "inner_optimizer", self.optimizer)

    def _groups(self, decay: float) -> list[dict[str, Any]]:
        """Parameters that decay, and others; each by itself that is clipped or constrained by itself."""
        alike: dict[Any, dict[str, Any]] = {}
        for place, variable in enumerate(self.variables):
            constraint = constraint_of(variable)
            alone = constraint is not None or self.flags[CLIPS_NORM]
            rate = decay if decay and self.inner._use_weight_decay(variable) else 0.0
            group = alike.setdefault(place if alone else f"{rate}", {"params": [], "weight_decay": rate, CONSTRAINT: constraint})
            group["params"].append(variable.value)
        return list(alike.values())

    def numbers(self) -> dict[str, float]:
        """Keras' numbers now; the rate of a schedule is that of the next step."""
        own, clip = self.inner, self.inner.clipvalue
        scaling = self.optimizer.dynamic_scale if self.optimizer is not own else own.loss_scale_factor
        found = {name: getattr(own, one) for name, one in self.kind.numbers.items()}
        found |= {"lr": own.learning_rate, "weight_decay": own.weight_decay or 0.0}
        found |= {"clipvalue": 0.0 if clip is None else clip, "loss_scaling": 1.0 if scaling is None else scaling}
        found |= {"clipnorm": own.clipnorm or 0.0, "ema_momentum": own.ema_momentum if own.use_ema else 0.0}
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
        if self.flags[AVERAGES]:
            lists[AVERAGE] = self.inner._model_variables_moving_average
        for place, variable in enumerate(self.variables):
            index = self.inner._get_variable_index(variable)
            yield self.variables[place].value, {name: several[index].value for name, several in lists.items() if several}

    def _set_states(self) -> None:
        """Let the device's optimiser have Keras' own tensors, so that what changes them is seen."""
        steps = torch.tensor(_plain(self.inner.iterations))
        with torch.no_grad():
            for parameter, tensors in self._states():
                if tensors or self.flags[SKIPS]:
                    self.device.state[parameter] = {**{name: one.detach() for name, one in tensors.items()}, STEP: steps}

    def take(self, steps: int) -> None:
        """Give Keras' variables what the device has after so many steps."""
        held = self.device.state
        with torch.no_grad():
            for parameter, tensors in self._states():
                for name, tensor in tensors.items():
                    tensor.copy_(held[parameter][name])
        made = self._made(steps)
        self.inner._iterations.assign_add(made)
        if self.flags[SKIPS]:
            self._scale(made, steps - made)
        self._set_states()

    def _made(self, steps: int) -> int:
        """How many of so many steps the device has made: all, unless it leaves out those of gradients that are not finite."""
        if not self.flags[SKIPS] or not self.variables:
            return steps
        held = self.device.state[self.variables[0].value]
        return round(float(held[STEP]) - _plain(self.inner.iterations))

    def _scale(self, made: int, skipped: int) -> None:
        """Let the scale of the loss follow the gradients, as Keras has it; several steps of an execution have one scale."""
        scaler = self.optimizer
        if skipped:
            scaler.step_counter.assign(0)
            scaler.dynamic_scale.assign(scaler.dynamic_scale * 0.5)
            return
        counted = int(_plain(scaler.step_counter)) + made
        grows = counted >= scaler.dynamic_growth_steps
        scaler.step_counter.assign(0 if grows else counted)
        if grows:
            scaler.dynamic_scale.assign(scaler.dynamic_scale * 2.0)


def _plain(number: Any) -> float:
    """A number of Keras, which may be a variable or a tensor."""
    return float(number.value if isinstance(number, keras.Variable) else number)
