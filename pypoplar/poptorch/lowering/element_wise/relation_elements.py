"""Comparisons, logic, bits, choices and casts of elements."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.popops import expr
from pypoplar.popops.expr import And, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor, Const, IsFinite, IsInf, IsNaN, Not, Or, Select
from pypoplar.poptorch.lowering.elements import element
from pypoplar.poptorch.lowering.shared_expressions import FLOATS
from pypoplar.types import BOOL, INT, ElementType

aten = torch.ops.aten
BITS = 32  # of the integers that are shifted


@element(aten.eq.Tensor, aten.eq.Scalar, relation=True)
def equal(a: Any, b: Any) -> Any:
    return a == b


@element(aten.ne.Tensor, aten.ne.Scalar, relation=True)
def unequal(a: Any, b: Any) -> Any:
    return a != b


@element(aten.lt.Tensor, aten.lt.Scalar, relation=True)
def less(a: Any, b: Any) -> Any:
    return a < b


@element(aten.le.Tensor, aten.le.Scalar, relation=True)
def at_most(a: Any, b: Any) -> Any:
    return a <= b


@element(aten.gt.Tensor, aten.gt.Scalar, relation=True)
def greater(a: Any, b: Any) -> Any:
    return a > b


@element(aten.ge.Tensor, aten.ge.Scalar, relation=True)
def at_least(a: Any, b: Any) -> Any:
    return a >= b


@element(aten.isnan.default, relation=True, typed=True)
def is_nan(a: Any, *, type: ElementType) -> Any:
    return IsNaN(a) if type in FLOATS else _never(a)


@element(aten.isinf.default, relation=True, typed=True)
def is_infinite(a: Any, *, type: ElementType) -> Any:
    return IsInf(a) if type in FLOATS else _never(a)


@element(aten.isposinf.default, relation=True, typed=True)
def is_infinity(a: Any, *, type: ElementType) -> Any:
    return And(IsInf(a), a > Const(0.0, type)) if type in FLOATS else _never(a)


@element(aten.isneginf.default, relation=True, typed=True)
def is_minus_infinity(a: Any, *, type: ElementType) -> Any:
    return And(IsInf(a), a < Const(0.0, type)) if type in FLOATS else _never(a)


@element(aten.isfinite.default, relation=True, typed=True)
def is_finite(a: Any, *, type: ElementType) -> Any:
    return IsFinite(a) if type in FLOATS else a == a


@element(aten.signbit.default, relation=True, typed=True)
def has_sign(a: Any, *, type: ElementType) -> Any:
    if type is BOOL:
        return _never(a)
    zero = Const(0, type)
    return Or(a < zero, And(a == zero, expr.Inv(a) < zero)) if type in FLOATS else a < zero


def _never(a: Any) -> Any:
    return a != a


@element(aten.logical_and.default, logical=True)
def both(a: Any, b: Any) -> Any:
    return And(a, b)


@element(aten.logical_or.default, logical=True)
def either(a: Any, b: Any) -> Any:
    return Or(a, b)


@element(aten.logical_xor.default, logical=True)
def one_alone(a: Any, b: Any) -> Any:
    return a != b


@element(aten.logical_not.default, logical=True)
def neither(a: Any) -> Any:
    return Not(a)


# bits: those of truth values are truth values


@element(aten.bitwise_and.Tensor, aten.bitwise_and.Scalar, aten.bitwise_and.Scalar_Tensor)
def bits_of_both(a: Any, b: Any) -> Any:
    return BitwiseAnd(a, b)


@element(aten.bitwise_or.Tensor, aten.bitwise_or.Scalar, aten.bitwise_or.Scalar_Tensor)
def bits_of_either(a: Any, b: Any) -> Any:
    return BitwiseOr(a, b)


@element(aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar, aten.bitwise_xor.Scalar_Tensor)
def bits_of_one(a: Any, b: Any) -> Any:
    return BitwiseXor(a, b)


@element(aten.bitwise_not.default, typed=True, cast=True)
def other_bits(a: Any, *, type: ElementType) -> Any:
    return Not(a) if type is BOOL else BitwiseNot(a)


@element(
    aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor, aten.__lshift__.Scalar,
)  # fmt: skip
def shifted_up(a: Any, b: Any) -> Any:
    """Shifts by 32 and more leave 0, and so do negative ones; narrower types are cut from 32 bits."""
    if isinstance(b, Const):
        return expr.Shl(a, b) if 0 <= b.value < BITS else Const(0, INT)
    possible = And(b >= Const(0, INT), b < Const(BITS, INT))
    return Select(expr.Shl(a, Select(b, Const(0, INT), possible)), Const(0, INT), possible)


@element(
    aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor, aten.__rshift__.Scalar,
)  # fmt: skip
def shifted_down(a: Any, b: Any) -> Any:
    """Shifts by 31 and more leave the sign, and so do negative ones."""
    most = Const(BITS - 1, INT)
    if isinstance(b, Const):
        return expr.ShrSE(a, b if 0 <= b.value < BITS else most)
    return expr.ShrSE(a, Select(b, most, And(b >= Const(0, INT), b < most)))


# choices


@element(aten.where.self, conditions=(0,))
def choice(condition: Any, a: Any, b: Any) -> Any:
    return Select(a, b, condition)


@element(aten.masked_fill.Scalar, aten.masked_fill.Tensor, conditions=(1,))
def filled(a: Any, mask: Any, value: Any) -> Any:
    return Select(value, a, mask)


# the same values, as another type or in another shape


@element(aten._to_copy.default, torch.ops.prims.convert_element_type.default, cast=True)
def cast(a: Any, *_: Any, **options: Any) -> Any:
    return a


@element(aten.copy.default, cast=True, own=1)
def copied(before: Any, a: Any, non_blocking: Any = False) -> Any:
    """The values of `a` in the shape and type of what they are copied to."""
    return a


@element(aten.fill.Tensor, cast=True, own=1)
def filled_by_tensor(before: Any, value: Any) -> Any:
    return value
