"""The bits of floats as integers, and back: what ``ipu.bit_cast`` is made of.

The bits of a NaN that an operation has made are left open, so all NaNs give the same pattern here. Of a half the pattern is the low
16 bits of an INT, in which 8- and 16-bit integers compute.
"""

from __future__ import annotations

import struct
from typing import Any

from pypoplar.codelet.operations.device_operation import NO_FLOPS, ByType, DeviceOperation, Emitter, Meaning, slots
from pypoplar.codelet.operations.registers import FLOATS

NAN_BITS = {"f32": 0x7FC00000, "f16": 0x7E00}
_FORMS = {"f32": (struct.Struct("<f"), struct.Struct("<i")), "f16": (struct.Struct("<e"), struct.Struct("<H"))}


def _bits_of(type: str) -> Meaning:
    number, whole = _FORMS[type]

    def bits_of(a: float) -> int:
        bits: int = whole.unpack(number.pack(a))[0]
        return bits if a == a else NAN_BITS[type]

    return bits_of


def _of_bits(type: str) -> Meaning:
    number, _ = _FORMS[type]

    def of_bits(a: int) -> float:
        value: float = number.unpack(a.to_bytes(4, "little", signed=True)[: number.size])[0]
        return value

    return of_bits


def _bits_recipe(emitter: Emitter, a: Any) -> Any:
    builder, whole = emitter.builder, emitter.register("i32", a)
    if emitter.type == "f32":
        bits = builder.bitcast(a, whole)
    else:
        bits = builder.zext(emitter.half_bits(a), whole)
    is_nan = builder.fcmp_unordered("uno", a, a)
    return builder.select(is_nan, emitter.constant(bits, NAN_BITS[emitter.type]), bits)


def _of_bits_recipe(emitter: Emitter, a: Any) -> Any:
    if emitter.type == "f32":
        return emitter.builder.bitcast(a, emitter.register("f32", a))
    return emitter.of_half_bits(emitter.builder.trunc(a, emitter.integer(16, a)))


_CROSSING = (slots("f32 f16", 2, "I"),)  # from one register file to the other, through memory

ROWS: tuple[DeviceOperation, ...] = (
    DeviceOperation(
        name="bits", signature="T -> i32", types=FLOATS, meaning=ByType(_bits_of), exact=True, llvm=_bits_recipe, lanes=("f32",),
        prices=_CROSSING, flops=NO_FLOPS,
    ),
    DeviceOperation(
        name="of_bits", signature="i32 -> T", types=FLOATS, meaning=ByType(_of_bits), exact=True, llvm=_of_bits_recipe,
        lanes=("f32",), prices=_CROSSING, flops=NO_FLOPS,
    ),
)  # fmt: skip
