"""What a superstep costs by the vendor's model and on hardware: syncs, starts of compute sets, tiles that go on by themselves."""

import io
from collections import defaultdict

import numpy as np
import pytest
from engine_builder import Bench, everywhere, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    INT,
    UNSIGNED_INT,
    CodeletRuntimeError,
    Engine,
    Executable,
    InOut,
    Output,
    SupervisorVertex,
    SyncType,
    Vertex,
    compileGraph,
    cycleCount,
    cycleStamp,
    ipu,
)
from pypoplar.program import Call, Copy, Execute, If, PrintTensor, Repeat, Sequence, Switch, Sync
from pypoplar.report.text.summary import summary

START, SYNC = 20, 126
TILES = 6


class Idle(SupervisorVertex):
    """So many cycles of a tile, by its estimate."""

    out: InOut[INT]

    def compute(self):
        self.out = self.out


class Reading(SupervisorVertex):
    at: Output[UNSIGNED_INT]

    def compute(self):
        self.at = ipu.cycle_count()


class Agreeing(SupervisorVertex):
    out: InOut[INT]

    def compute(self) -> bool:
        return self.out == 0


class Failing(Vertex):
    out: InOut[INT]

    def compute(self):
        ipu.check(self.out < 0)


class Timed:
    """A bench whose compute sets take given cycles on given tiles."""

    def __init__(self, timing="hardware", ipus=1, **changes):
        self.bench = Bench(tiny(TILES, timing)) if ipus == 1 and not changes else Bench(_device(timing, ipus, changes))
        self.target = self.bench.graph.getTarget()
        self.own = self.bench.variable("own", np.zeros(TILES * ipus, np.int32), np.arange(TILES * ipus))

    def work(self, cycles, result=None, codelet=Idle, name="work"):
        """A compute set of a vertex on each tile of `cycles`, a dict."""
        compute_set = self.bench.graph.addComputeSet(name)
        for tile, many in cycles.items():
            vertex = self.bench.vertex(compute_set, codelet, tile, out=self.own[tile])
            self.bench.graph.setPerfEstimate(vertex, many)
        return Execute(compute_set, result)

    def read(self, tile, name):
        """A compute set that reads the cycle counter of a tile."""
        return self.bench.execute(Reading, tile, at=self.bench.variable(name, np.zeros(1, np.uint32), tile)[0])

    def total(self, program, *names):
        """Cycles of a run, and readings by name: the same in every way of running it."""

        def run(mode, options):
            engine = self.bench.engine(program, mode, options)
            engine.run()
            execution = engine.getReport().execution
            of_each = [ipu.cycles for ipu in execution.ipus] or [execution.stepCycles]
            assert set(of_each) == {execution.totalCycles.total}
            return [execution.totalCycles.total, *(int(engine.readTensor(name).ravel()[0]) for name in names)]

        found = everywhere(run)
        return found if names else found[0]


def _device(timing, ipus, changes):
    from pypoplar import IPUModel

    model = IPUModel("tiny", timing)
    model.numIPUs, model.tilesPerIPU = ipus, TILES
    for name, value in changes.items():
        setattr(model, name, value)
    return model.createDevice()


def test_the_vendors_model_syncs_before_every_compute_set():
    timed = Timed("model")
    program = Sequence([timed.work({0: 1000, 1: 10}), timed.work({0: 10, 1: 1000})])
    assert timed.total(program) == 2 * (SYNC + 1000)


def test_on_hardware_a_compute_set_has_a_start_and_no_sync():
    timed = Timed()
    assert timed.total(timed.work({0: 3600})) == START + 3600
    assert timed.total(Repeat(2, timed.work({0: 3600}))) == 2 * (START + 3600)


def test_on_hardware_tiles_run_on_by_themselves():
    timed = Timed()
    program = Sequence([timed.work({0: 1000, 1: 10}), timed.work({0: 10, 1: 1000}), timed.work({2: 700})])
    assert timed.total(program) == 2 * START + 1010


def test_a_start_is_paid_on_tiles_with_vertices_alone():
    timed = Timed()
    program = Sequence([timed.work({0: 100})] + [timed.work({1: 1}) for _ in range(3)])
    assert timed.total(program) == START + 100
    assert timed.total(Repeat(10, timed.work({1: 1}))) == 10 * (START + 1)


def test_the_next_sync_waits_for_the_slowest_tile():
    timed = Timed()
    first, then = timed.work({0: 1000, 1: 10}), timed.work({0: 10, 1: 1000})
    assert timed.total(Sequence([first, Sync(SyncType.INTERNAL), then])) == 2 * (START + 1000) + SYNC


def stamped(timed):
    program = Sequence([])
    cycleStamp(timed.bench.graph, program, 3)
    return program


