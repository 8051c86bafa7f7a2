"""How native code reaches memory: where a vertex's fields are, what a load and a store are, which accesses cannot meet.

Two fields of a vertex that overlap are both only read (the compiler refuses other graphs), and LLVM is told so: it keeps values in
registers and runs loops on vectors without first comparing addresses.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen
from llvmlite import ir

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.span_roots import span_roots, stored_fields
from pypoplar.codelet.ir.typed import TypedCodelet
from pypoplar.codelet.llvm import halves

WORD, BYTE, BOOL = ir.IntType(64), ir.IntType(8), ir.IntType(1)
INT, FLOAT = ir.IntType(32), ir.FloatType()
SIGNED = ("i8", "i16", "i32", "i64")
# What memory that nothing has written looks like: all bits set. Only these types tell it from a value: -1 is a common integer.
MARKED = ("f32", "f16", "bool")


def word(value: int) -> Any:
    return ir.Constant(WORD, value)


@frozen
class Place:
    """A span in native code; ``i64`` values or, for spans that are bound as the code runs, the stack slots that hold them.

    `touch` is the address of the span's touch bytes, where touches are recorded.
    """

    address: Any
    length: Any
    touch: Any = None


class Scopes:
    """LLVM's metadata that says which accesses of a codelet cannot meet."""

    def __init__(self, module: Any, codelet: TypedCodelet, *, known_apart: bool) -> None:
        self._roots = span_roots(codelet)
        self._marks: dict[str, tuple[Any, Any]] = {}
        if not known_apart:
            return
        stored = stored_fields(codelet)
        domain = module.add_metadata([ir.MetaDataString(module, "pypoplar")])
        names = [one.name for one in codelet.fields]
        scopes = {name: module.add_metadata([ir.MetaDataString(module, f"pypoplar.{name}"), domain]) for name in names}
        for name in names:
            others = [scopes[one] for one in names if one != name and (one in stored or name in stored)]
            self._marks[name] = (module.add_metadata([scopes[name]]), module.add_metadata(others) if others else None)

    def mark(self, instruction: Any, span: str) -> None:
        """Mark a load or store of a span."""
        root = next(iter(self._roots.get(span.partition("~")[0], ())), "")
        if len(self._roots.get(span.partition("~")[0], ())) != 1 or root not in self._marks:
            return
        own, others = self._marks[root]
        instruction.set_metadata("alias.scope", own)
        if others is not None:
            instruction.set_metadata("noalias", others)


def load_invariant(builder: Any, address: Any) -> Any:
    """The ``i64`` at an address whose content stays as it is while the code runs."""
    value = builder.load(builder.inttoptr(address, WORD.as_pointer()), align=8)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def memory_form(code: str) -> Any:
    """The LLVM type that a load of a memory code reads and a store writes."""
    return FLOAT if code == "f32" else ir.IntType(8 * SIZES[code])


def alignment(code: str) -> int:
    """Elements are aligned to their size, 8-byte elements to 4 bytes only."""
    return min(SIZES[code], 4)


def load_element(builder: Any, pointer: Any, code: str) -> tuple[Any, Any]:
    """The value at a pointer as a register, and the load itself."""
    load = builder.load(pointer, align=alignment(code))
    return to_register(builder, load, code), load


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
