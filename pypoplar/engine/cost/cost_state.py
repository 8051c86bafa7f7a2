"""What an engine of mode "cost" counts, and how it prices a run."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.engine.block_tables import BlockTables, block_tables
from pypoplar.engine.cost.class_runs import Samples
from pypoplar.engine.cost.compute_prices import ComputePrices
from pypoplar.engine.cost.program_cost import ControlValues, ProgramCost
from pypoplar.engine.cost.spent import Executions, IpuSpent, Spent
from pypoplar.engine.run_tables import RunTables, TileRecorder, empty_account, step_tiles
from pypoplar.errors import ControlProgramError
from pypoplar.executable.cost_facts import SHARE
from pypoplar.executable.executable import Executable
from pypoplar.executable.ipu_steps import IpuSteps
from pypoplar.interface.context_words import WORK_WORDS
from pypoplar.interface.driver_records import EVENT_HEAD_WORDS, EVENT_WORDS, SLOWEST_WORDS, Event, EventLogHead, Slowest
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.report.cost_basis import AssumedControl, CostBasis

MOST_OFF = 0.01  # of all cycles, by which whole executions of steps may be off what shares of the times say
ROUNDS_FOR_SHARES = 100


@define(eq=False)
class CostState:
    """The account and the clock of a machine without memory."""

    executable: Executable
    samples: Samples
    control: ControlValues | None = None
    clock: int = 0
    threads: int = 1
    blocks: BlockTables | None = field(init=False)
    step_account: Int64s = field(init=False)
    account: RunTables = field(init=False)
    prices: ComputePrices = field(init=False)
    program: ProgramCost = field(init=False)
    assumed: dict[int, float] = field(factory=dict)  # cycles of what each assumption decides, in all runs
    priced: float = 0  # cycles of all runs
    _log: Int64s | None = None
    _spent: dict[tuple[int, int], Spent] = field(factory=dict)  # by the first row of a program, and the events that are kept

    def __attrs_post_init__(self) -> None:
        executable = self.executable
        self.blocks = block_tables(executable) if executable.options.counts_blocks else None
        self.step_account = step_tiles(executable)
        self.count_into(self.new_account())
        self.prices = ComputePrices(executable, self.samples, self.blocks)
        self.program = ProgramCost(executable, self.prices, self.control)

    def new_account(self) -> RunTables:
        """An empty account of runs of this executable."""
        return empty_account(self.executable, self.threads, self.step_account, self.blocks)

    def count_into(self, account: RunTables, events: Int64s | None = None, recorder: TileRecorder | None = None) -> None:
        """From now on count into this account, and log executions of steps in `events`, if given.

        Nothing is recorded of single executions: here they are all alike, as they are said to be where nothing is.
        """
        self.account, self._log = account, events

    def restart(self) -> None:
        """A machine that was just switched on."""
        self.clock, self.priced = 0, 0
        self.assumed.clear()
        if self.control is not None:
            self.control.restart()

    def run(self, entry: int) -> Spent:
        """Price the program from a row on, and count it."""
        kept = 0
        if self._log is not None:
            kept = max(0, int(self._log[EventLogHead.LIMIT] - self._log[EventLogHead.COUNT]))
        key = (entry, kept)
        if key not in self._spent or self.program.computes():
            self._spent = {key: self.program.of(entry, kept)}  # of the last program alone: it may be large
        spent = self._spent[key]
        times, computed = self._whole(spent)
        self._check_whole(spent, times)
        self._count(times, computed)
        ipus = self.executable.ipu_steps
        if self._log is not None:
            events = times if ipus is None else times * np.diff(ipus.first)
            log_events(self._log, spent.events, self.clock, int(events.sum()))
        if ipus is None:
            fixed = np.array([step.fixed_cycles for step in self.executable.steps], np.int64)
            cycles = int((times * fixed).sum() + computed.sum())
        else:
            cycles = self._count_ipus(ipus, times, spent.ipus)
        self.clock += cycles
        self.priced += cycles
        for number, decided in spent.decided.items():
            self.assumed[number] = self.assumed.get(number, 0) + decided
        return spent

    def basis(self) -> CostBasis:
        """What the prices so far stand on."""
        assert self.executable.cost is not None
        texts, whole = self.executable.cost.assumptions, max(self.priced, 1)
        assumptions = (AssumedControl(text, self.assumed.get(number, 0) / whole) for number, text in enumerate(texts))
        runs = self.prices.runs
        return CostBasis(tuple(assumptions), runs.sampled(), runs.of_ones(), runs.uncounted())

    def _whole(self, spent: Spent) -> tuple[Int64s, Int64s]:
        """[steps]: executions, in whole numbers, and cycles by which their vertices came later."""
        steps = len(self.executable.steps)
        if spent.times.dtype == np.int64:
            return _sums(spent.step, spent.times, steps), _sums(spent.step, spent.computed, steps)
        times = np.bincount(spent.step, spent.times, steps)
        computed = np.bincount(spent.step, spent.computed, steps)
        whole = np.rint(times).astype(np.int64)
        each = np.divide(computed, times, out=np.zeros(steps), where=times > 0)
        return whole, np.rint(whole * each).astype(np.int64)

    def _check_whole(self, spent: Spent, times: Int64s) -> None:
        """Refuse a run of which whole executions of steps cost something else than the shares that are assumed."""
        if spent.times.dtype == np.int64:
            return
        exact = np.bincount(spent.step, spent.times, len(times))
        off = sum(abs(float(times[step] - exact[step])) * self._most_cycles(step) for step in np.flatnonzero(exact).tolist())
        if off > MOST_OFF * spent.cycles:
            cost = self.executable.cost
            assert cost is not None
            shares = {decision.assumption for decision in self.program.decisions.values() if decision.known == SHARE}
            told = ", ".join(cost.assumptions[number] for number in sorted(shares & spent.decided.keys()))
            raise ControlProgramError(
                f"{told}: the program comes there so seldom that whole executions of steps do not show the share. Price it in a "
                f"Repeat of {ROUNDS_FOR_SHARES} rounds or more, or assume a value"
            )

    def _most_cycles(self, step: int) -> int:
        """Of one execution, of no tile less."""
        described = self.executable.steps[step]
        vertices = 0 if described.compute == NOTHING else int(self.prices.of(described.compute).cycles.max(initial=0))
        return described.fixed_cycles + vertices

    def _count_ipus(self, steps: IpuSteps, times: Int64s, spent: IpuSpent) -> int:
        """Add what several IPUs spent to the account, with their waiting at the end for the last; the cycles of all."""
        tables, shares = self.account.tables, len(steps.ipu)

        def of_each(values: AnyArray) -> Int64s:
            return np.rint(np.bincount(spent.place, values, shares + steps.ipus)).astype(np.int64)

        computed, waited = of_each(spent.computed), of_each(spent.waited)
        each = steps.fixed_cycles * times[steps.step] + computed[:shares] + waited[:shares]
        own = np.bincount(steps.ipu, each, steps.ipus).astype(np.int64) + waited[shares:]
        cycles = int(own.max())
        tables[Slot.SHARE_COMPUTED] += computed[:shares]
        tables[Slot.SHARE_WAITED] += waited[:shares]
        tables[Slot.IPU_WAITED] += waited[shares:] + cycles - own
        return cycles

    def _count(self, times: Int64s, computed: Int64s) -> None:
        """Add a run to the account."""
        tables, steps = self.account.tables, self.executable.steps
        tables[Slot.EXECUTIONS] += times
        tables[Slot.COMPUTE_CYCLES] += computed
        start = self.executable.target.compute_set_start_cycles
        executions: dict[int, int] = {}
        for number in np.flatnonzero(times).tolist():
            compute, often = steps[number].compute, int(times[number])
            if compute == NOTHING:
                continue
            price = self.prices.of(compute)
            tiles = slice(int(self.step_account[number]), int(self.step_account[number + 1]))
            tables[Slot.TILE_CYCLES][tiles] += often * (price.cycles + start)
            tables[Slot.TILE_SLOTS][tiles] += often * price.slots
            executions[compute] = executions.get(compute, 0) + often
            if price.codelet_work.shape[1]:
                rows = tables[Slot.STEP_FLOPS].reshape(-1, WORK_WORDS)
                rows[number] += often * price.codelet_work.sum(0)
        for compute, often in executions.items():
            self._count_compute(compute, often)

    def _count_compute(self, compute: int, often: int) -> None:
        """What executions of a compute set add to the counts of codelets and blocks."""
        tables, price = self.account.tables, self.prices.of(compute)
        tables[Slot.CODELET_SLOTS][price.codelet] += often * price.codelet_slots
        if price.codelet_work.shape[1]:
            tables[Slot.CODELET_FLOPS].reshape(-1, WORK_WORDS)[price.codelet] += often * price.codelet_work
        for place, added in price.blocks:
            tables[Slot.BLOCKS][place : place + len(added)] += often * added
        if self.blocks is not None:
            slowest = tables[Slot.SLOWEST].reshape(-1, SLOWEST_WORDS)[compute]
            slowest[Slowest.CYCLES], slowest[Slowest.POSITION] = price.slowest


def _sums(step: Int64s, values: AnyArray, steps: int) -> Int64s:
    sums = np.zeros(steps, np.int64)
    np.add.at(sums, step, values)
    return sums


def log_events(log: Int64s, events: Executions, clock: int, executions: int) -> None:
    """Note a run of so many executions in a log, see `Slot.EVENTS`; it began at a time of the clock."""
    count = int(log[EventLogHead.COUNT])
    rows = log[EVENT_HEAD_WORDS : EVENT_HEAD_WORDS + EVENT_WORDS * int(log[EventLogHead.LIMIT])].reshape(-1, EVENT_WORDS)
    there = min(len(events.step), executions, max(0, len(rows) - count))
    own = rows[count : count + there]
    own[:, Event.STEP], own[:, Event.CYCLES] = events.step[:there], events.cycles[:there]
    own[:, Event.BEGIN] = events.begin[:there] + clock
    own[:, Event.IPU] = events.ipu[:there]
    log[EventLogHead.COUNT] = count + executions
