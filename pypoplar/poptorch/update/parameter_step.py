"""What a rule has of the parameters that it updates: their elements one after the other, gradients, states and numbers."""

from __future__ import annotations

from typing import Any, Protocol

from attrs import define, field, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import ElementUpdate, times
from pypoplar.poptorch.update.settings import Settings
from pypoplar.poptorch.update.step_scalars import StepScalars
from pypoplar.program import Sequence
from pypoplar.types import ElementType


@frozen
class StateKind:
    """A state of each element of a parameter, by PyTorch's name, in a type, and what it is before the first step."""

    name: str
    type: ElementType
    initial: float = 0.0


@frozen(eq=False)
class TrainedParameter:
    """A parameter with its gradient, which has its shape and type."""

    name: str
    weight: Tensor
    gradient: Tensor


class WeightHomes(Protocol):
    """Where weights are that are not on tiles between updates, by handles; an empty one is that of weights on tiles."""

    def home(self, parameter: str) -> str:
        """The handle of a parameter's home."""
        ...

    def brought(self, handle: str) -> Sequence:
        """What brings the weights of a home to tiles."""
        ...

    def taken(self, handle: str) -> Sequence:
        """What takes them back."""
        ...


@define(eq=False)
class ParameterStep:
    """Parameters of a group that have one type. A rule replaces their states and weights in `update`."""

    graph: Graph
    settings: Settings
    scalars: StepScalars
    parameters: list[TrainedParameter]
    weight: Tensor  # of all parameters, flat
    gradient: Tensor  # likewise, as the backward pass or its sum gives it
    states: dict[str, Tensor]  # likewise
    divisor: float  # of a sum of gradients whose mean is asked for
    clip: Tensor | None  # what gradients are multiplied by so that they are not too long
    update: ElementUpdate = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.update = ElementUpdate(self.graph, [self.weight, *self.states.values()])

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """The parameters by name, each with its number of elements."""
        return [(one.name, one.weight.numElements()) for one in self.parameters]

    @property
    def name(self) -> str:
        """The name of what is made for the parameters."""
        first = self.parameters[0].name.replace(".", "/")
        return f"{first}/update" if len(self.parameters) == 1 else f"optimizer/{self.settings.compiled.group}/update"

    def fixed(self, name: str) -> Any:
        """A setting that never changes."""
        return self.settings.compiled.fixed[name]

    def number(self, name: str) -> Any:
        """A number of the optimiser, as an expression or a constant."""
        return self.update.leaf(self.settings.number(name))

    def derived(self, name: str, number: DerivedNumber, *sources: str) -> Any:
        """A number that the host computes, as an expression or a constant."""
        return self.update.leaf(self.settings.derived(name, number, *sources))

    def state(self, name: str) -> Any:
        """The elements of a state."""
        return self.update.leaf(self.states[name])

    def gradient_scale(self) -> float | Tensor:
        """What makes the gradient of the tensor `gradient`: without its loss scaling, of the mean, and of what is minimised."""
        sign, divisor = (-1.0 if self.fixed("maximize") else 1.0), self.divisor
        return self.settings.derived("gradient_scale", DerivedNumber("gradient_scale", (sign, divisor)), "loss_scaling")

    def scaled_gradient(self) -> Any:
        """The elements of the gradient."""
        gradient = times(self.update.leaf(self.gradient_scale()), self.update.leaf(self.gradient))
        return gradient if self.clip is None else gradient * self.update.leaf(self.clip)

    def run(self, prog: Sequence) -> None:
        """Extend a program by all that was replaced."""
        self.update.add_to(prog, self.name)
