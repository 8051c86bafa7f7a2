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
    """RMSprop as `torch.optim.RMSprop` has it.

    With `use_tf_variant` it is TensorFlow's: the mean of squares begins with ones, `eps` is added to it before the root is taken,
    and the momentum has the learning rate in it. Gradients and moments are kept in the types given. `loss_scaling` multiplies the
    loss, and the update divides by it.
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
