"""Operations that draw random numbers, in training from a seed that differs from step to step."""

from __future__ import annotations

import torch
from attrs import frozen

from pypoplar import poprand
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers

aten = torch.ops.aten


@frozen(eq=False)
class DropoutMask:
    """What stands for the mask of a dropout: it is drawn a second time for the gradient."""

    reference: Tensor
    drawing: int
    kept: float

    def apply(self, ctx: EntryContext, tensor: Tensor) -> Tensor:
        """The elements that are kept, scaled."""
        scale = 1 / self.kept if self.kept else 0.0
        return poprand.dropout(
            ctx.graph, ctx.random_seed(), self.drawing, tensor, self.reference, self.kept, scale, ctx.program, ctx.name
        )


@lowers(aten.native_dropout.default)
def dropout(ctx: EntryContext, input: Operand, probability: float, train: bool | None) -> tuple[Tensor, DropoutMask | None]:
    tensor = input.placed()
    if not ctx.training or not train:
        return tensor, None
    mask = DropoutMask(tensor, ctx.drawing(), 1 - probability)
    return mask.apply(ctx, tensor), mask


@lowers(aten.native_dropout_backward.default)
def dropout_backward(ctx: EntryContext, gradient: Operand, mask: Operand, scale: float) -> Tensor:
    drawn: DropoutMask | None = mask.value
    tensor = gradient.placed()
    return tensor if drawn is None else drawn.apply(ctx, tensor)
