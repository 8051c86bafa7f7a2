"""What vertices print with ``ipu.debug_print``: collected while the program runs, printed in order of steps and vertices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
from attrs import frozen

from pypoplar.codelet.operations import REGISTERS
from pypoplar.compiler.executable import Array, Executable
from pypoplar.engine import layout as at
from pypoplar.engine.printing import format_element
from pypoplar.engine.state import EngineState


@frozen(order=False)
class DebugPrint:
    """One call of ``ipu.debug_print``."""

    sequence: int  # compute sets that ran before, which orders the steps of a run
    vertex: int
    text: str
    values: tuple[Any, ...]

    def line(self, tile: int) -> str:
        return f"[tile {tile}, vertex {self.vertex}] " + self.text.format(*map(format_element, self.values))


def read_buffer(executable: Executable, buffer: Array, used: int) -> Iterator[DebugPrint]:
    """The records of one thread's buffer; see `pypoplar.codelet.native` for their form."""
    words = buffer[: min(used, len(buffer))]
    waiting: list[tuple[int, int, tuple[Any, ...]]] = []
    position = 0
    while position + at.MARK_WORDS <= len(words):
        if words[position] == at.GROUP_MARK:
            group, sequence = int(words[position + 1]), int(words[position + 2])
            computes = executable.computes
            typed = executable.codelets[int(computes.group_codelet[group])].typed
            for row, text, values in waiting:
                vertex = int(computes.vertex[int(computes.group_position[group]) + row])
                yield DebugPrint(sequence, vertex, typed.texts[text], values)
            waiting.clear()
            position += at.MARK_WORDS
            continue
        row, text, count = int(words[position]), int(words[position + 2]), int(words[position + 3])
        pairs = words[position + 4 : position + 4 + 2 * count].reshape(-1, 2)
        waiting.append((row, text, tuple(_value(int(kind), bits) for kind, bits in pairs)))
        position += 4 + 2 * count


def _value(kind: int, bits: np.int64) -> Any:
    register = REGISTERS[kind]
    if register in ("f32", "f16"):
        return np.array(bits).view(np.float64)[()]
    if register == "bool":
        return np.bool_(bits != 0)
    return np.array(bits).view(np.uint64)[()] if register == "u64" else bits


def native_prints(state: EngineState) -> list[DebugPrint]:
    """Take all that vertices of the native engine have printed, and empty the buffers."""
    contexts = state.rows(at.CONTEXTS, at.CONTEXT_WORDS)
    found: list[DebugPrint] = []
    for thread, buffer in enumerate(state.debug_buffers):
        found.extend(read_buffer(state.executable, buffer, int(contexts[thread, at.CONTEXT_DEBUG_USED])))
    return found


def write_prints(found: list[DebugPrint], tiles: Array, out: TextIO) -> None:
    """Print in order of steps, then vertices, then as each vertex printed."""
    for one in sorted(found, key=lambda one: (one.sequence, one.vertex)):
        out.write(one.line(int(tiles[one.vertex])) + "\n")
