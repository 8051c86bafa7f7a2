"""Random numbers of distributions, drawn from the step's seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from pypoplar import popops, poprand
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Ceil, Const, Exp, Log, Max, Select, Tan, _1, _2
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS, as_type, mapped
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.types import FLOAT, INT, ElementType

aten = torch.ops.aten


def uniform_numbers(ctx: EntryContext, low: float, high: float, type: ElementType | None = None) -> Tensor:
    """Numbers from `low` to below `high`, in the shape of this operation's result."""
    type = type or (ctx.type if ctx.type in FLOATS else FLOAT)
    last = float(np.nextafter(type.dtype.type(high), type.dtype.type(low)))

    def draw(like: Tensor) -> Tensor:
        return poprand.uniform(ctx.graph, ctx.random_seed(), ctx.drawing(), like, type, low, last, ctx.program, ctx.name)

    return _drawn(ctx, type, draw)


def normal_numbers(ctx: EntryContext, mean: float = 0.0, deviation: float = 1.0, type: ElementType | None = None) -> Tensor:
    """Numbers of a normal distribution, in the shape of this operation's result."""
    drawn = type or ctx.type
    if deviation == 0:
        return ctx.constant(np.full(ctx.shape, mean, drawn.dtype))

    def draw(like: Tensor) -> Tensor:
        return poprand.normal(ctx.graph, ctx.random_seed(), ctx.drawing(), like, drawn, mean, deviation, ctx.program, ctx.name)

    return _drawn(ctx, drawn, draw)


def _drawn(ctx: EntryContext, type: ElementType, draw: Any) -> Tensor:
    shape = ctx.shape
    if 0 in shape:
        return ctx.constant(np.zeros(shape, type.dtype))
    like = ctx.place(shape or [1], type)
    return draw(like).reshape(shape)


@lowers(aten.rand.default, aten.rand_like.default)
def between_0_and_1(ctx: EntryContext, *like: Any, **options: Any) -> Tensor:
    return uniform_numbers(ctx, 0.0, 1.0)


@lowers(aten.uniform.default)
def between(ctx: EntryContext, like: Operand, low: float = 0, high: float = 1) -> Tensor:
    return uniform_numbers(ctx, low, high)


@lowers(aten.randn.default, aten.randn_like.default)
def standard_normal(ctx: EntryContext, *like: Any, **options: Any) -> Tensor:
    return normal_numbers(ctx)


@lowers(aten.normal_functional.default)
def normal_like(ctx: EntryContext, like: Operand, mean: float = 0, deviation: float = 1) -> Tensor:
    return normal_numbers(ctx, mean, deviation)


@lowers(aten.normal.float_float)
def normal(ctx: EntryContext, mean: float, deviation: float, size: list[int], **options: Any) -> Tensor:
    return normal_numbers(ctx, mean, deviation)


@lowers(aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor)
def normal_of_tensors(ctx: EntryContext, mean: Any, deviation: Any = 1.0) -> Tensor:
    tensors = [normal_numbers(ctx)]
    trees: list[popops.expr.Expr] = []
    for given in (mean, deviation):
        if isinstance(given, Operand):
            tensors.append(broadcast(given.placed(), ctx.shape))
            trees.append(popops.expr.PlaceHolder(len(tensors)))
        else:
            trees.append(Const(float(given), ctx.type))
    return mapped(ctx, trees[0] + _1 * trees[1], *tensors)


@lowers(aten.bernoulli.default)
def successes(ctx: EntryContext, chances: Operand) -> Tensor:
    return _successes(ctx, Cast(_2, FLOAT), chances.placed())


@lowers(aten.bernoulli.p)
def successes_of_one_chance(ctx: EntryContext, like: Operand, chance: float) -> Tensor:
    return _successes(ctx, Const(chance, FLOAT))


@lowers(aten.bernoulli.Tensor)
def successes_like(ctx: EntryContext, like: Operand, chances: Operand) -> Tensor:
    return _successes(ctx, Cast(_2, FLOAT), broadcast(chances.placed(), ctx.shape))


def _successes(ctx: EntryContext, chance: popops.expr.Expr, *given: Tensor) -> Tensor:
    """One where a number that is drawn is below a chance, an expression of what is `given`, and zero elsewhere."""
    drawn = uniform_numbers(ctx, 0.0, 1.0, FLOAT)
    return mapped(ctx, Cast(Select(Const(1.0, FLOAT), Const(0.0, FLOAT), _1 < chance), ctx.type), drawn, *given)


@lowers(aten.log_normal.default)
def log_normal(ctx: EntryContext, like: Operand, mean: float = 1, deviation: float = 2) -> Tensor:
    """Exponentials of normal numbers, which are rounded once."""
    if deviation <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={deviation}")
    drawn = normal_numbers(ctx, mean, deviation, FLOAT)
    return mapped(ctx, Cast(Exp(_1), ctx.type), drawn)


@lowers(aten.cauchy.default)
def cauchy(ctx: EntryContext, like: Operand, median: float = 0, sigma: float = 1) -> Tensor:
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    drawn = uniform_numbers(ctx, 0.0, 1.0, FLOAT)
    return mapped(ctx, Cast(Tan((_1 - 0.5) * math.pi) * sigma + median, ctx.type), drawn)


@lowers(aten.geometric.default)
def geometric(ctx: EntryContext, like: Operand, chance: float) -> Tensor:
    """How many times something is tried until it succeeds."""
    if not 0 < chance < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={chance}")
    drawn = uniform_numbers(ctx, 0.0, 1.0, FLOAT)
    return mapped(ctx, Cast(Max(Ceil(Log(1.0 - _1) / math.log1p(-chance)), 1.0), ctx.type), drawn)


@lowers(aten.exponential.default)
def exponential(ctx: EntryContext, like: Operand, rate: float = 1) -> Tensor:
    drawn = uniform_numbers(ctx, 0.0, 1.0, FLOAT)
    return mapped(ctx, Cast(Log(1.0 - _1) * (-1.0 / rate), ctx.type), drawn)


@lowers(aten.randint.default, aten.randint_like.default)
def integers_below(ctx: EntryContext, *given: Any, **options: Any) -> Tensor:
    high = given[1] if isinstance(given[0], Operand) else given[0]
    return _integers(ctx, 0, high)


@lowers(aten.randint.low, aten.randint_like.low_dtype)
def integers_between(ctx: EntryContext, *given: Any, **options: Any) -> Tensor:
    low, high = given[1:3] if isinstance(given[0], Operand) else given[:2]
    return _integers(ctx, low, high)


def _integers(ctx: EntryContext, low: int, high: int) -> Tensor:
    def draw(like: Tensor) -> Tensor:
        return poprand.uniform(ctx.graph, ctx.random_seed(), ctx.drawing(), like, INT, low, high - 1, ctx.program, ctx.name)

    return as_type(ctx, _drawn(ctx, INT, draw), ctx.type)


@lowers(aten.randperm.default)
def permutation(ctx: EntryContext, count: int, **options: Any) -> Tensor:
    """The order that sorts random numbers."""
    if not count:
        return ctx.constant(np.zeros(0, ctx.type.dtype))
    drawn = uniform_numbers(ctx, 0.0, 1.0, FLOAT)
    params = popops.TopKParams(count, False, popops.SortOrder.ASCENDING)
    return as_type(ctx, popops.topKWithPermutation(ctx.graph, ctx.program, drawn, params, ctx.name)[1].reinterpret(INT), ctx.type)
