"""Access to the driver's header and its tables, as operations of native code.

Places in tables and records are those of `pypoplar.interface`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from pypoplar.engine.native.unit import llvm_operation
from pypoplar.interface.layout import WORD_BYTES

_WORD = ir.IntType(8 * WORD_BYTES)


def _place(builder: Any, address: Any, index: Any) -> Any:
    """Where word `index` behind an address is."""
    return builder.gep(builder.inttoptr(address, _WORD.as_pointer()), [index], source_etype=_WORD)


def _invariant(builder: Any, place: Any) -> Any:
    """The word at a place that does not change while the driver runs, and LLVM may know it."""
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@llvm_operation
def table(builder: Any, header: Any, slot: Any) -> Any:
    """The address of a table, or a number that stands in the header itself."""
    return _invariant(builder, _place(builder, header, slot))


@llvm_operation
def get(builder: Any, header: Any, slot: Any, index: Any) -> Any:
    """Word `index` of a table."""
    return builder.load(_place(builder, table(builder, header, slot), index))


@llvm_operation
def put(builder: Any, header: Any, slot: Any, index: Any, value: Any) -> None:
    """Write word `index` of a table."""
    builder.store(value, _place(builder, table(builder, header, slot), index))


@llvm_operation
def add(builder: Any, header: Any, slot: Any, index: Any, value: Any) -> None:
    """Add to word `index` of a table."""
    place = _place(builder, table(builder, header, slot), index)
    builder.store(builder.add(builder.load(place), value), place)


@llvm_operation
def word_address(builder: Any, address: Any, index: Any) -> Any:
    """The address of word `index` behind an address."""
    return builder.ptrtoint(_place(builder, address, index), _WORD)


@llvm_operation
def record(builder: Any, header: Any, slot: Any, words: Any, number: Any) -> Any:
    """The address of record `number` of a table whose records have so many words."""
    return word_address(builder, table(builder, header, slot), builder.mul(words, number))


@llvm_operation
def word(builder: Any, address: Any, index: Any) -> Any:
    """Word `index` behind an address."""
    return builder.load(_place(builder, address, index))


@llvm_operation
def invariant_word(builder: Any, address: Any, index: Any) -> Any:
    """Word `index` behind an address, which nothing writes while the driver runs."""
    return _invariant(builder, _place(builder, address, index))


@llvm_operation
def put_word(builder: Any, address: Any, index: Any, value: Any) -> None:
    """Write word `index` behind an address."""
    builder.store(value, _place(builder, address, index))


@llvm_operation
def call_unit(builder: Any, unit: Any, *arguments: Any) -> Any:
    """Call a unit of the driver by its address, with its arguments."""
    function = ir.FunctionType(_WORD, [_WORD] * len(arguments))
    return builder.call(builder.inttoptr(unit, function.as_pointer()), arguments)