WAITS = {
    "a copy between tiles": lambda timed: Copy(timed.own[4], timed.own[5]),
    "a copy on a tile": lambda timed: Copy(timed.bench.variable("here", 3, 4), timed.own[4]),
    "a stream": lambda timed: Copy(timed.bench.graph.addHostToDeviceFIFO("in", INT, 1), timed.own[3]),
    "a printed tensor": lambda timed: PrintTensor(timed.own[4]),
    "a result": lambda timed: timed.work({3: 0}, timed.bench.variable("agreed", False, 4), Agreeing),
    "an exchange before vertices": lambda timed: timed.bench.execute(Idle, 3, out=timed.own[4]),
    "an exchange between others": lambda timed: timed.bench.execute(Idle, 4, out=timed.own[5]),
    "a value that chooses": lambda timed: Switch(timed.own[5], [(3, Sequence([])), (4, Sequence([]))], Sequence([])),
    "a stamp of cycles": lambda timed: stamped(timed),
    "a value that decides": lambda timed: If(timed.bench.variable("flag", True, 5), Sequence([]), Sequence([])),
}


@pytest.mark.parametrize("what", WAITS)
def test_all_tiles_wait_for_the_slowest_at(what):
    """Two long pieces of work of different tiles: side by side, or one after the other."""
    timed = Timed()
    first, then = timed.work({0: 10_000}), timed.work({1: 10_000})
    between = WAITS[what](timed)

    def run(program):
        def work(mode, options):
            engine = timed.bench.engine(program, mode, options)
            if what == "a stream":
                engine.connectStream("in", np.zeros(1, np.int32))
            engine.setPrintStream(io.StringIO())
            engine.run()
            return engine.getReport().execution.totalCycles.total

        return everywhere(work)

    assert run(Sequence([first, then])) == START + 10_000
    alone = run(Sequence([between]))
    assert run(Sequence([first, between, then])) == alone + 2 * (START + 10_000)


def test_loops_calls_and_functions_do_not_make_tiles_wait():
    timed = Timed()
    function = timed.bench.graph.addFunction(timed.work({0: 500}))
    program = Sequence([Repeat(3, Sequence([Call(function), timed.work({1: 400})])), timed.work({2: 50})])
    assert timed.total(program) == 3 * (START + 500)


def test_a_counter_of_cycles_waits_and_says_what_its_program_added():
    timed = Timed()
    counted = Sequence([timed.work({1: 300}), timed.work({2: 200})])
    timed.bench.handles("count", cycleCount(timed.bench.graph, counted, 0))
    total, count = timed.total(Sequence([timed.work({0: 1000}), counted, timed.work({3: 900})]), "count")
    assert count == START + 300
    assert total == START + 1000 + START + 300 + START + 900


def test_the_cycle_counter_of_a_tile_is_its_own():
    timed = Timed()
    readings = [timed.read(tile, f"tile {tile}") for tile in (0, 1)]
    program = Sequence([timed.work({0: 1000}), *readings])
    reading = 6  # an instruction
    _, first, second = timed.total(program, "tile 0", "tile 1")
    assert (first, second) == (START + 1000 + START + reading, START + reading)
    timed = Timed("model")
    readings = [timed.read(tile, f"tile {tile}") for tile in (0, 1)]
    _, first, second = timed.total(Sequence([timed.work({0: 1000}), *readings]), "tile 0", "tile 1")
    assert second > first == 2 * SYNC + 1000 + reading


def test_the_next_run_begins_when_all_tiles_are_done():
    timed = Timed()
    programs = [timed.work({0: 1000}), timed.work({1: 300})]

    def work(mode, options):
        engine = timed.bench.engine(programs, mode, options)
        for number in (0, 1, 0):
            engine.run(number)
        return engine.getReport().execution.totalCycles.total

    assert everywhere(work) == START + 1000 + START + 300 + START + 1000


def test_a_run_that_fails_leaves_no_time_behind():
    timed = Timed()
    failing = Sequence([timed.work({0: 50_000}), timed.bench.execute(Failing, 0, out=timed.own[0])])
    programs = [failing, timed.work({0: 100})]

    def work(mode, options):
        engine = timed.bench.engine(programs, mode, options)
        with pytest.raises(CodeletRuntimeError):
            engine.run(0)
        engine.run(1)
        return engine.getReport().execution.totalCycles.total

    assert everywhere(work) == START + 100


@pytest.mark.parametrize("timing", ["model", "hardware"])
def test_settings_of_a_device_take_the_place_of_its_timings(timing):
    timed = Timed(timing, compute_set_start_cycles=7, syncs_without_exchange=True)
    assert timed.total(Repeat(3, timed.work({0: 100}))) == 3 * (SYNC + 7 + 100)
    timed = Timed(timing, compute_set_start_cycles=0, syncs_without_exchange=False)
    assert timed.total(Sequence([timed.work({0: 100}), timed.work({1: 90})])) == 100


