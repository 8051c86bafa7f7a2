"""A loss scaling that follows the gradients: as large as it can be without any of them beyond what halves have room for.

As PopART's: behind each step the factor of the loss scaling doubles, or halves where too many gradients in halves are too large.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field, frozen

from pypoplar import gcl, popops, poputil
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Const, Equal, Gt, Min, Select
from pypoplar.poptorch.update.accumulation import Accumulation
from pypoplar.poptorch.update.element_update import ElementUpdate
from pypoplar.poptorch.user_log import say_once
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, HALF, UNSIGNED_INT

FACTOR = "lossScaleUpdateFactor"
"""What the loss scaling that is set is multiplied by, under this handle; and the name of that state."""
FINAL = "finalLossScale"
"""The name of the product."""
LARGEST = 32768.0
"""Of products: the largest power of two that is a half."""
LARGEST_HALF = float(np.finfo(np.float16).max)


@frozen
class LossScalingRule:
    """When a loss scaling grows and when it shrinks, by PopART's names and with its numbers."""

    binEdgeLocation: float = 0.125  # of the largest half: from there on a gradient is large
    thresholdUpperCountProportion: float = 1e-7  # of gradients that may be large
    updatePeriod: int = 1  # steps


@define(eq=False)
class AutomaticLossScaling:
    """The factor of a loss scaling on the device, and what depends on it. Numbers are FLOAT [] on the first IPU."""

    graph: Graph
    rule: LossScalingRule
    ahead: Sequence  # what comes before the batches of a step, extended
    factor: Tensor = field(init=False)
    final: Tensor | None = None  # the loss scaling of a step
    _made: dict[str, Tensor] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.factor = self._number(FACTOR, 1.0)
        self.graph.createHostRead(FACTOR, self.factor)
        self.graph.createHostWrite(FACTOR, self.factor)

    def scaled(self, number: float | Tensor, power: int, name: str) -> Tensor:
        """A number times the factor, to the power of 1 or -1, or 0: then the number itself, which is a tensor as the others are."""
        if power == 0 and isinstance(number, Tensor):
            return number
        if name not in self._made:
            self._made[name] = self._number(f"{name}/scaled", 0.0)
            update = ElementUpdate(self.graph, [self._made[name]])
            base, factor = update.leaf(number), update.leaf(self.factor)
            update.replace(self._made[name], base if power == 0 else base * factor if power == 1 else base / factor)
            update.add_to(self.ahead, name)
        return self._made[name]

    def loss_scaling(self, number: float | Tensor) -> Tensor:
        """The loss scaling of a step, where `number` is the one that is set."""
        self.final = self.scaled(number, 1, FINAL)
        return self.final

    def follow(self, gradients: Mapping[str, Tensor], sums: Accumulation, number: float | Tensor) -> Sequence:
        """Let each batch count its large gradients, which are given by parameter; what comes behind the update goes by them."""
        halves = {name: one for name, one in gradients.items() if one.elementType() is HALF and one.numElements()}
        if not halves:
            say_once("Options.Training.setAutomaticLossScaling: no gradient is of halves, so the loss scaling stays what is set")
            return Sequence()
        flat = concat([one.flatten() for one in halves.values()])
        counts, behind = list[Tensor](), Sequence()
        for portion in sums.portions([(name, one.numElements()) for name, one in halves.items()]):
            ipu, name = portion.part.ipu, "optimizer/lossScaling/count"
            count, edge = self._counts(name, ipu), self._edge(name, ipu)
            large = flat.slice(portion.begin, portion.end)
            popops.histogram(self.graph, large, count, True, edge, True, portion.part.program, name)
            counts.append(self._on_first(count, ipu, behind, name))
            popops.zero(self.graph, count, sums.zero, name)
        replicas = self.graph.getReplicationFactor()
        if replicas > 1:
            added = gcl.allReduceCrossReplica(
                self.graph, concat(counts), gcl.CollectiveOperator.ADD, behind, debugContext="optimizer/lossScaling/replicas"
            )
            counts = [added.slice(2 * place, 2 * place + 2) for place in range(len(counts))]
        self._change(counts, float(flat.numElements()) * sums.batches * replicas, number, behind)
        return behind

    def _change(self, counts: list[Tensor], elements: float, number: float | Tensor, behind: Sequence) -> None:
        waited = self._number("optimizer/lossScaling/steps", float(self.rule.updatePeriod - 1))  # the first step changes it
        update = ElementUpdate(self.graph, [self.factor, waited])
        factor, (first, *others) = update.leaf(self.factor), [update.leaf(count[1]) for count in counts]
        large = sum(others, first)
        largest = Const(LARGEST, FLOAT) / update.leaf(number)
        shrinks = Gt(large, Const(self.rule.thresholdUpperCountProportion * elements, FLOAT))
        new = Select(factor * 0.5, Min(factor * 2.0, largest), shrinks)
        steps, period = update.leaf(waited) + 1.0, Const(float(self.rule.updatePeriod), FLOAT)
        update.replace(self.factor, Select(new, factor, Equal(steps, period)))
        update.replace(waited, Select(Const(0.0, FLOAT), steps, Equal(steps, period)))
        update.add_to(behind, "optimizer/lossScaling/change")

    def _on_first(self, count: Tensor, ipu: int, prog: Sequence, name: str) -> Tensor:
        floats = popops.cast(self.graph, count, FLOAT, prog, name)
        return poputil.copyToIpu(self.graph, floats, prog, 0, f"{name}/fromIpu") if ipu else floats

    def _edge(self, name: str, ipu: int) -> Tensor:
        edge = self.graph.addConstant(HALF, [1], np.array([self.rule.binEdgeLocation * LARGEST_HALF], np.float16), f"{name}/edge")
        self._place(edge, ipu)
        return edge

    def _counts(self, name: str, ipu: int) -> Tensor:
        counts = self.graph.addVariable(UNSIGNED_INT, [2], name)
        self._place(counts, ipu)
        self.graph.setInitialValue(counts, np.zeros(2, np.uint32))
        return counts

    def _number(self, name: str, initial: float) -> Tensor:
        number = self.graph.addVariable(FLOAT, [], name)
        self._place(number, 0)
        self.graph.setInitialValue(number, np.float32(initial))
        return number

    def _place(self, tensor: Tensor, ipu: int) -> None:
        self.graph.setTileMapping(tensor, ipu * self.graph.getTarget().getTilesPerIPU())
