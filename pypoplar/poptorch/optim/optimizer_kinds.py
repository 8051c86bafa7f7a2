"""Which optimisers a device can do the steps of: PyTorch's own classes and those of `pypoplar.poptorch.optim`."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.poptorch.optim.ipu_optimizer import Optimizer
from pypoplar.poptorch.optim.lamb import LAMB
from pypoplar.poptorch.user_log import logger

KINDS: dict[str, type[torch.optim.Optimizer]] = {
    "SGD": torch.optim.SGD,
    "AdamW": torch.optim.AdamW,  # which is an Adam too
    "Adam": torch.optim.Adam,
    "RMSprop": torch.optim.RMSprop,
    "LAMB": LAMB,
    "Adagrad": torch.optim.Adagrad,
    "Adadelta": torch.optim.Adadelta,
    "Adamax": torch.optim.Adamax,
}
USERS = tuple(KINDS)  # what messages offer; rooms above add kinds of their own
HOST_ONLY = ("differentiable",)
"""Arguments of PyTorch's that a device's step does not have."""


def optimizer_kind(optimizer: object) -> str:
    """The kind of an optimiser whose steps the device can do.

    Parameters
    ----------
    optimizer:
        One of `torch.optim` or `poptorch.optim`.

    Returns
    -------
    str
        "SGD", "Adam", "AdamW", "RMSprop", "LAMB", "Adagrad", "Adadelta" or "Adamax", or one that a room above has added.

    Raises
    ------
    PoplarTypeError
        For what is no optimiser.
    MissingFeature
        For other classes, for those that have a `step` of their own, and for arguments that the device's steps do not have, such as
        ``differentiable=True``.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise PoplarTypeError(f"an optimiser is one of poptorch.optim or torch.optim, got {optimizer!r}")
    name = type(optimizer).__name__
    kind = next((kind for kind, base in KINDS.items() if isinstance(optimizer, base)), None)
    if kind is None:
        raise MissingFeature(f"{name}: pypoplar has the optimisers {', '.join(USERS)}")
    if _step(type(optimizer)) not in (*map(_step, KINDS.values()), Optimizer.step):
        raise MissingFeature(f"{name} has a step of its own, and Python code of an optimiser does not run on the device")
    for number, group in enumerate(optimizer.param_groups):
        for argument in HOST_ONLY:
            if group.get(argument):
                raise MissingFeature(f"{name}: pypoplar does not have {argument}=True yet (parameter group {number})")
        if group.get("lr_decay"):
            raise MissingFeature(
                f"{name}: on the device lr_decay is 0, got {group['lr_decay']} (parameter group {number}); "
                "lr may change between calls"
            )
    if kind not in ("Adam", "AdamW"):
        return kind
    decoupled = {bool(group["decoupled_weight_decay"]) for group in optimizer.param_groups}
    if len(decoupled) > 1:
        raise MissingFeature(f"{name}: decoupled_weight_decay is True in all parameter groups or in none")
    return "AdamW" if True in decoupled else "Adam"


def tell_of_own_code(optimizer: torch.optim.Optimizer) -> None:
    """Warn of a class of the user's own, and of hooks: the device has nothing but the numbers."""
    cls = type(optimizer)
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        logger.warning("%s has hooks of its step, which are not called: the device makes the steps", cls.__name__)
    if not cls.__module__.startswith(("torch.", "pypoplar.")):
        logger.warning(
            "%s is a class of your own. Poptorch does not run Python optimizer code directly; the device makes steps of %s",
            cls.__name__,
            optimizer_kind(optimizer),
        )


def _step(cls: Any) -> object:
    """The `step` of a class of optimisers, without what PyTorch wraps around it at the first object."""
    return cls.step.__wrapped__ if getattr(cls.step, "hooked", False) else cls.step
