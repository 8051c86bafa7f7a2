"""Arithmetic and comparisons of FLOAT and HALF.

For add, sub, mul, div and sqrt the float64 result rounded once is the correctly rounded result: float64 has more than twice the
bits of a float32, and float32 more than twice those of a half.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from pypoplar.codelet.operations import c_library
from pypoplar.codelet.operations.device_operation import ByType, DeviceOperation, Emitter, Flops, Meaning, Recipe, slots
from pypoplar.codelet.operations.registers import FLOATS, single

NO_BOOLS = "arithmetic on BOOL: write int(...) around each"
_row = functools.partial(DeviceOperation, types=FLOATS, flops=Flops(1, "S"))


# What they mean


def divided(a: float, b: float) -> float:
    """``a / b`` of IEEE arithmetic."""
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0.0:
            return a * math.inf  # invalid as well: the NaN that the processor makes, whose sign is its own
        if math.isnan(a):
            return a
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


_remainder = c_library.function("fmod")


def _modulo(a: float, b: float) -> float:
    """As Python's and NumPy's: the divisor's sign, also on a zero; NaN for a zero divisor."""
    rest = _remainder(a, b)
    if rest == 0.0:
        return math.copysign(0.0, b)
    return rest + b if (rest < 0.0) != (b < 0.0) else rest


def _floor_divided(type: str) -> Meaning:
    """As Python's and NumPy's, which round each step to the type, but for HALF to float64. A zero divisor gives what / gives."""
    step: Callable[[float], float] = single if type == "f32" else float

    def floor_divided(a: float, b: float) -> float:
        if b == 0.0:
            return divided(a, b)
        rest = _remainder(a, b)
        quotient = step(step(a - rest) / b)
        if rest != 0.0 and (rest < 0.0) != (b < 0.0):
            quotient = step(quotient - 1.0)
        if quotient == 0.0:
            return math.copysign(0.0, step(a / b))
        if not math.isfinite(quotient):
            return quotient
        floored = float(math.floor(quotient))
        return floored if quotient == floored or step(quotient - floored) <= 0.5 else floored + 1.0

    return floor_divided


def _root(a: float) -> float:
    if a < 0.0:
        return math.nan
    return math.sqrt(a)


def _whole(nearby: Callable[[float], int]) -> Meaning:
    """A function that gives an integral number, as a float with the sign of what it was."""

    def whole(a: float) -> float:
        return math.copysign(float(nearby(a)), a) if math.isfinite(a) else a

    return whole


def _copysign(a: float, b: float) -> float:
    """A NaN's sign is not defined, so it counts as positive."""
    return math.copysign(a, 1.0 if math.isnan(b) else b)


# How they are written for LLVM


def _method(name: str) -> Recipe:
    return lambda emitter, *arguments: getattr(emitter.builder, name)(*arguments)


def _rounded_method(name: str) -> Recipe:
    return lambda emitter, *arguments: emitter.rounded(getattr(emitter.builder, name)(*arguments))


def _intrinsic(name: str) -> Recipe:
    return lambda emitter, a: emitter.intrinsic(name, a)


def _compared(relation: str) -> Recipe:
    return lambda emitter, a, b: emitter.builder.fcmp_ordered(relation, a, b)


def _chosen(relation: str) -> Recipe:
    return lambda emitter, a, b: emitter.builder.select(emitter.builder.fcmp_ordered(relation, b, a), b, a)


def _library_remainder(emitter: Emitter, a: Any, b: Any) -> Any:
    """fmod, which is exact in any format, on the host's float64 function."""
    return emitter.builder.fptrunc(emitter.library("fmod", emitter.widened(a), emitter.widened(b)), a.type)


def _remainder_for(emitter: Emitter) -> Callable[[Any, Any], Any]:
    if emitter.type == "f32":
        return functools.partial(_library_remainder, emitter)
    return functools.partial(emitter.library, "fmod")


def _stepwise(steps: Callable[[Emitter, Any, Any], Any]) -> Recipe:
    """Steps that are done in float32 for FLOAT, and for HALF in float64 and rounded once."""

    def recipe(emitter: Emitter, a: Any, b: Any) -> Any:
        if emitter.type == "f32":
            return steps(emitter, a, b)
        return emitter.narrowed(steps(emitter, emitter.widened(a), emitter.widened(b)))

    return recipe


def _signs_differ(emitter: Emitter, a: Any, b: Any) -> Any:
    builder, zero = emitter.builder, emitter.constant(a, 0.0)
    return builder.xor(builder.fcmp_ordered("<", a, zero), builder.fcmp_ordered("<", b, zero))


