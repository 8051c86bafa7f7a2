"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypoplar import popops
from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.settings import Settings
from pypoplar.program import Sequence

CONSTANTS = ("momentum", "dampening", "weight_decay", "nesterov", "maximize")


class GradientDescent:
    """``weight -= lr * gradient``, for one group of parameters."""

    def __init__(self, settings: Settings, group: Mapping[str, Any]) -> None:
        self.settings = settings
        self.constants = {name: group[name] for name in CONSTANTS}
        for name, value in self.constants.items():
            if value:
                raise MissingFeature(f"SGD: {name}={value} is missing")

    @staticmethod
    def numbers(group: Mapping[str, Any]) -> dict[str, float]:
        """What may change between calls."""
        return {"lr": float(group["lr"])}

    def check_constants(self, group: Mapping[str, Any]) -> None:
        """Refuse a group whose other settings differ from those that were compiled."""
        changed = [name for name in CONSTANTS if group[name] != self.constants[name]]
        if changed:
            raise InvalidOption(f"setOptimizer: {', '.join(changed)} cannot change after compilation")

    def add(self, weight: Tensor, gradient: Tensor, prog: Sequence, name: str) -> None:
        """Extend `prog` by one parameter's update."""
        popops.scaledSubtractFrom(self.settings.graph, weight, gradient, self.settings.tensor("lr"), prog, name)
