"""The report's picture of running: steps, runs, the trace of supersteps, and what the mean tile did. Cycles are tile cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from attrs import evolve, field, frozen
from attrs.validators import in_

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.number_ranges import counted
from pypoplar.notebook import ShownInNotebooks
from pypoplar.report.libpva_hints import missing
from pypoplar.report.line_profile import ExecutedBlock, LineProfile
from pypoplar.report.memory_report import Total
from pypoplar.report.phases import PHASES
from pypoplar.report.program_nodes import Program
from pypoplar.report.tile_vertices import SizedVertices
from pypoplar.report.trace import Trace

NO_TILES: Int64s = np.zeros(0, np.int64)


def no_tiles() -> Int64s:
    """The array of a step in which no tile takes part: one for all steps."""
    return NO_TILES


def share(values: Int64s) -> float:
    """Mean over maximum, the balance of `values`: 1 where all are equal, 0 where there is nothing to balance."""
    most = int(values.max()) if len(values) else 0
    return float(values.mean()) / most if most else 0.0


StepType = Literal["OnTileExecute", "DoExchange", "StreamCopy", "Sync"]
STEP_TYPES: tuple[StepType, ...] = get_args(StepType)
"""The program types of libpva that steps have."""

CYCLES = tuple(phase.cycles for phase in PHASES)
"""What the cycles of a step consist of: everything that sums or draws them goes through all of it."""

COSTS = ("executions", *CYCLES, "host_bytes", "flops", "memory_bytes")
"""The numbers of a step that add up over runs."""

COSTS_BY_TILE = (
    *("cyclesByTile", "activeCyclesByTile", "exchange_cycles_by_tile", "copy_cycles_by_tile"),
    *("bytesSentByTile", "bytesReceivedByTile", "pieces_by_tile", "cycles_by_ipu"),
)
"""The arrays of a step, which add up over runs too."""

BY_IPU = (*CYCLES, "waiting_cycles")
"""The rows of `Step.cycles_by_ipu`."""

cycles_of = attrgetter(*CYCLES)


@frozen
class IpuStep:
    """One IPU's part of a step, given by `Step.ipus`, or of all of them, given by `Execution.ipus`: where its cycles went.

    Attributes
    ----------
    cycles:
        Those that it spent in the step; of all steps, those of the runs, waiting included.
    sync_cycles:
        Of the sync before it.
    exchange_cycles:
        Of the exchange within the IPU.
    copy_cycles:
        By which copies on its tiles make that longer.
    global_exchange_cycles:
        Of the exchange between IPUs.
    host_exchange_cycles:
        Of the transfer from or to the host.
    compute_cycles:
        Of its vertices.
    waiting_cycles:
        That it waited for other IPUs before.
    """

    cycles: int
    sync_cycles: int = 0
    exchange_cycles: int = 0
    copy_cycles: int = 0
    global_exchange_cycles: int = 0
    host_exchange_cycles: int = 0
    compute_cycles: int = 0
    waiting_cycles: int = 0


@frozen(eq=False, kw_only=True)
class Step:
    """A static step of the program with what all its executions cost together; given by `Execution.steps` and `Run.steps`.

    Cycles are tile cycles. An array has a value for each tile, and is empty where the step has no such part.

    Attributes
    ----------
    name:
        The debug name of the compute set or program.
    type:
        A program type of libpva: ``OnTileExecute``, ``DoExchange``, ``StreamCopy`` or ``Sync``.
    executions:
        How often it ran.
    number:
        That of the static step, -1 if it is not known.
    depth:
        How deep in Repeat, If, Switch and Call the step stands.
    sync_cycles:
        Of the sync before it.
    exchange_cycles:
        Of the exchange within IPUs.
    copy_cycles:
        By which copies on the tile, before or after the exchange, make the step longer than its exchange alone; 0 where
        `Execution.copies_known` is False: `exchange_cycles` has them too.
    global_exchange_cycles:
        Of the exchange between IPUs, on all tiles alike.
    compute_cycles:
        By which the slowest tile came later; where tiles did not wait for each other before the step, it may have taken more,
        which is `slowest_tile_cycles`.
    host_exchange_cycles:
        Of the transfer from or to the host.
    cyclesByTile:
        Compute cycles of each tile, those of idle worker threads included.
    activeCyclesByTile:
        Compute cycles of each tile without idle worker threads; workers of a MultiVertex that wait for its slowest one are idle.
    exchange_cycles_by_tile:
        Cycles in which each tile sends or receives.
    copy_cycles_by_tile:
        Cycles of copies on each tile.
    bytesSentByTile:
        Bytes that each tile sends.
    bytesReceivedByTile:
        Bytes that each tile receives.
    pieces_by_tile:
        Contiguous pieces that each tile sends or receives, of the direction with more; a tile takes at least three cycles for each.
        Empty where they are not known.
    host_bytes:
        Bytes from or to the host, or remote buffers.
    flops:
        Floating-point operations, with the engine option ``profiler.includeFlopEstimates``.
    memory_bytes:
        Bytes that its vertices load and store, with the same option.
    program:
        Its node of the program tree.
    num_ipus:
        IPUs of the target.
    cycles_by_ipu:
        Of several IPUs, what each spends in it, [phases, IPUs]: the phases of the step, and last the waiting for other IPUs before.
    host_limit:
        The link or memory for which a transfer from or to the outside waits, in words, where there are several.
    """

    name: str
    type: StepType = field(validator=in_(STEP_TYPES))
    executions: int
    number: int = -1
    depth: int = 0
    sync_cycles: int = 0
    exchange_cycles: int = 0
    copy_cycles: int = 0
    global_exchange_cycles: int = 0
    compute_cycles: int = 0
    host_exchange_cycles: int = 0
    cyclesByTile: Int64s = field(factory=no_tiles)
    activeCyclesByTile: Int64s = field(factory=no_tiles)
    exchange_cycles_by_tile: Int64s = field(factory=no_tiles)
    copy_cycles_by_tile: Int64s = field(factory=no_tiles)
    bytesSentByTile: Int64s = field(factory=no_tiles)
    bytesReceivedByTile: Int64s = field(factory=no_tiles)
    pieces_by_tile: Int64s = field(factory=no_tiles)
    host_bytes: int = 0
    flops: int = 0
    memory_bytes: int = 0
    program: Program | None = None
    num_ipus: int = 1
    cycles_by_ipu: Int64s = field(factory=no_tiles)
    host_limit: str = ""

    if not TYPE_CHECKING:
        __getattr__ = missing

    @property
    def cycles(self) -> int:
        """All cycles of the step, those of compute, sync, exchange, copies and the host."""
        return sum(cycles_of(self))

    @property
    def slowest_tile_cycles(self) -> int:
        """Compute cycles of the slowest tile, from when it began with the step."""
        return max(self.compute_cycles, int(self.cyclesByTile.max()) if len(self.cyclesByTile) else 0)

    @property
    def ipus(self) -> tuple[IpuStep, ...]:
        """What each IPU does in the step; those without a part in it go on with other steps meanwhile.

        One IPU does all of it; so do several in a profile that is older than their clocks.
        """
        if not len(self.cycles_by_ipu):
            return (IpuStep(self.cycles, **{name: getattr(self, name) for name in CYCLES}),) * self.num_ipus
        return tuple(ipu_step(column[:-1].sum(), column) for column in self.cycles_by_ipu.T)

    @property
    def activeTiles(self) -> int:
        """Tiles that compute, or in an exchange those that send or receive."""
        if self.type == "OnTileExecute" or not len(self.bytesSentByTile):
            return int(np.count_nonzero(self.cyclesByTile))
        return int(np.count_nonzero(self.bytesSentByTile + self.bytesReceivedByTile))

    @property
    def most_pieces(self) -> int | None:
        """Contiguous pieces that the tile with the most of them sends or receives; None where they are not known."""
        return int(self.pieces_by_tile.max()) if self.pieces_by_tile.any() else None

    @property
    def tileBalance(self) -> float:
        """Mean over maximum of the tiles' compute cycles, or in an exchange of those in which their ports are busy; 0 to 1."""
        return share(self._load())

    @property
    def activeTileBalance(self) -> float:
        """As `tileBalance`, over the active tiles only; 0 where there are none."""
        load = self._load()
        return share(load[load > 0])

    @property
    def thread_balance(self) -> float:
        """Share of the tiles' compute cycles in which their worker threads are busy; 0 to 1."""
        including = int(self.cyclesByTile.sum())
        return int(self.activeCyclesByTile.sum()) / including if including else 0.0

    def _load(self) -> Int64s:
        """What the step waits for, by tile: cycles, or bytes of a port's busier way where it waits for what goes between IPUs."""
        if len(self.cyclesByTile):
            return self.cyclesByTile
        for cycles in (self.exchange_cycles_by_tile, self.copy_cycles_by_tile):
            if cycles.any() and self.exchange_cycles + self.copy_cycles >= self.global_exchange_cycles:
                return cycles
        return np.maximum(self.bytesSentByTile, self.bytesReceivedByTile)


