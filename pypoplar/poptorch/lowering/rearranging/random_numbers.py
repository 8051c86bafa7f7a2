"""Random numbers of distributions, drawn from the step's seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import fx

from pypoplar import popops, poprand
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Cast, Const, Log, Select, _1, _2
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.reductions import FLOATS, as_type, mapped
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.poptorch.lowering.values import Constant
from pypoplar.types import FLOAT, INT, ElementType

aten = torch.ops.aten


def uniform_numbers(at: GraphLowering, low: float, high: float, type: ElementType | None = None) -> Tensor:
    """Numbers from `low` to below `high`, in the shape of this operation's result."""
    type = type or (at.type if at.type in FLOATS else FLOAT)
    last = float(np.nextafter(type.dtype.type(high), type.dtype.type(low)))

    def draw(like: Tensor) -> Tensor:
        return poprand.uniform(at.graph, at.random_seed(), at.drawing(), like, type, low, last, at.program, at.name)

    return _drawn(at, type, draw)


def normal_numbers(at: GraphLowering, mean: float = 0.0, deviation: float = 1.0) -> Tensor:
    """Numbers of a normal distribution, in the shape of this operation's result."""
    if deviation == 0:
        return at.constant(Constant(np.full(at.shape, mean, at.type.dtype)))

    def draw(like: Tensor) -> Tensor:
        return poprand.normal(at.graph, at.random_seed(), at.drawing(), like, at.type, mean, deviation, at.program, at.name)

    return _drawn(at, at.type, draw)


def _drawn(at: GraphLowering, type: ElementType, draw: Any) -> Tensor:
    shape = at.shape
    if 0 in shape:
        return at.constant(Constant(np.zeros(shape, type.dtype)))
    like = at.spread(shape or [1], type)
    return draw(like).reshape(shape)


@lowers(aten.rand.default, aten.rand_like.default)
def between_0_and_1(at: GraphLowering, *like: Any, **options: Any) -> Tensor:
    return uniform_numbers(at, 0.0, 1.0)


@lowers(aten.uniform.default)
def between(at: GraphLowering, like: fx.Node, low: float = 0, high: float = 1) -> Tensor:
    return uniform_numbers(at, low, high)


@lowers(aten.randn.default, aten.randn_like.default)
def standard_normal(at: GraphLowering, *like: Any, **options: Any) -> Tensor:
    return normal_numbers(at)


@lowers(aten.normal_functional.default)
def normal_like(at: GraphLowering, like: fx.Node, mean: float = 0, deviation: float = 1) -> Tensor:
    return normal_numbers(at, mean, deviation)


@lowers(aten.normal.float_float)
def normal(at: GraphLowering, mean: float, deviation: float, size: list[int], **options: Any) -> Tensor:
    return normal_numbers(at, mean, deviation)


@lowers(aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor)
def normal_of_tensors(at: GraphLowering, mean: Any, deviation: Any = 1.0) -> Tensor:
    tensors = [normal_numbers(at)]
    trees: list[popops.expr.Expr] = []
    for given in (mean, deviation):
        if isinstance(given, fx.Node):
            tensors.append(broadcast(at.tensor(given), at.shape))
            trees.append(popops.expr.PlaceHolder(len(tensors)))
        else:
            trees.append(Const(float(given), at.type))
    return mapped(at, trees[0] + _1 * trees[1], *tensors)


@lowers(aten.bernoulli.default)
def successes(at: GraphLowering, chances: fx.Node) -> Tensor:
    drawn = uniform_numbers(at, 0.0, 1.0, FLOAT)
    return mapped(at, Cast(Select(Const(1.0, FLOAT), Const(0.0, FLOAT), _1 < Cast(_2, FLOAT)), at.type), drawn, at.tensor(chances))


@lowers(aten.bernoulli.p)
def successes_of_one_chance(at: GraphLowering, like: fx.Node, chance: float) -> Tensor:
    drawn = uniform_numbers(at, 0.0, 1.0, FLOAT)
    return mapped(at, Cast(Select(Const(1.0, FLOAT), Const(0.0, FLOAT), _1 < Const(chance, FLOAT)), at.type), drawn)


@lowers(aten.exponential.default)
def exponential(at: GraphLowering, like: fx.Node, rate: float = 1) -> Tensor:
    drawn = uniform_numbers(at, 0.0, 1.0, FLOAT)
    return mapped(at, Cast(Log(1.0 - _1) * (-1.0 / rate), at.type), drawn)


@lowers(aten.randint.default, aten.randint_like.default)
def integers_below(at: GraphLowering, *given: Any, **options: Any) -> Tensor:
    high = given[1] if isinstance(given[0], fx.Node) else given[0]
    return _integers(at, 0, high)


@lowers(aten.randint.low, aten.randint_like.low_dtype)
def integers_between(at: GraphLowering, *given: Any, **options: Any) -> Tensor:
    low, high = given[1:3] if isinstance(given[0], fx.Node) else given[:2]
    return _integers(at, low, high)


def _integers(at: GraphLowering, low: int, high: int) -> Tensor:
    def draw(like: Tensor) -> Tensor:
        return poprand.uniform(at.graph, at.random_seed(), at.drawing(), like, INT, low, high - 1, at.program, at.name)

    return as_type(at, _drawn(at, INT, draw), at.type)


@lowers(aten.randperm.default)
def permutation(at: GraphLowering, count: int, **options: Any) -> Tensor:
    """The order that sorts random numbers."""
    if not count:
        return at.constant(Constant(np.zeros(0, at.type.dtype)))
    drawn = uniform_numbers(at, 0.0, 1.0, FLOAT)
    params = popops.TopKParams(count, False, popops.SortOrder.ASCENDING)
    return as_type(at, popops.topKWithPermutation(at.graph, at.program, drawn, params, at.name)[1].reinterpret(INT), at.type)
