"""Machine operations that numba lacks: memory by raw address, calls by address, atomics and a polite wait.

An address is an ``int64``. A loaded value has the memory's own type, and a stored value is cast to it. Nothing here checks bounds.

These functions can only be called from jitted code. Code that uses them can be cached on disk: no address of this process
is written into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pypoplar.codelet.llvm.machine import YIELD_SYMBOL, register_yield
from pypoplar.interface.context_words import CALL_ARGUMENTS, CallArgument
from pypoplar.interface.layout import WORD_BYTES

_WORD = ir.IntType(8 * WORD_BYTES)
_BYTE = ir.IntType(8)


register_yield()


def _make(name: str, purpose: str, typing: Callable[..., Any]) -> Any:
    typing.__name__ = typing.__qualname__ = name
    typing.__doc__ = purpose
    return intrinsic(typing)


def _pointer(builder: Any, address: Any, form: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(form.bitwidth).as_pointer())


def _alignment(form: Any) -> int:
    """Elements are aligned to their size, 8-byte elements of a tile's memory to 4 bytes only."""
    return min(int(form.bitwidth) // 8, 4)


def _loader(form: Any) -> Any:
    def load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_pointer(builder, arguments[0], form), align=_alignment(form))

        return form(types.int64), generate

    return _make(f"load_{form.name}", f"The {form.name} at `address`.", load)


def _storer(form: Any) -> Any:
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, value = arguments
            builder.store(value, _pointer(builder, address, form), align=_alignment(form))
            return context.get_dummy_value()

        return types.void(types.int64, form), generate

    return _make(f"store_{form.name}", f"Write the {form.name} at `address`.", store)


load_u8, load_i32, load_u32, load_i64 = (_loader(form) for form in (types.uint8, types.int32, types.uint32, types.int64))
store_u8, store_u32, store_i64 = (_storer(form) for form in (types.uint8, types.uint32, types.int64))


_ARGUMENTS = (
    CallArgument.MEMORY, CallArgument.ROWS, CallArgument.ROW_TABLE, CallArgument.COUNT, CallArgument.SLOTS, CallArgument.RESULTS,
    CallArgument.CONTEXT,
)  # fmt: skip


def _call_codelet(  # noqa: PLR0913 - the call's arguments
    typing_context: Any,
    address: Any,
    memory: Any,
    rows: Any,
    row_table: Any,
    count: Any,
    slots: Any,
    results: Any,
    context: Any,
) -> Any:
    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_WORD] * CALL_ARGUMENTS)
        passed = [_WORD(0)] * CALL_ARGUMENTS
        for place, argument in zip(_ARGUMENTS, arguments[1:], strict=True):
            passed[place] = argument
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), passed)
        return target.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


call_codelet = _make(
    "call_codelet",
    """Run the codelet whose native code is at `address` on a group of vertices; 3 ns a call.

    The other arguments are those of `CallArgument`: addresses of the memory, the edge rows, the row table, the count of vertices,
    addresses of their slots, results (or 0) and of the context. All are ``int64``.
    """,
    _call_codelet,
)


def _copy_memory(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, source, size = arguments
        pointer = _BYTE.as_pointer()
        function = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, _WORD])
        arguments = [builder.inttoptr(target, pointer), builder.inttoptr(source, pointer), size, ir.IntType(1)(0)]
        builder.call(function, arguments)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


copy_memory = _make(
    "copy_memory", "Copy `size` bytes from address `source` to address `target`, which may not overlap.", _copy_memory
)


def _atomic_add(typing_context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], _WORD.as_pointer()), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


def _atomic_load(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(arguments[0], _WORD.as_pointer()), "acquire", WORD_BYTES)

    return types.int64(types.int64), generate


def _atomic_store(typing_context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], builder.inttoptr(arguments[0], _WORD.as_pointer()), "release", WORD_BYTES)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


atomic_add = _make("atomic_add", "Add to the int64 at an 8-byte aligned address; returns what was there before.", _atomic_add)
atomic_load = _make("atomic_load", "The int64 at an 8-byte aligned address (acquire).", _atomic_load)
atomic_store = _make("atomic_store", "Write the int64 at an 8-byte aligned address (release).", _atomic_store)


def _pause(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        machine = llvmlite.binding.get_process_triple()
        if machine.startswith(("x86_64", "i386", "i686")):
            function = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), function), [])
        elif machine.startswith(("aarch64", "arm64")):
            builder.asm(ir.FunctionType(ir.VoidType(), []), "yield", "", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), generate


def _yield_processor(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        declare: Any = cgutils.get_or_insert_function
        builder.call(declare(builder.module, ir.FunctionType(ir.IntType(32), []), YIELD_SYMBOL), [])
        return context.get_dummy_value()

    return types.void(), generate


pause = _make("pause", "Tell the processor that this is a spin loop; about 40 cycles on x86, nothing elsewhere.", _pause)
yield_processor = _make("yield_processor", "Let another thread of the system run.", _yield_processor)
