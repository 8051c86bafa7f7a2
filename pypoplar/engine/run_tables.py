"""What runs cost, as the driver counts it, in tables that an engine can put aside and exchange for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.engine.block_tables import BlockTables
from pypoplar.executable.executable import Executable
from pypoplar.interface.context_words import RECORDED_ENDS, WORK_WORDS
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.report.run_account import RecordedStep, TileCounts, narrow

BY_STEP = (Slot.EXECUTIONS, Slot.COMPUTE_CYCLES)
BY_SHARE = (Slot.SHARE_COMPUTED, Slot.SHARE_WAITED)  # of every step, where there are several IPUs
BY_TILE = (Slot.TILE_CYCLES, Slot.TILE_SLOTS)  # of every compute step; see EngineState.step_account
OF_PROGRAM = (Slot.IPU_WAITED,)
BY_THREAD = (Slot.CODELET_SLOTS, Slot.STEP_FLOPS, Slot.CODELET_FLOPS, Slot.BLOCKS, Slot.SLOWEST)
SMALL = 1 << 14  # words that are copied sooner than one has found out which of them have changed
MOST_RECORDED = 10  # executions of a step from its first on, and as many up to its last
LIMIT = 1 << 23  # words of a recorder: where there are more steps, fewer of their executions are recorded


class CountingState(Protocol):
    """What counts runs of an executable."""

    executable: Executable
    blocks: BlockTables | None  # where executions of blocks are counted, if they are
    account: RunTables  # what is being counted into
    step_account: Int64s  # [steps + 1]: where a step's tiles begin in it
    clock: int  # the machine's cycles

    @property
    def threads(self) -> int:
        """Those that count, each into a part of some tables."""

    def new_account(self) -> RunTables:
        """An empty account of runs of this executable."""

    def count_into(self, account: RunTables, events: Int64s | None = None, recorder: TileRecorder | None = None) -> None:
        """From now on count into this account; log executions in `events`, see `Slot.EVENTS`, and tiles' times, if given."""


def step_tiles(executable: Executable) -> Int64s:
    """[steps + 1]: where the active tiles of each compute step begin among those of all."""
    active = np.diff(executable.computes.first_active)
    return offsets([int(active[step.compute]) if step.compute != NOTHING else 0 for step in executable.steps])


def empty_account(executable: Executable, threads: int, step_account: Int64s, blocks: BlockTables | None) -> RunTables:
    """An account in which nothing has been counted."""
    flops = WORK_WORDS * threads if executable.options.flop_estimates else 0
    sizes: Mapping[int, int] = {
        Slot.EXECUTIONS: len(executable.steps),
        Slot.COMPUTE_CYCLES: len(executable.steps),
        Slot.TILE_CYCLES: int(step_account[-1]),
        Slot.TILE_SLOTS: int(step_account[-1]),
        Slot.CODELET_SLOTS: threads * len(executable.codelets),
        Slot.STEP_FLOPS: flops * len(executable.steps),
        Slot.CODELET_FLOPS: flops * len(executable.codelets),
        Slot.BLOCKS: 0 if blocks is None else threads * blocks.words,
        Slot.SLOWEST: 0 if blocks is None else threads * blocks.slowest_words,
    }
    steps = executable.ipu_steps
    if steps is not None:
        sizes = {**sizes, **dict.fromkeys(BY_SHARE, len(steps.ipu)), Slot.IPU_WAITED: steps.ipus}
    return RunTables.empty(sizes, step_account)