def ipu_step(cycles: int, column: Int64s) -> IpuStep:
    """An IPU's part, of a column with the rows `BY_IPU`."""
    return IpuStep(int(cycles), **dict(zip(BY_IPU, map(int, column), strict=True)))


numbers_of = attrgetter(*COSTS)
Sums = dict[tuple[int, ...], Int64s]  # ids of arrays -> their sum


def summed(steps: Sequence[Step], sums: Sums | None = None) -> Step:
    """The same static step in several runs as one. `sums` has the sums of arrays that other steps share with these."""
    if len(steps) == 1:
        return steps[0]
    known_sums = {} if sums is None else sums
    numbers = map(sum, zip(*map(numbers_of, steps), strict=True))
    totals: dict[str, Any] = dict(zip(COSTS, numbers, strict=True))
    for name in COSTS_BY_TILE:
        arrays = [getattr(step, name) for step in steps]
        key = tuple(map(id, arrays))
        if key not in known_sums:
            known_sums[key] = np.sum(arrays, 0)
            known_sums[key].flags.writeable = False
        totals[name] = known_sums[key]
    return evolve(steps[0], **totals)


@frozen(eq=False)
class Run(ShownInNotebooks):
    """A run of a program, or several that are counted together, given by `Execution.runs`.

    Attributes
    ----------
    name:
        What `Engine.run` called it.
    steps:
        The static steps that ran, in program order, with what they cost in this run.
    count:
        How many runs it stands for: those after the first ``autoReport.executionProfileProgramRunCount`` are together.
    waiting_by_ipu:
        Of several IPUs, the cycles that each waits for others where no step is: at branches, for the host, at the end.
    """

    name: str
    steps: tuple[Step, ...]
    count: int = 1
    waiting_by_ipu: Int64s = field(factory=no_tiles)

    if not TYPE_CHECKING:
        __getattr__ = missing

    @property
    def cycles(self) -> int:
        """Cycles of the machine, of all `count` runs together: until the last of its IPUs is done."""
        if not len(self.waiting_by_ipu):
            return sum(step.cycles for step in self.steps)
        return int(self.waiting_by_ipu[0]) + sum(int(step.cycles_by_ipu[:, 0].sum()) for step in self.steps)


