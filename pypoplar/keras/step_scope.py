"""Which variables of Keras a captured step reads and sets: those that it holds, and those that no layer lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from keras.src.backend.common.stateless_scope import StatelessScope

from pypoplar.errors import PoplarError


class UnlistedVariables(PoplarError):
    """A step has variables that its model does not list; it is captured again, with them.

    They are not seen otherwise: what is read would be a constant of the program, and what is set would be lost.
    """

    def __init__(self, variables: list[Any]) -> None:
        super().__init__(f"the model does not list {', '.join(variable.path for variable in variables)}")
        self.variables = variables


class StepScope(StatelessScope):
    """The values of variables within a step, and the variables beside those that are held."""

    def __init__(self, held: Iterable[tuple[Any, torch.Tensor]]) -> None:
        super().__init__(state_mapping=held, collect_losses=True)
        self._known = set(self.state_mapping)
        self._others: dict[int, Any] = {}

    def get_current_value(self, variable: Any) -> Any:
        """The value of a variable that is held or set; None for others, which have their own."""
        self._note(variable)
        return super().get_current_value(variable)

    def add_update(self, update: tuple[Any, Any]) -> None:
        """A variable is set."""
        self._note(update[0])
        super().add_update(update)

    def _note(self, variable: Any) -> None:
        if id(variable) not in self._known:
            self._others.setdefault(id(variable), variable)

    def unlisted(self, model: Any) -> list[Any]:
        """The others, but for those of metrics, which are computed on the host."""
        losses = getattr(model, "_compile_loss", None)
        metrics = [*model.metrics, *(getattr(losses, "metrics", None) or ())]
        of_metrics = {id(variable) for metric in metrics for variable in metric.variables}
        return [variable for key, variable in self._others.items() if key not in of_metrics]
