"""IEEE half in terms of LLVM: what a codelet's HALF operations round with.

A half lives in a register as the float32 of the same value. `to_half` rounds a float32 to the nearest half (ties to even) and
gives its 16 bits, `from_half` widens, `round_to_half` does one after the other, and `narrow_double` rounds a float64 straight to
the nearest half, once. Processors with F16C, and 64-bit Arm, convert in one instruction; for the others there are integer forms of
the same functions. Both give the same bits for every value, NaNs included (the payload's upper bits stay, made quiet).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from pypoplar.host_code import machine

FLOAT, DOUBLE, WORD, SHORT = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(16)

_INFINITY = 0x7F800000
_TWO_TO_16 = 0x47800000  # every magnitude from here on is beyond the halves
_SMALLEST_NORMAL = 0x38800000  # 2**-14
_REBIAS = (127 - 15) << 23


def alike(form: Any, of: Any) -> Any:
    """The type `of` for each lane where `form` is a vector, else `of` itself."""
    return ir.VectorType(of, form.count) if isinstance(form, ir.VectorType) else of


def constant(form: Any, value: float) -> Any:
    """A constant, the same in all lanes of a vector."""
    return ir.Constant(form, [value] * form.count if isinstance(form, ir.VectorType) else value)


def to_half_by_instruction(builder: Any, value: Any) -> Any:
    half = builder.fptrunc(value, alike(value.type, ir.HalfType()))
    return builder.bitcast(half, alike(value.type, SHORT))


def from_half_by_instruction(builder: Any, bits: Any) -> Any:
    half = builder.bitcast(bits, alike(bits.type, ir.HalfType()))
    return builder.fpext(half, alike(bits.type, FLOAT))


def to_half_by_integers(builder: Any, value: Any) -> Any:
    words, floats = alike(value.type, WORD), alike(value.type, FLOAT)
    bits = builder.bitcast(value, words)
    sign = builder.and_(builder.lshr(bits, constant(words, 16)), constant(words, 0x8000))
    magnitude = builder.and_(bits, constant(words, 0x7FFFFFFF))

    # Normal halves: move the exponent, add just under half a unit, or half a unit when the kept part is odd, and cut. A carry out
    # of the mantissa is the next exponent, and out of the last exponent infinity.
    odd = builder.and_(builder.lshr(magnitude, constant(words, 13)), constant(words, 1))
    rebiased = builder.sub(magnitude, constant(words, _REBIAS))
    normal = builder.lshr(builder.add(builder.add(rebiased, constant(words, 0xFFF)), odd), constant(words, 13))

    # Subnormal halves: 0.5 has exactly the unit of the smallest half in its last place, so the addition rounds as we must.
    moved = builder.fadd(builder.bitcast(magnitude, floats), constant(floats, 0.5))
    subnormal = builder.sub(builder.bitcast(moved, words), constant(words, 0x3F000000))

    payload = builder.and_(builder.lshr(magnitude, constant(words, 13)), constant(words, 0x3FF))
    not_a_number = builder.or_(payload, constant(words, 0x7E00))
    beyond = builder.select(
        builder.icmp_unsigned(">", magnitude, constant(words, _INFINITY)), not_a_number, constant(words, 0x7C00)
    )

    within = builder.select(builder.icmp_unsigned("<", magnitude, constant(words, _SMALLEST_NORMAL)), subnormal, normal)
    chosen = builder.select(builder.icmp_unsigned(">=", magnitude, constant(words, _TWO_TO_16)), beyond, within)
    return builder.trunc(builder.or_(chosen, sign), alike(value.type, SHORT))


def from_half_by_integers(builder: Any, bits: Any) -> Any:
    words, floats = alike(bits.type, WORD), alike(bits.type, FLOAT)
    wide = builder.zext(bits, words)
    sign = builder.shl(builder.and_(wide, constant(words, 0x8000)), constant(words, 16))
    magnitude = builder.shl(builder.and_(wide, constant(words, 0x7FFF)), constant(words, 13))
    normal = builder.add(magnitude, constant(words, _REBIAS))

    # A subnormal half is a count of 2**-24: exact in float32.
    count = builder.uitofp(builder.and_(wide, constant(words, 0x3FF)), floats)
    subnormal = builder.bitcast(builder.fmul(count, constant(floats, 2.0**-24)), words)

    quiet = builder.select(
        builder.icmp_unsigned(">", magnitude, constant(words, 0x7C00 << 13)),
        constant(words, _INFINITY | 0x400000),
        constant(words, _INFINITY),
    )
    beyond = builder.or_(magnitude, quiet)
    within = builder.select(builder.icmp_unsigned("<", magnitude, constant(words, 0x400 << 13)), subnormal, normal)
    chosen = builder.select(builder.icmp_unsigned(">=", magnitude, constant(words, 0x7C00 << 13)), beyond, within)
    return builder.bitcast(builder.or_(chosen, sign), floats)


def by_instruction() -> bool:
    """Whether this host's own instructions do the work."""
    return machine.host().converts_halves


