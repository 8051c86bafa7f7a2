"""An optimiser's numbers for a group of parameters: constants, or tensors that the host writes between calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from attrs import define, field

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.group_settings import GroupSettings
from pypoplar.types import FLOAT

Formula = Callable[[Mapping[str, float]], float]


@define(eq=False)
class Settings:
    """What updates ask for of the settings that a group is compiled for."""

    graph: Graph
    compiled: GroupSettings
    formulas: dict[str, Formula] = field(factory=dict)
    tensors: dict[str, Tensor] = field(factory=dict)

    def number(self, name: str) -> float | Tensor:
        """A number of the optimiser, such as the learning rate `lr`: of Python if it is constant, else a FLOAT []."""
        return self.derived(name, operator.itemgetter(name), name)

    def derived(self, name: str, formula: Formula, *sources: str) -> float | Tensor:
        """A number that the host computes from others, `sources`."""
        if self.compiled.constant.issuperset(sources):
            return formula(self.compiled.numbers)
        if name not in self.tensors:
            tensor = self.graph.addVariable(FLOAT, [], self._handle(name))
            self.graph.setTileMapping(tensor, 0)
            self.graph.createHostWrite(self._handle(name), tensor)
            self.tensors[name], self.formulas[name] = tensor, formula
        return self.tensors[name]

    def written(self, settings: GroupSettings) -> dict[str, float]:
        """What the host writes, by handle, for the settings that the group has now."""
        settings.check_replaces(self.compiled)
        return {self._handle(name): formula(settings.numbers) for name, formula in self.formulas.items()}

    def _handle(self, name: str) -> str:
        return f"optimizer/{self.compiled.group}/{name}"
