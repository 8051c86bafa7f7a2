"""Sums and means of the gradients of several batches."""

from __future__ import annotations

from enum import Enum

import numpy as np
from attrs import define, field

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.element_update import ElementUpdate
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, ElementType


class GradientReduction(Enum):
    """What becomes of accumulated gradients."""

    SUM = "their sum"
    MEAN = "their sum, which the update divides by their number"
    RUNNING_MEAN = "the mean of those so far"
    MEAN_AND_LOSS = "their sum, which the update divides by the number of a replica's; of replicas the loss is divided before"


@define(eq=False)
class Accumulation:
    """Adds up gradients behind each of so many batches, on each replica. `total` says in which tensor."""

    graph: Graph
    batches: int
    reduction: GradientReduction
    batch: Sequence  # what each batch does, extended
    zero: Sequence = field(factory=Sequence)  # what comes behind the update
    counted: tuple[Tensor, Tensor] | None = None  # what the running mean and a new gradient are multiplied by

    @property
    def divisor(self) -> float:
        """What an update divides totals by."""
        match self.reduction:
            case GradientReduction.MEAN:
                return float(self.batches * self.graph.getReplicationFactor())
            case GradientReduction.MEAN_AND_LOSS:
                return float(self.batches)
        return 1.0

    def total(self, gradient: Tensor, like: Tensor, type: ElementType, name: str) -> Tensor:
        """The sum, or the mean so far, of a gradient; of one batch the gradient itself."""
        if self.batches == 1:
            return gradient
        total = self.graph.clone(type, like, f"{name}/accumulated")
        self.graph.setInitialValue(total, np.zeros(total.shape(), type.dtype))
        if self.reduction is GradientReduction.RUNNING_MEAN:
            kept, new = self.counted = self.counted or self._count()
            popops.scaledAddTo(self.graph, total, kept, gradient, new, self.batch, f"{name}/accumulate")
        else:
            popops.scaledAddTo(self.graph, total, gradient, 1.0, self.batch, f"{name}/accumulate")
        popops.zero(self.graph, total, self.zero, f"{name}/accumulate")
        return total

    def _count(self) -> tuple[Tensor, Tensor]:
        """How much the batch that has run counts in the mean of those so far, after how much those before it count."""
        count, kept, new = (self._scalar(name) for name in ("count", "kept", "new"))
        update = ElementUpdate(self.graph, [count, kept, new])
        before = update.leaf(count)
        batches = before + 1.0
        update.replace(count, batches)
        update.replace(kept, before / batches)
        update.replace(new, 1.0 / batches)
        update.add_to(self.batch, "optimizer/accumulate")
        popops.zero(self.graph, count, self.zero, "optimizer/accumulate")
        return kept, new

    def _scalar(self, name: str) -> Tensor:
        tensor = self.graph.addVariable(FLOAT, [], f"optimizer/accumulated/{name}")
        self.graph.setTileMapping(tensor, 0)
        self.graph.setInitialValue(tensor, np.float32(0))
        return tensor
