"""What an engine's runs go on from, copied aside: a run that fails midway is undone with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import AnyArray, Int64s, UInt64s
from pypoplar.arrays.groups import distinct, ragged, stepped
from pypoplar.engine.arena import LINE
from pypoplar.engine.engine_state import EngineState
from pypoplar.executable.host_plans import HostTensor
from pypoplar.executable.move_lists import Moves
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import Opcode, ProgramRow, RepeatOperand, StreamOperand


@define(eq=False)
class Checkpoint:
    """The memory of some tensors and the random generators of all workers, as `take` found them.

    Whole lines of memory are copied, which may have something of other tensors: putting them back is for an engine that is loaded
    anew, and before what is not in here is written.
    """

    state: EngineState
    lines: Int64s
    _memory: AnyArray = field(init=False)  # in lines
    _kept: AnyArray = field(init=False)
    _random: UInt64s = field(init=False)

    def __attrs_post_init__(self) -> None:
        memory = self.state.memory
        self._memory = memory.whole[: memory.marks_base].view(f"V{LINE}")
        self._kept = np.zeros(len(self.lines), self._memory.dtype)
        self._random = self.state.tables[Slot.RANDOM].copy()

    @staticmethod
    def of(state: EngineState, tensors: Iterable[HostTensor]) -> Checkpoint:
        """For tensors that the host writes."""
        return Checkpoint(state, _lines(state, tensors))

    def take(self) -> None:
        """Copy everything aside. From here on no loop has begun; see `loops_left`."""
        np.take(self._memory, self.lines, out=self._kept, mode="clip")  # which is quicker than to look for wrong lines
        self._random[...] = self.state.tables[Slot.RANDOM]
        self.state.tables[Slot.COUNTERS][:] = NOTHING

    def put_back(self) -> None:
        """Put everything back as it was at the last `take`."""
        self._memory[self.lines] = self._kept
        self.state.tables[Slot.RANDOM][...] = self._random

    def loops_left(self, program: int, loops: int) -> list[int]:
        """How many rounds the first loops of a program had to go, the present one included; -1 for one that has not begun."""
        executable = self.state.executable
        rows = executable.program[int(executable.entries[program]) :]
        begins = np.flatnonzero(rows[:, ProgramRow.OPERATION] == Opcode.REPEAT)[:loops]
        return [int(self.state.tables[Slot.COUNTERS][rows[row, RepeatOperand.COUNTER]]) for row in begins]


@frozen(eq=False)
class Checkpoints:
    """The same of all replicas, which do everything together."""

    of_each: tuple[Checkpoint, ...]

    @staticmethod
    def of(states: Iterable[EngineState], tensors: Sequence[HostTensor]) -> Checkpoints:
        """For tensors that the host writes."""
        return Checkpoints(tuple(Checkpoint.of(state, tensors) for state in states))

    def take(self) -> None:
        """Copy everything aside, as `Checkpoint.take` does."""
        for checkpoint in self.of_each:
            checkpoint.take()

    def put_back(self) -> None:
        """Put everything back as it was at the last `take`."""
        for checkpoint in self.of_each:
            checkpoint.put_back()

    def loops_left(self, program: int, loops: int) -> list[int]:
        """How many rounds the first loops of a program had to go on the first replica, as `Checkpoint.loops_left` says."""
        return self.of_each[0].loops_left(program, loops)


def _lines(state: EngineState, tensors: Iterable[HostTensor]) -> Int64s:
    """The lines of memory in which tensors lie that the host writes, sorted."""
    executable, lines = state.executable, [np.zeros(0, np.int64)]
    for tensor in tensors:
        moves, row = executable.moves, executable.program[tensor.entry]
        for entry in moves.lists_of(int(row[StreamOperand.MOVE])):
            begin, size = _targets(moves, moves.records_of(entry))
            begin += state.memory.ipu_base[moves.target_ipu[entry]]
            first = begin // LINE
            lines.append(distinct(ragged(first, (begin + size - 1) // LINE - first + 1)))
    return distinct(np.concatenate(lines))


def _targets(moves: Moves, records: range) -> tuple[Int64s, Int64s]:
    """Where the pieces of records go in the memory of an IPU, and their bytes."""
    of = slice(records.start, records.stop)
    count, listed = moves.count[of], moves.target_list[of]
    size = np.repeat(moves.bytes[of].astype(np.int64), count)
    begin = stepped(moves.target[of], count, np.where(listed == NOTHING, moves.target_step[of], 0))
    by_list = listed != NOTHING
    pieces = np.repeat(by_list, count)
    begin[pieces] += moves.places[ragged(listed[by_list], count[by_list])].astype(np.int64) * size[pieces]
    return begin, size
