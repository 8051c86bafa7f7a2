"""Products of matrices and vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import fx

from pypoplar import poplin, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.poptorch.lowering.values import Constant, Unplaced
from pypoplar.types import FLOAT, HALF

aten = torch.ops.aten
TRANSPOSES = (aten.t.default, aten.transpose.int)
VIEWS = (aten.view.default, aten._unsafe_view.default)


def _check_real(at: GraphLowering) -> None:
    if at.type not in (FLOAT, HALF):
        raise UnsupportedOperation(
            f"{at.node.target}: products of matrices are of float or half, got {at.type!r}; cast them, or multiply and sum"
        )


def _is_used_transposed(node: fx.Node) -> bool:
    """Whether all that becomes of matrices is that rows and columns are exchanged, as of gradients of the weights of Linear."""
    while len(node.users) == 1:
        (user,) = node.users
        if user.target in TRANSPOSES:
            rank = len(node.meta["val"].shape)
            dims = [dim % rank for dim in user.args[1:] if isinstance(dim, int)] or [0, 1]
            return sorted(dims) == [rank - 2, rank - 1]
        if user.target not in VIEWS or user.meta["val"].shape[-2:] != node.meta["val"].shape[-2:]:
            return False
        node = user
    return False


def _are_placed(at: GraphLowering, *operands: fx.Node) -> bool:
    """Whether operands lie somewhere already, so that no product says where."""
    return not any(isinstance(at.values[operand], Unplaced) for operand in operands)


@lowers(aten.mm.default)
def product(at: GraphLowering, left: fx.Node, right: fx.Node) -> Tensor:
    """A product; of what is used transposed only the transpose, from the transposes: its blocks lie as they are used then."""
    _check_real(at)
    graph, more = at.graph, (at.options, at.plans)
    if _is_used_transposed(at.node) and _are_placed(at, left, right):
        a, b = at.tensor(right).transpose(), at.tensor(left).transpose()
        return poplin.matMul(graph, a, b, at.program, at.name, *more).transpose()
    shapes = at.type_of(left), at.type, at.shape_of(left), at.shape_of(right)
    a = at.tensor(left, lambda: poplin.createMatMulInputLHS(graph, *shapes, f"{at.name}/left", *more))
    b = at.tensor(right, lambda: poplin.createMatMulInputRHS(graph, *shapes, f"{at.name}/weights", *more))
    return poplin.matMul(graph, a, b, at.program, at.name, *more)


@lowers(aten.bmm.default)
def batched_product(at: GraphLowering, left: fx.Node, right: fx.Node) -> Tensor:
    """The products [n, m, k] by [n, k, l] of all batches, at once."""
    _check_real(at)
    graph, more = at.graph, (at.options, at.plans)
    if _is_used_transposed(at.node) and _are_placed(at, left, right):
        a, b = (at.tensor(operand).dimShuffle([0, 2, 1]) for operand in (right, left))
        return poplin.matMulGrouped(graph, a, b, at.program, at.type, at.name, *more).dimShuffle([0, 2, 1])
    shapes = at.type_of(left), at.type, at.shape_of(left), at.shape_of(right)
    a = at.tensor(left, lambda: poplin.createMatMulGroupedInputLHS(graph, *shapes, f"{at.name}/left", *more))
    b = at.tensor(right, lambda: poplin.createMatMulGroupedInputRHS(graph, *shapes, f"{at.name}/right", *more))
    return poplin.matMulGrouped(graph, a, b, at.program, at.type, at.name, *more)


@lowers(aten.mv.default)
def product_with_vector(at: GraphLowering, matrix: fx.Node, vector: fx.Node) -> Tensor:
    _check_real(at)
    column = at.tensor(vector).expand([1])
    result = poplin.matMul(at.graph, at.tensor(matrix), column, at.program, at.name, at.options, at.plans)
    return result.flatten()


@lowers(aten.dot.default, aten.vdot.default)
def product_of_vectors(at: GraphLowering, left: fx.Node, right: fx.Node) -> Tensor:
    _check_real(at)
    operands = at.tensor(left).expand([0]), at.tensor(right).expand([1])
    return poplin.matMul(at.graph, *operands, at.program, at.name, at.options, at.plans).reshape([])


def _added(at: GraphLowering, result: Tensor, bias: fx.Node, beta: float, alpha: float) -> Tensor:
    """``beta * bias + alpha * result``, where `result` is written."""
    if alpha != 1:
        popops.mulInPlace(at.graph, result, alpha, at.program, at.name)
    shape = at.shape_of(bias)
    rows = result.rank() == 2 and shape == [result.dim(1)]
    biases = at.tensor(bias, (lambda: poplin.createBiases(at.graph, result, f"{at.name}/biases")) if rows else None)
    if beta == 0:
        return result
    if beta != 1:
        biases = popops.mul(at.graph, biases, beta, at.program, at.name)
    popops.addInPlace(at.graph, result, biases, at.program, at.name)
    return result


def _bias_alone(at: GraphLowering, bias: fx.Node, beta: float) -> Tensor:
    """``beta * bias``: where `alpha` is 0 PyTorch does not ask what the factors are, which may be infinite or NaN."""
    if beta == 0:
        return at.constant(Constant(np.zeros(at.shape, at.type.dtype)))
    biases = at.tensor(bias) if beta == 1 else popops.mul(at.graph, at.tensor(bias), beta, at.program, at.name)
    return broadcast(biases, at.shape)


@lowers(aten.addmm.default)
def product_and_bias(
    at: GraphLowering, bias: fx.Node, left: fx.Node, right: fx.Node, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    if alpha == 0:
        return _bias_alone(at, bias, beta)
    return _added(at, product(at, left, right), bias, beta, alpha)


@lowers(aten.baddbmm.default)
def batched_product_and_bias(
    at: GraphLowering, bias: fx.Node, left: fx.Node, right: fx.Node, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return _added(at, batched_product(at, left, right), bias, beta, alpha)


@lowers(aten.addmv.default)
def product_with_vector_and_bias(
    at: GraphLowering, bias: fx.Node, matrix: fx.Node, vector: fx.Node, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    if alpha == 0:
        return _bias_alone(at, bias, beta)
    return _added(at, product_with_vector(at, matrix, vector), bias, beta, alpha)
