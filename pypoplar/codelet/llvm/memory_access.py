"""How native code reaches memory: pointers to elements, loads and stores of them, and what is looked after at each."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import Span, SpanList
from pypoplar.codelet.llvm.emitter_state import EmitterState, LaidArray, Place
from pypoplar.codelet.llvm.memory_forms import (
    BOOL,
    BYTE,
    MARKED,
    WORD,
    alignment,
    load_invariant,
    memory_form,
    to_memory,
    to_register,
    word,
)
from pypoplar.interface.context_words import CallArgument
from pypoplar.interface.edge_rows import WORKER_SHIFT, RowEntry, Touch, entry_words
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.interface.layout import WORD_BYTES


def element(state: EmitterState, span: Span, index: Any) -> Any:
    """Pointer to an element."""
    form = memory_form(span.element)
    base = state.builder.inttoptr(state.place(span).address, form.as_pointer())
    return state.builder.gep(base, [index], inbounds=True, source_etype=form)


def load(state: EmitterState, span: Span, pointer: Any) -> Any:
    instruction = state.builder.load(pointer, align=alignment(span.element))
    value = to_register(state.builder, instruction, span.element)
    state.function.scopes.mark(instruction, span.name)
    return value


def store(state: EmitterState, span: Span, pointer: Any, value: Any) -> None:
    memory = to_memory(state.builder, value, span.element)
    state.function.scopes.mark(state.builder.store(memory, pointer, align=alignment(span.element)), span.name)


def note_touch(state: EmitterState, span: Span, index: Any, bit: Touch, where: int) -> None:
    """Note a read or a write of an element; constant tables have no marks.

    It is a fault if another worker has touched the element and one of the two writes, and if an Input is read that the worker has
    written through the Output that is the same tensor.
    """
    if not state.checks.touches:
        return
    builder, place = state.builder, state.place(span)
    if place.touch is None:
        return
    with builder.if_then(builder.icmp_unsigned("!=", place.touch, word(0))):
        first = builder.add(place.touch, builder.mul(index, word(span.marks)))
        for mark in range(span.marks):
            _touch(state, place, builder.add(first, word(mark)), (bit, index, where))


def _touch(state: EmitterState, place: Place, address: Any, told: tuple[Touch, Any, int]) -> None:
    """Note a read or a write, of the element at an index and by a line, at the address of a mark of it."""
    builder, (bit, index, where) = state.builder, told
    pointer = builder.inttoptr(address, BYTE.as_pointer())
    mark, own, touched = builder.load(pointer), BYTE(bit), BYTE(bit)
    if state.worker is not None:
        own = builder.or_(own, builder.shl(builder.trunc(state.worker, BYTE), BYTE(WORKER_SHIFT)))
        _check_workers(state, mark, own, address, where)
        touched = builder.select(builder.icmp_unsigned("==", mark, BYTE(0)), own, touched)
    if bit == Touch.READ and state.function.codelet.in_place:
        unwritten = builder.icmp_unsigned("==", builder.and_(mark, BYTE(Touch.WRITTEN)), BYTE(0))
        fine = builder.or_(unwritten, builder.icmp_unsigned("==", place.given, word(0)))
        state.fault_unless(fine, FaultCode.READ_AFTER_WRITE, where, index, word(0))
    builder.store(builder.or_(mark, touched), pointer)


def _check_workers(state: EmitterState, mark: Any, own: Any, address: Any, where: int) -> None:
    """An element with a mark is touched by a worker, whose mark would be `own`."""
    builder = state.builder
    untouched = builder.icmp_unsigned("==", mark, BYTE(0))
    alike = builder.icmp_unsigned("<", builder.xor(mark, own), BYTE(1 << WORKER_SHIFT))
    unwritten = builder.icmp_unsigned("==", builder.and_(builder.or_(mark, own), BYTE(Touch.WRITTEN)), BYTE(0))
    place = builder.sub(address, state.function.arguments[CallArgument.MEMORY])
    marks = builder.or_(builder.zext(mark, WORD), builder.shl(builder.zext(own, WORD), word(8)))
    fine = builder.or_(builder.or_(untouched, alike), unwritten)
    state.fault_unless(fine, FaultCode.WORKER_RACE, where, place, marks)


def check_written(state: EmitterState, span: Span, pointer: Any, index: Any, where: int) -> None:
    """A read of memory that nothing has written is a fault."""
    if not state.checks.uninitialised or span.element not in MARKED:
        return
    form = ir.IntType(8 * SIZES[span.element])
    bits = state.builder.load(pointer, typ=form, align=alignment(span.element))
    fine = state.builder.icmp_unsigned("!=", bits, form(-1))
    state.fault_unless(fine, FaultCode.UNINITIALISED, where, index, word(0))


def poison(state: EmitterState, array: LaidArray) -> None:
    """Fill a scratch array with what memory holds that nothing has written."""
    fill = state.builder.module.declare_intrinsic("llvm.memset", [BYTE.as_pointer(), WORD])
    state.builder.call(fill, [array.bytes, BYTE(0xFF), word(array.size), BOOL(0)])


def bind_row(state: EmitterState, target: Span, rows: SpanList, index: Any) -> None:
    """Bind a span to the row at an index that has been checked."""
    builder, arguments = state.builder, state.function.arguments
    laid = state.function.tables.get(rows.name)
    if laid is not None:
        assert laid.columns is not None
        place = builder.add(laid.place.address, builder.mul(index, word(laid.columns * SIZES[rows.element])))
        state.bind(target, Place(place, word(laid.columns)))
        return
    memory, table = arguments[CallArgument.MEMORY], arguments[CallArgument.ROW_TABLE]
    size = WORD_BYTES * entry_words(record_touches=state.checks.touches)
    entry = builder.add(state.place(rows).address, index)
    address = builder.add(table, builder.mul(entry, word(size)))

    def column(number: RowEntry) -> Any:
        return load_invariant(builder, builder.add(address, word(WORD_BYTES * number)))

    start, length = column(RowEntry.ADDRESS), column(RowEntry.LENGTH)
    touch = builder.add(memory, column(RowEntry.TOUCH)) if state.checks.touches else None
    state.bind(target, Place(builder.add(memory, start), length, touch, state.place(rows).given))