def _modulo_steps(emitter: Emitter, a: Any, b: Any) -> Any:
    builder, zero = emitter.builder, emitter.constant(a, 0.0)
    rest = _remainder_for(emitter)(a, b)
    moved = builder.select(_signs_differ(emitter, rest, b), builder.fadd(rest, b), rest)
    return builder.select(builder.fcmp_ordered("==", rest, zero), emitter.intrinsic("llvm.copysign", zero, b), moved)


def _floor_division_steps(emitter: Emitter, a: Any, b: Any) -> Any:
    builder = emitter.builder
    zero, unit, half = (emitter.constant(a, value) for value in (0.0, 1.0, 0.5))
    rest = _remainder_for(emitter)(a, b)
    plain = builder.fdiv(a, b)
    quotient = builder.fdiv(builder.fsub(a, rest), b)
    shift = builder.and_(builder.fcmp_unordered("!=", rest, zero), _signs_differ(emitter, rest, b))
    quotient = builder.select(shift, builder.fsub(quotient, unit), quotient)
    floored = emitter.intrinsic("llvm.floor", quotient)
    up = builder.fcmp_ordered(">", builder.fsub(quotient, floored), half)
    floored = builder.select(up, builder.fadd(floored, unit), floored)
    signed_zero = emitter.intrinsic("llvm.copysign", zero, plain)
    result = builder.select(builder.fcmp_ordered("==", quotient, zero), signed_zero, floored)
    return builder.select(builder.fcmp_ordered("==", b, zero), plain, result)


def _copysign_recipe(emitter: Emitter, a: Any, b: Any) -> Any:
    builder = emitter.builder
    sign = builder.select(builder.fcmp_unordered("uno", b, b), emitter.constant(b, 1.0), b)
    return emitter.intrinsic("llvm.copysign", a, sign)


def _below_infinity(relation: str) -> Recipe:
    return lambda emitter, a: emitter.builder.fcmp_ordered(
        relation, emitter.intrinsic("llvm.fabs", a), emitter.constant(a, math.inf)
    )


# The rows

_REMAINDER = slots("f32", 66, "S", software=True), slots("f16", 75, "S", software=True)
_ONE = slots("f32", 1, "S", lanes=2), slots("f16", 1, "S", lanes=4)
_ONE_INFERRED = (slots("f32 f16", 1, "I"),)
_ROUNDED = slots("f32", 2, "S", lanes=2), slots("f16", 2, "S", lanes=4)  # a product with 1.0 in a mode of rounding
_SIGN = slots("f32", 1, "I", lanes=2), slots("f16", 1, "I", lanes=4)

