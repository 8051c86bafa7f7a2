"""What vertices print: collected while the program runs, written in order of steps and vertices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, TextIO, assert_never

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.printing import format_element
from pypoplar.executable.executable import Executable
from pypoplar.interface.context_words import CONTEXT_WORDS, Context
from pypoplar.interface.debug_records import (
    GROUP_MARK,
    MARK_WORDS,
    NO_MARK,
    RECORD_WORDS,
    VALUE_WORDS,
    Mark,
    PrintRecord,
    Value,
    ValueType,
)
from pypoplar.interface.header_slots import Slot


@frozen(order=False)
class DebugRecord:
    """One call of ``print`` or ``ipu.debug_print``."""

    sequence: int  # compute sets that ran before, which orders the steps of a run
    vertex: int
    text: str
    values: tuple[Any, ...]

    def shown(self) -> str:
        """The text with its values in their places, as Python would print them."""
        return self.text.format(*map(_Shown, self.values))


@frozen
class _Shown:
    """A value as it is printed: with its format, or else as `PrintTensor` prints elements."""

    value: Any

    def __format__(self, spec: str) -> str:
        number = self.value.item() if isinstance(self.value, np.generic) else self.value
        return format(int(number) if isinstance(number, bool) else number, spec) if spec else format_element(number)


def read_buffer(executable: Executable, buffer: Int64s) -> Iterator[DebugRecord]:
    """The records of one thread's buffer; see `pypoplar.interface.debug_records` for their form.

    They end where nothing has been recorded. What does not fit into the buffer is left out; the mark of the group whose records
    come last may lie behind it.
    """
    words = buffer[:-MARK_WORDS]
    waiting: list[tuple[int, int, tuple[Any, ...]]] = []
    position = 0
    while position + MARK_WORDS <= len(words) and words[position + Mark.MARK] != NO_MARK:
        if words[position + Mark.MARK] == GROUP_MARK:
            yield from _of_group(executable, waiting, words[position : position + MARK_WORDS])
            waiting = []
            position += MARK_WORDS
            continue
        record = words[position : position + RECORD_WORDS]
        end = position + RECORD_WORDS + VALUE_WORDS * int(record[PrintRecord.VALUES])
        values = words[position + RECORD_WORDS : end].reshape(-1, VALUE_WORDS)
        shown = tuple(_value(ValueType(value[Value.TYPE]), value[Value.BITS]) for value in values)
        waiting.append((int(record[PrintRecord.VERTEX]), int(record[PrintRecord.TEXT]), shown))
        position = end
    if waiting and buffer[len(words) + Mark.MARK] == GROUP_MARK:
        yield from _of_group(executable, waiting, buffer[len(words) :])


def _of_group(executable: Executable, records: list[tuple[int, int, tuple[Any, ...]]], mark: Int64s) -> Iterator[DebugRecord]:
    group, sequence = int(mark[Mark.GROUP]), int(mark[Mark.SEQUENCE])
    computes = executable.computes
    typed = executable.codelets[int(computes.group_codelet[group])].typed
    for row, text, values in records:
        vertex = int(computes.vertex[int(computes.group_position[group]) + row])
        yield DebugRecord(sequence, vertex, typed.texts[text], values)


def _value(type: ValueType, bits: np.int64) -> Any:
    match type:
        case ValueType.f32 | ValueType.f16:
            return np.array(bits).view(np.float64)[()]
        case ValueType.bool:
            return np.bool_(bits != 0)
        case ValueType.u64:
            return np.array(bits).view(np.uint64)[()]
        case ValueType.i32 | ValueType.u32 | ValueType.i64:
            return bits
        case _:
            assert_never(type)


def native_prints(state: EngineState) -> list[DebugRecord]:
    """All that vertices of the native engine have printed since the buffers were empty."""
    used = state.rows(Slot.CONTEXTS, CONTEXT_WORDS)[:, Context.DEBUG_USED]
    buffers = [buffer for buffer, words in zip(state.debug_buffers, used, strict=True) if words]
    return [record for buffer in buffers for record in read_buffer(state.executable, buffer)]


def prints_lost(state: EngineState) -> bool:
    """Whether more has been printed than the buffers hold. A mark that does not fit is not lost, and shorter than any record."""
    used = state.rows(Slot.CONTEXTS, CONTEXT_WORDS)[:, Context.DEBUG_USED]
    return bool((used > state.debug_buffers.shape[1]).any())


def clear_prints(state: EngineState) -> None:
    """Empty the buffers."""
    contexts = state.rows(Slot.CONTEXTS, CONTEXT_WORDS)
    for thread, buffer in enumerate(state.debug_buffers):
        used = int(contexts[thread, Context.DEBUG_USED])
        buffer[:used] = NO_MARK
        if used:
            buffer[-MARK_WORDS:] = NO_MARK
    contexts[:, Context.DEBUG_USED] = 0


def write_prints(prints: list[DebugRecord], tiles: Int64s, out: TextIO, whose: str = "") -> None:
    """Print in order of steps, then vertices, then as each vertex printed; `whose` stands before the tile.

    A line that a vertex leaves open ends with its step.
    """
    ordered = sorted(prints, key=lambda record: (record.sequence, record.vertex))
    for (_, vertex), records in groupby(ordered, key=lambda record: (record.sequence, record.vertex)):
        text = "\n"
        for shown in filter(None, (record.shown() for record in records)):
            out.write(f"[{whose}tile {int(tiles[vertex])}, vertex {vertex}] {shown}" if text.endswith("\n") else shown)
            text = shown
        if not text.endswith("\n"):
            out.write("\n")
