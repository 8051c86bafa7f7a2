"""Sums and means of the gradients of several batches."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from enum import Enum

import numpy as np
from attrs import define, field, frozen

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.update.element_update import ElementUpdate
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, ElementType


class GradientReduction(Enum):
    """What becomes of accumulated gradients."""

    SUM = "their sum"
    MEAN = "their sum, which the update divides by their number"
    RUNNING_MEAN = "the mean of those so far"
    MEAN_AND_LOSS = "their sum, which the update divides by the number of a replica's; of replicas the loss is divided before"


@frozen(eq=False)
class BatchPart:
    """A part of what each batch does, on one IPU: its program, which is extended, and the IPU."""

    program: Sequence
    ipu: int


PartOf = Callable[[str], BatchPart]
"""In which part of a batch the gradient of a parameter is made, by its name."""


@frozen(eq=False)
class Portion:
    """Elements of a bundle of parameters whose gradients are made in one part of a batch."""

    begin: int
    end: int
    part: BatchPart


@define(eq=False)
class Accumulation:
    """Adds up gradients behind each of so many batches, on each replica. `total` says in which tensor."""

    graph: Graph
    batches: int
    reduction: GradientReduction
    batch: Sequence  # what each batch does, extended
    part_of: PartOf | None = None  # where a batch has parts, which are extended in its place
    zero: Sequence = field(factory=Sequence)  # what comes behind the update
    counted: dict[int, tuple[Tensor, Tensor]] = field(factory=dict)
    """What the running mean and a new gradient are multiplied by, by the identity of the program that says so."""

    @property
    def divisor(self) -> float:
        """What an update divides totals by."""
        match self.reduction:
            case GradientReduction.MEAN:
                return float(self.batches * self.graph.getReplicationFactor())
            case GradientReduction.MEAN_AND_LOSS:
                return float(self.batches)
        return 1.0

    def portions(self, parameters: SequenceOf[tuple[str, int]]) -> list[Portion]:
        """Those of a bundle of parameters, each with its number of elements."""
        if self.part_of is None:
            return [Portion(0, sum(elements for _, elements in parameters), BatchPart(self.batch, 0))]
        portions: list[Portion] = []
        begin = 0
        for parameter, elements in parameters:
            part = self.part_of(parameter)
            first = portions.pop().begin if portions and portions[-1].part.program is part.program else begin
            begin += elements
            portions.append(Portion(first, begin, part))
        return portions

    def total(
        self, gradient: Tensor, like: Tensor, type: ElementType, parameters: SequenceOf[tuple[str, int]], name: str
    ) -> Tensor:
        """The sum, or the mean so far, of a bundle's gradient; of one batch the gradient itself."""
        if self.batches == 1:
            return gradient
        total = self.graph.clone(type, like, f"{name}/accumulated")
        self.graph.setInitialValue(total, np.zeros(total.shape(), type.dtype))
        for part, bounds in self._bounds(parameters):
            own, added = (concat([one.slice(begin, end) for begin, end in bounds]) for one in (total, gradient))
            if self.reduction is GradientReduction.RUNNING_MEAN:
                kept, new = self._count(part)
                popops.scaledAddTo(self.graph, own, kept, added, new, part.program, f"{name}/accumulate")
            else:
                popops.scaledAddTo(self.graph, own, added, 1.0, part.program, f"{name}/accumulate")
        popops.zero(self.graph, total, self.zero, f"{name}/accumulate")
        return total

    def _bounds(self, parameters: SequenceOf[tuple[str, int]]) -> list[tuple[BatchPart, list[tuple[int, int]]]]:
        """Of each part the elements of a bundle whose gradients it makes, which it adds up at one go."""
        found: dict[int, tuple[BatchPart, list[tuple[int, int]]]] = {}
        for portion in self.portions(parameters):
            part = portion.part
            found.setdefault(id(part.program), (part, []))[1].append((portion.begin, portion.end))
        return list(found.values())

    def _count(self, part: BatchPart) -> tuple[Tensor, Tensor]:
        """How much the batch that has run counts in the mean of those so far, after how much those before it count."""
        if id(part.program) not in self.counted:
            self.counted[id(part.program)] = self._counting(part)
        return self.counted[id(part.program)]

    def _counting(self, part: BatchPart) -> tuple[Tensor, Tensor]:
        count, kept, new = (self._scalar(name, part.ipu) for name in ("count", "kept", "new"))
        update = ElementUpdate(self.graph, [count, kept, new])
        before = update.leaf(count)
        batches = before + 1.0
        update.replace(count, batches)
        update.replace(kept, before / batches)
        update.replace(new, 1.0 / batches)
        update.add_to(part.program, "optimizer/accumulate")
        popops.zero(self.graph, count, self.zero, "optimizer/accumulate")
        return kept, new

    def _scalar(self, name: str, ipu: int) -> Tensor:
        tensor = self.graph.addVariable(FLOAT, [], f"optimizer/accumulated/{name}")
        self.graph.setTileMapping(tensor, ipu * self.graph.getTarget().getTilesPerIPU())
        self.graph.setInitialValue(tensor, np.float32(0))
        return tensor
