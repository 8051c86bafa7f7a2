"""Writes the statements of a codelet as LLVM instructions: `emit` has a function for each kind of statement."""

from __future__ import annotations

from typing import Any, assert_never

from pypoplar.codelet.ir.loop_checks import never_faults
from pypoplar.codelet.ir.proven_accesses import PlannedStatement, ProvenLoad, ProvenStore, Rebind
from pypoplar.codelet.ir.typed import (
    Apply,
    ApplyToVectors,
    Break,
    Breakpoint,
    Check,
    Continue,
    DebugPrint,
    For,
    IfElse,
    Leave,
    Length,
    Load,
    Member,
    Once,
    Price,
    Return,
    Row,
    Scratch,
    Slice,
    Span,
    SpanList,
    Special,
    Store,
    ViewAs,
    While,
)
from pypoplar.codelet.llvm import arithmetic
from pypoplar.codelet.llvm.debug_and_random import LlvmReadingEmitter, emit_debug_print, emit_special
from pypoplar.codelet.llvm.emitter_state import EmitterState, Place
from pypoplar.codelet.llvm.loop_code import emit_for, emit_while
from pypoplar.codelet.llvm.loop_rounds import line_offset, line_pointer
from pypoplar.codelet.llvm.memory_access import bind_row, check_written, element, load, note_touch, poison, store
from pypoplar.codelet.llvm.memory_forms import BYTE, INT, as_read_back, widened, word
from pypoplar.codelet.llvm.vector_code import emit_vector_operation
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.interface.context_words import Context
from pypoplar.interface.edge_rows import Touch
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode


def emit(state: EmitterState, statement: PlannedStatement) -> None:  # noqa: C901, PLR0912, PLR0915 - an arm for each statement
    """Write a statement where the function's builder stands."""
    match statement:
        case Apply():
            emit_apply(state, statement)
        case Load():
            emit_load(state, statement)
        case Store():
            emit_store(state, statement)
        case ProvenLoad(target=target, span=span, index=line):
            pointer = line_pointer(state, span, line, line_offset(state, line))
            state.assign(target, load(state, span, pointer))
        case ProvenStore(span=span, index=line, value=operand):
            pointer = line_pointer(state, span, line, line_offset(state, line))
            store(state, span, pointer, state.value(operand))
        case Length(target=target, span=spans):
            state.assign(target, state.builder.trunc(state.place(spans).length, INT))
        case Row(target=row, rows=rows, index=index, where=where):
            number = state.index(index)
            state.check_index(number, state.place(rows).length, FaultCode.ROW_INDEX, where)
            bind_row(state, row, rows, number)
        case Slice():
            emit_slice(state, statement)
        case Scratch(target=target, array=array):
            emit_scratch(state, target, array)
        case Member():
            emit_member(state, statement)
        case ViewAs():
            emit_view_as(state, statement)
        case Rebind(target=row, source=source):
            state.bind(row, state.place(source))
        case IfElse():
            emit_if(state, statement)
        case While():
            emit_while(state, statement)
        case For():
            emit_for(state, statement)
        case ApplyToVectors():
            emit_vector_operation(state, statement)
        case Once():
            emit_once(state, statement)
        case Leave():
            state.builder.branch(state.leaves[-1])
        case Break():
            state.builder.branch(state.loops[-1].after)
        case Continue():
            state.builder.branch(state.loops[-1].following)
        case Return():
            emit_return(state, statement)
        case Price(block=block):
            state.spend(statement)
            state.count_block(block)
        case Check(condition=condition, message=message, where=where):
            state.fault_unless(state.value(condition), FaultCode.CHECK, where, word(message), word(0))
        case DebugPrint():
            emit_debug_print(state, statement)
        case Special():
            emit_special(state, statement)
        case Breakpoint():
            pass  # only the interpreter runs it
        case _:
            assert_never(statement)


# Control flow


def emit_if(state: EmitterState, statement: IfElse) -> None:
    builder = state.builder
    then, orelse, after = (builder.append_basic_block(name) for name in ("if.then", "if.else", "if.end"))
    builder.cbranch(state.value(statement.condition), then, orelse)
    for start, block in ((then, statement.then), (orelse, statement.orelse)):
        builder.position_at_end(start)
        state.emit_block(block)
        state.go(after)
    builder.position_at_end(after)


def emit_once(state: EmitterState, statement: Once) -> None:
    after = state.builder.append_basic_block("once.end")
    state.leaves.append(after)
    state.emit_block(statement.body)
    state.leaves.pop()
    state.go(after)
    state.builder.position_at_end(after)


def emit_return(state: EmitterState, statement: Return) -> None:
    builder = state.builder
    if statement.value is not None:
        returned = builder.zext(state.value(statement.value), BYTE)
        builder.store(builder.and_(builder.load(state.result), returned), state.result)
    builder.branch(state.end)


# Operations


