"""`ipu.cycle_count()` reads the model's clock: what it says is what the report says."""

import numpy as np
import pytest
from engine_builder import Bench, everywhere, tiny

from pypoplar import UNSIGNED_INT, InOut, Input, IPUModel, MultiVertex, Output, SupervisorVertex, Vector, Vertex, ipu
from pypoplar.device import Device
from pypoplar.program import Repeat, Sequence

STORE = 1  # slots after the last reading


class Work(Vertex):
    """A loop between two readings."""

    at: Output[Vector[UNSIGNED_INT]]
    rounds: Input[UNSIGNED_INT]

    def compute(self):
        self.at[0] = ipu.cycle_count()
        total = UNSIGNED_INT(0)
        for i in range(self.rounds):
            total = total * 3 + i
        self.at[1] = total
        self.at[2] = ipu.cycle_count()


class Shared(MultiVertex):
    """The same by each worker, which leaves its readings in a place of its own."""

    at: InOut[Vector[UNSIGNED_INT]]
    rounds: Input[UNSIGNED_INT]

    def compute(self, worker):
        at = self.at[3 * worker :]
        at[0] = ipu.cycle_count()
        total = UNSIGNED_INT(0)
        for i in range(self.rounds):
            total = total * 3 + i
        at[1] = total
        at[2] = ipu.cycle_count()


class Alone(SupervisorVertex):
    at: Output[Vector[UNSIGNED_INT]]
    rounds: Input[UNSIGNED_INT]

    def compute(self):
        self.at[0] = ipu.cycle_count()
        total = UNSIGNED_INT(0)
        for i in range(self.rounds):
            total = total * 3 + i
        self.at[1] = total
        self.at[2] = ipu.cycle_count()


KINDS = {Work: 6, Shared: 6, Alone: 6}  # cycles of a slot, of an instruction of the supervisor


@pytest.mark.parametrize("codelet", KINDS)
@pytest.mark.parametrize("tile", [3, 7])
def test_the_last_reading_is_the_programs_cycles_but_for_what_follows(codelet, tile):
    bench = Bench(tiny())
    rounds = bench.variable("rounds", np.array([100], np.uint32), 7)  # comes by exchange, or is there
    bench.variable("at", np.zeros(18, np.uint32), tile)
    at = bench.graph.addVariable(UNSIGNED_INT, [18], "readings")
    bench.graph.setTileMapping(at, tile)
    bench.handles("readings", at)
    bench.graph.setInitialValue(at, np.zeros(18, np.uint32))
    program = bench.execute(codelet, tile, at=at, rounds=rounds[0])

    def work(mode, options):
        engine = bench.engine(Sequence([program, Repeat(2, program)]), mode, options)
        engine.run()
        report = engine.getReport().execution
        return int(engine.readTensor("readings")[2]), int(report.totalCycles.total)

    last, total = everywhere(work)
    assert last + KINDS[codelet] * STORE == total


@pytest.mark.parametrize("codelet", KINDS)
@pytest.mark.parametrize("target", ["six workers", "one worker"])
def test_what_passes_between_two_readings_is_what_the_tile_is_charged(codelet, target):
    device = tiny() if target == "six workers" else Device.createCPUDevice()
    bench = Bench(device)
    at = bench.variable("at", np.zeros(18, np.uint32), 0)
    rounds = bench.variable("rounds", np.array([0], np.uint32), 0)
    program = bench.execute(codelet, 0, at=at, rounds=rounds[0])

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        found = []
        for count in (10, 1000):
            engine.resetExecutionProfile()
            engine.writeTensor("rounds", np.array([count], np.uint32))
            engine.run()
            first, _, last = engine.readTensor("at")[:3].tolist()
            found.append((last - first, int(engine.getReport().execution.totalCycles.total)))
        return found

    (short, short_total), (long, long_total) = everywhere(work)
    assert long - short == long_total - short_total > 0


def test_the_counter_goes_on_from_run_to_run():
    model = IPUModel("tiny")
    bench = Bench(model.createDevice())
    at = bench.variable("at", np.zeros(18, np.uint32), 0)
    program = bench.execute(Work, 0, at=at, rounds=bench.variable("rounds", np.array([5], np.uint32), 0)[0])

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        readings = []
        for _ in range(3):
            engine.run()
            readings.append(int(engine.readTensor("at")[0]))
        return readings, int(engine.getReport().execution.totalCycles.total)

    (first, second, third), total = everywhere(work)
    assert second - first == third - second == total // 3
