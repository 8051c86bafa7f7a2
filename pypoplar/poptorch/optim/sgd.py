"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import torch

from pypoplar.poptorch.optim.ipu_optimizer import Optimizer, given
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public


@public
class SGD(Optimizer, torch.optim.SGD):
    """Stochastic gradient descent with or without momentum, as `torch.optim.SGD` has it; its steps are made on the device.

    Parameters
    ----------
    params:
        Parameters, or groups of them, as PyTorch takes them.
    lr:
        The learning rate.
    momentum, dampening, weight_decay, nesterov, maximize, foreach, differentiable:
        PyTorch's; None: its defaults.
    loss_scaling:
        Multiplies the loss, and the update divides by it: small gradients of halves do not vanish. 1 at first.
    velocity_scaling:
        Scales velocities with `use_combined_accum`; 1 at first.
    use_combined_accum:
        Accumulate gradients into the velocities, which takes less memory and rounds more; else they are accumulated apart.
    accum_type:
        `torch.float32`, as at first, or `torch.float16`: in which gradients are accumulated.
    velocity_accum_type:
        The same of velocities.
    max_grad_norm:
        Gradients whose norm, over all parameters, is larger are scaled down to it; infinite at first.

    Raises
    ------
    InvalidOption
        For other types and for numbers that a step cannot have.
    """

    _pytorch: ClassVar[Any] = torch.optim.SGD
    _own = ("loss_scaling", "velocity_scaling", "use_combined_accum", "accum_type", "velocity_accum_type", "max_grad_norm")
    _device_only: ClassVar[dict[str, object]] = {
        **Optimizer._device_only,
        "use_combined_accum": False,
    }  # velocities are scaled there

    def __init__(  # noqa: PLR0913 (PopTorch's arguments)
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float | None = None,
        dampening: float | None = None,
        weight_decay: float | None = None,
        nesterov: bool | None = None,
        maximize: bool | None = None,
        foreach: bool | None = None,
        differentiable: bool | None = None,
        loss_scaling: float | None = None,
        velocity_scaling: float | None = None,
        use_combined_accum: bool | None = None,
        accum_type: torch.dtype | None = None,
        velocity_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        self._construct(given(locals()))
        if self.use_combined_accum:
            self.defaults["velocity_scaling"] = self.velocity_scaling
            for group in self.param_groups:
                group.setdefault("velocity_scaling", self.velocity_scaling)
        elif velocity_scaling is not None:
            say_once("SGD: velocity_scaling belongs to use_combined_accum=True, and changes nothing without")
