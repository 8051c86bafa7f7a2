"""Divisions of 32-bit integers by what the compiler knows: a shift or a mask, or a product with the reciprocal.

LLVM multiplies by a reciprocal where a target has the upper word of a product. The vendor's backend makes that of four products
of 16 bits: 16 instructions (its tests of `mulhu` and `mulhs`), of which a constant saves the two that part it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pypoplar.codelet.cost.instructions import Instruction, Pipe, Register
from pypoplar.codelet.cost.selection import Known, Selection
from pypoplar.codelet.operations.device_operation import TypedOperation

UPPER_WORD = 14  # instructions for the upper word of a product with a constant
SHIFTED = 1  # I: the reciprocal has more bits than a word
SIGN_ADDED = 2  # I: a quotient below zero is one more; the sign of what is divided
REST = 2  # multiply, subtract
CUT = {"floordiv": 1, "mod": 1, "quotient": 4, "remainder": 5}  # I: by 2**n


@frozen
class KnownDivision:
    """What a division takes: slots, and what it reads beside what is divided."""

    slots: int
    reads: Sequence[Register] = ()


def division_by_constant(selection: Selection, row: TypedOperation, known: Sequence[Known], where: int) -> KnownDivision | None:
    """What a division or its rest takes if its divisor is known; None for anything else."""
    if row.row.name not in CUT or row.type not in ("i32", "u32"):
        return None
    divisor = selection.constant(known[1])
    if divisor is None or divisor == 0:
        return None
    if divisor > 0 and divisor & (divisor - 1) == 0:
        return KnownDivision(CUT[row.row.name] if row.type == "i32" else 1)
    halves = [_half(selection, divisor, part, where) for part in ("lower", "upper")]
    slots = UPPER_WORD + SHIFTED + SIGN_ADDED * (row.type == "i32") + REST * (row.row.name in ("mod", "remainder"))
    return KnownDivision(slots, halves)


def _half(selection: Selection, divisor: int, part: str, where: int) -> Register:
    """The register of half a reciprocal, which is made once."""
    return selection.numbering.value(("reciprocal", divisor, part), Instruction("setzi", Pipe.MAIN, where), Pipe.MAIN)
