"""The runs of a report on a time line: phases of supersteps, the program's levels, counters and single tiles, in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Float64s, Int64s, Numbers
from pypoplar.arrays.number_ranges import counted
from pypoplar.errors import ApplicationRuntimeError
from pypoplar.report.execution import BY_IPU, Execution, Run, Step
from pypoplar.report.memory_report import live_bytes
from pypoplar.report.nesting import Nesting
from pypoplar.report.phases import PHASES as STEP_PHASES
from pypoplar.report.report import Report
from pypoplar.report.slowest_tile import critical_tile

PHASES = {phase.label: phase.cycles for phase in STEP_PHASES}  # compute is the last of a step
WAIT = "wait"
LONGEST = 1 << 62  # ns
COPIES_UNKNOWN = "copies on the tile are counted with the exchange: the profile does not tell them apart"
NO_COUNTERS = "there are no counters: each of the IPUs has a time of its own"
END_TO_END = "no executions of steps were recorded: the static steps are laid end to end, each with all its executions"


@frozen(eq=False)
class Slices:
    """Stretches of time, each before what is inside of it. `name` and `step` are places in the lists of the time line."""

    begin: Int64s  # ns
    end: Int64s  # ns
    cycles: Int64s
    name: Int64s
    step: Int64s  # -1 for a stretch that says nothing of a step


@frozen(eq=False)
class Values:
    """A counter: it has ``value[i]`` from ``time[i]`` on."""

    time: Int64s  # ns
    value: Float64s
    unit: str


@frozen(eq=False)
class Track:
    """A row of a trace: slices of time, or values that change with it."""

    name: str
    content: Slices | Values


@frozen(eq=False)
class TrackGroup:
    """Rows of a trace under one name."""

    name: str
    tracks: tuple[Track, ...]


@frozen(eq=False)
class Timeline:
    """What there is to draw. `notes` says in sentences what it does not show, or not as it was."""

    groups: tuple[TrackGroup, ...]
    names: Sequence[str]
    steps: Sequence[Mapping[str, str | int | float]]  # what to say of a step in a run
    notes: tuple[str, ...] = ()


@frozen(eq=False)
class Events:
    """Executions of steps, one after the other. `part` is a place in `parts`: steps, each in a run."""

    parts: tuple[tuple[int, Step], ...]  # number of the run, and the step there
    times: Int64s  # [parts]: by how many executions a step's costs are to be divided
    part: Int64s  # [events]
    begin: Int64s  # [events]: cycles
    cycles: Int64s  # [events]
    recorded: tuple[tuple[int, Int64s], ...] = ()  # events, and what each tile computed in it

    @property
    def run(self) -> Int64s:
        """int64 [events]: the run of each event."""
        runs: Int64s = np.array([run for run, _ in self.parts], np.int64)[self.part]
        return runs

    def mean(self, values: Sequence[int]) -> Int64s:
        """int64 [parts]: values of the parts for one event of each."""
        means: Int64s = np.array(values, np.int64).reshape(len(self.parts)) // np.maximum(self.times, 1)
        return means


def make_timeline(report: Report, tiles: int = 4) -> Timeline:
    """The time line of all runs, with the `tiles` tiles of each IPU that compute for the most cycles.

    Raises `ApplicationRuntimeError` if nothing has run, or no step was executed.
    """
    execution = report.execution
    if execution is None and report.failed_runs:
        raise ApplicationRuntimeError("no run has come to its end: the profile has only runs that failed, which have no trace")
    if execution is None:
        raise ApplicationRuntimeError("the profile has no runs to trace: run the program before it is saved")
    if not execution.steps:
        raise ApplicationRuntimeError("the program has run, and no step was executed: there is nothing to trace")
    runs = execution.runs if any(run.steps for run in execution.runs) else (Run("all runs", execution.steps),)
    events = _recorded(execution, report.compilation.target.numTiles)
    recorded = len(events.part) > 0
    if not recorded:
        events = _end_to_end(runs)
    notes = [] if recorded else [END_TO_END]
    if recorded and execution.trace.missed:
        missed = counted(execution.trace.missed, "later execution of a step was", "later executions of steps were")
        notes.append(f"{missed} not recorded")
    if execution.trace.recorded and len(execution.trace.tiles):
        notes.append(_means_between(execution.trace.recorded, execution.trace.unrecorded))
    if not execution.copies_known:
        notes.append(COPIES_UNKNOWN)
    clock = execution.clockFrequency or report.compilation.target.clockFrequency or 1e9
    if recorded and execution.has_ipus:
        return _of_ipus(report, runs, clock, tiles, (*notes, NO_COUNTERS))
    return _Drawing(report, runs, events, clock).timeline(tiles, tuple(notes))


def _of_ipus(report: Report, runs: Sequence[Run], clock: float, tiles: int, notes: tuple[str, ...]) -> Timeline:
    """The time line of several IPUs: a group for each, whose events are its own, and one for its slowest tiles."""
    execution, target = report.execution, report.compilation.target
    assert execution is not None
    shown = report.name or target.system or target.architecture
    names: dict[str, int] = {}
    groups: list[TrackGroup] = []
    described: list[Mapping[str, str | int | float]] = []
    for ipu in range(target.numIPUs):
        events = _recorded(_execution_of_ipu(execution, ipu), target.numTiles)
        if len(events.part):
            drawing = _Drawing(report, runs, events, clock, names, first=len(described), ipu=ipu)
            groups += drawing.groups(f"{shown}: IPU {ipu}", tiles)
            described += drawing.described()
    return Timeline(tuple(groups), tuple(names), described, notes)


def _execution_of_ipu(execution: Execution, ipu: int) -> Execution:
    """The runs as one of several IPUs has them: its events, and steps with its cycles of their phases."""
    runs = [evolve(run, steps=tuple(_step_of_ipu(step, ipu) for step in run.steps)) for run in execution.runs]
    return evolve(execution, runs=tuple(runs), trace=execution.trace.of_ipu(ipu))


def _step_of_ipu(step: Step, ipu: int) -> Step:
    phases: dict[str, Any] = dict(zip(BY_IPU[:-1], step.cycles_by_ipu[:-1, ipu].tolist(), strict=True))
    return evolve(step, **phases)


def _means_between(recorded: int, unrecorded: int) -> str:
    """Of which executions it is known what tiles did."""
    text = f"tiles are as they were in the first and last {counted(recorded, 'execution')} of a step in a run, means in others"
    return f"{text}; {unrecorded:,} of these were too many to keep, and are means" if unrecorded else text


def _recorded(execution: Execution, tiles: int) -> Events:
    """The events of the trace."""
    trace = execution.trace
    parts = [(number, step) for number, run in enumerate(execution.runs) for step in run.steps]
    place = {(run, step.number): place for place, (run, step) in enumerate(parts)}
    pairs, place_of_pair = np.unique(np.stack([trace.run, trace.step]), axis=1, return_inverse=True)
    known_parts = np.array([place.get((run, step), -1) for run, step in pairs.T.tolist()], np.int64)
    part = known_parts[place_of_pair.reshape(-1)]
    kept = part >= 0
    times = np.array([step.executions for _, step in parts], np.int64)
    there = np.cumsum(kept) - 1
    told = enumerate(trace.events_of_tiles().tolist())
    recorded = [(int(there[event]), trace.tiles.by_tile(row, tiles)) for row, event in told if event >= 0 and kept[event]]
    return Events(tuple(parts), times, part[kept], trace.begin[kept], trace.cycles[kept], tuple(recorded))


def _end_to_end(runs: Sequence[Run]) -> Events:
    """Every step of every run as one event with all its cycles."""
    parts = [(number, step) for number, run in enumerate(runs) for step in run.steps]
    cycles = np.array([step.cycles for _, step in parts], np.int64)
    return Events(tuple(parts), np.ones(len(parts), np.int64), np.arange(len(parts)), np.cumsum(cycles) - cycles, cycles)


@define(eq=False)
class _Drawing:
    """Makes the tracks."""

    report: Report
    runs: Sequence[Run]
    events: Events
    clock: float
    names: dict[str, int] = field(factory=dict)
    first: int = 0  # how many parts others have that stand before these in the time line
    ipu: int | None = None  # the one whose events these are, of several
    _slowest: dict[int, int] = field(init=False)  # by step, the tile whose vertices the report has

    def __attrs_post_init__(self) -> None:
        execution = self.report.execution
        self._slowest = {step.number: critical_tile(step) for step in execution.steps} if execution is not None else {}

    def timeline(self, tiles: int, notes: tuple[str, ...]) -> Timeline:
        target = self.report.compilation.target
        shown = self.report.name or target.system or target.architecture
        groups = self.groups(f"{shown}: all IPUs" if target.numIPUs > 1 else shown, tiles)
        return Timeline(tuple(groups), tuple(self.names), self.described(), notes)

    def groups(self, name: str, tiles: int) -> list[TrackGroup]:
        """Its tracks under a name, and those of the slowest tiles."""
        bounds = self._bounds()
        main = [self._run_track(), self._program_track(), *self._critical_track(), *self._phase_tracks(bounds)]
        main += self._counter_tracks() if self.ipu is None else ()
        return [TrackGroup(name, tuple(main)), *self._tile_groups(bounds, tiles)]

    def described(self) -> list[Mapping[str, str | int | float]]:
        """What to say of each part."""
        return [self._describe(run, step) for run, step in self.events.parts]

    def _ns(self, cycles: Int64s) -> Int64s:
        ns: Int64s = np.rint(cycles * (1e9 / self.clock)).astype(np.int64)
        return ns

    def _name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def _step_names(self) -> Int64s:
        """int64 [parts]: what a step is called."""
        return np.array([self._name(step.name or step.type) for _, step in self.events.parts], np.int64)

    def _bounds(self) -> Int64s:
        """int64 [events, phases + 1]: cycles at which phases begin and end; the last one that a step has lasts until its end."""
        events = self.events
        means = np.stack([events.mean([getattr(step, name) for _, step in events.parts]) for name in PHASES.values()], 1)
        places = np.arange(len(PHASES))
        last = np.where(means > 0, places, -1).max(1)[events.part]
        ends = events.begin[:, None] + np.cumsum(means, 1)[events.part]
        finish = (events.begin + events.cycles)[:, None]
        ends = np.where(places >= last[:, None], finish, np.minimum(ends, finish))
        bounds: Int64s = np.concatenate((events.begin[:, None], ends), 1)
        if bounds.min() < 0 or float(bounds.max()) * 1e9 >= LONGEST * self.clock:
            raise ApplicationRuntimeError("the runs take longer than the 64-bit nanoseconds of a trace hold")
        return bounds

    def _slices(self, begin: Int64s, end: Int64s, name: Int64s, step: Int64s | None = None) -> Slices:
        place = np.full(len(name), -1) if step is None else np.where(step < 0, step, step + self.first)
        return Slices(self._ns(begin), self._ns(end), end - begin, name, place)

    def _run_track(self) -> Track:
        events = self.events
        run = events.run
        first = np.flatnonzero(np.diff(run, prepend=-1))
        last = np.append(first[1:], len(run)) - 1
        labels = [f"{run.name or 'run'} ({run.count:,} runs)" if run.count > 1 else run.name or "run" for run in self.runs]
        names = np.array([self._name(labels[number]) for number in run[first].tolist()], np.int64)
        end = events.begin + events.cycles
        return Track("Runs", self._slices(events.begin[first], end[last], names))

    def _program_track(self) -> Track:
        """The levels of the program that the steps stand in, down to the steps."""
        events, nesting = self.events, Nesting(self.report.compilation.programs, self.report.compilation.step_programs)
        numbers = np.array([step.number for _, step in events.parts], np.int64)[events.part]
        levels = nesting.levels(events.run.tolist(), numbers.tolist())
        names = self._step_names()[events.part].tolist()
        texts = list(self.names)
        rows = [
            (level.first, level.last, self._name(level.told(texts[names[level.first]])))
            if level.title is not None or level.iteration
            else (level.first, level.last, names[level.first])
            for level in levels
        ]
        first, last, name = np.array(rows, np.int64).reshape(-1, 3).T
        return Track("Program", self._slices(events.begin[first], (events.begin + events.cycles)[last], name))

    def _critical_track(self) -> Iterator[Track]:
        """The tile that each step waits for; without the steps that all tiles go through alike."""
        events = self.events
        tiles = np.array([self._critical_tile(step) for _, step in events.parts], np.int64)
        slowest = tiles[events.part]
        for event, by_tile in events.recorded:
            slowest[event] = self._own.start + by_tile[self._own].argmax()
        called = {tile: self._name(f"Tile {tile}") if tile >= 0 else -1 for tile in dict.fromkeys(slowest.tolist())}
        names = np.array([called[tile] for tile in slowest.tolist()], np.int64)
        shown = (names >= 0) & (events.cycles > 0)
        if shown.any():
            begin, end = events.begin[shown], (events.begin + events.cycles)[shown]
            yield Track("Slowest tile", self._slices(begin, end, names[shown], events.part[shown]))

    @property
    def _own(self) -> slice:
        """The tiles whose events these are."""
        target = self.report.compilation.target
        if self.ipu is None:
            return slice(0, target.numTiles)
        return slice(self.ipu * target.tilesPerIpu, (self.ipu + 1) * target.tilesPerIpu)

    def _critical_tile(self, step: Step) -> int:
        """The tile that a step waits for, of several IPUs that of its own one."""
        if self.ipu is None:
            return critical_tile(step)
        for by_tile in (step.cyclesByTile, step.exchange_cycles_by_tile, step.copy_cycles_by_tile):
            cycles = by_tile[self._own]
            if cycles.any():
                return int(self._own.start + cycles.argmax())
        return -1

    def _phase_tracks(self, bounds: Int64s) -> Iterator[Track]:
        names = self._step_names()[self.events.part]
        for place, phase in enumerate(PHASES):
            begin, end = bounds[:, place], bounds[:, place + 1]
            lasting = end > begin
            if lasting.any():
                yield Track(phase, self._slices(begin[lasting], end[lasting], names[lasting], self.events.part[lasting]))

    def _counter_tracks(self) -> Iterator[Track]:
        events, parts = self.events, [step for _, step in self.events.parts]
        part, begin, end = events.part, events.begin, events.begin + events.cycles
        sent = events.mean([int(step.bytesSentByTile.sum()) for step in parts])
        yield Track("Bytes exchanged", self._values(begin, end, sent[part], "bytes"))
        active = np.array([step.activeTiles for step in parts])
        yield Track("Active tiles", self._values(begin, end, active[part], "tiles"))
        balance = np.array([step.tileBalance for step in parts])
        yield Track("Tile balance", self._values(begin, end, balance[part], "mean over maximum"))
        flops = events.mean([step.flops for step in parts])[part]
        if flops.any():
            rate = np.divide(flops * self.clock, events.cycles, out=np.zeros(len(flops)), where=events.cycles > 0)
            yield Track("FLOP/s", self._values(begin, end, rate, "FLOP/s"))
        compilation = self.report.compilation
        if compilation.step_programs and (len(compilation.loweredVariables) or len(compilation.memory.always_live)):
            always = int(compilation.memory.always_live.sum())
            live = always + live_bytes(compilation.loweredVariables, len(compilation.step_programs))
            numbers = np.array([step.number for step in parts], np.int64)[part]
            yield Track("Live memory", self._values(begin, None, live[numbers], "bytes"))

    def _values(self, begin: Int64s, end: Int64s | None, value: Numbers, unit: str) -> Values:
        """A counter that has a value during each event, and 0 in between unless `end` is None; where it changes."""
        time = begin
        if end is not None:
            gap = np.append(begin[1:] > end[:-1], True) & (end > begin)
            time = np.concatenate((begin, end[gap]))
            order = np.argsort(time, kind="stable")
            time, value = time[order], np.concatenate((value, np.zeros(int(gap.sum()))))[order]
        changes = np.flatnonzero(np.diff(value, prepend=np.nan) != 0)
        return Values(self._ns(time[changes]), value[changes].astype(np.float64), unit)

    def _tile_groups(self, bounds: Int64s, tiles: int) -> Iterator[TrackGroup]:
        """The tiles of each IPU with the most cycles: their own compute in each superstep, and their wait for the slowest tile."""
        execution, compilation = self.report.execution, self.report.compilation
        totals = np.zeros(compilation.target.numTiles, np.int64)
        for step in execution.steps if execution is not None else ():
            totals[: len(step.cyclesByTile)] += step.cyclesByTile
        for ipu, row in enumerate(compilation.by_ipu(totals)):
            if self.ipu not in (None, ipu):
                continue
            slowest = [int(tile) for tile in np.argsort(-row, kind="stable")[:tiles] if row[tile]]
            first = ipu * compilation.target.tilesPerIpu
            tracks = tuple(self._tile_track(first + tile, bounds) for tile in slowest)
            if tracks:
                yield TrackGroup(f"IPU {ipu}: slowest tiles", tracks)

    def _tile_track(self, tile: int, bounds: Int64s) -> Track:
        events = self.events
        own = events.mean([int(step.cyclesByTile[tile]) if len(step.cyclesByTile) else 0 for _, step in events.parts])[events.part]
        for event, by_tile in events.recorded:
            own[event] = by_tile[tile]
        begin, end = bounds[:, -2], bounds[:, -1]
        middle = np.minimum(begin + own, end)
        names = self._step_names()[events.part]
        # Each event's compute and wait, side by side; those that take no time are left out.
        begins, ends = np.stack((begin, middle), 1).ravel(), np.stack((middle, end), 1).ravel()
        label = np.stack((names, np.full(len(names), self._name(WAIT))), 1).ravel()
        lasting = ends > begins
        part = np.stack((events.part, np.full(len(names), -1)), 1).ravel()
        return Track(self._tile_name(tile), self._slices(begins[lasting], ends[lasting], label[lasting], part[lasting]))

    def _tile_name(self, tile: int) -> str:
        """``Tile 1500 (tile 28 of IPU 1)``."""
        target = self.report.compilation.target
        ipu, place = divmod(tile, max(target.tilesPerIpu, 1))
        return f"Tile {tile}" + (f" (tile {place} of IPU {ipu})" if target.numIPUs > 1 else "")

    def _describe(self, run: int, step: Step) -> dict[str, str | int | float]:
        """What a slice says of its step: of the mean execution, where it was executed more than once in the run."""
        times = max(step.executions, 1)
        description: dict[str, str | int | float] = {
            "step": step.number,
            "type": step.type,
            "run": run,
            "executions": step.executions,
        }
        if len(step.bytesSentByTile):
            description["bytes sent"] = int(step.bytesSentByTile.sum()) // times
        if step.most_pieces is not None:
            description["pieces at the busiest port"] = step.most_pieces // times
        if step.host_bytes:
            description["host bytes"] = step.host_bytes // times
            if step.host_limit:
                description["limited by"] = step.host_limit
        if step.activeTiles:
            description |= {"active tiles": step.activeTiles, "tile balance": round(step.tileBalance, 4)}
        if step.flops:
            description["flops"] = step.flops // times
        if (tile := critical_tile(step)) >= 0:
            description["slowest tile"] = tile
        if step.program is not None and step.program.vertices:
            description["vertices"] = ", ".join(f"{count:,} {name}" for name, count in step.program.vertices.items())
        if tile >= 0 and tile == self._slowest.get(step.number):
            vertices = self.report.execution.slowest_vertices.get(step.number, ()) if self.report.execution is not None else ()
            description |= {"vertices of the slowest tile": ", ".join(each.told() for each in vertices)} if vertices else {}
        return description
