"""An optimiser's numbers for a group of parameters, as tensors that the host writes between calls."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.types import FLOAT


@define(eq=False)
class Settings:
    """The numbers of one group of parameters, by name: each a FLOAT [] that the host can write."""

    graph: Graph
    group: int
    numbers: Mapping[str, float]
    tensors: dict[str, Tensor] = field(factory=dict)

    def tensor(self, name: str) -> Tensor:
        """The tensor of a number, such as the learning rate `lr`."""
        if name not in self.tensors:
            handle = self.handle(name)
            tensor = self.graph.addVariable(FLOAT, [], handle)
            self.graph.setTileMapping(tensor, 0)
            self.graph.createHostWrite(handle, tensor)
            self.tensors[name] = tensor
        return self.tensors[name]

    def handle(self, name: str) -> str:
        """The handle under which the host writes a number."""
        assert name in self.numbers, f"{name} is no number of this optimiser"
        return f"optimizer/{self.group}/{name}"
