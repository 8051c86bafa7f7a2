"""An optimiser's numbers for a group of parameters: constants, or tensors that the host writes between calls."""

from __future__ import annotations

from attrs import define, field

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.automatic_loss_scaling import AutomaticLossScaling
from pypoplar.poptorch.update.derived_numbers import LOSS_SCALING, DerivedNumber
from pypoplar.poptorch.update.group_settings import GroupSettings
from pypoplar.poptorch.update.host_optimizer import number_handle
from pypoplar.types import FLOAT


@define(eq=False)
class Settings:
    """What updates ask for of the settings that a group is compiled for."""

    graph: Graph
    compiled: GroupSettings
    written: dict[str, DerivedNumber]  # what the host is to write, which grows by what updates ask for
    automatic: AutomaticLossScaling | None = None
    tensors: dict[str, Tensor] = field(factory=dict)

    def number(self, name: str) -> float | Tensor:
        """A number of the optimiser, such as the learning rate `lr`: of Python if it is constant, else a FLOAT []."""
        return self.derived(name, DerivedNumber("itself", (name,)), name)

    def derived(self, name: str, number: DerivedNumber, *sources: str) -> float | Tensor:
        """A number that the host computes from others, `sources`; what goes with the loss scaling goes with its factor, too."""
        given = self._given(name, number, sources)
        if self.automatic is None or "loss_scaling" not in sources:
            return given
        if name == "loss_scaling":
            return self.automatic.loss_scaling(given)
        power = number.power_of_loss_scaling
        return self.automatic.scaled(given, power, f"optimizer/{self.compiled.group}/{name}")

    def given_loss_scaling(self) -> float | Tensor:
        """The loss scaling that is set, without the factor of an automatic one."""
        return self._given("loss_scaling", LOSS_SCALING, ("loss_scaling",))

    def _given(self, name: str, number: DerivedNumber, sources: tuple[str, ...]) -> float | Tensor:
        if self.compiled.constant.issuperset(sources):
            return number.of(self.compiled.numbers)
        if name not in self.tensors:
            handle = number_handle(self.compiled.group, name)
            tensor = self.graph.addVariable(FLOAT, [], handle)
            self.graph.setTileMapping(tensor, 0)
            self.graph.createHostWrite(handle, tensor)
            self.tensors[name], self.written[name] = tensor, number
        return self.tensors[name]
