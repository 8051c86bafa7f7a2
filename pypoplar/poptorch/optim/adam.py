"""Adam, and AdamW whose decay of weights is apart from the gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import torch

from pypoplar.poptorch.optim.ipu_optimizer import Optimizer, given
from pypoplar.tracebacks import public

MOMENTS = ("accum_type", "first_order_momentum_accum_type", "second_order_momentum_accum_type")


@public
class Adam(Optimizer, torch.optim.Adam):
    """Adam as `torch.optim.Adam` has it, without amsgrad; its steps are made on the device.

    Parameters
    ----------
    params:
        Parameters, or groups of them, as PyTorch takes them.
    lr, betas, eps, weight_decay:
        PyTorch's; None: its defaults.
    amsgrad:
        False.
    foreach, maximize, capturable, differentiable, fused:
        PyTorch's; None: its defaults.
    loss_scaling:
        Multiplies the loss, and the update divides by it; 1 at first.
    accum_type, first_order_momentum_accum_type, second_order_momentum_accum_type:
        `torch.float32`, as at first, or `torch.float16`: in which gradients and moments are kept.
    max_grad_norm:
        Gradients whose norm, over all parameters, is larger are scaled down to it; infinite at first.

    Raises
    ------
    InvalidOption
        For other types and for numbers that a step cannot have.
    MissingFeature
        For amsgrad.
    """

    _pytorch: ClassVar[Any] = torch.optim.Adam
    _own = ("loss_scaling", *MOMENTS, "max_grad_norm")

    def __init__(  # noqa: PLR0913 (PopTorch's arguments)
        self,
        params: Iterable[Any],
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        foreach: bool | None = None,
        maximize: bool | None = None,
        capturable: bool | None = None,
        differentiable: bool | None = None,
        fused: bool | None = None,
        loss_scaling: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        self._construct(given(locals()))


@public
class AdamW(Optimizer, torch.optim.AdamW):
    """Adam with a decay of weights apart from the gradients, as `torch.optim.AdamW` has it, without amsgrad.

    Parameters
    ----------
    params:
        Parameters, or groups of them, as PyTorch takes them.
    lr, betas, eps, weight_decay:
        PyTorch's; None: its defaults.
    amsgrad:
        False.
    maximize, foreach, capturable, differentiable, fused:
        PyTorch's; None: its defaults.
    loss_scaling:
        Multiplies the loss, and the update divides by it; 1 at first.
    bias_correction:
        Without it the moments are used as they are; True at first.
    accum_type, first_order_momentum_accum_type, second_order_momentum_accum_type:
        As for `Adam`.
    max_grad_norm:
        As for `Adam`.

    Raises
    ------
    InvalidOption, MissingFeature
        As from `Adam`.
    """

    _pytorch: ClassVar[Any] = torch.optim.AdamW
    _own = ("loss_scaling", "bias_correction", *MOMENTS, "max_grad_norm")
    _device_only: ClassVar[dict[str, object]] = {**Optimizer._device_only, "bias_correction": True}

    def __init__(  # noqa: PLR0913 (PopTorch's arguments)
        self,
        params: Iterable[Any],
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        maximize: bool | None = None,
        foreach: bool | None = None,
        capturable: bool | None = None,
        differentiable: bool | None = None,
        fused: bool | None = None,
        loss_scaling: float | None = None,
        bias_correction: bool | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        self._construct(given(locals()))
