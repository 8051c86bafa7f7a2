"""PopART's optimisers, as those of poptorch that do the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from pypoplar.errors import MissingFeature
from pypoplar.popart.popart_enums import AdamMode, AdaptiveMode, WeightDecayMode
from pypoplar.popart.popart_types import popart_exception
from pypoplar.poptorch import optim
from pypoplar.spelling import nearest

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
    "defaultLearningRate": 1e-3,
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


class PopartOptimizer:
    """What an optimiser of PopART has in common with others: settings by name, each with whether it is constant."""

    def __init__(self, given: Mapping[str, Setting], defaults: Mapping[str, float]) -> None:
        if not isinstance(given, Mapping):
            raise popart_exception(
                f"{type(self).__name__} takes a dict of settings, such as {{'defaultLearningRate': (0.1, False)}}, got {given!r}"
            )
        self.settings, self.constant = dict(defaults), dict.fromkeys(defaults, True)
        for name, setting in given.items():
            if name not in defaults:
                raise popart_exception(f"{type(self).__name__} has no setting {name!r}{nearest(name, defaults)}")
            number, constant = setting if isinstance(setting, tuple) and len(setting) == 2 else (setting, True)
            if (isinstance(number, bool) and name != "nesterov") or not isinstance(number, bool | int | float | np.number):
                raise popart_exception(
                    f"{type(self).__name__}: {name} is a number, or (number, whether it is constant), got {setting!r}"
                )
            if not math.isfinite(number):
                raise popart_exception(f"{type(self).__name__}: {name} is finite, got {number}")
            self.settings[name], self.constant[name] = float(number), bool(constant)

    def _refuse(self, more: Iterable[Any], named: Mapping[str, Any]) -> None:
        """Further arguments of PopART's, of types and of clipping, which are missing."""
        for one in (*more, *named):
            raise MissingFeature(f"{type(self).__name__}: beside the settings and modes there are no arguments yet, got {one!r}")

    def insertSpecific(self, tensor: str, settings: Mapping[str, Setting]) -> None:
        """Settings of a weight alone are missing: `MissingFeature`."""
        raise MissingFeature(f"{type(self).__name__}.insertSpecific: settings of the weight {tensor} alone are not there yet")

    def for_torch(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of poptorch that does the same."""
        raise NotImplementedError

    def _variable(self, optimizer: Any, names: Mapping[str, str]) -> Any:
        for ours, theirs in names.items():
            if not self.constant[ours]:
                optimizer.variable_attrs.markAsVariable(theirs)
            else:
                optimizer.variable_attrs.markAsConstant(theirs)
        return optimizer


def _scaled(optimizer: Any, settings: Mapping[str, float]) -> Any:
    """An optimiser of PyTorch's whose loss is scaled."""
    optimizer.loss_scaling = settings["lossScaling"]
    return optimizer


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

    def for_torch(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of poptorch or PyTorch that makes the same steps on the device.

        Parameters
        ----------
        parameters:
            The parameters that it updates.

        Returns
        -------
        torch.optim.Optimizer
            With these settings.
        """
        own = self.settings
        made = optim.SGD(
            parameters,
            lr=own["defaultLearningRate"],
            momentum=own["defaultMomentum"],
            dampening=own["defaultDampening"],
            weight_decay=own["defaultWeightDecay"],
            nesterov=bool(own["nesterov"]),
            loss_scaling=own["lossScaling"],
            use_combined_accum=False,
        )
        return made


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
        if mode == AdamMode.AdaMax and weight_decay_mode == WeightDecayMode.Decay and self.settings["defaultWeightDecay"]:
            raise MissingFeature("Adam: AdaMax with a weight decay has it as an L2Regularization; Decay is not there")
        self.mode, self.decay = mode, weight_decay_mode

    def for_torch(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of poptorch or PyTorch that makes the same steps on the device.

        Parameters
        ----------
        parameters:
            The parameters that it updates.

        Returns
        -------
        torch.optim.Optimizer
            With these settings.
        """
        own = self.settings
        numbers: dict[str, Any] = {
            "lr": own["defaultLearningRate"],
            "betas": (own["defaultBeta1"], own["defaultBeta2"]),
            "eps": own["defaultEps"],
            "weight_decay": own["defaultWeightDecay"],
            "loss_scaling": own["lossScaling"],
            "bias_correction": self.mode in (AdamMode.Adam, AdamMode.Lamb),
        }
        if self.mode == AdamMode.AdaMax:
            return _scaled(
                torch.optim.Adamax(parameters, **{name: numbers[name] for name in ("lr", "betas", "eps", "weight_decay")}), own
            )
        if self.mode in (AdamMode.Lamb, AdamMode.LambNoBias):
            return optim.LAMB(parameters, max_weight_norm=own["defaultMaxWeightNorm"], **numbers)
        kind = optim.AdamW if self.decay == WeightDecayMode.Decay else optim.Adam
        return kind(parameters, **numbers)


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

    def for_torch(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of poptorch or PyTorch that makes the same steps on the device.

        Parameters
        ----------
        parameters:
            The parameters that it updates.

        Returns
        -------
        torch.optim.Optimizer
            With these settings.
        """
        own = self.settings
        common = {"lr": own["defaultLearningRate"], "eps": own["defaultEps"], "weight_decay": own["defaultWeightDecay"]}
        if self.mode == AdaptiveMode.AdaGrad:
            return _scaled(torch.optim.Adagrad(parameters, **common), own)
        if self.mode == AdaptiveMode.AdaDelta:
            return _scaled(torch.optim.Adadelta(parameters, rho=own["defaultAlpha"], **common), own)
        return optim.RMSprop(
            parameters,
            lr=own["defaultLearningRate"],
            alpha=own["defaultAlpha"],
            eps=own["defaultEps"],
            weight_decay=own["defaultWeightDecay"],
            momentum=own["defaultMomentum"],
            centered=self.mode == AdaptiveMode.CenteredRMSProp,
            loss_scaling=own["lossScaling"],
        )