def test_a_step_adds_what_it_takes_beyond_the_others_and_its_tiles_count_all():
    timed = Timed()
    program = Sequence([timed.work({0: 1000, 1: 10}, name="first"), timed.work({1: 1200}, name="second"), timed.work({2: 5})])
    engine = timed.bench.engine(program)
    engine.run()
    first, second, third = engine.getReport().execution.steps
    assert (first.compute_cycles, second.compute_cycles, third.compute_cycles) == (START + 1000, 10 + START + 1200 - 1000, 0)
    assert second.cyclesByTile[:3].tolist() == [0, START + 1200, 0]
    assert third.cyclesByTile[:3].tolist() == [0, 0, START + 5]
    assert [step.slowest_tile_cycles for step in (first, second, third)] == [START + 1000, START + 1200, START + 5]
    assert [step.sync_cycles for step in (first, second, third)] == [0, 0, 0]
    lines = [line.strip() for line in summary(engine.getReport(), {"showExecutionSteps": "true"}).splitlines()]
    place = lines.index("OnTileExecute: work")
    assert lines[place + 1 : place + 3] == ["Cycles: 0", f"Slowest tile: {START + 5}, beside other steps"]
    average = engine.getReport().execution.tile_average
    assert average.waiting == pytest.approx(average.sync)
    assert average.sync >= 0


def test_judging_elements_and_printing_vertices_does_not_change_cycles():
    timed = Timed()
    program = Sequence([timed.work({0: 1000}), timed.work({1: 900})])
    totals = set()
    for options in ({}, {"pypoplar.races": "elements"}, {"profiler.includeFlopEstimates": True}):
        engine = timed.bench.engine(program, "native", options)
        engine.run()
        totals.add(engine.getReport().execution.totalCycles.total)
    assert totals == {START + 1000}


def test_tiles_of_several_ipus_run_on_too():
    timed = Timed(ipus=2)
    program = Sequence([timed.work({0: 1000, TILES: 10}), timed.work({0: 10, TILES: 1000})])
    assert timed.total(program) == 2 * START + 1010


def test_an_executable_that_was_saved_keeps_its_timing():
    for timing, cycles in (("model", 2 * SYNC + 1900), ("hardware", START + 1000)):
        timed = Timed(timing)
        executable = compileGraph(timed.bench.graph, Sequence([timed.work({0: 1000}), timed.work({1: 900})]))
        file = io.BytesIO()
        executable.save(file)
        file.seek(0)
        loaded = Executable.load(file)
        assert loaded.target == executable.target
        for mode in ("interpret", "native"):
            engine = Engine(loaded, mode=mode)
            engine.load(timed.bench.device)
            engine.run()
            assert engine.getReport().execution.totalCycles.total == cycles


# Against a simulation tile by tile


def simulated(target, program):
    """Cycles of a program of compute sets (dicts of cycles by tile), syncs (None) and copies between tiles (a number of bytes)."""
    done = defaultdict(int)  # by tile, when it can go on
    together = farthest = 0
    for part in program:
        if not isinstance(part, dict):
            cycles = max(part // 4, 3) if part else 0
            together = farthest = farthest + target.getMaxIPUSyncDelay() + cycles
            continue
        if target.syncs_without_exchange:
            together = farthest + target.getMaxIPUSyncDelay()
        for tile, cycles in part.items():
            done[tile] = max(done[tile], together) + target.compute_set_start_cycles + cycles
        farthest = max([farthest, together if target.syncs_without_exchange else 0, *done.values()])
    return farthest


COMPUTE = st.dictionaries(st.integers(0, TILES - 1), st.integers(0, 300), min_size=1)
PARTS = st.one_of(COMPUTE, COMPUTE, COMPUTE, st.none(), st.integers(1, 100).map(lambda words: 4 * words))


@examples(40)
@given(st.sampled_from(["model", "hardware"]), st.lists(PARTS, min_size=1, max_size=12), st.integers(0, 40), st.booleans())
def test_a_program_takes_as_long_as_a_simulation_tile_by_tile(timing, program, start, syncs):
    timed = Timed(timing, compute_set_start_cycles=start, syncs_without_exchange=syncs)
    words = timed.bench.variable("words", np.zeros((2, 100), np.int32), [0] * 100 + [1] * 100)
    parts = []
    for part in program:
        if isinstance(part, dict):
            parts.append(timed.work(part))
        else:
            parts.append(Sync(SyncType.INTERNAL) if part is None else Copy(words[0, : part // 4], words[1, : part // 4]))
    assert timed.total(Sequence(parts)) == simulated(timed.target, program)
