"""PopART's optimisers, as those of poptorch that do the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from attrs import frozen

from pypoplar.errors import MissingFeature
from pypoplar.popart.optimizer_steps import DampedDescent, LargestGradient
from pypoplar.popart.popart_enums import AdamMode, AdaptiveMode, WeightDecayMode
from pypoplar.popart.popart_types import popart_exception
from pypoplar.poptorch import optim
from pypoplar.spelling import nearest_or_all

Setting = Any  # a number, or one with whether it is constant

SGD_DEFAULTS = {
    "defaultLearningRate": 0.1,
    "defaultWeightDecay": 0.0,
    "defaultMomentum": 0.0,
    "defaultDampening": 0.0,
    "defaultVelocityScaling": 1.0,
    "lossScaling": 1.0,
    "nesterov": 0.0,
}
ADAM_DEFAULTS = {
    "defaultLearningRate": 0.1,
    "defaultWeightDecay": 0.0,
    "defaultBeta1": 0.9,
    "defaultBeta2": 0.999,
    "defaultEps": 1e-6,
    "defaultMaxWeightNorm": 10.0,
    "lossScaling": 1.0,
}
ADAPTIVE_DEFAULTS = {
    "defaultLearningRate": 0.01,
    "defaultWeightDecay": 0.0,
    "defaultAlpha": 0.99,
    "defaultMomentum": 0.0,
    "defaultEps": 1e-6,
    "lossScaling": 1.0,
}


UNCHANGING = ("lossScaling", "nesterov")  # of which weights have none of their own


@frozen
class WeightSettings:
    """Numbers by name, each with whether it is constant."""

    numbers: Mapping[str, float]
    constant: Mapping[str, bool]

    def with_given(self, given: Any, names: Mapping[str, str], kind: str) -> WeightSettings:
        """With what a program gives; `names` are ours by those that it may use."""
        if not isinstance(given, Mapping):
            example = next(iter(names))
            raise popart_exception(f"{kind} takes a dict of settings, such as {{{example!r}: (0.1, False)}}, got {given!r}")
        numbers, constants = dict(self.numbers), dict(self.constant)
        for name, setting in given.items():
            if name not in names:
                raise popart_exception(f"{kind} has no setting {name!r}{nearest_or_all(str(name), names)}")
            number, constant = setting if isinstance(setting, tuple) and len(setting) == 2 else (setting, True)
            if (isinstance(number, bool) and name != "nesterov") or not isinstance(number, bool | int | float | np.number):
                raise popart_exception(f"{kind}: {name} is a number, or (number, whether it is constant), got {setting!r}")
            if not math.isfinite(number):
                raise popart_exception(f"{kind}: {name} is finite, got {number}")
            if number < 0:
                raise popart_exception(f"{kind}: {name} is at least 0, got {number}")
            numbers[names[name]], constants[names[name]] = float(number), bool(constant)
        return WeightSettings(numbers, constants)


class PopartOptimizer:
    """What an optimiser of PopART has in common with others: settings by name, each with whether it is constant."""

    def __init__(self, given: Mapping[str, Setting], defaults: Mapping[str, float]) -> None:
        kind = type(self).__name__
        fresh = WeightSettings(defaults, dict.fromkeys(defaults, True))
        self._own = fresh.with_given(given, {name: name for name in defaults}, kind)
        self._specific: dict[str, WeightSettings] = {}  # of single weights

    @property
    def settings(self) -> Mapping[str, float]:
        """The numbers of all weights that have none of their own."""
        return self._own.numbers

    def _refuse(self, more: Iterable[Any], named: Mapping[str, Any]) -> None:
        """Further arguments of PopART's, of types and of clipping, which are missing."""
        for one in (*more, *named):
            raise MissingFeature(f"{type(self).__name__}: beside the settings and modes there are no arguments yet, got {one!r}")

    def insertSpecific(self, tensor: str, settings: Mapping[str, Setting]) -> None:
        """Settings of one weight alone; what is left out is as for all others.

        Parameters
        ----------
        tensor:
            The weight.
        settings:
            Numbers by name, such as ``{"learningRate": (0.01, False)}``.

        Raises
        ------
        popart_exception
            For unknown settings, and for what is no finite number from 0 on.
        """
        if not isinstance(tensor, str):
            raise popart_exception(f"{type(self).__name__}.insertSpecific takes a weight, which is a name, got {tensor!r}")
        names = {_specific_name(name): name for name in self.settings if name not in UNCHANGING}
        kind = f"{type(self).__name__}.insertSpecific({tensor!r})"
        self._specific[tensor] = self._own.with_given(settings, names, kind)

    def check_replaces(self, before: PopartOptimizer) -> None:
        """`popart_exception` unless this optimiser can take the place of the one that a session was made with."""
        call = "updateOptimizerFromHost"
        if self._kind() != before._kind():
            raise popart_exception(f"{call}: the session has {before._told()}, got {self._told()}")
        other = self._specific.keys() ^ before._specific.keys()
        if other:
            raise popart_exception(
                f"{call}: settings of {sorted(other)[0]} alone are given for one of both optimisers (insertSpecific)"
            )
        pairs = [("", self._own, before._own)]
        pairs += [(f" of {name}", one, before._specific[name]) for name, one in self._specific.items()]
        for of, new, old in pairs:
            for name, number in new.numbers.items():
                if new.constant[name] != old.constant[name]:
                    words = ["may change", "is constant"]
                    told = f"{words[old.constant[name]]} in the session, and {words[new.constant[name]]} in the new optimiser"
                    raise popart_exception(f"{call}: {name}{of} {told}")
                if old.constant[name] and number != old.numbers[name]:
                    raise popart_exception(f"{call}: {name}{of} is constant, {old.numbers[name]}, got {number}")

    def _kind(self) -> tuple[Any, ...]:
        """What decides which program it is: the algorithm and its modes."""
        raise NotImplementedError

    def _told(self) -> str:
        return " ".join(getattr(one, "name", str(one)) for one in self._kind())

    def for_torch(self, weights: Mapping[str, torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of poptorch that does the same.

        Parameters
        ----------
        weights:
            The parameters that it updates, by the names of weights.

        Returns
        -------
        torch.optim.Optimizer
            With these settings.

        Raises
        ------
        popart_exception
            For settings of what is no weight, and numbers that the algorithm does not have.
        """
        for name in self._specific:
            if name not in weights:
                near = nearest_or_all(name, weights)
                raise popart_exception(f"{type(self).__name__}.insertSpecific: there is no weight {name!r} that is trained{near}")
        shared = [one for name, one in weights.items() if name not in self._specific]
        groups = [(shared, self._own.numbers)] if shared else []
        groups += [([weights[name]], one.numbers) for name, one in self._specific.items()]
        try:
            made = self._made([{"params": list(of), **self._numbers(numbers)} for of, numbers in groups])
        except ValueError as problem:
            raise popart_exception(f"{type(self).__name__}: {problem}") from None
        return self._variable(made)

    def _numbers(self, own: Mapping[str, float]) -> dict[str, Any]:
        """The settings of a group by PyTorch's names."""
        raise NotImplementedError

    def _made(self, groups: list[dict[str, Any]]) -> Any:
        raise NotImplementedError

    def _variable(self, optimizer: Any) -> Any:
        """With marks of what may change."""
        marks = getattr(optimizer, "variable_attrs", None)
        if marks is None:
            optimizer.loss_scaling = self.settings["lossScaling"]  # of PyTorch's own
            return optimizer
        for ours, theirs in TORCH_NAMES.items():
            if ours not in self.settings or theirs not in marks._allowed_attributes:
                continue
            if all(one.constant[ours] for one in (self._own, *self._specific.values())):
                marks.markAsConstant(theirs)
            else:
                marks.markAsVariable(theirs)
        varied = [
            not one.constant[beta] for one in (self._own, *self._specific.values()) for beta in BETAS if beta in self.settings
        ]
        if any(varied):
            marks.markAsVariable("betas")
        return optimizer


BETAS = ("defaultBeta1", "defaultBeta2")
TORCH_NAMES = {
    "defaultLearningRate": "lr",
    "defaultWeightDecay": "weight_decay",
    "defaultMomentum": "momentum",
    "defaultDampening": "dampening",
    "defaultBeta1": "betas",
    "defaultEps": "eps",
    "defaultAlpha": "alpha",
    "defaultMaxWeightNorm": "max_weight_norm",
    "lossScaling": "loss_scaling",
}


def _specific_name(name: str) -> str:
    """What a setting is called where it is that of a weight: learningRate for defaultLearningRate."""
    plain = name.removeprefix("default")
    return plain[0].lower() + plain[1:]


class SGD(PopartOptimizer):
    """Gradient descent, with momentum or without: ``SGD({"defaultLearningRate": (0.1, False), "defaultMomentum": (0.9, True)})``.

    Parameters
    ----------
    settings:
        Numbers by name, each alone or as ``(number, whether it is constant)``; what is left out is as PopART has it.
    more, named:
        Further arguments of PopART's, which are missing: `MissingFeature`.

    Raises
    ------
    popart_exception
        For unknown settings, and for what is no finite number.
    """

    def __init__(self, settings: Mapping[str, Setting] | None = None, *more: Any, **named: Any) -> None:
        super().__init__({} if settings is None else settings, SGD_DEFAULTS)
        self._refuse(more, named)

    def _kind(self) -> tuple[Any, ...]:
        return ("SGD",)

    def _numbers(self, own: Mapping[str, float]) -> dict[str, Any]:
        names = ("defaultLearningRate", "defaultWeightDecay", "defaultMomentum", "defaultDampening")
        return {**{TORCH_NAMES[name]: own[name] for name in names}, "nesterov": bool(own["nesterov"])}

    def _made(self, groups: list[dict[str, Any]]) -> Any:
        scaling, nesterov = self.settings["lossScaling"], self.settings["nesterov"]
        given = (self._own, *self._specific.values())
        damped = any(one.numbers["defaultDampening"] or not one.constant["defaultDampening"] for one in given)
        if damped or (nesterov and not all(one.numbers["defaultMomentum"] for one in given)):
            return DampedDescent(groups, scaling)  # PyTorch damps no first gradient, and none without momentum
        return optim.SGD(groups, lr=self.settings["defaultLearningRate"], loss_scaling=scaling, use_combined_accum=False)


class ConstSGD(SGD):
    """Gradient descent without momentum, whose numbers stay as they are in all steps.

    Parameters
    ----------
    learning_rate:
        The learning rate.
    weight_decay:
        What of a weight is added to its gradient.
    loss_scaling:
        What the loss is multiplied by, and the step divided.

    Raises
    ------
    popart_exception
        For unknown settings, and for what is no finite number.
    """

    def __init__(self, learning_rate: float, weight_decay: float = 0.0, loss_scaling: float = 1.0) -> None:
        super().__init__({"defaultLearningRate": learning_rate, "defaultWeightDecay": weight_decay, "lossScaling": loss_scaling})


class Adam(PopartOptimizer):
    """Adam, AdaMax and LAMB, with a correction of bias or without, as `AdamMode` says.

    Parameters
    ----------
    settings:
        Numbers by name, each alone or as ``(number, whether it is constant)``; what is left out is as PopART has it.
    mode:
        An `AdamMode`.
    weight_decay_mode:
        A `WeightDecayMode`: whether the decay is apart from the gradient.
    more, named:
        Further arguments of PopART's, which are missing: `MissingFeature`.

    Raises
    ------
    popart_exception
        For unknown settings, and for what is no finite number.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting] | None = None,
        mode: Any = AdamMode.Adam,
        weight_decay_mode: Any = WeightDecayMode.Decay,
        *more: Any,
        **named: Any,
    ) -> None:
        super().__init__({} if settings is None else settings, ADAM_DEFAULTS)
        self._refuse(more, named)
        if mode not in list(AdamMode) or weight_decay_mode not in list(WeightDecayMode):
            raise popart_exception(f"Adam takes an AdamMode and a WeightDecayMode, got {mode!r} and {weight_decay_mode!r}")
        self.mode, self.decay = mode, weight_decay_mode

    def _kind(self) -> tuple[Any, ...]:
        return ("Adam", self.mode, self.decay)

    def _numbers(self, own: Mapping[str, float]) -> dict[str, Any]:
        numbers: dict[str, Any] = {
            "lr": own["defaultLearningRate"],
            "betas": tuple(own[name] for name in BETAS),
            "eps": own["defaultEps"],
            "weight_decay": own["defaultWeightDecay"],
        }
        if self.mode == AdamMode.AdaMax:
            numbers["decoupled"] = self.decay == WeightDecayMode.Decay
        elif self.mode in (AdamMode.Lamb, AdamMode.LambNoBias):
            numbers["max_weight_norm"] = own["defaultMaxWeightNorm"]
        else:
            numbers["decoupled_weight_decay"] = self.decay == WeightDecayMode.Decay
        return numbers

    def _made(self, groups: list[dict[str, Any]]) -> Any:
        scaling, corrected = self.settings["lossScaling"], self.mode in (AdamMode.Adam, AdamMode.Lamb)
        if self.mode == AdamMode.AdaMax:
            return LargestGradient(groups, scaling)
        if self.mode in (AdamMode.Lamb, AdamMode.LambNoBias):
            return optim.LAMB(groups, bias_correction=corrected, loss_scaling=scaling)
        return optim.AdamW(groups, bias_correction=corrected, loss_scaling=scaling)


class Adaptive(PopartOptimizer):
    """RMSProp, centred or not, AdaGrad and AdaDelta, as `AdaptiveMode` says.

    Parameters
    ----------
    settings:
        Numbers by name, each alone or as ``(number, whether it is constant)``; what is left out is as PopART has it.
    mode:
        An `AdaptiveMode`.
    weight_decay_mode:
        A `WeightDecayMode`: L2Regularization, or no decay.
    more, named:
        Further arguments of PopART's, which are missing: `MissingFeature`.

    Raises
    ------
    popart_exception
        For unknown settings, and for what is no finite number.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting] | None = None,
        mode: Any = AdaptiveMode.RMSProp,
        weight_decay_mode: Any = WeightDecayMode.L2Regularization,
        *more: Any,
        **named: Any,
    ) -> None:
        super().__init__({} if settings is None else settings, ADAPTIVE_DEFAULTS)
        self._refuse(more, named)
        if mode not in list(AdaptiveMode) or weight_decay_mode not in list(WeightDecayMode):
            raise popart_exception(f"Adaptive takes an AdaptiveMode and a WeightDecayMode, got {mode!r} and {weight_decay_mode!r}")
        if weight_decay_mode == WeightDecayMode.Decay and self.settings["defaultWeightDecay"]:
            raise MissingFeature("Adaptive: a weight decay is an L2Regularization here; Decay is not there")
        if self.settings["defaultMomentum"] and mode not in (AdaptiveMode.RMSProp, AdaptiveMode.CenteredRMSProp):
            raise MissingFeature(f"Adaptive: the mode {mode.name} has no momentum here")
        self.mode = mode

    def _kind(self) -> tuple[Any, ...]:
        return ("Adaptive", self.mode)

    def _numbers(self, own: Mapping[str, float]) -> dict[str, Any]:
        common = {
            name: own[f"default{ours}"] for name, ours in (("lr", "LearningRate"), ("eps", "Eps"), ("weight_decay", "WeightDecay"))
        }
        if self.mode == AdaptiveMode.AdaGrad:
            return common
        if self.mode == AdaptiveMode.AdaDelta:
            return {**common, "rho": own["defaultAlpha"]}
        return {**common, "alpha": own["defaultAlpha"], "momentum": own["defaultMomentum"]}

    def _made(self, groups: list[dict[str, Any]]) -> Any:
        if self.mode == AdaptiveMode.AdaGrad:
            return torch.optim.Adagrad(groups)
        if self.mode == AdaptiveMode.AdaDelta:
            return torch.optim.Adadelta(groups)
        centered = self.mode == AdaptiveMode.CenteredRMSProp
        return optim.RMSprop(groups, centered=centered, loss_scaling=self.settings["lossScaling"])
