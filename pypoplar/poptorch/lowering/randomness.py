"""Operations that draw random numbers, in training from a seed that differs from step to step."""

from __future__ import annotations

import torch
from attrs import frozen
from torch import fx

from pypoplar import poprand
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers

aten = torch.ops.aten


@frozen(eq=False)
class DropoutMask:
    """What stands for the mask of a dropout: it is drawn a second time for the gradient."""

    reference: Tensor
    drawing: int
    kept: float

    def apply(self, at: GraphLowering, tensor: Tensor) -> Tensor:
        """The elements that are kept, scaled."""
        scale = 1 / self.kept if self.kept else 0.0
        return poprand.dropout(
            at.graph, at.random_seed(), self.drawing, tensor, self.reference, self.kept, scale, at.program, at.name
        )


@lowers(aten.native_dropout.default)
def dropout(at: GraphLowering, input: fx.Node, probability: float, train: bool | None) -> tuple[Tensor, DropoutMask | None]:
    tensor = at.tensor(input)
    if not at.training or not train:
        return tensor, None
    mask = DropoutMask(tensor, at.drawing(), 1 - probability)
    return mask.apply(at, tensor), mask


@lowers(aten.native_dropout_backward.default)
def dropout_backward(at: GraphLowering, gradient: fx.Node, mask: fx.Node, scale: float) -> Tensor:
    drawn: DropoutMask | None = at.value(mask)
    tensor = at.tensor(gradient)
    return tensor if drawn is None else drawn.apply(at, tensor)
