"""Numbers that a step computes once for a group of parameters, of how many steps were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Expm1, Gt, Select
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import ElementUpdate
from pypoplar.poptorch.update.settings import Settings
from pypoplar.program import Sequence
from pypoplar.types import FLOAT

Compute = Callable[[ElementUpdate, Any], Any]


@define(eq=False)
class StepScalars:
    """FLOAT [] each, on one tile, computed in one compute set. `steps`, which are counted if a number depends on them, as well."""

    graph: Graph
    group: int
    steps: Tensor | None = None
    made: Tensor | None = None  # FLOAT [], above 0 if the step is made; None: each is
    asked: dict[str, tuple[Tensor, Compute]] = field(factory=dict)

    def scalar(self, name: str, compute: Compute) -> Tensor:
        """A number that `compute` says, given the count of steps, of which this one is the last."""
        if self.steps is None:
            self.steps = self._tensor("step")
        if name not in self.asked:
            self.asked[name] = self._tensor(name), compute
        return self.asked[name][0]

    def add_to(self, prog: Sequence) -> None:
        """Extend a program by the computation of all numbers that were asked for."""
        if self.steps is None:
            return
        update = ElementUpdate(self.graph, [self.steps, *(tensor for tensor, _ in self.asked.values())])
        counts = 1.0 if self.made is None else Select(1.0, 0.0, Gt(update.leaf(self.made), 0.0))
        steps = update.leaf(self.steps) + counts
        update.replace(self.steps, steps)
        for tensor, compute in self.asked.values():
            update.replace(tensor, compute(update, steps))
        update.add_to(prog, f"optimizer/{self.group}/update")

    def _tensor(self, name: str) -> Tensor:
        tensor = self.graph.addVariable(FLOAT, [], f"optimizer/{self.group}/{name}")
        self.graph.setTileMapping(tensor, 0)
        self.graph.setInitialValue(tensor, np.float32(0))
        return tensor


def bias_correction(settings: Settings, beta: str) -> Compute:
    """``1 - beta ** steps``, in a form that is as exact for the first steps as for later ones."""
    power = settings.derived(f"logarithm_of_{beta}", DerivedNumber("logarithm", (beta,)), beta)
    return lambda update, steps: -Expm1(update.leaf(power) * steps)
