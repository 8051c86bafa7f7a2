"""What vertices print with ``ipu.debug_print``: collected while the program runs, printed in order of steps and vertices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
from attrs import frozen

from pypoplar.codelet.ir.operations import REGISTERS
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.printing import format_element
from pypoplar.executable.executable import Array, Executable
from pypoplar.interface import header_slots as at


@frozen(order=False)
class DebugPrint:
    """One call of ``ipu.debug_print``."""

    sequence: int  # compute sets that ran before, which orders the steps of a run
    vertex: int
    text: str
    values: tuple[Any, ...]

    def line(self, tile: int) -> str:
        return f"[tile {tile}, vertex {self.vertex}] " + self.text.format(*map(format_element, self.values))


def read_buffer(executable: Executable, buffer: Array) -> Iterator[DebugPrint]:
    """The records of one thread's buffer; see `pypoplar.codelet.llvm.codelet_code` for their form.

    They end where nothing has been recorded. What does not fit into the buffer is left out; the mark of the group whose records
    come last may lie behind it.
    """
    words = buffer[: -at.MARK_WORDS]
    waiting: list[tuple[int, int, tuple[Any, ...]]] = []
    position = 0
    while position + at.MARK_WORDS <= len(words) and words[position] != at.NO_MARK:
        if words[position] == at.GROUP_MARK:
            yield from _of_group(executable, waiting, words[position : position + at.MARK_WORDS])
            waiting = []
            position += at.MARK_WORDS
            continue
        row, text, count = int(words[position]), int(words[position + 2]), int(words[position + 3])
        pairs = words[position + 4 : position + 4 + 2 * count].reshape(-1, 2)
        waiting.append((row, text, tuple(_value(int(kind), bits) for kind, bits in pairs)))
        position += 4 + 2 * count
    if waiting and buffer[len(words)] == at.GROUP_MARK:
        yield from _of_group(executable, waiting, buffer[len(words) :])


def _of_group(executable: Executable, records: list[tuple[int, int, tuple[Any, ...]]], mark: Array) -> Iterator[DebugPrint]:
    group, sequence = int(mark[1]), int(mark[2])
    computes = executable.computes
    typed = executable.codelets[int(computes.group_codelet[group])].typed
    for row, text, values in records:
        vertex = int(computes.vertex[int(computes.group_position[group]) + row])
        yield DebugPrint(sequence, vertex, typed.texts[text], values)


def _value(kind: int, bits: np.int64) -> Any:
    register = REGISTERS[kind]
    if register in ("f32", "f16"):
        return np.array(bits).view(np.float64)[()]
    if register == "bool":
        return np.bool_(bits != 0)
    return np.array(bits).view(np.uint64)[()] if register == "u64" else bits


def native_prints(state: EngineState) -> list[DebugPrint]:
    """All that vertices of the native engine have printed since the buffers were empty."""
    used = state.rows(at.CONTEXTS, at.CONTEXT_WORDS)[:, at.CONTEXT_DEBUG_USED]
    buffers = [buffer for buffer, words in zip(state.debug_buffers, used, strict=True) if words]
    return [one for buffer in buffers for one in read_buffer(state.executable, buffer)]


def prints_lost(state: EngineState) -> bool:
    """Whether more has been printed than the buffers hold. A mark that does not fit is not lost, and shorter than any record."""
    used = state.rows(at.CONTEXTS, at.CONTEXT_WORDS)[:, at.CONTEXT_DEBUG_USED]
    return bool((used > state.debug_buffers.shape[1]).any())


def clear_prints(state: EngineState) -> None:
    """Empty the buffers."""
    contexts = state.rows(at.CONTEXTS, at.CONTEXT_WORDS)
    for thread, buffer in enumerate(state.debug_buffers):
        used = int(contexts[thread, at.CONTEXT_DEBUG_USED])
        buffer[:used] = at.NO_MARK
        if used:
            buffer[-at.MARK_WORDS :] = at.NO_MARK
    contexts[:, at.CONTEXT_DEBUG_USED] = 0


def write_prints(found: list[DebugPrint], tiles: Array, out: TextIO) -> None:
    """Print in order of steps, then vertices, then as each vertex printed."""
    for one in sorted(found, key=lambda one: (one.sequence, one.vertex)):
        out.write(one.line(int(tiles[one.vertex])) + "\n")
