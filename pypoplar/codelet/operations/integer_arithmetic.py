"""Arithmetic, bit operations and comparisons of integers, which wrap at their width; and the logic of BOOL."""

from __future__ import annotations

import functools
import operator
from typing import Any

from pypoplar.codelet.operations.device_operation import (
    NO_FLOPS,
    ByType,
    DeviceOperation,
    Emitter,
    Meaning,
    OperandFault,
    Recipe,
    slots,
)
from pypoplar.codelet.operations.registers import FLOATS, INTEGERS, SIGNED, WIDTH
from pypoplar.interface.fault_codes import FaultCode

_row = functools.partial(DeviceOperation, types=INTEGERS, flops=NO_FLOPS)
_logic = functools.partial(DeviceOperation, types=("bool",), flops=NO_FLOPS, lanes=("bool",), exact=True)


# What they mean. What is an error gives some value: ask for the fault first.


def _floor_divided(a: int, b: int) -> int:
    return a // b if b else a


def _modulo(a: int, b: int) -> int:
    return a % b if b else 0


def _power(type: str) -> Meaning:
    """The exponent counts as unsigned: a negative one is an error before."""
    size = 1 << WIDTH[type]
    return lambda base, exponent: pow(base, exponent % size, size)


def _shifted_left(type: str) -> Meaning:
    most = WIDTH[type] - 1
    return lambda a, amount: a << (amount & most)


def _shifted_right(type: str) -> Meaning:
    most = WIDTH[type] - 1
    return lambda a, amount: a >> (amount & most)


def _population(type: str) -> Meaning:
    bits = (1 << WIDTH[type]) - 1
    return lambda a: (a & bits).bit_count()


def _leading_zeros(type: str) -> Meaning:
    width = WIDTH[type]
    bits = (1 << width) - 1
    return lambda a: width - (a & bits).bit_length()


# When they are errors


def zero_divisor(type: str) -> OperandFault:
    """A division by 0."""

    def written(emitter: Emitter, divisor: Any) -> Any:
        return emitter.builder.icmp_unsigned("==", divisor, emitter.constant(divisor, 0))

    return OperandFault(FaultCode.ZERO_DIVISION, 0, lambda divisor: divisor == 0, written)


def _amount_outside(type: str) -> OperandFault:
    width = WIDTH[type]

    def written(emitter: Emitter, amount: Any) -> Any:
        return emitter.builder.icmp_unsigned(">=", amount, emitter.constant(amount, width))

    return OperandFault(FaultCode.SHIFT_WIDTH, width, lambda amount: not 0 <= amount < width, written)


def _negative_exponent(type: str) -> OperandFault | None:
    if type not in SIGNED:
        return None

    def written(emitter: Emitter, exponent: Any) -> Any:
        return emitter.builder.icmp_signed("<", exponent, emitter.constant(exponent, 0))

    return OperandFault(FaultCode.NEGATIVE_POWER, 0, lambda exponent: exponent < 0, written)


# How they are written for LLVM


def _method(name: str) -> Recipe:
    return lambda emitter, *arguments: getattr(emitter.builder, name)(*arguments)


def _compare(emitter: Emitter, relation: str, a: Any, b: Any) -> Any:
    builder = emitter.builder
    return (builder.icmp_signed if emitter.signed else builder.icmp_unsigned)(relation, a, b)


def _compared(relation: str) -> Recipe:
    return lambda emitter, a, b: _compare(emitter, relation, a, b)


def _chosen(relation: str) -> Recipe:
    return lambda emitter, a, b: emitter.builder.select(_compare(emitter, relation, b, a), b, a)


def _negated(emitter: Emitter, a: Any) -> Any:
    return emitter.builder.sub(emitter.constant(a, 0), a)


def _magnitude(emitter: Emitter, a: Any) -> Any:
    if not emitter.signed:
        return a
    builder, zero = emitter.builder, emitter.constant(a, 0)
    return builder.select(builder.icmp_signed("<", a, zero), builder.sub(zero, a), a)


