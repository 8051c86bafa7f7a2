"""Machine operations that numba lacks: memory by raw address, calls by address, atomics and a polite wait.

An address is an ``int64``. `LOAD`, `LOAD_INVARIANT` and `STORE` hold one intrinsic per memory code; a loaded value has the
memory's own type (``int8`` for ``i8``, the raw ``uint16`` for ``f16``, ``boolean`` for ``bool``), and a stored value is cast to
it. The commonest have names of their own (`load_i64`, `store_i64`, ...). Nothing here checks bounds.

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

MEMORY_TYPES: dict[str, Any] = {
    "f32": types.float32,
    "f16": types.uint16,  # the bits of a half
    "i8": types.int8,
    "u8": types.uint8,
    "i16": types.int16,
    "u16": types.uint16,
    "i32": types.int32,
    "u32": types.uint32,
    "i64": types.int64,
    "u64": types.uint64,
    "bool": types.boolean,
}
_WORD = ir.IntType(64)
_BYTE = ir.IntType(8)


register_yield()


def _memory_form(code: str) -> ir.Type:
    """The LLVM type that stands in memory for a memory code."""
    if code == "f32":
        return ir.FloatType()
    return ir.IntType(8 if code == "bool" else MEMORY_TYPES[code].bitwidth)


def _alignment(code: str) -> int:
    """Elements are aligned to their size, 8-byte elements of a tile's memory to 4 bytes only."""
    return {"i8": 1, "u8": 1, "bool": 1, "f16": 2, "i16": 2, "u16": 2}.get(code, 4)


def _make(name: str, purpose: str, typing: Callable[..., Any]) -> Any:
    typing.__name__ = typing.__qualname__ = name
    typing.__doc__ = purpose
    return intrinsic(typing)


def _loader(code: str, *, invariant: bool) -> Any:
    def load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            form = _memory_form(code)
            value = builder.load(builder.inttoptr(arguments[0], form.as_pointer()), align=_alignment(code))
            if invariant:
                value.set_metadata("invariant.load", builder.module.add_metadata([]))
            return builder.icmp_unsigned("!=", value, _BYTE(0)) if code == "bool" else value

        return MEMORY_TYPES[code](types.int64), generate

    kind = "that nothing writes while the code runs" if invariant else "as it is now"
    return _make(f"load_{code}{'_invariant' if invariant else ''}", f"The {code} at `address`, {kind}.", load)


def _storer(code: str) -> Any:
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, value = arguments
            form = _memory_form(code)
            if code == "bool":
                value = builder.zext(value, _BYTE)
            builder.store(value, builder.inttoptr(address, form.as_pointer()), align=_alignment(code))
            return context.get_dummy_value()

        return types.void(types.int64, MEMORY_TYPES[code]), generate

    return _make(f"store_{code}", f"Write a {code} at `address`.", store)


LOAD: dict[str, Any] = {code: _loader(code, invariant=False) for code in MEMORY_TYPES}
LOAD_INVARIANT: dict[str, Any] = {code: _loader(code, invariant=True) for code in MEMORY_TYPES}
STORE: dict[str, Any] = {code: _storer(code) for code in MEMORY_TYPES}

load_i64 = LOAD["i64"]
load_i64_invariant = LOAD_INVARIANT["i64"]
store_i64 = STORE["i64"]
load_i32, load_u32, load_f32, load_u8, load_bool = LOAD["i32"], LOAD["u32"], LOAD["f32"], LOAD["u8"], LOAD["bool"]
store_i32, store_u32, store_f32, store_u8, store_bool = STORE["i32"], STORE["u32"], STORE["f32"], STORE["u8"], STORE["bool"]


def _array_address(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.int64(array), generate


array_address = _make("array_address", "The address of an array's first element; the caller keeps the array alive.", _array_address)


def _call_codelet(
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
        function = ir.FunctionType(ir.VoidType(), [_WORD] * 7)
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
        return target.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


call_codelet = _make(
    "call_codelet",
    """Run the codelet whose native code is at `address` on a group of vertices; 3 ns a call.

    The other arguments are those of `pypoplar.codelet.llvm.codelet_code`: addresses of the memory, the edge rows, the row table,
    the count of vertices, addresses of their slots, results (or 0) and of the context. All are ``int64``.
    """,
    _call_codelet,
)


def _copier(name: str, purpose: str) -> Any:
    def copy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, source, size = arguments
            pointer = _BYTE.as_pointer()
            function = builder.module.declare_intrinsic(f"llvm.{name}", [pointer, pointer, _WORD])
            arguments = [builder.inttoptr(target, pointer), builder.inttoptr(source, pointer), size, ir.IntType(1)(0)]
            builder.call(function, arguments)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return _make({"memcpy": "copy_memory", "memmove": "move_memory"}[name], purpose, copy)


copy_memory = _copier("memcpy", "Copy `size` bytes from address `source` to address `target`, which may not overlap.")
move_memory = _copier("memmove", "Copy `size` bytes from address `source` to address `target`, which may overlap.")


def _fill_memory(typing_context: Any, target: Any, value: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, value, size = arguments
        pointer = _BYTE.as_pointer()
        function = builder.module.declare_intrinsic("llvm.memset", [pointer, _WORD])
        builder.call(function, [builder.inttoptr(target, pointer), value, size, ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.uint8, types.int64), generate


fill_memory = _make("fill_memory", "Set `size` bytes from address `target` to the byte `value`.", _fill_memory)


def _atomic_add(typing_context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], _WORD.as_pointer()), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


def _atomic_load(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(arguments[0], _WORD.as_pointer()), "acquire", 8)

    return types.int64(types.int64), generate


def _atomic_store(typing_context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], builder.inttoptr(arguments[0], _WORD.as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _atomic_exchange(typing_context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("xchg", builder.inttoptr(arguments[0], _WORD.as_pointer()), arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


atomic_add = _make("atomic_add", "Add to the int64 at an 8-byte aligned address; returns what was there before.", _atomic_add)
atomic_load = _make("atomic_load", "The int64 at an 8-byte aligned address (acquire).", _atomic_load)
atomic_store = _make("atomic_store", "Write the int64 at an 8-byte aligned address (release).", _atomic_store)
atomic_exchange = _make(
    "atomic_exchange", "Write the int64 at an aligned address; returns what was there before.", _atomic_exchange
)


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
