"""Copies, and conversions from one register type to another."""

from __future__ import annotations

import math
from typing import Any

from pypoplar.codelet.operations.device_operation import (
    NO_FLOPS,
    ByType,
    DeviceOperation,
    Emitter,
    Flops,
    IssueSlots,
    Meaning,
    Recipe,
    slots,
)
from pypoplar.codelet.operations.registers import FLOATS, INTEGERS, REGISTERS, SIGNED, WIDTH, limits

# In mixed precision a conversion belongs to the instruction that takes the value. PopLibs counts one for an element of its Cast
# vertices, which do nothing else.
_NONE = Flops(0, "I")


# What they mean


def _float_of(type: str) -> Meaning:
    """An integer as a float64 that rounds to the nearest float32, or half, as the integer itself does."""
    if type not in ("i64", "u64"):
        return float

    def float_of(a: int) -> float:
        if -(1 << 53) <= a <= 1 << 53:
            return float(a)
        return float(a >> 11 << 11 | (1 << 11 if a & 0x7FF else 0))  # 53 bits, the last of which says that something was lost

    return float_of


def _integer_of(target: str) -> Meaning:
    """A float as an integer: cut, held at the ends of the range; NaN gives 0."""
    low, high = limits(target)

    def integer_of(a: float) -> int:
        if math.isnan(a):
            return 0
        return low if a <= low else high if a >= high else int(a)

    return integer_of


def _to_integer(target: str) -> ByType:
    return ByType(lambda source: _integer_of(target) if source in FLOATS else int)


def _itself(a: Any) -> Any:
    return a


def _wrapped(width: int, *, signed: bool) -> Meaning:
    low = -(1 << (width - 1)) if signed else 0
    return lambda a: (a - low) % (1 << width) + low


# How they are written for LLVM


def _float_recipe(target: str) -> Recipe:
    def recipe(emitter: Emitter, a: Any) -> Any:
        source, builder = emitter.type, emitter.builder
        if source == target or (source, target) == ("f16", "f32"):
            return a
        if source == "f32":
            return emitter.rounded(a, "f16")
        convert = builder.sitofp if source in SIGNED else builder.uitofp
        if target == "f32":
            return convert(a, emitter.register("f32", a))
        return emitter.narrowed(convert(a, emitter.double), "f16")  # float64 holds every integer below the largest half exactly

    return recipe


def _bool_recipe(emitter: Emitter, a: Any) -> Any:
    if emitter.type == "bool":
        return a
    builder = emitter.builder
    if emitter.type in FLOATS:
        return builder.fcmp_unordered("!=", a, emitter.constant(a, 0.0))
    return builder.icmp_unsigned("!=", a, emitter.constant(a, 0))


def _integer_recipe(target: str) -> Recipe:
    def recipe(emitter: Emitter, a: Any) -> Any:
        source, builder = emitter.type, emitter.builder
        if source in FLOATS:
            return emitter.saturated(a, target)
        if source == "bool" or WIDTH[source] < WIDTH[target]:
            return (builder.sext if source in SIGNED else builder.zext)(a, emitter.register(target, a))
        return builder.trunc(a, emitter.register(target, a)) if WIDTH[source] > WIDTH[target] else a

    return recipe


def _wrap_recipe(width: int, *, signed: bool) -> Recipe:
    def recipe(emitter: Emitter, a: Any) -> Any:
        builder = emitter.builder
        narrow = builder.trunc(a, emitter.integer(width, a))
        return builder.sext(narrow, a.type) if signed else builder.zext(narrow, a.type)

    return recipe


# The rows


def _integer_row(target: str, *prices: IssueSlots) -> DeviceOperation:
    return DeviceOperation(
        name=f"{target}_from",
        signature=f"T -> {target}",
        types=REGISTERS,
        meaning=_to_integer(target),
        llvm=_integer_recipe(target),
        lanes=(*INTEGERS, "bool"),
        prices=prices,
        flops=_NONE,
    )


def _wrap_row(type: str) -> DeviceOperation:
    """An integer as a narrower one is read back: it costs nothing, for a store takes the low bits."""
    width, signed = int(type[1:]), type[0] == "i"
    return DeviceOperation(
        name=f"wrap_{type}",
        signature="i32 -> i32",
        meaning=_wrapped(width, signed=signed),
        exact=True,
        llvm=_wrap_recipe(width, signed=signed),
        lanes=("i32",),
        prices=(slots("", 0, "I"),),
        flops=NO_FLOPS,
    )


_32_BITS = (
    slots("f32", 3, "I"), slots("f16", 4, "I"),
    slots("i32 u32 i64 u64 bool", 0, "I"),  # the same bits, or the low half
)  # fmt: skip
_64_BITS = slots("i32 u32 bool", 1, "I"), slots("i64 u64", 0, "I"), slots("f32 f16", 20, "I", software=True)

COPY = DeviceOperation(
    name="copy", signature="T -> T", types=REGISTERS, meaning=_itself, exact=True, llvm=lambda emitter, a: a, lanes=REGISTERS,
    prices=(slots("f32 f16 i32 u32 i64 u64 bool", 0, "I"),),  # registers are renamed
    flops=_NONE,
)  # fmt: skip

ROWS: tuple[DeviceOperation, ...] = (
    COPY,
    DeviceOperation(
        name="f32_from", signature="T -> f32", types=REGISTERS, meaning=ByType(_float_of), llvm=_float_recipe("f32"),
        lanes=REGISTERS, flops=_NONE,
        prices=(
            slots("f32", 0, "I"),
            slots("f16", 1, "S"),
            slots("i32 u32 bool", 3, "I"),  # 1, and 2 to cross the register files through memory
            slots("i64 u64", 20, "I", software=True),
        ),
    ),
    DeviceOperation(
        name="f16_from", signature="T -> f16", types=REGISTERS, meaning=ByType(_float_of), llvm=_float_recipe("f16"),
        lanes=("f32",), flops=_NONE,
        prices=(
            slots("f32", 1, "S"),
            slots("f16", 0, "I"),
            slots("i32 u32 bool", 4, "I"),
            slots("i64 u64", 20, "I", software=True),
        ),
    ),
    _integer_row("i32", *_32_BITS),
    _integer_row("u32", *_32_BITS),
    _integer_row("i64", *_64_BITS),
    _integer_row("u64", *_64_BITS),
    DeviceOperation(
        name="bool_from", signature="T -> bool", types=REGISTERS, meaning=bool, exact=True, llvm=_bool_recipe, lanes=REGISTERS,
        prices=(slots("f32 f16 i32 u32", 1, "I"), slots("i64 u64", 2, "I"), slots("bool", 0, "I")),
        flops=_NONE,
    ),
    *(_wrap_row(type) for type in ("i8", "u8", "i16", "u16")),
)  # fmt: skip
