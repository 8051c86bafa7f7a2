"""Products of matrices."""

from __future__ import annotations

import torch
from torch import fx

from pypoplar import poplin, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers

aten = torch.ops.aten


@lowers(aten.mm.default)
def product(at: GraphLowering, left: fx.Node, right: fx.Node) -> Tensor:
    graph, more = at.graph, (at.options, at.plans)
    shapes = at.type_of(left), at.type, at.shape_of(left), at.shape_of(right)
    a = at.tensor(left, lambda: poplin.createMatMulInputLHS(graph, *shapes, f"{at.name}/left", *more))
    b = at.tensor(right, lambda: poplin.createMatMulInputRHS(graph, *shapes, f"{at.name}/weights", *more))
    return poplin.matMul(graph, a, b, at.program, at.name, *more)


@lowers(aten.addmm.default)
def product_and_bias(
    at: GraphLowering, bias: fx.Node, left: fx.Node, right: fx.Node, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    result = product(at, left, right)
    if alpha != 1:
        popops.mulInPlace(at.graph, result, alpha, at.program, at.name)
    rows = at.shape_of(bias)
    biases = at.tensor(bias, (lambda: poplin.createBiases(at.graph, result, f"{at.name}/biases")) if len(rows) == 1 else None)
    if beta == 1:
        popops.addInPlace(at.graph, result, biases, at.program, at.name)
    elif beta != 0:
        popops.scaledAddTo(
            at.graph, result, biases.broadcast(result.dim(0)) if len(rows) == 1 else biases, beta, at.program, at.name
        )
    return result
