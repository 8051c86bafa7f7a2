"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import torch

from pypoplar.poptorch.optim.adam import MOMENTS
from pypoplar.poptorch.optim.ipu_optimizer import Optimizer, given
from pypoplar.tracebacks import public


@public
class RMSprop(Optimizer, torch.optim.RMSprop):
    """RMSprop as `torch.optim.RMSprop` has it; its steps are made on the device.

    Parameters
    ----------
    params:
        Parameters, or groups of them, as PyTorch takes them.
    lr, alpha, eps, weight_decay, momentum, centered, foreach, maximize, differentiable:
        PyTorch's; None: its defaults.
    loss_scaling:
        Multiplies the loss, and the update divides by it; 1 at first.
    accum_type, first_order_momentum_accum_type, second_order_momentum_accum_type:
        As for `Adam`.
    use_tf_variant:
        TensorFlow's RMSprop: the mean of squares begins with ones, `eps` is added to it before the root is taken, and the momentum
        has the learning rate in it.

    Raises
    ------
    InvalidOption
        For other types and for numbers that a step cannot have.
    """

    _pytorch: ClassVar[Any] = torch.optim.RMSprop
    _own = ("loss_scaling", *MOMENTS, "use_tf_variant")
    _device_only: ClassVar[dict[str, object]] = {"use_tf_variant": False}

    def __init__(  # noqa: PLR0913 (PopTorch's arguments)
        self,
        params: Iterable[Any],
        lr: float | None = None,
        alpha: float | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        centered: bool | None = None,
        foreach: bool | None = None,
        maximize: bool | None = None,
        differentiable: bool | None = None,
        loss_scaling: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        use_tf_variant: bool | None = None,
    ) -> None:
        self._construct(given(locals()))
