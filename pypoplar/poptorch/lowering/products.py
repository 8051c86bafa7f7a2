"""Products of matrices and vectors."""

from __future__ import annotations

import numpy as np
import torch

from pypoplar import poplin, popops
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.integers.integer_products import integer_product
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.types import BOOL

aten = torch.ops.aten
TRANSPOSES = (aten.t.default, aten.transpose.int)
VIEWS = (aten.view.default, aten._unsafe_view.default)


def _of_integers(ctx: EntryContext) -> bool:
    if ctx.type is BOOL:
        raise UnsupportedOperation(f"{ctx.operation}: products of matrices are of numbers, got {ctx.type!r}; cast them")
    return ctx.type not in FLOATS


def _is_used_transposed(ctx: EntryContext) -> bool:
    """Whether all that becomes of matrices is that rows and columns are exchanged, as of gradients of the weights of Linear."""
    shape, uses = ctx.shape, ctx.uses
    while len(uses) == 1:
        (use,) = uses
        if use.operation in TRANSPOSES:
            rank = len(shape)
            dims = [dim % rank for dim in use.arguments[1:] if isinstance(dim, int)] or [0, 1]
            return sorted(dims) == [rank - 2, rank - 1]
        if use.operation not in VIEWS or use.shape[-2:] != shape[-2:]:
            return False
        shape, uses = use.shape, use.uses
    return False


def _are_placed(*operands: Operand) -> bool:
    """Whether operands lie somewhere already, so that no product says where."""
    return all(operand.is_placed for operand in operands)


@lowers(aten.mm.default)
def product(ctx: EntryContext, left: Operand, right: Operand) -> Tensor:
    """A product; of what is used transposed only the transpose, from the transposes: its blocks lie as they are used then."""
    if _of_integers(ctx):
        return integer_product(ctx, left.placed(), right.placed())
    graph, more = ctx.graph, (ctx.options, ctx.plans)
    if _is_used_transposed(ctx) and _are_placed(left, right):
        a, b = right.placed().transpose(), left.placed().transpose()
        return poplin.matMul(graph, a, b, ctx.program, ctx.name, *more).transpose()
    shapes = left.type, ctx.type, left.shape, right.shape
    a = left.placed(lambda: poplin.createMatMulInputLHS(graph, *shapes, f"{ctx.name}/left", *more))
    b = right.placed(lambda: poplin.createMatMulInputRHS(graph, *shapes, f"{ctx.name}/weights", *more))
    return poplin.matMul(graph, a, b, ctx.program, ctx.name, *more)


@lowers(aten.bmm.default)
def batched_product(ctx: EntryContext, left: Operand, right: Operand) -> Tensor:
    """The products [n, m, k] by [n, k, l] of all batches, at once."""
    if _of_integers(ctx):
        return integer_product(ctx, left.placed(), right.placed())
    graph, more = ctx.graph, (ctx.options, ctx.plans)
    if _is_used_transposed(ctx) and _are_placed(left, right):
        a, b = (operand.placed().dimShuffle([0, 2, 1]) for operand in (right, left))
        return poplin.matMulGrouped(graph, a, b, ctx.program, ctx.type, ctx.name, *more).dimShuffle([0, 2, 1])
    shapes = left.type, ctx.type, left.shape, right.shape
    a = left.placed(lambda: poplin.createMatMulGroupedInputLHS(graph, *shapes, f"{ctx.name}/left", *more))
    b = right.placed(lambda: poplin.createMatMulGroupedInputRHS(graph, *shapes, f"{ctx.name}/right", *more))
    return poplin.matMulGrouped(graph, a, b, ctx.program, ctx.type, ctx.name, *more)


@lowers(aten.mv.default)
def product_with_vector(ctx: EntryContext, matrix: Operand, vector: Operand) -> Tensor:
    column = vector.placed().expand([1])
    if _of_integers(ctx):
        return integer_product(ctx, matrix.placed(), column).flatten()
    result = poplin.matMul(ctx.graph, matrix.placed(), column, ctx.program, ctx.name, ctx.options, ctx.plans)
    return result.flatten()


@lowers(aten.dot.default, aten.vdot.default)
def product_of_vectors(ctx: EntryContext, left: Operand, right: Operand) -> Tensor:
    operands = left.placed().expand([0]), right.placed().expand([1])
    if _of_integers(ctx):
        return integer_product(ctx, *operands).reshape([])
    return poplin.matMul(ctx.graph, *operands, ctx.program, ctx.name, ctx.options, ctx.plans).reshape([])


def _added(ctx: EntryContext, result: Tensor, bias: Operand, beta: float, alpha: float) -> Tensor:
    """``beta * bias + alpha * result``, where `result` is written."""
    if alpha != 1:
        popops.mulInPlace(ctx.graph, result, alpha, ctx.program, ctx.name)
    shape = bias.shape
    rows = result.rank() == 2 and shape == [result.dim(1)]
    biases = bias.placed((lambda: poplin.createBiases(ctx.graph, result, f"{ctx.name}/biases")) if rows else None)
    if beta == 0:
        return result
    if beta != 1:
        biases = popops.mul(ctx.graph, biases, beta, ctx.program, ctx.name)
    popops.addInPlace(ctx.graph, result, biases, ctx.program, ctx.name)
    return result


def _bias_alone(ctx: EntryContext, bias: Operand, beta: float) -> Tensor:
    """``beta * bias``: where `alpha` is 0 PyTorch does not ask what the factors are, which may be infinite or NaN."""
    if beta == 0:
        return ctx.constant(np.zeros(ctx.shape, ctx.type.dtype))
    biases = bias.placed() if beta == 1 else popops.mul(ctx.graph, bias.placed(), beta, ctx.program, ctx.name)
    return broadcast(biases, ctx.shape)


@lowers(aten.addmm.default)
def product_and_bias(
    ctx: EntryContext, bias: Operand, left: Operand, right: Operand, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    if alpha == 0:
        return _bias_alone(ctx, bias, beta)
    return _added(ctx, product(ctx, left, right), bias, beta, alpha)


@lowers(aten.baddbmm.default)
def batched_product_and_bias(
    ctx: EntryContext, bias: Operand, left: Operand, right: Operand, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return _added(ctx, batched_product(ctx, left, right), bias, beta, alpha)


@lowers(aten.addmv.default)
def product_with_vector_and_bias(
    ctx: EntryContext, bias: Operand, matrix: Operand, vector: Operand, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    if alpha == 0:
        return _bias_alone(ctx, bias, beta)
    return _added(ctx, product_with_vector(ctx, matrix, vector), bias, beta, alpha)