def emit_apply(state: EmitterState, statement: Apply) -> None:
    builder, name = state.builder, statement.operation
    arguments = [state.value(argument) for argument in statement.arguments]
    if not never_faults(statement):
        _check_operands(state, statement, arguments[-1])
    bits = LlvmReadingEmitter(state).next_random() if state.rounds_at_random(statement) else None
    result = arithmetic.emit(builder, name, arguments, bits)
    if state.checks.floating_point and statement.target.type in FLOATS:
        mask = state.function.load_context(Context.FLOATING_POINT)
        code = arithmetic.emit_floating_fault(builder, name, mask, result, arguments)
        fine = builder.icmp_signed("==", code, word(NO_FAULT))
        state.fault_unless(fine, code, statement.where, word(0), word(0))
    state.assign(statement.target, result)


def _check_operands(state: EmitterState, statement: Apply, last: Any) -> None:
    """An integer operation whose last argument may make it an error."""
    builder, fault = state.builder, typed_operation(statement.operation).fault
    assert fault is not None
    faulty = arithmetic.emit_operand_fault(builder, statement.operation, last)
    value = widened(builder, last, statement.arguments[-1].type)
    state.fault_unless(builder.not_(faulty), fault.code, statement.where, value, word(fault.bound))


# Fields


def emit_load(state: EmitterState, statement: Load) -> None:
    span, target = statement.span, statement.target
    if not statement.checked and span.name in state.scalars:
        state.assign(target, state.builder.load(state.scalars[span.name]))
        return
    index = state.index(statement.index)
    if statement.checked:
        state.check_index(index, state.place(span).length, FaultCode.INDEX, statement.where)
    pointer = element(state, span, index)
    note_touch(state, span, index, Touch.READ, statement.where)
    check_written(state, span, pointer, index, statement.where)
    state.assign(target, load(state, span, pointer))


def emit_store(state: EmitterState, statement: Store) -> None:
    span = statement.span
    value = state.value(statement.value)
    index = state.index(statement.index)
    if statement.checked:
        state.check_index(index, state.place(span).length, FaultCode.INDEX, statement.where)
    note_touch(state, span, index, Touch.WRITTEN, statement.where)
    if not state.holds_back:
        store(state, span, element(state, span, index), value)
    elif span.name not in state.scalars:
        state.scalars[span.name] = state.function.allocate(value.type)
    if span.name in state.scalars:
        state.builder.store(as_read_back(state.builder, value, span.element), state.scalars[span.name])


def emit_slice(state: EmitterState, statement: Slice) -> None:
    """``0 <= begin <= end <= len``; of two bounds that are wrong the end is the one that is named."""
    builder = state.builder
    place = state.place(statement.span)
    begin, end = state.index(statement.begin), state.index(statement.end)
    code, where = FaultCode.SLICE_BOUNDS, statement.where
    state.fault_unless(builder.icmp_unsigned("<=", end, place.length), code, where, end, place.length)
    state.fault_unless(builder.icmp_unsigned("<=", begin, end), code, where, begin, end)
    spans = statement.span
    if isinstance(spans, SpanList):  # a list is where its first row is told of
        state.bind(statement.target, Place(builder.add(place.address, begin), builder.sub(end, begin), None, place.given))
        return
    offset = builder.mul(begin, word(spans.size))
    touch = _moved_marks(state, place, builder.mul(begin, word(spans.marks)))
    state.bind(statement.target, Place(builder.add(place.address, offset), builder.sub(end, begin), touch, place.given))


def emit_scratch(state: EmitterState, target: Span, array: str) -> None:
    laid = state.function.arrays[array]
    poison(state, laid)
    state.bind(target, laid.place)


def _moved_marks(state: EmitterState, place: Place, marks: Any) -> Any:
    """Where the touches of a span's part are recorded, so many marks behind its beginning; 0 where those of the span are not."""
    if place.touch is None:
        return None
    builder = state.builder
    none = builder.icmp_unsigned("==", place.touch, word(0))
    return builder.select(none, word(0), builder.add(place.touch, marks))


def emit_member(state: EmitterState, statement: Member) -> None:
    builder, span, index = state.builder, statement.span, state.index(statement.index)
    place = state.place(span)
    state.check_index(index, place.length, FaultCode.INDEX, statement.where)
    offset = builder.add(builder.mul(index, word(span.size)), word(statement.offset))
    touch = _moved_marks(state, place, offset)
    state.bind(statement.target, Place(builder.add(place.address, offset), word(statement.length), touch, place.given))


def emit_view_as(state: EmitterState, statement: ViewAs) -> None:
    builder, place, where = state.builder, state.place(statement.span), statement.where
    alignment, size = word(statement.alignment), word(statement.target.size)
    beyond = builder.urem(place.address, alignment)
    state.fault_unless(builder.icmp_unsigned("==", beyond, word(0)), FaultCode.VIEW_ALIGNMENT, where, beyond, alignment)
    whole = builder.icmp_unsigned("==", builder.urem(place.length, size), word(0))
    state.fault_unless(whole, FaultCode.VIEW_SIZE, where, place.length, size)
    state.bind(statement.target, Place(place.address, builder.udiv(place.length, size), place.touch, place.given))
