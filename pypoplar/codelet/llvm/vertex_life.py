"""Where a vertex begins and where it ends, in native code: its edge row is read; its slots, its work and its result are left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

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
    state = EmitterState(function, emit, number, end, failed or end, slots, result, fields, work, function.block_counters())
    state.begin_counting()
    state.begin_blocks()
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
    leave_blocks(state, state.blocks)
    leave_result(state)


def leave_counts(state: EmitterState, number: Any) -> None:
    """Leave what a vertex, or a worker of one, has cost, as entry `number` of the tables."""
    builder, function = state.builder, state.function
    _leave_word(builder, function.arguments[CallArgument.SLOTS], number, builder.load(state.slots))
    if state.work:
        table, first = function.load_context(Context.WORK), builder.mul(number, word(WORK_WORDS))
        for column, counter in {**state.work, Work.COMPILED: state.slots}.items():
            _leave_word(builder, table, builder.add(first, word(column)), builder.load(counter))


def leave_blocks(state: EmitterState, counters: Mapping[int, Any]) -> None:
    """Add what a vertex has counted, in stack slots by number of the block, to the table of its kind."""
    builder, function = state.builder, state.function
    if not function.counts_with:
        return
    table = function.load_context(Context.BLOCKS)
    counts = {block: builder.load(counter) for block, counter in counters.items()}
    for block, leader in enumerate(function.counts_with):
        address = builder.inttoptr(builder.add(table, word(WORD_BYTES * block)), WORD.as_pointer())
        builder.store(builder.add(builder.load(address, align=8), counts[leader]), address, align=8)


@frozen(eq=False)
class BusiestWorker:
    """Of a MultiVertex: the blocks of the worker that takes longest, of the first if several do. All wait for it."""

    slots: Any  # stack slot, i64
    blocks: Mapping[int, Any]  # of stack slots, by number

    @staticmethod
    def begin(state: EmitterState) -> BusiestWorker:
        function = state.function
        busiest = BusiestWorker(function.allocate(WORD), function.block_counters())
        if busiest.blocks:
            state.builder.store(word(-1), busiest.slots)
        return busiest

    def take(self, state: EmitterState) -> None:
        """A worker has come to its end."""
        if not self.blocks:
            return
        builder, spent = state.builder, state.builder.load(state.slots)
        with builder.if_then(builder.icmp_signed(">", spent, builder.load(self.slots)), likely=False):
            builder.store(spent, self.slots)
            for block, counter in self.blocks.items():
                builder.store(builder.load(state.blocks[block]), counter)


def leave_result(state: EmitterState) -> None:
    builder, results = state.builder, state.function.arguments[CallArgument.RESULTS]
    with builder.if_then(builder.icmp_signed("!=", results, word(0))):
        address = builder.inttoptr(builder.add(results, state.number), BYTE.as_pointer())
        builder.store(builder.load(state.result), address)


def _leave_word(builder: Any, table: Any, number: Any, value: Any) -> None:
    address = builder.add(table, builder.mul(number, word(WORD_BYTES)))
    builder.store(value, builder.inttoptr(address, WORD.as_pointer()), align=8)