def summed_runs(runs: Sequence[Run]) -> tuple[Step, ...]:
    """The steps of all runs, each with its number once, by number."""
    by_number: dict[int, list[Step]] = {}
    for run in runs:
        for step in run.steps:
            by_number.setdefault(step.number, []).append(step)
    sums: Sums = {}
    return tuple(summed(by_number[number], sums) for number in sorted(by_number))


@frozen
class VertexTypeCycles:
    """The vertices of one type and what all their executions took, given by `Execution.cycles_by_vertex_type`.

    Cycles are worker slots: a slot is a cycle of one worker thread, in which its tile goes on by as many cycles as it has
    threads.

    Attributes
    ----------
    instances:
        How many vertices are in the program.
    cycles:
        Slots, by estimates where there are any.
    flops:
        Floating-point operations, with the engine option ``profiler.includeFlopEstimates``.
    memory_bytes:
        Bytes that they load and store, with the same option.
    compiled_cycles:
        Slots that the code would take as the vendor's compiler makes it, where ``pypoplar.codelet_cost`` is not scalar.
    bound_cycles:
        Slots that hand-written code could reach, which is never more.
    """

    instances: int
    cycles: int
    flops: int = 0
    memory_bytes: int = 0
    compiled_cycles: int = 0
    bound_cycles: int = 0


@frozen
class TileAverage:
    """Cycles of the mean tile over the whole run, given by `Execution.tile_average`. They add up to the run's cycles.

    Attributes
    ----------
    compute_including_idle:
        Compute, with idle worker threads.
    compute_excluding_idle:
        Compute, without idle worker threads.
    exchange:
        Exchange within IPUs.
    global_exchange:
        Exchange between IPUs.
    host_exchange:
        Exchange with the host.
    sync:
        As in Poplar's summary whatever is left: the syncs themselves and the waiting for slower tiles.
    waiting:
        The waiting for slower tiles alone.
    copies:
        Copies on the tile, before and after exchanges.
    """

    compute_including_idle: float
    compute_excluding_idle: float
    exchange: float
    global_exchange: float
    host_exchange: float
    sync: float
    waiting: float = 0.0
    copies: float = 0.0


@frozen
class ReplicaExecution:
    """What the runs of one of several replicas took, given by `Execution.replicas`.

    Attributes
    ----------
    replica:
        Its number.
    totalCycles:
        Its cycles from start to end of all runs: those of its latest IPU. `Engine.getReport` of its number tells the rest.
    """

    replica: int
    totalCycles: Total


class Steps(tuple[Step, ...], ShownInNotebooks):
    """The static steps that ran, given by `Execution.steps`: a tuple of `Step` that notebooks show as a table."""

    __slots__ = ()


