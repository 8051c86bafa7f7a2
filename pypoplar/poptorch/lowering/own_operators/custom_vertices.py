"""Operators that a program made of vertices of its own."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import fx

from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch import operators
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers


def _checked(at: GraphLowering, what: str, results: Any, optional: bool) -> list[Tensor]:
    """The tensors that a user's function gave, of the shapes and types that it promised."""
    listed = list(results) if isinstance(results, list | tuple) else [results]
    values = at.node.meta["val"]
    if len(listed) != len(values):
        raise TensorShapeError(f"{what} gives {len(values)} tensors, got {len(listed)}")
    checked: list[Tensor] = []
    for number, (got, value, type) in enumerate(zip(listed, values, at.types, strict=True)):
        shape = list(value.shape)
        if got is None and optional:
            zeros = at.graph.addConstant(type, shape, 0, at.name)
            at.graph.setTileMapping(zeros, 0)
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


def _tensors(at: GraphLowering, nodes: list[fx.Node]) -> list[Tensor]:
    return [at.tensor(node) for node in nodes]


@lowers(torch.ops.poptorch.custom_operation.default)
def custom_operation(at: GraphLowering, inputs: list[fx.Node], key: str, outputs: str, attributes: str) -> list[Tensor]:
    operator = operators.custom_operator(key)
    results = operator.forward(at.graph, _tensors(at, inputs), json.loads(attributes), at.program, at.name)
    return _checked(at, f"the operator {key!r}", results, optional=False)


@lowers(torch.ops.poptorch.custom_operation_backward.default)
def custom_operation_backward(
    at: GraphLowering, gradients: list[fx.Node], inputs: list[fx.Node], outputs: list[fx.Node], key: str, attributes: str
) -> list[Tensor]:
    operator = operators.custom_operator(key)
    assert operator.gradient is not None, "autograd has asked"
    tensors = [_tensors(at, nodes) for nodes in (gradients, inputs, outputs)]
    results = operator.gradient(at.graph, *tensors, json.loads(attributes), at.program, at.name)
    return _checked(at, f"the gradient of the operator {key!r}", results, optional=True)
