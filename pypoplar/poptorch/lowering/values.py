"""What a node of the joint graph stands for while it is lowered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from pypoplar.errors import TensorIOStateError
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Expr
from pypoplar.types import ElementType

Back = Callable[[Tensor], Tensor]


@frozen(eq=False)
class Constant:
    """A value that is known when the graph is built.

    Where some elements come from memory that nothing has written, as `torch.empty` gives it, `other` is what they might be as well.
    Integers of more than 32 bits are as PyTorch `computed` them: other constants are made of them, and they have no `array`.
    """

    computed: npt.NDArray[Any]
    other: npt.NDArray[np.generic] | None = None

    @property
    def array(self) -> npt.NDArray[np.generic]:
        """The elements as they are on the IPU; `TensorIOStateError` where they are none."""
        if self.computed.dtype == np.int64:
            least, most = self.computed.min(), self.computed.max()
            raise TensorIOStateError(f"integers are 32 bits wide on the IPU; a constant has values from {least} to {most}")
        return self.computed

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
    views: dict[Unplaced, Tensor] = field(factory=dict)  # those that were asked for since there is a tensor


@frozen(eq=False)
class Unplaced:
    """An input that has no tensor yet, or a view of one.

    `forth` leads from a tensor of its `source` to the view, `back` from a tensor of the view's shape to one of the source's.
    """

    variable: InputVariable
    source: Unplaced | None = None
    forth: Back | None = None
    back: Back | None = None

    def view(self, forth: Back, back: Back) -> Unplaced:
        """A view of this one."""
        return Unplaced(self.variable, self, forth, back)

    def place(self, tensor: Tensor) -> None:
        """Let a tensor of the view's shape be where the input lies."""
        view = self
        while view.source is not None:
            assert view.back is not None
            tensor, view = view.back(tensor), view.source
        self.variable.tensor = tensor

    def of_tensor(self) -> Tensor:
        """The view of the tensor that the input has got, made once."""
        if self.source is None:
            assert self.variable.tensor is not None
            return self.variable.tensor
        if self not in self.variable.views:
            assert self.forth is not None
            self.variable.views[self] = self.forth(self.source.of_tensor())
        return self.variable.views[self]

    def of(self, variable: InputVariable, known: dict[Unplaced, Unplaced]) -> Unplaced:
        """The same view of another input; `known` has those that there are already."""
        if self not in known:
            source = None if self.source is None else self.source.of(variable, known)
            known[self] = Unplaced(variable, source, self.forth, self.back)
        return known[self]
