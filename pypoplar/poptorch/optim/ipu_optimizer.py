"""What the optimisers of `pypoplar.poptorch.optim` have beyond PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch

from pypoplar.errors import ApplicationRuntimeError, InvalidOption, MissingFeature
from pypoplar.poptorch.optim.variable_attributes import VariableAttributes
from pypoplar.poptorch.options import option_checks as checks

STATES = ("ipu_state", "ipu_param")
"""What the device's state is called in a `state_dict`; None while the optimiser has not been on a device."""


def _accumulator(name: str, value: object) -> torch.dtype:
    if not isinstance(value, torch.dtype) or value not in (torch.float32, torch.float16):
        raise InvalidOption(f"{name} is torch.float32 or torch.float16, got {value!r}")
    return value


def _scale(name: str, value: object) -> float:
    number = checks.finite(name, value)
    if number <= 0:
        raise InvalidOption(f"{name} is a number above 0, got {value!r}")
    return number


def _norm(name: str, value: object) -> float:
    norm = checks.number(name, value)
    if not norm > 0:  # which NaN is not either
        raise InvalidOption(f"{name} is a number above 0, or infinite, got {value!r}")
    return norm


ATTRIBUTES: Mapping[str, tuple[object, Callable[[str, object], object]]] = {
    "loss_scaling": (1.0, _scale),
    "velocity_scaling": (1.0, _scale),
    "use_combined_accum": (False, checks.flag),
    "accum_type": (torch.float32, _accumulator),
    "velocity_accum_type": (torch.float32, _accumulator),
    "first_order_momentum_accum_type": (torch.float32, _accumulator),
    "second_order_momentum_accum_type": (torch.float32, _accumulator),
    "bias_correction": (True, checks.flag),
    "use_tf_variant": (False, checks.flag),
    "max_grad_norm": (math.inf, _norm),
    "max_weight_norm": (65500.0, _norm),  # which is above the norm of anything that a half can hold
}
"""The attributes that PyTorch's optimisers do not have: what they are if nobody says so, and how they are checked."""


class Optimizer:
    """What optimisers of `poptorch.optim` have beyond PyTorch's; users' objects are made by `SGD`, `Adam` and the like.

    Attributes such as ``loss_scaling`` are checked whenever they are set. `step` on the host is PyTorch's.
    """

    _pytorch: ClassVar[Any] = torch.optim.Optimizer
    """The class of PyTorch's that a class is derived from."""
    _own: ClassVar[tuple[str, ...]] = ()
    _device_only: ClassVar[Mapping[str, object]] = {"max_grad_norm": math.inf}

    def _construct(self, given: Mapping[str, Any]) -> None:
        """Set up PyTorch's class and the attributes, from the arguments of the constructor; those that are None were not given."""
        self._state_dict: dict[str, Any] = dict.fromkeys(STATES)
        self.ipu_state_is_dirty = False  # the device does not have it yet
        self.host_state_is_dirty = False  # the host does not
        set_by_user = {name: value for name, value in given.items() if value is not None}
        if set_by_user.get("amsgrad"):
            raise MissingFeature(f"{type(self).__name__}: pypoplar does not have amsgrad, and neither has PopTorch")
        self._pytorch.__init__(self, **{name: value for name, value in set_by_user.items() if name not in self._own})
        for name in self._own:
            setattr(self, name, set_by_user.get(name, ATTRIBUTES[name][0]))
        per_group = self.defaults  # type: ignore[attr-defined]  # of PyTorch's class
        self.variable_attrs = VariableAttributes(set_by_user, [*per_group, "loss_scaling", "velocity_scaling"])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._own:
            value = ATTRIBUTES[name][1](f"{type(self).__name__}: {name}", value)
        super().__setattr__(name, value)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step on the host, as PyTorch makes it.

        Parameters
        ----------
        closure:
            Computes the loss anew, where PyTorch's class asks for that.

        Returns
        -------
        Any
            The closure's result; None without one.

        Raises
        ------
        MissingFeature
            For what only the device's steps have, such as ``max_grad_norm``.
        """
        for name, fine in self._device_only.items():
            if name in self._own and getattr(self, name) != fine:
                raise MissingFeature(
                    f"{type(self).__name__}.step: PyTorch's step on the host does not have {name}={getattr(self, name)!r}, "
                    "which steps on the device have"
                )
        if self.state:  # type: ignore[attr-defined]  # of PyTorch's class: the step goes on from these
            self.ipu_state_is_dirty = False
        update = self._pytorch.step
        return (update.__wrapped__ if getattr(update, "hooked", False) else update)(self, closure)  # the hooks have run

    def state_dict(self) -> dict[str, Any]:
        """PyTorch's state with the device's, which is None while the optimiser has not been on a device."""
        return self.get_state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state that `state_dict` gave.

        Parameters
        ----------
        state:
            PyTorch's state and the device's.

        Raises
        ------
        ApplicationRuntimeError
            If it is empty or has no state of a device, such as one of PyTorch's own optimisers.
        """
        self._check_state(state)
        self._pytorch.load_state_dict(self, state)
        self.set_state_dict(state)

    def get_state_dict(self) -> dict[str, Any]:
        """What `state_dict` gives; a model that holds the optimiser puts the device's state there first."""
        pytorchs = self._pytorch.state_dict(self)  # whose hooks fetch the device's
        return {**self._state_dict, **pytorchs}

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the device's part of a state, which goes to the device when the model next runs.

        Parameters
        ----------
        state:
            What `state_dict` gave.

        Raises
        ------
        ApplicationRuntimeError
            As from `load_state_dict`.
        """
        self._check_state(state)
        self._state_dict = {name: state[name] for name in STATES}
        self.ipu_state_is_dirty = True
        self.host_state_is_dirty = False

    def _check_state(self, state: Mapping[str, Any]) -> None:
        if not state:
            raise ApplicationRuntimeError(f"{type(self).__name__}.load_state_dict: the state is empty")
        if missing := [name for name in STATES if name not in state]:
            raise ApplicationRuntimeError(
                "Only IPU optimizer states can be loaded onto the IPU. "
                f"{type(self).__name__}.load_state_dict: the state has no {' and no '.join(missing)}; it takes what the state_dict "
                "of a poptorch.optim optimiser gave"
            )

    def has_state(self) -> bool:
        """Whether the optimiser holds a state of a device."""
        return all(self._state_dict.get(name) is not None for name in STATES)

    def __getstate__(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self._own if name in vars(self)}
        return {
            **self._pytorch.__getstate__(self),
            **own,
            "variable_attrs": self.variable_attrs,
            "_state_dict": self._state_dict,
            "ipu_state_is_dirty": self.has_state(),
            "host_state_is_dirty": False,
        }


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor out of its local names."""
    return {name: value for name, value in arguments.items() if name not in ("self", "__class__")}
