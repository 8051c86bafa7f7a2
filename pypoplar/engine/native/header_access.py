"""Access to the driver's header and its tables, as operations of native code: they cost the driver's compilation nothing."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


def _word(builder: Any, address: Any, index: Any) -> Any:
    return builder.gep(builder.inttoptr(address, _WORD.as_pointer()), [index])


def _table(builder: Any, header: Any, which: Any) -> Any:
    """The header does not change while the driver runs, and LLVM may know it."""
    value = builder.load(_word(builder, header, which))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _look_up(typing_context: Any, header: Any, which: Any) -> Any:
    """The address of a table, or a number that stands in the header itself."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _table(builder, *arguments)

    return types.int64(types.int64, types.int64), generate


def _get(typing_context: Any, header: Any, which: Any, index: Any) -> Any:
    """Word `index` of a table."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header, which, index = arguments
        return builder.load(_word(builder, _table(builder, header, which), index))

    return types.int64(types.int64, types.int64, types.int64), generate


def _put(typing_context: Any, header: Any, which: Any, index: Any, value: Any) -> Any:
    """Write word `index` of a table."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        header, which, index, value = arguments
        builder.store(value, _word(builder, _table(builder, header, which), index))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


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
