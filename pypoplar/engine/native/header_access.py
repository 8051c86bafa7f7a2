"""Access to the driver's header and its tables, as operations of native code: they cost the driver's compilation nothing.

Places in tables and records are those of `pypoplar.interface`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pypoplar.interface.layout import WORD_BYTES

_WORD = ir.IntType(8 * WORD_BYTES)


def _place(builder: Any, address: Any, index: Any) -> Any:
    """Where word `index` behind an address is."""
    return builder.gep(builder.inttoptr(address, _WORD.as_pointer()), [index])


def _invariant(builder: Any, place: Any) -> Any:
    """The word at a place that does not change while the driver runs, and LLVM may know it."""
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _table(builder: Any, header: Any, slot: Any) -> Any:
    return _invariant(builder, _place(builder, header, slot))


def _look_up(typing_context: Any, header: Any, slot: Any) -> Any:
    """The address of a table, or a number that stands in the header itself."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _table(builder, *arguments)

    return types.int64(types.int64, types.int64), generate


def _get(typing_context: Any, header: Any, slot: Any, index: Any) -> Any:
    """Word `index` of a table."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header, slot, index = arguments
        return builder.load(_place(builder, _table(builder, header, slot), index))

    return types.int64(types.int64, types.int64, types.int64), generate


def _put(typing_context: Any, header: Any, slot: Any, index: Any, value: Any) -> Any:
    """Write word `index` of a table."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header, slot, index, value = arguments
        builder.store(value, _place(builder, _table(builder, header, slot), index))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


def _add(typing_context: Any, header: Any, slot: Any, index: Any, value: Any) -> Any:
    """Add to word `index` of a table."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header, slot, index, value = arguments
        place = _place(builder, _table(builder, header, slot), index)
        builder.store(builder.add(builder.load(place), value), place)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


def _locate(typing_context: Any, address: Any, index: Any) -> Any:
    """The address of word `index` behind an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(_place(builder, *arguments), _WORD)

    return types.int64(types.int64, types.int64), generate


def _record(typing_context: Any, header: Any, slot: Any, words: Any, number: Any) -> Any:
    """The address of record `number` of a table whose records have so many words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header, slot, words, number = arguments
        return builder.ptrtoint(_place(builder, _table(builder, header, slot), builder.mul(words, number)), _WORD)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


def _read(typing_context: Any, address: Any, index: Any) -> Any:
    """Word `index` behind an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(builder, *arguments))

    return types.int64(types.int64, types.int64), generate


def _read_invariant(typing_context: Any, address: Any, index: Any) -> Any:
    """Word `index` behind an address, which nothing writes while the driver runs."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _invariant(builder, _place(builder, *arguments))

    return types.int64(types.int64, types.int64), generate


def _write(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
    """Write word `index` behind an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, index, value = arguments
        builder.store(value, _place(builder, address, index))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _call_unit(typing_context: Any, unit: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Call a unit of the driver by its address, as numba's own calls are: result and exception by reference."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = ir.IntType(8).as_pointer()
        function = ir.FunctionType(ir.IntType(32), [_WORD.as_pointer(), nothing.as_pointer(), *[_WORD] * 6])
        with builder.goto_entry_block():
            result, exception = builder.alloca(_WORD), builder.alloca(nothing)
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [result, exception, *arguments[1:]])
        return builder.load(result)

    return types.int64(*[types.int64] * 7), generate


call_unit: Any = intrinsic(_call_unit)
table: Any = intrinsic(_look_up)
get: Any = intrinsic(_get)
put: Any = intrinsic(_put)
add: Any = intrinsic(_add)
record: Any = intrinsic(_record)
word_address: Any = intrinsic(_locate)
word: Any = intrinsic(_read)
invariant_word: Any = intrinsic(_read_invariant)
put_word: Any = intrinsic(_write)
