"""Operators that a program made of vertices of its own."""

from __future__ import annotations

import json
from typing import Any

import torch

from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.graph.location import at
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers


def _checked(ctx: EntryContext, what: str, results: Any, optional: bool) -> list[Tensor]:
    """The tensors that a user's function gave, of the shapes and types that it promised."""
    listed = list(results) if isinstance(results, list | tuple) else [results]
    values = ctx.likes
    if len(listed) != len(values):
        raise TensorShapeError(f"{what} gives {len(values)} tensors, got {len(listed)}")
    checked: list[Tensor] = []
    for number, (got, value, type) in enumerate(zip(listed, values, ctx.types, strict=True)):
        shape = list(value.shape)
        if got is None and optional:
            zeros = ctx.graph.addConstant(type, shape, 0, ctx.name)
            ctx.graph.setTileMapping(zeros, 0)
            checked.append(zeros)
            continue
        if not isinstance(got, Tensor):
            raise PoplarTypeError(f"{what} gives tensors of the graph, result {number} is {got!r}")
        if got.shape() != shape or got.elementType() is not type:
            raise TensorShapeError(
                f"{what}: result {number} is {type!r} {shape} by its example, got {got.elementType()!r} {got.shape()}"
            )
        checked.append(got)
    return checked


def _tensors(ctx: EntryContext, operands: list[Operand]) -> list[Tensor]:
    return [operand.placed() for operand in operands]


@lowers(torch.ops.poptorch.custom_operation.default)
def custom_operation(ctx: EntryContext, inputs: list[Operand], key: str, outputs: str, attributes: str) -> list[Tensor]:
    operator = operators.custom_operator(key)
    with at(None):  # its own lines made what it makes
        results = operator.forward(ctx.graph, _tensors(ctx, inputs), json.loads(attributes), ctx.program, ctx.name)
    return _checked(ctx, f"the operator {key!r}", results, optional=False)


@lowers(torch.ops.poptorch.custom_operation_backward.default)
def custom_operation_backward(
    ctx: EntryContext, gradients: list[Operand], inputs: list[Operand], outputs: list[Operand], key: str, attributes: str
) -> list[Tensor]:
    operator = operators.custom_operator(key)
    assert operator.gradient is not None, "autograd has asked"
    tensors = [_tensors(ctx, operands) for operands in (gradients, inputs, outputs)]
    with at(None):
        results = operator.gradient(ctx.graph, *tensors, json.loads(attributes), ctx.program, ctx.name)
    return _checked(ctx, f"the gradient of the operator {key!r}", results, optional=True)