def to_half(builder: Any, value: Any) -> Any:
    """The 16 bits of the half nearest to a float32."""
    return to_half_by_instruction(builder, value) if by_instruction() else to_half_by_integers(builder, value)


def from_half(builder: Any, bits: Any) -> Any:
    """The float32 of a half's 16 bits."""
    return from_half_by_instruction(builder, bits) if by_instruction() else from_half_by_integers(builder, bits)


def round_to_half(builder: Any, value: Any) -> Any:
    """The float32 that is the nearest half of a float32."""
    return from_half(builder, to_half(builder, value))


def round_at_random(builder: Any, value: Any, bits: Any) -> Any:
    """The float32 that is one of the two halves around a float32: `pypoplar.codelet.operations.registers.half_at_random`.

    A fraction of a half's last place is cut after random bits were added to it: 13 bits for a normal half, more for a subnormal
    one, whose fraction is held in 24 bits.
    """
    pattern, upper = builder.bitcast(value, WORD), builder.trunc(builder.lshr(bits, bits.type(40)), WORD)
    sign, magnitude = builder.and_(pattern, WORD(0x80000000)), builder.and_(pattern, WORD(0x7FFFFFFF))
    normal = builder.and_(builder.add(magnitude, builder.lshr(upper, WORD(11))), WORD(0xFFFFE000))
    normal = builder.select(builder.icmp_unsigned(">=", normal, WORD(_TWO_TO_16)), WORD(_INFINITY), normal)

    exponent = builder.lshr(magnitude, WORD(23))
    leading = builder.select(builder.icmp_unsigned("!=", exponent, WORD(0)), WORD(1 << 23), WORD(0))
    significand = builder.or_(builder.and_(magnitude, WORD(0x7FFFFF)), leading)
    exponent = _limited(builder, exponent, 1, _SMALLEST_NORMAL >> 23)
    dropped = builder.sub(WORD(126), exponent)  # bits of the significand below 2**-24
    within = _limited(builder, dropped, 1, 24)
    beyond = _limited(builder, builder.sub(dropped, within), 0, 31)
    added = builder.add(builder.lshr(significand, beyond), builder.lshr(upper, builder.sub(WORD(24), within)))
    units = builder.uitofp(builder.lshr(added, within), FLOAT)
    subnormal = builder.bitcast(builder.fmul(units, FLOAT(2.0**-24)), WORD)

    rounded = builder.select(builder.icmp_unsigned("<", magnitude, WORD(_SMALLEST_NORMAL)), subnormal, normal)
    rounded = builder.bitcast(builder.or_(rounded, sign), FLOAT)
    return builder.select(builder.icmp_unsigned(">=", magnitude, WORD(_TWO_TO_16)), round_to_half(builder, value), rounded)


def _limited(builder: Any, value: Any, least: int, most: int) -> Any:
    """An integer without a sign, held within limits."""
    value = builder.select(builder.icmp_unsigned("<", value, value.type(least)), value.type(least), value)
    return builder.select(builder.icmp_unsigned(">", value, value.type(most)), value.type(most), value)


def narrow_double(builder: Any, value: Any) -> Any:
    """The float32 that is the nearest half of a float64, rounded once.

    On the way through float32 the value is rounded to odd: towards zero, with the last bit set when anything was lost. That bit
    tells the second rounding on which side of a tie the float64 lay; float32 has bits enough for that.
    """
    nearest = builder.fptrunc(value, FLOAT)
    back = builder.fpext(nearest, DOUBLE)
    bits = builder.bitcast(nearest, WORD)
    absolute = builder.module.declare_intrinsic("llvm.fabs", [DOUBLE])
    too_far = builder.fcmp_ordered(">", builder.call(absolute, [back]), builder.call(absolute, [value]))
    towards_zero = builder.sub(bits, builder.zext(too_far, WORD))
    inexact = builder.zext(builder.fcmp_ordered("!=", back, value), WORD)
    return round_to_half(builder, builder.bitcast(builder.or_(towards_zero, inexact), FLOAT))
