"""Between which numbers integers of a graph lie, as far as their types, constants and simple operations say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen
from torch import fx

from pypoplar.poptorch.lowering.values import Constant
from pypoplar.poptorch.lowering.walks.walk_values import WalkValues

aten = torch.ops.aten
MOST_STEPS = 24  # operations that are followed
SAME_ELEMENTS = (  # all or some of their operand's
    *(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.clone.default, aten.detach.default),
    *(aten.alias.default, aten.expand.default, aten.permute.default, aten.transpose.int, aten.t.default, aten.unsqueeze.default),
    *(aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default, aten.slice.Tensor, aten.select.int, aten.repeat.default),
    *(aten.flip.default, aten._to_copy.default, aten.amax.default, aten.amin.default, aten.max.default, aten.min.default),
)


@frozen
class IntegerRange:
    """From `least` to `most`."""

    least: int
    most: int

    def holds(self, other: IntegerRange) -> bool:
        """Whether all of another range is within this one."""
        return self.least <= other.least and other.most <= self.most

    def with_(self, other: IntegerRange) -> IntegerRange:
        """What holds both."""
        return IntegerRange(min(self.least, other.least), max(self.most, other.most))


def sum_range(one: IntegerRange, count: int) -> IntegerRange:
    """Of sums of up to so many."""
    return IntegerRange(min(count * one.least, one.least, 0), max(count * one.most, one.most, 0))


def product_range(one: IntegerRange, count: int) -> IntegerRange:
    """Of products of up to so many."""
    largest = max(abs(one.least), abs(one.most), 1)
    largest = largest ** min(count, 64)  # beyond all types, unless it is 1
    return IntegerRange(0 if one.least >= 0 else -largest, largest)


DTYPES = {
    torch.bool: IntegerRange(0, 1),
    torch.uint8: IntegerRange(0, 255),
    torch.int8: IntegerRange(-(2**7), 2**7 - 1),
    torch.int16: IntegerRange(-(2**15), 2**15 - 1),
    torch.int32: IntegerRange(-(2**31), 2**31 - 1),
    torch.int64: IntegerRange(-(2**31), 2**31 - 1),  # on the IPU
}


def range_of(walk: WalkValues, node: fx.Node, steps: int = MOST_STEPS) -> IntegerRange:
    """The range of a node's elements: that of its type, or less."""
    of_type = DTYPES.get(_first(node.meta["val"]).dtype, DTYPES[torch.int64])
    found = of_type
    value = walk.values.get(node)
    if node in walk.model.ranges:
        found = IntegerRange(*walk.model.ranges[node])
    elif isinstance(value, Constant) and value.array.size and value.array.dtype.kind in "biu":
        found = IntegerRange(int(value.array.min()), int(value.array.max()))
    elif steps and node.target in RULES:
        given = pytree.tree_map(
            lambda leaf: _operand(walk, leaf, steps - 1), (node.args, node.kwargs), is_leaf=lambda leaf: isinstance(leaf, fx.Node)
        )
        found = RULES[node.target](*given[0], **given[1]) or of_type
    return found if of_type.holds(found) else of_type


def _first(value: Any) -> Any:
    return next(one for one in value if one is not None) if isinstance(value, list | tuple) else value


def _operand(walk: WalkValues, given: Any, steps: int) -> Any:
    """The range of an operand, of integers, or None; a number where it is one."""
    if not isinstance(given, fx.Node):
        return given
    dtype = _first(given.meta["val"]).dtype
    return range_of(walk, given, steps) if dtype in DTYPES else None


def _as_range(given: Any) -> IntegerRange | None:
    if isinstance(given, IntegerRange):
        return given
    return IntegerRange(int(given), int(given)) if isinstance(given, int) else None


Rule = Callable[..., IntegerRange | None]
RULES: dict[Any, Rule] = {}


def _rule(*operations: Any) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(operations, rule))
        return rule

    return enter


@_rule(*SAME_ELEMENTS)
def _same(source: Any, *_: Any, **__: Any) -> IntegerRange | None:
    return _as_range(source)


@_rule(aten.cat.default, aten.stack.default)
def _concatenated(sources: Any, *_: Any) -> IntegerRange | None:
    ranges = [_as_range(one) for one in sources]
    known = [one for one in ranges if one is not None]
    return IntegerRange(min(one.least for one in known), max(one.most for one in known)) if known == ranges and known else None


@_rule(aten.where.self)
def _chosen(condition: Any, first: Any, second: Any) -> IntegerRange | None:
    return _concatenated([first, second])


@_rule(aten.add.Tensor, aten.add.Scalar)
def _added(first: Any, second: Any, *, alpha: Any = 1) -> IntegerRange | None:
    one, other = _as_range(first), _multiplied(second, alpha)
    return None if one is None or other is None else IntegerRange(one.least + other.least, one.most + other.most)


@_rule(aten.sub.Tensor, aten.sub.Scalar)
def _less(first: Any, second: Any, *, alpha: Any = 1) -> IntegerRange | None:
    return _added(first, _multiplied(second, -alpha) if isinstance(alpha, int) else None)


@_rule(aten.mul.Tensor, aten.mul.Scalar)
def _multiplied(first: Any, second: Any) -> IntegerRange | None:
    one, other = _as_range(first), _as_range(second)
    if one is None or other is None:
        return None
    products = [a * b for a in (one.least, one.most) for b in (other.least, other.most)]
    return IntegerRange(min(products), max(products))


@_rule(aten.neg.default)
def _negative(source: Any) -> IntegerRange | None:
    return _multiplied(source, -1)


@_rule(aten.abs.default)
def _magnitude(source: Any) -> IntegerRange | None:
    one = _as_range(source)
    return None if one is None else IntegerRange(0, max(abs(one.least), abs(one.most)))


@_rule(aten.clamp.default)
def _held(source: Any, least: Any = None, most: Any = None) -> IntegerRange | None:
    one = _as_range(source)
    if one is None:
        return None
    ends = [one.least, one.most]
    if isinstance(least, int):
        ends = [max(end, least) for end in ends]
    if isinstance(most, int):
        ends = [min(end, most) for end in ends]
    return IntegerRange(*ends)


@_rule(aten.remainder.Scalar)
def _rest(source: Any, divisor: Any) -> IntegerRange | None:
    if not isinstance(divisor, int) or not divisor:
        return None
    return IntegerRange(0, divisor - 1) if divisor > 0 else IntegerRange(divisor + 1, 0)


@_rule(aten.bitwise_and.Scalar)
def _masked(source: Any, mask: Any) -> IntegerRange | None:
    return IntegerRange(0, mask) if isinstance(mask, int) and mask >= 0 else None
