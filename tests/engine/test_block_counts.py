"""Executions of blocks by compute set and vertex type, and each compute set's slowest vertex: both engines count the same."""

import numpy as np
import pytest
from block_rig import blocks_of
from engine_builder import Bench, everywhere, tiny

from pypoplar import BOOL, FLOAT, CodeletRuntimeError, InOut, Input, MultiVertex, Output, SupervisorVertex, Vector, Vertex
from pypoplar.engine.loaded_codelets import priced_codelets
from pypoplar.interface.header_slots import Slot
from pypoplar.program import Execute, Repeat, Sequence

ON = {"profiler.includeFlopEstimates": "true"}
WORKERS = 6


class Scale(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * 2.0 + 1.0 - 0.5


class Choose(Vertex):
    x: InOut[Vector[FLOAT]]
    done: Output[BOOL]

    def compute(self):
        i = 0
        while i < len(self.x):
            if self.x[i] < 0.0:
                self.x[i] = -self.x[i]
            elif self.x[i] > 3.0:
                break
            i += 1
        self.done = i == len(self.x)


class Shared(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] *= 2.0


class Alone(SupervisorVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1.0


class Guessed(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1.0

    def cycles(self, vertex):
        return 7 * vertex.getFieldInfo("x").size()


class Checked(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = self.x[int(self.x[0])]


def prices(executable):
    """By codelet, the slots of its blocks."""
    return [[slots for slots, _ in blocks_of(codelet)] for codelet in priced_codelets(executable)]


def counts(engine):
    """By compute and codelet: slots, and executions of blocks; and cycles and number of each compute set's slowest vertex.

    Executions times prices are the slots of the code.
    """
    history, executable = engine._runs.history(), engine.executable
    counted = history.counts
    names = [codelet.name for codelet in executable.codelets]
    code = dict.fromkeys(names, 0)
    rows = {}
    for row, (compute, codelet) in enumerate(zip(counted.compute, counted.codelet, strict=True)):
        slots = prices(executable)[codelet]
        blocks = counted.blocks[counted.first[row] : counted.first[row + 1]].tolist()
        assert not any(blocks[len(slots) :])
        spent = sum(price * times for price, times in zip(slots, blocks, strict=False))
        code[names[codelet]] += spent * (WORKERS if executable.codelets[codelet].kind == "multi" else 1)
        rows[int(compute), names[codelet]] = (int(counted.slots[row]), blocks)
    work = [run for run in history.runs if len(run.codelet_compiled)]
    assert list(code.values()) == sum(run.codelet_compiled for run in work).tolist()
    by_codelet = [sum(slots for (_, name), (slots, _) in rows.items() if name == one) for one in names]
    assert by_codelet == sum(run.codelet_slots for run in history.runs).tolist()
    slowest = [int(executable.computes.vertex[place]) for place in counted.slowest]
    return rows, counted.slowest_cycles.tolist(), slowest


@pytest.fixture
def bench():
    return Bench(tiny(8))


def several(bench):
    """Compute sets with vertices of all kinds on several tiles."""
    graph = bench.graph
    mixed, plain, guessed = (graph.addComputeSet(name) for name in ("mixed", "plain", "guessed"))
    random = np.random.default_rng(1)
    for tile in range(8):
        for number in range(1 + tile % 3):
            x = bench.variable(f"x{tile}_{number}", random.normal(0, 2, 5 + tile + number).astype(np.float32), tile)
            bench.vertex(mixed, Choose, tile, x=x, done=bench.variable(f"d{tile}_{number}", np.zeros(1, bool), tile)[0])
            y = bench.variable(f"y{tile}_{number}", random.normal(0, 2, 40 - tile).astype(np.float32), tile)
            bench.vertex(plain, Scale, tile, x=y)
            bench.vertex(guessed, Guessed, tile, x=bench.variable(f"g{tile}_{number}", np.ones(3 + number, np.float32), tile))
        z = bench.variable(f"z{tile}", random.normal(0, 2, 20 + tile).astype(np.float32), tile)
        bench.vertex(mixed, Shared, tile, x=z)
        bench.vertex(mixed, Alone, tile, x=bench.variable(f"a{tile}", np.ones(2 + tile % 2, np.float32), tile))
    graph.setPerfEstimate(bench.vertex(plain, Scale, 2, x=bench.variable("e", np.ones(3, np.float32), 2)), 1000)
    return Sequence(Execute(mixed), Repeat(3, Sequence(Execute(plain), Execute(guessed))), Execute(mixed))


@pytest.mark.parametrize("cost", ["compiled", "scalar"])
def test_all_engines_and_threads_count_the_same_blocks(bench, cost):
    program = several(bench)

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        for _ in range(3):
            engine.run()
        return counts(engine) if cost == "compiled" else [engine._runs.history().counts.blocks.tolist()]

    outcome = everywhere(work, {**ON, "pypoplar.codelet_cost": cost})
    if cost == "compiled":
        rows, cycles, _ = outcome
        assert set(rows) == {(0, "Choose"), (0, "Shared"), (0, "Alone"), (1, "Scale"), (2, "Guessed")}
        assert cycles[1:] == [1000 * WORKERS, 7 * 5 * WORKERS]


def test_runs_that_fail_or_are_not_profiled_count_nothing(bench):
    x = bench.variable("x", np.array([0, 1, 2], np.float32))
    out = bench.variable("out", np.zeros(1, np.float32))
    program = bench.execute(Checked, x=x, out=out[0])

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        engine.run()
        seen = [counts(engine)]
        engine.writeTensor("x", np.array([7, 1, 2], np.float32))
        with pytest.raises(CodeletRuntimeError):
            engine.run()
        seen.append(counts(engine))
        engine.writeTensor("x", np.array([1, 1, 2], np.float32))
        engine.disableExecutionProfiling()
        engine.run()
        seen.append(counts(engine))
        engine.enableExecutionProfiling()
        for _ in range(3):
            engine.run()
        seen.append(counts(engine))
        with pytest.raises(CodeletRuntimeError):
            engine.writeTensor("x", np.array([7, 1, 2], np.float32))
            engine.run()
        seen.append(counts(engine))
        return seen

    first, failed, unprofiled, several, last = everywhere(work, {**ON, "autoReport.executionProfileProgramRunCount": 2})
    assert first == failed == unprofiled
    assert several == last
    blocks = first[0][0, "Checked"][1]
    assert several[0][0, "Checked"][1] == [4 * times for times in blocks]


def test_of_equal_vertices_the_one_at_the_lowest_place_is_the_slowest(bench):
    compute_set = bench.graph.addComputeSet("equal")
    for tile in (5, 3, 1):
        bench.vertex(compute_set, Scale, tile, x=bench.variable(f"x{tile}", np.ones(9, np.float32), tile))
    program = Execute(compute_set)

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        engine.run()
        return counts(engine)[2]

    assert everywhere(work, ON) == [2]


def test_nothing_is_counted_unless_a_profile_of_the_execution_is_asked_for(bench, tmp_path):
    program = bench.execute(Scale, x=bench.variable("x", np.ones(3, np.float32)))
    given = [{}, {"autoReport.outputGraphProfile": True}, {"autoReport.outputExecutionProfile": True}, {"autoReport.all": True}]
    for options, wanted in zip(given, (False, False, True, True), strict=True):
        engine = bench.engine(program, "native", {"autoReport.directory": str(tmp_path), **options})
        engine.run()
        assert (engine._runs.history().counts is not None) is wanted
        assert bool(engine._state.header[Slot.BLOCKS]) is wanted
