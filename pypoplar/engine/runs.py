"""The accounts of an engine's runs: the first few one by one, those that follow together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets, ragged
from pypoplar.codelet.cost.loop_notes import LoopNote, loop_notes
from pypoplar.codelet.cost.pricing import COMPILED, LinePrice, line_prices
from pypoplar.engine.events import EventLog
from pypoplar.engine.loaded_codelets import pricing_of
from pypoplar.engine.run_tables import CountingState, RunTables, TileRecorder, recorded_executions
from pypoplar.interface.context_words import WORK_WORDS, Work
from pypoplar.interface.driver_records import SLOWEST_WORDS, Slowest, VertexCount
from pypoplar.interface.header_slots import Slot
from pypoplar.report.run_account import FailedAccount, RecordedStep, RunAccount, RunHistory, TileCounts, VertexCounts

LATER = "later runs"
PACKED = 1 << 17  # tiles of all compute steps: with more, a run is kept in fewer bytes
MOST_FAILED = 10  # runs that failed, of which the report tells; the last ones
MOST_NAMES = 1000  # of runs in the report; of further ones only the number is known


@frozen(eq=False)
class KeptRun:
    """A run with an account of its own; `tiles` has what it counted by tile, where that is too much to be kept as it is."""

    name: str
    account: RunTables
    recorded: tuple[RecordedStep, ...]
    tiles: TileCounts | None = None


@define(eq=False, slots=False)
class Runs:
    """Counts what runs cost; of those that failed it only notes how far they came.

    `keep` runs have an account each, and their steps are logged.

    A later run counts into one account with all others. What it would be without the run is kept beside it, for a run that fails
    and for reports that are asked for by a callback.
    """

    state: CountingState
    keep: int
    profiling: bool = True
    log: EventLog = field(factory=EventLog)
    _kept: list[KeptRun] = field(factory=list)
    _later: RunTables = field(init=False)
    _settled: RunTables = field(init=False)  # as `_later`, without the run that goes on
    _later_count: int = 0
    _later_name: str = ""
    _aside: RunTables | None = None  # takes what is not to be reported
    _names: list[str] = field(factory=list)
    _resets: int = 0
    _failed: list[FailedAccount] = field(factory=list)
    _failures: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)  # reports may be asked for in other threads

    def __attrs_post_init__(self) -> None:
        self._later, self._settled = self.state.account, self.state.new_account()

    def reset(self) -> None:
        """Forget all runs so far."""
        with self._lock:
            self._resets += 1
            self._kept.clear()
            self._names.clear()
            self._failed.clear()
            self._failures = 0
            self.log.clear()
            self._later_count, self._later_name = 0, ""
            self._later, self._settled = self.state.new_account(), self.state.new_account()
            self.state.count_into(self._later)

    @property
    def finished(self) -> int:
        """How many runs are counted."""
        return len(self._kept) + self._later_count

    @property
    def told(self) -> int:
        """How many runs the report tells something of: those that are counted, and those that failed."""
        return self.finished + self._failures

    def count(self, name: str, work: Callable[[], None]) -> None:
        """Do `work`, a run called `name`. It counts unless it fails, or profiling is off or the profile reset meanwhile."""
        clock, resets, account, logged = self.state.clock, self._resets, self._account(), self.log.runs
        done, recorder = False, None
        try:
            if account is self._aside:
                self.state.count_into(account)
            elif account is not self._later:
                self.log.begin_run()
                recorder = TileRecorder.empty(self.state.step_account, self.state.threads)
                self.state.count_into(account, self.log.words, recorder)
            work()
            if self.profiling and account is not self._aside and resets == self._resets:
                self._settle(name, account, recorder)
                done = True
        except BaseException as problem:
            if self.profiling and account is not self._aside and resets == self._resets:
                self._note_failure(name, account, problem)
            raise
        finally:
            if self.state.account is not self._later:
                self.state.count_into(self._later)
            if not done:
                self.state.clock = clock
            if not done and resets == self._resets:
                self._take_back(account, logged)

    def _account(self) -> RunTables:
        if not self.profiling:
            self._aside = self._aside or self.state.new_account()
            return self._aside
        return self.state.new_account() if len(self._kept) < self.keep else self._later

    def _settle(self, name: str, account: RunTables, recorder: TileRecorder | None) -> None:
        with self._lock:
            if recorder is None:
                self._settled.take_over(self._later)
                self._later_name = name if self._later_name in ("", name) else LATER
                self._later_count += 1
            else:
                self._kept.append(self._kept_run(name, account, recorder))
            if self._names[-1:] != [name] and len(self._names) < MOST_NAMES:
                self._names.append(name)

    def _note_failure(self, name: str, account: RunTables, problem: BaseException) -> None:
        """Keep what the steps counted that were complete."""
        executions, cycles = (account.tables[which].copy() for which in (Slot.EXECUTIONS, Slot.COMPUTE_CYCLES))
        if account is self._later:
            executions -= self._settled.tables[Slot.EXECUTIONS]
            cycles -= self._settled.tables[Slot.COMPUTE_CYCLES]
        error = f"{type(problem).__name__}: {str(problem).strip()}".splitlines()[0].rstrip(": ")
        with self._lock:
            self._failures += 1
            self._failed = [*self._failed, FailedAccount(name, error, executions, cycles)][-MOST_FAILED:]

    def _kept_run(self, name: str, account: RunTables, recorder: TileRecorder) -> KeptRun:
        tiles = _tile_counts(account)
        recorded = recorder.recorded(account.tables[Slot.EXECUTIONS], tiles)
        if len(account.tables[Slot.TILE_CYCLES]) <= PACKED:
            return KeptRun(name, account.settled(copied=False), recorded)
        compute = [step.compute for step in self.state.executable.steps]
        return KeptRun(name, account.without_tiles(), recorded, tiles.packed(compute))

    def _take_back(self, account: RunTables, logged: int) -> None:
        if account is self._later:
            self._later.restore(self._settled)
        elif account is not self._aside:
            self.log.drop_runs(logged)

    def history(self) -> RunHistory:
        """The runs so far, but for one that goes on."""
        with self._lock:
            runs = self._accounts()
            is_handle = np.array([step.kind == "handle" for step in self.state.executable.steps])
            events = np.where(is_handle, 0, self._events_of_steps())
            executions = sum(int((run.executions * events).sum()) for run in runs)
            trace = self.log.trace(len(self._kept), executions, np.flatnonzero(is_handle))
            recorded = recorded_executions(self.state.step_account) if self._kept else 0
            return RunHistory(tuple(self._names), tuple(runs), trace, self._vertex_counts(), tuple(self._failed), recorded)

    def accounts(self) -> list[RunAccount]:
        """Those of the runs so far, but for one that goes on: of each that is kept apart, and of all later ones together."""
        with self._lock:
            return self._accounts()

    def _accounts(self) -> list[RunAccount]:
        runs = [self._run_account(run.name, 1, run.account, run.tiles, run.recorded) for run in self._kept]
        if self._later_count:
            runs.append(self._run_account(self._later_name, self._later_count, self._settled.settled(copied=True)))
        return runs

    def _events_of_steps(self) -> Int64s:
        """By step how many events an execution is: of several IPUs one for each that has a share of it."""
        steps = self.state.executable.ipu_steps
        return np.ones(len(self.state.executable.steps), np.int64) if steps is None else np.diff(steps.first)

    def _vertex_counts(self) -> VertexCounts | None:
        """What the vertices of all runs counted together."""
        blocks, threads = self.state.blocks, self.state.threads
        accounts = [run.account for run in self._kept] + [self._settled] * bool(self._later_count)
        if blocks is None or not accounts:
            return None

        def of_each(which: int) -> Int64s:
            """[accounts and threads, words] of a table."""
            rows: Int64s = np.concatenate([account.tables[which].reshape(threads, -1) for account in accounts])
            return rows

        counted: Int64s = of_each(Slot.BLOCKS).sum(0)
        slowest = of_each(Slot.SLOWEST).reshape(len(accounts) * threads, blocks.computes, SLOWEST_WORDS)
        cycles, position = slowest[..., Slowest.CYCLES], slowest[..., Slowest.POSITION]
        most: Int64s = cycles.max(0)
        begin, many = blocks.first[:-1], np.diff(blocks.first) - VertexCount.BLOCKS
        return VertexCounts(
            compute=blocks.compute,
            codelet=blocks.codelet,
            slots=counted[begin + VertexCount.SLOTS],
            first=offsets(many),
            blocks=counted[ragged(begin + VertexCount.BLOCKS, many)],
            slowest_cycles=most,
            slowest=np.where(cycles == most, position, np.iinfo(np.int64).max).min(0),
            prices=self._line_prices,
            loops=self._loop_notes,
        )

    @cached_property
    def _line_prices(self) -> list[list[list[LinePrice]]]:
        """What lines have of the prices of blocks, by codelet and block."""
        return [line_prices(codelet, pricing) for codelet, pricing in pricing_of(self.state.executable)]

    @cached_property
    def _loop_notes(self) -> list[list[LoopNote]]:
        """What would make loops shorter, by codelet."""
        return [loop_notes(codelet, pricing) for codelet, pricing in pricing_of(self.state.executable)]

    def _run_account(
        self,
        name: str,
        count: int,
        account: RunTables,
        tiles: TileCounts | None = None,
        recorded: tuple[RecordedStep, ...] = (),
    ) -> RunAccount:
        tables, threads = account.tables, self.state.threads

        def of_all_threads(which: int, words: int) -> Int64s:
            """[words, rows] of a table that each thread has a part of."""
            rows: Int64s = tables[which].reshape(threads, -1, words).sum(0).T
            return rows

        step_work = of_all_threads(Slot.STEP_FLOPS, WORK_WORDS)
        codelet_work = of_all_threads(Slot.CODELET_FLOPS, WORK_WORDS)
        executable, nothing = self.state.executable, np.zeros(0, np.int64)
        compiled = len(executable.codelets) if executable.options.codelet_cost == COMPILED else 0
        return RunAccount(
            name=name,
            count=count,
            executions=tables[Slot.EXECUTIONS],
            compute_cycles=tables[Slot.COMPUTE_CYCLES],
            tiles=tiles or _tile_counts(account),
            codelet_slots=of_all_threads(Slot.CODELET_SLOTS, 1)[0],
            share_computed=tables.get(Slot.SHARE_COMPUTED, nothing),
            share_waited=tables.get(Slot.SHARE_WAITED, nothing),
            ipu_waited=tables.get(Slot.IPU_WAITED, nothing),
            step_flops=step_work[Work.FLOPS],
            step_bytes=step_work[Work.BYTES],
            codelet_flops=codelet_work[Work.FLOPS],
            codelet_bytes=codelet_work[Work.BYTES],
            codelet_compiled=codelet_work[Work.COMPILED][:compiled],
            codelet_bound=codelet_work[Work.BOUND][:compiled],
            recorded=recorded,
        )


def _tile_counts(account: RunTables) -> TileCounts:
    tables = account.tables
    return TileCounts.of(account.step_account, tables[Slot.TILE_CYCLES], tables[Slot.TILE_SLOTS])
