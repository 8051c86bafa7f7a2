"""The forms of values in LLVM: words, elements in memory, and how elements become registers and registers elements."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import Literal
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.operations.registers import half

WORD, BYTE, BOOL = ir.IntType(64), ir.IntType(8), ir.IntType(1)
INT, FLOAT = ir.IntType(32), ir.FloatType()
# What memory that nothing has written looks like: all bits set. Only these types tell it from a value: -1 is a common integer.
MARKED = ("f32", "f16", "bool")


def word(value: int) -> Any:
    return ir.Constant(WORD, value)


def load_invariant(builder: Any, address: Any) -> Any:
    """The ``i64`` at an address whose content stays as it is while the code runs."""
    value = builder.load(builder.inttoptr(address, WORD.as_pointer()), align=8)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


class _VolatileLoad(ir.LoadInstr):  # type: ignore[misc]  # llvmlite has no types
    """A load that is done each time, in its place; an atomic one would keep the accesses around it in theirs as well."""

    def descr(self, buffer: list[str]) -> None:
        super().descr(buffer)
        buffer[-1] = buffer[-1].replace("load ", "load volatile ", 1)


def load_volatile(builder: Any, pointer: Any) -> Any:
    """The ``i64`` at a pointer, which others may write at any time."""
    instruction = _VolatileLoad(builder.block, pointer)
    instruction.align = 8
    builder._insert(instruction)
    return instruction


def memory_form(code: str) -> Any:
    """The LLVM type that a load of a memory code reads and a store writes."""
    return FLOAT if code == "f32" else ir.IntType(8 * SIZES[code])


def alignment(code: str) -> int:
    """Elements are aligned to their size, 8-byte elements to 4 bytes only."""
    return min(SIZES[code], 4)


def to_register(builder: Any, value: Any, code: str) -> Any:
    if code == "f16":
        return halves.from_half(builder, value)
    if code == "bool":
        return builder.icmp_unsigned("!=", value, BYTE(0))
    if code in ("i8", "i16"):
        return builder.sext(value, INT)
    if code in ("u8", "u16"):
        return builder.zext(value, INT)
    return value


def to_memory(builder: Any, value: Any, code: str) -> Any:
    """A register as it stands in memory; narrower integers wrap."""
    if code == "f16":
        return halves.to_half(builder, value)
    if code == "bool":
        return builder.zext(value, BYTE)
    if SIZES[code] < 4 and code != "f16":
        return builder.trunc(value, ir.IntType(8 * SIZES[code]))
    return value


def as_read_back(builder: Any, value: Any, code: str) -> Any:
    """The register that a load gives after a store of `value`."""
    if code in ("i8", "u8", "i16", "u16"):
        return to_register(builder, to_memory(builder, value, code), code)
    return value


def widened(builder: Any, value: Any, kind: str) -> Any:
    """An integer or bool register as an ``i64`` of the same value."""
    if kind in ("i64", "u64"):
        return value
    return builder.sext(value, WORD) if kind == "i32" else builder.zext(value, WORD)


def constant(literal: Literal) -> Any:
    """A literal as a register. A half is rounded as the operations round."""
    form = REGISTER_FORMS[literal.type]
    if literal.type == "f16":
        return ir.Constant(form, half(literal.value))
    if literal.type == "f32":
        return ir.Constant(form, float(literal.value))
    if literal.type == "bool":
        return ir.Constant(form, int(literal.value))
    # LLVM's text takes signed numbers of the type's width.
    width = form.width
    return ir.Constant(form, (int(literal.value) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1)))