@frozen(eq=False, repr=False)
class Execution(ShownInNotebooks):
    """What the runs since the engine was loaded, or its profile reset, cost; given by `Report.execution`.

    Attributes
    ----------
    steps:
        The static steps that ran, each with all its executions.
    cycles_by_vertex_type:
        Vertices and worker slots of each vertex type, by its name.
    programs:
        Names of the runs, in order; equal neighbours count once.
    tiles:
        The number of tiles of the target.
    runs:
        The runs that are kept apart, and at the end all later ones together.
    trace:
        The supersteps of the kept runs, one by one.
    clockFrequency:
        That of the tiles, Hz.
    copies_known:
        Whether copies on the tile are told apart from exchanges, which older profiles did not do.
    slowest_vertices:
        By step: what runs on the tile that it waits for.
    lines:
        Cycles by source line, where a profile of the execution was asked for.
    replicas:
        The replicas of this process, each with its cycles; all else is of one of them. Empty where there is one, and of a file.
    """

    steps: Steps = field(converter=Steps)
    cycles_by_vertex_type: Mapping[str, VertexTypeCycles]
    programs: tuple[str, ...] = ()
    tiles: int = 0
    runs: tuple[Run, ...] = ()
    trace: Trace = field(factory=Trace)
    clockFrequency: float = 0.0
    copies_known: bool = True
    slowest_vertices: Mapping[int, tuple[SizedVertices, ...]] = field(factory=dict)
    lines: LineProfile | None = None
    replicas: tuple[ReplicaExecution, ...] = ()

    if not TYPE_CHECKING:
        __getattr__ = missing

    def __repr__(self) -> str:
        runs = sum(run.count for run in self.runs)
        return (
            f"<Execution of {counted(runs, 'run')}, {counted(len(self.steps), 'step')}: {counted(self.totalCycles.total, 'cycle')}>"
        )

    @property
    def blocks(self) -> tuple[ExecutedBlock, ...]:
        """The blocks of codelets that ran, by compute set and vertex type, with how often; empty where `lines` is None."""
        return self.lines.blocks if self.lines is not None else ()

    @property
    def totalCycles(self) -> Total:
        """Cycles of the machine from start to end of all runs: those of its latest IPU."""
        return Total(sum(run.cycles for run in self.runs) if self.has_ipus else self.stepCycles)

    @property
    def stepCycles(self) -> int:
        """Cycles of all steps. Where steps of several IPUs run at the same time, these are more than `totalCycles`."""
        return sum(step.cycles for step in self.steps)

    @property
    def has_ipus(self) -> bool:
        """Whether there are several IPUs, each with a clock; profiles that are older have one clock for all."""
        return any(len(run.waiting_by_ipu) > 1 for run in self.runs)

    @cached_property
    def ipus(self) -> tuple[IpuStep, ...]:
        """Where the time of each IPU went; empty where there is one, or one clock for all. Each adds up to `totalCycles`."""
        if not self.has_ipus:
            return ()
        columns: Int64s = np.zeros((len(BY_IPU), len(self.runs[0].waiting_by_ipu)), np.int64)
        for step in self.steps:
            columns += step.cycles_by_ipu
        for run in self.runs:
            columns[-1] += run.waiting_by_ipu
        return tuple(ipu_step(column.sum(), column) for column in columns.T)

    @property
    def seconds(self) -> float:
        """What the cycles of all runs take at the target's clock, in seconds."""
        return self.totalCycles.total / self.clockFrequency if self.clockFrequency else 0.0

    @property
    def flops(self) -> int:
        """Floating-point operations of all vertices; 0 without the engine option profiler.includeFlopEstimates."""
        return sum(step.flops for step in self.steps)

    @property
    def tile_average(self) -> TileAverage:
        """Where the time of the mean tile went, in cycles of compute, exchange and sync."""

        def mean(name: str) -> float:
            return float(sum(int(getattr(step, name).sum()) for step in self.steps)) / self.tiles if self.tiles else 0.0

        compute, exchange, copies = mean("cyclesByTile"), mean("exchange_cycles_by_tile"), mean("copy_cycles_by_tile")

        def of_ipus(name: str) -> float:
            if self.has_ipus:
                return float(np.mean([getattr(ipu, name) for ipu in self.ipus]))
            return float(sum(getattr(step, name) for step in self.steps))

        between, host = of_ipus("global_exchange_cycles"), of_ipus("host_exchange_cycles")
        rest = self.totalCycles.total - compute - exchange - copies - between - host
        return TileAverage(
            compute_including_idle=compute,
            compute_excluding_idle=mean("activeCyclesByTile"),
            exchange=exchange,
            global_exchange=between,
            host_exchange=host,
            sync=rest,
            waiting=rest - of_ipus("sync_cycles"),
            copies=copies,
        )


def step_number(step: Step, place: int) -> int:
    """The static step's number; its place among the steps where the report does not number them."""
    return step.number if step.number >= 0 else place


def numbered_steps(execution: Execution | None) -> dict[int, Step]:
    """The steps that ran, by number."""
    return {step_number(step, place): step for place, step in enumerate(execution.steps)} if execution else {}