def _floor_division(emitter: Emitter, a: Any, b: Any) -> Any:
    builder, zero = emitter.builder, emitter.constant(a, 0)
    if not emitter.signed:
        return builder.udiv(a, unsigned_divisor(emitter, b))
    quotient, rest = cut_division(emitter, a, b)
    below = builder.and_(builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, b), zero))
    return builder.sub(quotient, builder.zext(below, a.type))


def _part_recipe(emitter: Emitter, a: Any, b: Any) -> Any:
    """What is divided is less than 2**31, so a product with the reciprocal is exact if it begins half a unit higher.

    Nothing here can fail, so the reciprocal is computed once for all vertices, and the rest once for all workers.
    """
    builder, double = emitter.builder, emitter.double
    whole, parts = (_at_least(builder, value, emitter.constant(a, least)) for value, least in ((a, 0), (b, 1)))
    reciprocal = builder.fdiv(double(1.0), builder.sitofp(parts, double))
    return builder.fptosi(builder.fmul(builder.fadd(builder.sitofp(whole, double), double(0.5)), reciprocal), a.type)


def _at_least(builder: Any, value: Any, least: Any) -> Any:
    return builder.select(builder.icmp_signed("<", value, least), least, value)


def _modulo_recipe(emitter: Emitter, a: Any, b: Any) -> Any:
    builder, zero = emitter.builder, emitter.constant(a, 0)
    if not emitter.signed:
        return builder.urem(a, unsigned_divisor(emitter, b))
    _, rest = cut_division(emitter, a, b)
    below = builder.and_(builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, b), zero))
    return builder.add(rest, builder.select(below, b, zero))