ROWS: tuple[DeviceOperation, ...] = (
    _row(
        name="add", signature="T T -> T", calls=("+",), words={"bool": NO_BOOLS}, meaning=operator.add,
        llvm=_rounded_method("fadd"), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="sub", signature="T T -> T", calls=("-",), words={"bool": NO_BOOLS}, meaning=operator.sub,
        llvm=_rounded_method("fsub"), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="mul", signature="T T -> T", calls=("*",), words={"bool": NO_BOOLS}, meaning=operator.mul,
        llvm=_rounded_method("fmul"), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="div", signature="T T -> T", calls=("/",), meaning=divided, llvm=_rounded_method("fdiv"), lanes=FLOATS, pole=(1, 0.0),
        words={"bool": NO_BOOLS}
        | dict.fromkeys(("i64", "u64"), "{type} has no true division: write //, or float(...) around both"),
        prices=(slots("f32", 3, "S"), slots("f16", 5, "S")),
    ),
    _row(
        name="floordiv", signature="T T -> T", calls=("//",), words={"bool": NO_BOOLS}, meaning=ByType(_floor_divided),
        llvm=_stepwise(_floor_division_steps), library=("fmod",), pole=(1, 0.0),
        prices=(slots("f32", 75, "I", software=True), slots("f16", 84, "I", software=True)),  # fmod, subtract, divide, round
        flops=Flops(2, "I"),  # divide, floor
    ),
    _row(
        name="mod", signature="T T -> T", calls=("%",), words={"bool": NO_BOOLS}, meaning=_modulo,
        llvm=_stepwise(_modulo_steps), library=("fmod",),
        prices=(slots("f32", 70, "I", software=True), slots("f16", 79, "I", software=True)),  # fmod, and the divisor's sign
        flops=Flops(3, "S"),
    ),
    _row(
        name="fmod", signature="T T -> T", calls=("math.fmod",), meaning=_remainder, exact=True,
        llvm=_library_remainder, library=("fmod",), prices=_REMAINDER, flops=Flops(3, "S"),
    ),
    _row(
        name="min", signature="T T -> T", calls=("min",), words={"bool": "min of BOOLs: write 'and' or 'or'"},
        meaning=lambda a, b: b if b < a else a, exact=True, llvm=_chosen("<"), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="max", signature="T T -> T", calls=("max",), words={"bool": "max of BOOLs: write 'and' or 'or'"},
        meaning=lambda a, b: b if b > a else a, exact=True, llvm=_chosen(">"), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="neg", signature="T -> T", calls=("-x",), words={"bool": "arithmetic on BOOL: write int(...) around it"},
        meaning=operator.neg, exact=True, llvm=_method("fneg"), lanes=FLOATS, prices=_SIGN,
    ),
    _row(
        name="abs", signature="T -> T", calls=("abs",), words={"bool": "abs of a BOOL: write int(...) around it"},
        meaning=abs, exact=True, llvm=_intrinsic("llvm.fabs"), lanes=FLOATS, prices=_SIGN,
    ),
    _row(
        name="fabs", signature="T -> T", calls=("math.fabs",), meaning=abs, exact=True,
        llvm=_intrinsic("llvm.fabs"), lanes=FLOATS, prices=_SIGN,
    ),
    _row(
        name="floor", signature="T -> T", calls=("math.floor",), meaning=_whole(math.floor), exact=True,
        llvm=_intrinsic("llvm.floor"), lanes=FLOATS, prices=_ROUNDED,
    ),
    _row(
        name="ceil", signature="T -> T", calls=("math.ceil",), meaning=_whole(math.ceil), exact=True,
        llvm=_intrinsic("llvm.ceil"), lanes=FLOATS, prices=_ROUNDED,
    ),
    _row(
        name="trunc", signature="T -> T", calls=("math.trunc",), meaning=_whole(math.trunc), exact=True,
        llvm=_intrinsic("llvm.trunc"), lanes=FLOATS, prices=(slots("f32", 1, "S"), slots("f16", 2, "S")),
    ),
    _row(
        name="round", signature="T -> T", calls=("round",), meaning=_whole(round), exact=True,
        llvm=_intrinsic("llvm.rint"), lanes=FLOATS, prices=_ROUNDED,
    ),
    _row(
        name="sqrt", signature="T -> T", calls=("math.sqrt", "ipu.sqrt"), meaning=_root,
        llvm=lambda emitter, a: emitter.rounded(emitter.intrinsic("llvm.sqrt", a)), lanes=FLOATS,
        prices=(slots("f32", 5, "S"), slots("f16", 6, "S")),
    ),
    _row(
        name="copysign", signature="T T -> T", calls=("math.copysign",), meaning=_copysign, exact=True,
        llvm=_copysign_recipe, lanes=FLOATS, prices=_ONE_INFERRED, flops=Flops(1, "I"),
    ),
    _row(
        name="isnan", signature="T -> bool", calls=("math.isnan",), meaning=math.isnan, exact=True,
        llvm=lambda emitter, a: emitter.builder.fcmp_unordered("uno", a, a), lanes=FLOATS, prices=_ONE_INFERRED,
    ),
    _row(
        name="isinf", signature="T -> bool", calls=("math.isinf",), meaning=math.isinf, exact=True,
        llvm=_below_infinity("=="), lanes=FLOATS, prices=_ONE_INFERRED,
    ),
    _row(
        name="isfinite", signature="T -> bool", calls=("math.isfinite",), meaning=math.isfinite, exact=True,
        llvm=_below_infinity("<"), lanes=FLOATS, prices=_ONE_INFERRED,
    ),
    _row(
        name="less", signature="T T -> bool", calls=("<",), words={"bool": "BOOL has no order: write int(...) around each"},
        meaning=operator.lt, exact=True, llvm=_compared("<"), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="less_equal", signature="T T -> bool", calls=("<=",), words={"bool": "BOOL has no order: write int(...) around each"},
        meaning=operator.le, exact=True, llvm=_compared("<="), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="equal", signature="T T -> bool", calls=("==",), meaning=operator.eq, exact=True,
        llvm=_compared("=="), lanes=FLOATS, prices=_ONE,
    ),
    _row(
        name="not_equal", signature="T T -> bool", calls=("!=",), meaning=operator.ne, exact=True,
        llvm=lambda emitter, a, b: emitter.builder.fcmp_unordered("!=", a, b), lanes=FLOATS, prices=_ONE,
    ),
)  # fmt: skip
