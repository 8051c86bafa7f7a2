"""What a node of the joint graph stands for while it is lowered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Expr
from pypoplar.types import ElementType

Back = Callable[[Tensor], Tensor]


@frozen(eq=False)
class Constant:
    """A value that is known when the graph is built.

    Where some elements come from memory that nothing has written, as `torch.empty` gives it, `other` is what they might be as well.
    """

    array: npt.NDArray[np.generic]
    other: npt.NDArray[np.generic] | None = None

    @property
    def number(self) -> bool | int | float | None:
        """The one number that all its elements are, if they are."""
        flat = self.array.reshape(-1)
        if self.other is not None:
            return None
        return flat[0].item() if flat.size and (flat == flat[0]).all() else None


@frozen(eq=False)
class Pending:
    """An expression of the elements of tensors that has not been computed: its only user may compute it with its own."""

    tree: Expr
    operands: tuple[Tensor, ...]
    type: ElementType


@define(eq=False)
class InputVariable:
    """An input of the graph. It gets its tensor from the first operation that has a wish where it lies."""

    name: str
    type: ElementType
    shape: list[int]
    tensor: Tensor | None = None
    ipu: int = 0  # where the tensor is


@frozen(eq=False)
class Unplaced:
    """A view of an input that has no tensor yet. `back` leads from a tensor of the view's shape to one of the input's."""

    variable: InputVariable
    back: tuple[Back, ...] = field(default=())

    def place(self, tensor: Tensor) -> None:
        """Let a tensor of the view's shape be where the input lies."""
        for step in reversed(self.back):
            tensor = step(tensor)
        self.variable.tensor = tensor
