"""Division of integers as C and C++ have it: cut towards zero, the rest with the sign of what is divided."""

from __future__ import annotations

from typing import Any

from pypoplar.codelet.operations.device_operation import NO_FLOPS, DeviceOperation, Emitter, slots
from pypoplar.codelet.operations.integer_arithmetic import cut_division, unsigned_divisor, zero_divisor
from pypoplar.codelet.operations.registers import INTEGERS


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return a
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b) if b else 0


def _quotient_recipe(emitter: Emitter, a: Any, b: Any) -> Any:
    if not emitter.signed:
        return emitter.builder.udiv(a, unsigned_divisor(emitter, b))
    return cut_division(emitter, a, b)[0]


def _remainder_recipe(emitter: Emitter, a: Any, b: Any) -> Any:
    if not emitter.signed:
        return emitter.builder.urem(a, unsigned_divisor(emitter, b))
    return cut_division(emitter, a, b)[1]


ROWS: tuple[DeviceOperation, ...] = (
    DeviceOperation(
        name="quotient", signature="T T -> T", types=INTEGERS, calls=("ipu.quotient",), meaning=_quotient, fault=zero_divisor,
        llvm=_quotient_recipe, flops=NO_FLOPS,
        prices=(  # as a floor division, whose function divides first
            slots("i32", 270, "S", software=True), slots("u32", 258, "S", software=True),
            slots("i64", 124, "S", software=True), slots("u64", 109, "S", software=True),
        ),
    ),
    DeviceOperation(
        name="remainder", signature="T T -> T", types=INTEGERS, calls=("ipu.remainder",), meaning=_remainder, fault=zero_divisor,
        llvm=_remainder_recipe, flops=NO_FLOPS,
        prices=(
            slots("i32", 285, "S", software=True), slots("u32", 275, "S", software=True),
            slots("i64", 160, "S", software=True), slots("u64", 143, "S", software=True),
        ),
    ),
)  # fmt: skip
