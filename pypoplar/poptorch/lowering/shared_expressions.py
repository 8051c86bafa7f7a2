"""Casts, expressions and reductions that entries of several families add to the program."""

from __future__ import annotations

from typing import Any

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Expr
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.types import FLOAT, HALF, ElementType

FLOATS = (FLOAT, HALF)


def as_type(ctx: EntryContext, tensor: Tensor, type: ElementType) -> Tensor:
    """A tensor as one of a type."""
    return tensor if tensor.elementType() is type else popops.cast(ctx.graph, tensor, type, ctx.program, ctx.name)


def typed(ctx: EntryContext, source: Operand) -> Tensor:
    """The tensor of an operand, as one of the type of this operation's result."""
    return as_type(ctx, source.placed(), ctx.type)


def mapped(ctx: EntryContext, tree: Expr, *tensors: Tensor) -> Tensor:
    """The elements of an expression."""
    return popops.map(ctx.graph, tree, list(tensors), ctx.program, ctx.name)


def computed(ctx: EntryContext, tree: Any, *tensors: Tensor) -> Tensor:
    """An expression of FLOATs, of tensors that become FLOATs, rounded once to the type of the result."""
    return mapped(ctx, rounded(ctx, tree), *tensors)


def rounded(ctx: EntryContext, tree: Any) -> Expr:
    """An expression of FLOATs as one of the type of the result."""
    return Cast(tree, ctx.type) if ctx.type is not FLOAT else tree


def wide(*operands: Operand) -> list[Any]:
    """Placeholders of operands, as FLOATs."""
    leaves = (popops.expr.PlaceHolder(number) for number in range(1, len(operands) + 1))
    return [leaf if operand.type is FLOAT else Cast(leaf, FLOAT) for leaf, operand in zip(leaves, operands, strict=True)]


def reduced(ctx: EntryContext, tensor: Tensor, operation: popops.Operation, axes: list[int], type: ElementType) -> Tensor:
    """A reduction over dimensions, which are left out."""
    return popops.reduce(ctx.graph, tensor, type, axes, popops.ReduceParams(operation), ctx.program, ctx.name)
