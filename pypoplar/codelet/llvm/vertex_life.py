"""Where a vertex begins and where it ends, in native code: its edge row is read; its slots, its work and its result are left."""

from __future__ import annotations

from typing import Any

from pypoplar.codelet.ir.typed import Span
from pypoplar.codelet.llvm.emitter_state import COUNTED, CodeletFunction, Emit, EmitterState, Place
from pypoplar.codelet.llvm.memory_access import element, load
from pypoplar.codelet.llvm.memory_forms import BYTE, WORD, load_invariant, word
from pypoplar.interface.context_words import WORK_WORDS, CallArgument, Context, Work
from pypoplar.interface.layout import NOTHING, WORD_BYTES


def begin_vertex(function: CodeletFunction, emit: Emit, number: Any, end: Any, failed: Any = None) -> EmitterState:
    """The vertex with edge row `number` of the group; it ends at the block `end`, after a fault at `failed`."""
    builder, arguments = function.builder, function.arguments
    row = builder.add(arguments[CallArgument.ROWS], builder.mul(number, word(WORD_BYTES * function.layout.words)))

    def words_of(at: int) -> Any:
        return load_invariant(builder, builder.add(row, word(WORD_BYTES * at)))

    memory = arguments[CallArgument.MEMORY]
    fields = {}
    for field, words in zip(function.codelet.fields, function.layout.fields, strict=True):
        start = words_of(words.start)
        count = words_of(words.extent) if words.extent != NOTHING else word(1)
        if field.unit > 1:
            count = builder.udiv(count, word(field.unit))
        touch = builder.add(memory, words_of(words.touch)) if words.touch != NOTHING else None
        address = start if field.form == "list" else builder.add(memory, start)
        fields[field.name] = Place(address, count, touch, word(int(field.access == "input")))
    slots, result = function.allocate(WORD), function.allocate(BYTE)
    work = {column: function.allocate(WORD) for column in COUNTED} if function.checks.flops else {}
    state = EmitterState(function, emit, number, end, failed or end, slots, result, fields, work)
    state.begin_counting()
    builder.store(BYTE(1), result)
    load_scalars(state)
    return state


def load_scalars(state: EmitterState) -> None:
    """Take the values of the scalar fields into locals."""
    for field in state.function.codelet.fields:
        if field.form == "scalar" and field.name in state.function.kept:
            span = Span(field.name, field.element)
            value = load(state, span, element(state, span, word(0)))
            state.scalars.setdefault(field.name, state.function.allocate(value.type))
            state.builder.store(value, state.scalars[field.name])


def end_vertex(state: EmitterState) -> None:
    """The end of a vertex; both those that fault and those that do not come here."""
    state.go(state.end)
    state.builder.position_at_end(state.end)
    leave_counts(state, state.number)
    leave_result(state)


def leave_counts(state: EmitterState, number: Any) -> None:
    """Leave what a vertex, or a worker of one, has cost, as entry `number` of the tables."""
    builder, function = state.builder, state.function
    _leave_word(builder, function.arguments[CallArgument.SLOTS], number, builder.load(state.slots))
    if state.work:
        table, first = function.load_context(Context.WORK), builder.mul(number, word(WORK_WORDS))
        for column, counter in {**state.work, Work.COMPILED: state.slots}.items():
            _leave_word(builder, table, builder.add(first, word(column)), builder.load(counter))


def leave_result(state: EmitterState) -> None:
    builder, results = state.builder, state.function.arguments[CallArgument.RESULTS]
    with builder.if_then(builder.icmp_signed("!=", results, word(0))):
        address = builder.inttoptr(builder.add(results, state.number), BYTE.as_pointer())
        builder.store(builder.load(state.result), address)


def _leave_word(builder: Any, table: Any, number: Any, value: Any) -> None:
    address = builder.add(table, builder.mul(number, word(WORD_BYTES)))
    builder.store(value, builder.inttoptr(address, WORD.as_pointer()), align=8)
