"""LAMB: Adam whose step is as long as each parameter's weights allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.optim.adam import MOMENTS
from pypoplar.poptorch.optim.ipu_optimizer import ATTRIBUTES, Optimizer, given
from pypoplar.tracebacks import public

DEFAULTS = {
    "lr": 1e-3,
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 1e-2,
    "max_weight_norm": ATTRIBUTES["max_weight_norm"][0],
}


@public
class LAMB(Optimizer, torch.optim.Optimizer):
    """Layer-wise adaptive moments (You et al., https://arxiv.org/abs/1904.00962), with decay of weights.

    The step of a parameter is as long as its weights, at most `max_weight_norm`, times the learning rate.

    Parameters
    ----------
    params:
        Parameters, or groups of them, as PyTorch takes them.
    lr:
        The learning rate; 0.001 at first.
    betas:
        How much of the moments stays with a step; (0.9, 0.999) at first.
    eps:
        What is added to the root of the second moment; 1e-8 at first.
    weight_decay:
        The share of the weights that a step has; 0.01 at first.
    bias_correction:
        Without it the moments are used as they are; True at first.
    loss_scaling:
        Multiplies the loss, and the update divides by it; 1 at first.
    max_weight_norm:
        The largest norm of weights that counts; 65500 at first.
    accum_type, first_order_momentum_accum_type, second_order_momentum_accum_type:
        As for `Adam`.

    Raises
    ------
    InvalidOption
        For numbers that a step cannot have, and other types.
    """

    _own = ("loss_scaling", "bias_correction", *MOMENTS)

    def __init__(  # noqa: PLR0913 (PopTorch's arguments)
        self,
        params: Iterable[Any],
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        bias_correction: bool | None = None,
        loss_scaling: float | None = None,
        max_weight_norm: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
    ) -> None:
        arguments = given(locals())
        defaults = {name: value if arguments[name] is None else arguments[name] for name, value in DEFAULTS.items()}
        _check(defaults)
        rest = {name: value for name, value in arguments.items() if name not in DEFAULTS}
        self._construct({**rest, "defaults": defaults})
        for name in DEFAULTS:
            if arguments[name] is not None:
                self.variable_attrs.markAsVariable(name)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step on the host, in PyTorch's arithmetic.

        Parameters
        ----------
        closure:
            Computes the loss anew.

        Returns
        -------
        Any
            The closure's result; None without one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._move(parameter, group)
        return loss

    def _move(self, parameter: Any, group: dict[str, Any]) -> None:
        """One step of one parameter."""
        state, gradient, (beta1, beta2) = self.state[parameter], parameter.grad, group["betas"]
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
        state["step"] += 1
        first, second = state["exp_avg"], state["exp_avg_sq"]
        first.mul_(beta1).add_(gradient, alpha=1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        correction = [1 - beta ** state["step"] if self.bias_correction else 1.0 for beta in (beta1, beta2)]
        update = (first / correction[0]) / ((second / correction[1]).sqrt() + group["eps"]) + group["weight_decay"] * parameter
        weights, length = parameter.norm().clamp(max=group["max_weight_norm"]), update.norm()
        trust = torch.where((weights > 0) & (length > 0), weights / length, torch.ones_like(length))
        parameter.sub_(group["lr"] * trust * update)


def _check(defaults: dict[str, Any]) -> None:
    """`InvalidOption` for values that a step cannot have."""
    for name in ("lr", "eps", "weight_decay"):
        if not defaults[name] >= 0:
            raise InvalidOption(f"LAMB: {name} is a number of at least 0, got {defaults[name]!r}")
    betas = defaults["betas"]
    if not isinstance(betas, tuple | list) or len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise InvalidOption(f"LAMB: betas are two numbers from 0 to below 1, got {betas!r}")
    ATTRIBUTES["max_weight_norm"][1]("LAMB: max_weight_norm", defaults["max_weight_norm"])
