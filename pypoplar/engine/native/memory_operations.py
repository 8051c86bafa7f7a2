"""Machine operations of native code: memory by address, calls by address, atomics and a polite wait.

An address is a word. What is loaded is widened to a word, with its sign if it has one; a stored word is cut. Nothing here checks
bounds. No address of this process is written into code that uses them.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from llvmlite import ir

from pypoplar.engine.native.unit import llvm_operation
from pypoplar.host_code.machine import YIELD_SYMBOL, register_yield
from pypoplar.interface.context_words import CALL_ARGUMENTS, CallArgument
from pypoplar.interface.layout import WORD_BYTES

_WORD, _BYTE, _BOOL, _INT = (ir.IntType(bits) for bits in (8 * WORD_BYTES, 8, 1, 32))

register_yield()


def _pointer(builder: Any, address: Any, form: Any) -> Any:
    return builder.inttoptr(address, form.as_pointer())


def _alignment(form: Any) -> int:
    """Elements are aligned to their size, 8-byte elements of a tile's memory to 4 bytes only."""
    return min(int(form.width) // 8, 4)


def _loader(form: Any, widen: str) -> Any:
    def load(builder: Any, address: Any) -> Any:
        value = builder.load(_pointer(builder, address, form), align=_alignment(form), typ=form)
        return getattr(builder, widen)(value, _WORD) if form != _WORD else value

    return llvm_operation(load)


def _storer(form: Any) -> Any:
    def store(builder: Any, address: Any, value: Any) -> None:
        cut = builder.trunc(value, form) if form != _WORD else value
        builder.store(cut, _pointer(builder, address, form), align=_alignment(form))

    return llvm_operation(store)


load_u8, load_i32, load_u32, load_i64 = _loader(_BYTE, "zext"), _loader(_INT, "sext"), _loader(_INT, "zext"), _loader(_WORD, "")
store_u8, store_u32, store_i64 = _storer(_BYTE), _storer(_INT), _storer(_WORD)


_ARGUMENTS = (
    CallArgument.MEMORY, CallArgument.ROWS, CallArgument.ROW_TABLE, CallArgument.COUNT, CallArgument.SLOTS, CallArgument.RESULTS,
    CallArgument.CONTEXT,
)  # fmt: skip


@llvm_operation
def call_codelet(builder: Any, address: Any, *arguments: Any) -> None:
    """Run the codelet whose native code is at `address` on a group of vertices; 3 ns a call.

    The other arguments are those of `CallArgument`: addresses of the memory, the edge rows, the row table, the count of vertices,
    addresses of their slots, results (or 0) and of the context.
    """
    function = ir.FunctionType(ir.VoidType(), [_WORD] * CALL_ARGUMENTS)
    passed = [_WORD(0)] * CALL_ARGUMENTS
    for place, argument in zip(_ARGUMENTS, arguments, strict=True):
        passed[place] = argument
    builder.call(_pointer(builder, address, function), passed)


@llvm_operation
def copy_memory(builder: Any, target: Any, source: Any, size: Any) -> None:
    """Copy `size` bytes from address `source` to address `target`, which may not overlap."""
    pointer = _BYTE.as_pointer()
    copy = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, _WORD])
    builder.call(copy, [_pointer(builder, target, _BYTE), _pointer(builder, source, _BYTE), size, _BOOL(0)])


@llvm_operation
def atomic_add(builder: Any, address: Any, value: Any) -> Any:
    """Add to the word at an 8-byte aligned address; returns what was there before."""
    return builder.atomic_rmw("add", _pointer(builder, address, _WORD), value, "seq_cst")


@llvm_operation
def atomic_load(builder: Any, address: Any) -> Any:
    """The word at an 8-byte aligned address (acquire)."""
    return builder.load_atomic(_pointer(builder, address, _WORD), "acquire", WORD_BYTES, typ=_WORD)


@llvm_operation
def atomic_store(builder: Any, address: Any, value: Any) -> None:
    """Write the word at an 8-byte aligned address (release)."""
    builder.store_atomic(value, _pointer(builder, address, _WORD), "release", WORD_BYTES)


@llvm_operation
def pause(builder: Any) -> None:
    """Tell the processor that this is a spin loop; about 40 cycles on x86, nothing elsewhere."""
    machine = llvmlite.binding.get_process_triple()
    function = ir.FunctionType(ir.VoidType(), [])
    if machine.startswith(("x86_64", "i386", "i686")):
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), function), [])
    elif machine.startswith(("aarch64", "arm64")):
        builder.asm(function, "yield", "", [], side_effect=True)


@llvm_operation
def yield_processor(builder: Any) -> None:
    """Let another thread of the system run."""
    module = builder.module
    if YIELD_SYMBOL not in module.globals:
        ir.Function(module, ir.FunctionType(_INT, []), YIELD_SYMBOL)
    builder.call(module.globals[YIELD_SYMBOL], [])