def cut_division(emitter: Emitter, a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and rest towards zero. -2**31 // -1 wraps; a zero divisor, an error before, divides by 1 rather than trap."""
    builder = emitter.builder
    zero, unit, minus_one = (emitter.constant(a, value) for value in (0, 1, -1))
    negated = builder.icmp_signed("==", b, minus_one)
    harmless = builder.or_(negated, builder.icmp_signed("==", b, zero))
    divisor = builder.select(harmless, unit, b)
    quotient = builder.sdiv(a, divisor)
    rest = builder.srem(a, divisor)
    return builder.select(negated, builder.sub(zero, a), quotient), rest


def unsigned_divisor(emitter: Emitter, b: Any) -> Any:
    """A divisor that does not trap: 1 for 0, which is an error before."""
    builder = emitter.builder
    return builder.select(builder.icmp_unsigned("==", b, emitter.constant(b, 0)), emitter.constant(b, 1), b)


def _power_loop(emitter: Emitter, base: Any, exponent: Any) -> Any:
    """By squaring; wraps."""
    builder, form = emitter.builder, base.type
    zero, unit = emitter.constant(base, 0), emitter.constant(base, 1)
    before = builder.block
    loop = builder.append_basic_block("power")
    after = builder.append_basic_block("power.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    result, square, left = (builder.phi(form) for _ in range(3))
    odd = builder.icmp_unsigned("!=", builder.and_(left, unit), zero)
    next_result = builder.select(odd, builder.mul(result, square), result)
    next_square = builder.mul(square, square)
    next_left = builder.lshr(left, unit)
    for phi, start, following in ((result, unit, next_result), (square, base, next_square), (left, exponent, next_left)):
        phi.add_incoming(start, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", next_left, zero), after, loop)
    builder.position_at_end(after)
    return next_result


def _shift_left_recipe(emitter: Emitter, a: Any, amount: Any) -> Any:
    return emitter.builder.shl(a, emitter.builder.and_(amount, emitter.constant(a, emitter.width - 1)))


def _shift_right_recipe(emitter: Emitter, a: Any, amount: Any) -> Any:
    builder = emitter.builder
    return (builder.ashr if emitter.signed else builder.lshr)(a, builder.and_(amount, emitter.constant(a, emitter.width - 1)))


def _leading_zeros_recipe(emitter: Emitter, a: Any) -> Any:
    return emitter.intrinsic("llvm.ctlz", a, emitter.flag(False))


# The rows. PopLibs' loop for an addition of 64-bit integers is 11 an element where the 32-bit one is 7: what its rounds load, store
# and count is 6 of them, with a function 7. (Its averages of divisions of 64-bit integers are below those of 32 bits.)

_FLOAT_BITS = "bit operations are for integers and BOOL, got {type}"
_NO_FLOAT_BITS = dict.fromkeys(FLOATS, _FLOAT_BITS)
_NO_SHIFTS = dict.fromkeys((*FLOATS, "bool"), "shifts are for integers")
_ADDED = slots("i32 u32", 1, "D S"), slots("i64 u64", 5, "S")
_BITWISE = slots("i32 u32", 1, "D S"), slots("i64 u64", 2, "I")
_SHIFTED = slots("i32 u32", 1, "D S"), slots("i64 u64", 12, "S")
_CHOSEN = slots("i32 u32", 1, "D S"), slots("i64", 9, "S"), slots("u64", 7, "S")
_MAGNITUDE = slots("i32 u32", 1, "D S"), slots("i64", 10, "S"), slots("u64", 6, "I")
_COMPARED = slots("i32 u32", 1, "D S"), slots("i64 u64", 3, "I")
_BOOLS = (slots("bool", 1, "D S"),)

ROWS: tuple[DeviceOperation, ...] = (
    _row(
        name="add", signature="T T -> T", calls=("+",), meaning=operator.add, llvm=_method("add"), lanes=INTEGERS, prices=_ADDED,
    ),
    _row(
        name="sub", signature="T T -> T", calls=("-",), meaning=operator.sub, llvm=_method("sub"), lanes=INTEGERS, prices=_ADDED,
    ),
    _row(
        name="mul", signature="T T -> T", calls=("*",), meaning=operator.mul, llvm=_method("mul"), lanes=INTEGERS,
        prices=(
            slots("i32 u32", 1, "D S"),
            slots("i64 u64", 24, "S", software=True),
        ),
    ),
    _row(
        name="floordiv", signature="T T -> T", calls=("//",), meaning=_floor_divided, fault=zero_divisor, llvm=_floor_division,
        prices=(
            slots("i32", 270, "S", software=True),
            slots("u32", 258, "S", software=True),
            slots("i64", 124, "S", software=True),
            slots("u64", 109, "S", software=True),
        ),
    ),
    _row(  # of ipu.worker_range: by a constant of the target, for which PopLibs multiplies and shifts
        name="part", types=("i32",), signature="T T -> T", meaning=lambda a, b: max(a, 0) // max(b, 1), llvm=_part_recipe,
        prices=(slots("i32", 3, "S"),),
    ),
    _row(
        name="mod", signature="T T -> T", calls=("%",), meaning=_modulo, fault=zero_divisor, llvm=_modulo_recipe,
        prices=(
            slots("i32", 285, "S", software=True),
            slots("u32", 275, "S", software=True),
            slots("i64", 160, "S", software=True),
            slots("u64", 143, "S", software=True),
        ),
    ),
    _row(
        name="power", signature="T T -> T", calls=("**",), meaning=ByType(_power), fault=_negative_exponent, llvm=_power_loop,
        prices=(
            slots("i32", 26, "S", software=True),  # a loop over the exponent's bits, of which PopLibs takes four
            slots("u32", 26, "I", software=True),
            slots("i64 u64", 240, "I", software=True),
        ),
    ),
    _row(
        name="neg", signature="T -> T", calls=("-x",), meaning=operator.neg, llvm=_negated, lanes=INTEGERS, prices=_ADDED,
    ),
    _row(
        name="abs", signature="T -> T", calls=("abs",), meaning=abs, llvm=_magnitude, lanes=INTEGERS, prices=_MAGNITUDE,
    ),
    _row(
        name="min", signature="T T -> T", calls=("min",), meaning=min, exact=True, llvm=_chosen("<"), lanes=INTEGERS,
        prices=_CHOSEN,
    ),
    _row(
        name="max", signature="T T -> T", calls=("max",), meaning=max, exact=True, llvm=_chosen(">"), lanes=INTEGERS,
        prices=_CHOSEN,
    ),
    _row(
        name="and", signature="T T -> T", calls=("&",), words=_NO_FLOAT_BITS, meaning=operator.and_, exact=True,
        llvm=_method("and_"), lanes=INTEGERS, prices=_BITWISE,
    ),
    _row(
        name="or", signature="T T -> T", calls=("|",), words=_NO_FLOAT_BITS, meaning=operator.or_, exact=True,
        llvm=_method("or_"), lanes=INTEGERS, prices=_BITWISE,
    ),
    _row(
        name="xor", signature="T T -> T", calls=("^",), words=_NO_FLOAT_BITS, meaning=operator.xor, exact=True,
        llvm=_method("xor"), lanes=INTEGERS, prices=_BITWISE,
    ),
    _row(
        name="invert", signature="T -> T", calls=("~x",), meaning=operator.invert, lanes=INTEGERS, prices=_BITWISE,
        words=dict.fromkeys(FLOATS, "~ is for integers, got {type}") | {"bool": "arithmetic on BOOL: write not"},
        llvm=lambda emitter, a: emitter.builder.xor(a, emitter.constant(a, -1)),
    ),
    _row(
        name="shift_left", signature="T T -> T", calls=("<<",), words=_NO_SHIFTS, meaning=ByType(_shifted_left),
        fault=_amount_outside, llvm=_shift_left_recipe, lanes=INTEGERS, prices=_SHIFTED,
    ),
    _row(
        name="shift_right", signature="T T -> T", calls=(">>",), words=_NO_SHIFTS, meaning=ByType(_shifted_right), exact=True,
        fault=_amount_outside, llvm=_shift_right_recipe, lanes=INTEGERS,
        prices=(slots("i32 u32", 1, "D S"), slots("i64", 13, "S"), slots("u64", 6, "I")),
    ),
    _row(
        name="popcount", signature="T -> T", calls=("ipu.popcount",), meaning=ByType(_population), exact=True,
        llvm=lambda emitter, a: emitter.intrinsic("llvm.ctpop", a), prices=(slots("i32 u32", 1, "D"), slots("i64 u64", 3, "I")),
    ),
    _row(
        name="clz", signature="T -> T", calls=("ipu.clz",), meaning=ByType(_leading_zeros), exact=True,
        llvm=_leading_zeros_recipe, prices=(slots("i32 u32", 1, "D"), slots("i64 u64", 4, "I")),
    ),
    _row(
        name="less", signature="T T -> bool", calls=("<",), meaning=operator.lt, exact=True, llvm=_compared("<"), lanes=INTEGERS,
        prices=_COMPARED,
    ),
    _row(
        name="less_equal", signature="T T -> bool", calls=("<=",), meaning=operator.le, exact=True, llvm=_compared("<="),
        lanes=INTEGERS, prices=_COMPARED,
    ),
    _row(
        name="equal", signature="T T -> bool", calls=("==",), meaning=operator.eq, exact=True, llvm=_compared("=="),
        lanes=INTEGERS, prices=_COMPARED,
    ),
    _row(
        name="not_equal", signature="T T -> bool", calls=("!=",), meaning=operator.ne, exact=True, llvm=_compared("!="),
        lanes=INTEGERS, prices=_COMPARED,
    ),
    _logic(
        name="not", signature="T -> T", calls=("not x",), meaning=operator.not_, prices=_BOOLS,
        llvm=lambda emitter, a: emitter.builder.xor(a, emitter.constant(a, 1)),
    ),
    _logic(name="and", signature="T T -> T", calls=("&",), meaning=operator.and_, llvm=_method("and_"), prices=_BOOLS),
    _logic(name="or", signature="T T -> T", calls=("|",), meaning=operator.or_, llvm=_method("or_"), prices=_BOOLS),
    _logic(name="xor", signature="T T -> T", calls=("^",), meaning=operator.xor, llvm=_method("xor"), prices=_BOOLS),
    _logic(name="less", signature="T T -> T", meaning=operator.lt, llvm=_compared("<"), prices=_BOOLS),
    _logic(name="less_equal", signature="T T -> T", meaning=operator.le, llvm=_compared("<="), prices=_BOOLS),
    _logic(name="equal", signature="T T -> T", calls=("==",), meaning=operator.eq, llvm=_compared("=="), prices=_BOOLS),
    _logic(name="not_equal", signature="T T -> T", calls=("!=",), meaning=operator.ne, llvm=_compared("!="), prices=_BOOLS),
)  # fmt: skip