@frozen(eq=False)
class RunTables:
    """Counts of one or more runs, by the tables' place in the driver's header.

    The tables are made of pages that take no memory before something is counted there: what a run does not come to is free.
    """

    whole: Int64s  # all tables, end to end
    tables: Mapping[int, Int64s]
    step_account: Int64s  # [steps + 1]: where a step's tiles begin in the tables of BY_TILE
    places: Int64s  # of the tables in the header
    addresses: Int64s  # of the tables, in the same order

    @classmethod
    def empty(cls, sizes: Mapping[int, int], step_account: Int64s) -> Self:
        """An account in which nothing has been counted; `sizes` has the entries of each table."""
        return cls._of(np.zeros(sum(sizes.values()), np.int64), sizes, step_account)

    @classmethod
    def _of(cls, whole: Int64s, sizes: Mapping[int, int], step_account: Int64s) -> Self:
        ends = np.cumsum(list(sizes.values()))
        tables = dict(zip(sizes, np.split(whole, ends[:-1]), strict=True))
        addresses = whole.ctypes.data + 8 * (ends - list(sizes.values()))
        return cls(whole, tables, step_account, np.array(list(sizes), np.int64), addresses)

    def settled(self, *, copied: bool) -> Self:
        """The counts as reports may keep them: nobody can change them. They are a copy if more is to be counted here."""
        whole = self.whole.copy() if copied else self.whole.view()
        whole.flags.writeable = False
        return self._of(whole, {which: len(table) for which, table in self.tables.items()}, self.step_account)

    def without_tiles(self) -> Self:
        """A copy that has no tables by tile."""
        sizes = {which: 0 if which in BY_TILE else len(table) for which, table in self.tables.items()}
        copy = self.empty(sizes, self.step_account)
        for which in sizes.keys() - set(BY_TILE):
            copy.tables[which][:] = self.tables[which]
        copy.whole.flags.writeable = False
        return copy

    def take_over(self, newer: RunTables) -> None:
        """Become equal to `newer`, which was equal before some runs that have come to their end.

        Only what lies between the first and the last step that they executed can differ, so that a run of a small part of a large
        program costs little here.
        """
        if len(self.whole) <= SMALL:
            self.whole[:] = newer.whole
            return
        ours, theirs = self.tables[Slot.EXECUTIONS], newer.tables[Slot.EXECUTIONS]
        touched = np.flatnonzero(ours != theirs)
        if len(touched) == 0:
            return
        steps = slice(int(touched[0]), int(touched[-1]) + 1)
        tiles = slice(int(self.step_account[steps.start]), int(self.step_account[steps.stop]))
        parts = [(BY_STEP, steps), (BY_TILE, tiles), (BY_THREAD, slice(None))]
        if Slot.IPU_WAITED in self.tables:
            parts.append(((*BY_SHARE, *OF_PROGRAM), slice(None)))
        for tables, part in parts:
            for which in tables:
                self.tables[which][part] = newer.tables[which][part]

    def restore(self, older: RunTables) -> None:
        """Become equal to `older` again, whatever has been counted since, and however far a step has got."""
        self.whole[:] = older.whole


def recorded_executions(step_account: Int64s) -> int:
    """How many executions of each step are recorded from its first on, and as many up to its last."""
    tiles = int(step_account[-1])
    return min(MOST_RECORDED, LIMIT // (RECORDED_ENDS * tiles)) if tiles else MOST_RECORDED


def recorded_place(step_account: Int64s, step: int, execution: int, kept: int) -> int:
    """Where an execution's first tile stands in a recorder: the first `kept` have places, the later ones take turns in as many."""
    row = execution if execution < kept else kept + (execution - kept) % kept
    first, end = int(step_account[step]), int(step_account[step + 1])
    return RECORDED_ENDS * kept * first + row * (end - first)


@frozen(eq=False)
class TileRecorder:
    """What a run records. The table is made of pages that take no memory before something is recorded there."""

    step_account: Int64s  # [steps + 1]: where a step's tiles begin in an account
    kept: int  # executions of each step from the first on, and as many up to the last
    cycles: Int64s  # see `recorded_place`
    counts: Int64s  # [threads, steps]: executions that each thread has recorded

    @classmethod
    def empty(cls, step_account: Int64s, threads: int) -> Self:
        """A recorder for a run."""
        kept, steps = recorded_executions(step_account), len(step_account) - 1
        cycles = np.zeros(RECORDED_ENDS * kept * int(step_account[-1]) + 1, np.int64)
        return cls(step_account, kept, cycles, np.zeros(threads * steps + 1, np.int64))

    def recorded(self, executions: Int64s, tiles: TileCounts) -> tuple[RecordedStep, ...]:
        """The executions of a run that were recorded, of the steps in which they are not all alike.

        `executions` of each step, and what its `tiles` did in all of them, tell of the others what they did.
        """
        counted = self.counts[: len(executions)] > 0  # by thread 0, which has a share of every step
        steps = np.flatnonzero(counted & (executions > 1)).tolist()
        found = (self._of_step(step, int(executions[step]), tiles) for step in steps)
        return tuple(step for step in found if step is not None)

    def _of_step(self, step: int, executions: int, tiles: TileCounts) -> RecordedStep | None:
        count = int(self.step_account[step + 1] - self.step_account[step])
        if not count or not self.kept:
            return None
        begin = max(self.kept, executions - self.kept)
        numbers = np.array([*range(min(self.kept, executions)), *range(begin, executions)], np.int64)
        places = [recorded_place(self.step_account, step, number, self.kept) for number in numbers.tolist()]
        cycles = np.stack([self.cycles[place : place + count] for place in places])
        if (cycles * executions == tiles.cycles[step]).all():
            return None
        return RecordedStep(step, numbers, narrow(cycles))
