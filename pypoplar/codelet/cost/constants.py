"""Constants in registers.

A main register takes a signed integer of 16 bits, or an unsigned one of 20, in one instruction, any other in two; an auxiliary one
a number whose low or high 12 bits are zero in one. Zero has a register of its own in each file. Integers, and what takes two
instructions, are made once, outside of loops; a float of one instruction is made again in every block that needs it (the
vendor's backend: its costs of immediates, and its test of hoisted constants).
"""

from __future__ import annotations

import struct

from pypoplar.codelet.cost.instructions import Instruction, Pipe, Register
from pypoplar.codelet.cost.numbering import Numbering
from pypoplar.codelet.ir.terms import exactly
from pypoplar.codelet.ir.typed import Literal
from pypoplar.codelet.operations.registers import FLOATS

_SHORT = ("and", "or", "xor", "shift_left", "shift_right")  # their constants have 12 bits
_LONG = ("add", "sub", "mul", "less", "less_equal", "equal", "not_equal", "min", "max")  # theirs 16, with a sign
_EITHER = ("add", "mul", "and", "or", "xor", "equal", "not_equal", "less", "less_equal")  # the first argument as well


def literal_in_register(numbering: Numbering, literal: Literal, where: int) -> Register | None:
    """The register of a constant; None for zero."""
    if literal.type in FLOATS:
        return _float(numbering, literal, where)
    value = int(literal.value)
    if value == 0:
        return None
    words = 2 if literal.type in ("i64", "u64") else 1
    slots = (1 if -(1 << 15) <= value < 1 << 20 else 2) * words
    instruction = Instruction("setzi", Pipe.MAIN, where, slots=slots)
    return numbering.value(("constant", value, words), instruction, Pipe.MAIN, words=words)


def is_folded(operation: str, literal: Literal, position: int) -> bool:
    """Whether an instruction takes a constant as it is: as its last argument, or as either where their order does not matter."""
    name = operation.rpartition("_")[0]
    if literal.type not in ("i32", "u32", "bool") or (position == 0 and name not in _EITHER):
        return False
    value = int(literal.value)
    return (name in _SHORT and 0 <= value < 1 << 12) or (name in _LONG and -(1 << 15) <= value < 1 << 15)


def _float(numbering: Numbering, literal: Literal, where: int) -> Register | None:
    bits = int.from_bytes(struct.pack("<f" if literal.type == "f32" else "<e", literal.value), "little")
    if bits == 0:
        return None
    single = literal.type == "f16" or not bits & 0xFFF or not bits >> 20
    instruction = Instruction("or", Pipe.AUXILIARY, where) if single else Instruction("setzi, or", Pipe.AUXILIARY, where, slots=2)
    return numbering.value(("constant", literal.type, exactly(literal.value)), instruction, Pipe.AUXILIARY, stays=single)
