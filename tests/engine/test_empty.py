"""Lists of no rows, tensors of no elements and copies of nothing."""

import numpy as np
import pytest
from engine_builder import Bench, everywhere

from pypoplar import (
    FLOAT,
    INT,
    Engine,
    Executable,
    GraphConnectionError,
    InOut,
    Input,
    MultiVertex,
    Output,
    Vector,
    VectorList,
    Vertex,
)
from pypoplar.program import Copy, Execute, Sequence


class CountRows(Vertex):
    before: Input[VectorList[FLOAT]]
    rows: InOut[VectorList[FLOAT]]
    out: Output[INT]

    def compute(self):
        elements = 0
        for row in self.rows:
            elements += len(row)
            for i in range(len(row)):
                row[i] += 1.0
        self.out = 100 * len(self.before) + 10 * len(self.rows) + elements


class CountEach(MultiVertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[Vector[INT]]

    def compute(self, worker):
        self.out[worker] = len(self.rows)


@pytest.mark.parametrize("options", [{}, {"pypoplar.races": "elements"}, {"pypoplar.uninitialised": "error"}])
def test_lists_of_no_rows_run_in_both_engines_and_from_a_file(options, tmp_path):
    def work(mode, settings):
        bench = Bench()
        x = bench.variable("x", np.zeros((6, 2), np.float32), tile=1)
        out, each = bench.variable("out", [7] * 5, tile=2), bench.variable("each", [7] * 6, tile=4)
        compute = bench.graph.addComputeSet("count")
        lists = [([], []), (x[0:0], x[1:3]), ([], [x[3][0:1]]), ([x[4], x[5]], ()), (x[0:0], [x[0][0:0]])]
        for number, (before, rows) in enumerate(lists):
            bench.vertex(compute, CountRows, number % 3, before=before, rows=rows, out=out[number])
        bench.vertex(compute, CountEach, 4, rows=[], out=each)
        first = Engine(bench.graph, Execute(compute), settings, mode=mode)
        again = Engine(Executable.deserialize(first.executable.serialize()), settings, mode=mode)
        for engine in (first, again):
            engine.loadAndRun(bench.device)
            assert engine.readTensor("out").tolist() == [0, 24, 11, 200, 10]
            assert engine.readTensor("each").tolist() == [0] * 6
            assert engine.readTensor("x").tolist() == [[0, 0], [1, 1], [1, 1], [1, 0], [0, 0], [0, 0]]
        return engine.getReport().execution.totalCycles

    everywhere(work, options)


def test_many_vertices_take_lists_of_no_rows(mode):
    bench = Bench()
    x = bench.variable("x", np.zeros((3, 0, 4), np.float32))
    out = bench.variable("out", [7, 7, 7])
    compute = bench.graph.addComputeSet("count")
    bench.graph.add_vertices(compute, CountRows, {"before": x, "rows": x, "out": out}, [0, 1, 2])
    engine = bench.engine(Execute(compute), mode)
    engine.run()
    assert engine.readTensor("out").tolist() == [0, 0, 0]


def test_a_list_that_is_connected_to_nothing_is_still_refused():
    bench = Bench()
    compute = bench.graph.addComputeSet("count")
    bench.vertex(compute, CountRows, rows=[], out=bench.variable("out", 7))
    with pytest.raises(GraphConnectionError, match=r"\.py:\d+: field CountRows\.before is not connected"):
        bench.engine(Execute(compute))


def test_a_stream_copy_of_no_elements_costs_nothing():
    def cycles(mode, options):
        bench = Bench()
        x, y = (bench.variable(name, np.zeros(0, np.float32)) for name in "xy")
        into, out = bench.graph.addHostToDeviceFIFO("in", FLOAT, 0), bench.graph.addDeviceToHostFIFO("out", FLOAT, 0)
        rows = bench.graph.addRemoteBuffer("rows", FLOAT, 0)
        engine = bench.engine(Sequence([Copy(into, x), Copy(x, y), Copy(y, out), Copy(x, rows), Copy(rows, y)]), mode, options)
        for name in ("in", "out"):
            engine.connectStream(name, np.zeros(0, np.float32))
        engine.run()
        execution = engine.getReport().execution
        assert [step.cycles for step in execution.steps] == [0] * 4
        return sum(step.cycles for step in execution.steps)

    assert everywhere(cycles) == 0


def test_a_stream_copy_of_an_element_costs_the_hosts_sync():
    bench = Bench()
    x = bench.variable("x", np.zeros(1, np.float32))
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", FLOAT, 1), x))
    engine.connectStream("in", np.zeros(1, np.float32))
    engine.run()
    assert engine.getReport().execution.steps[0].cycles > 0
