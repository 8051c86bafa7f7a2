"""Lists of no rows, tensors of no elements and copies of nothing."""

import contextlib

import numpy as np
import pytest
from engine_builder import Bench, everywhere
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    INT,
    CodeletRuntimeError,
    Engine,
    Executable,
    GraphConnectionError,
    GraphCycleError,
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


class Kept(Vertex):
    """Reads all, and writes one to what it is given."""

    a: Input[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]
    o: Output[Vector[FLOAT]]
    p: Output[VectorList[FLOAT]]
    z: InOut[Vector[FLOAT]]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i]
        for row in self.rows:
            for value in row:
                total += value
        for i in range(len(self.o)):
            self.o[i] = 1.0
        for written in self.p:
            for i in range(len(written)):
                written[i] = 1.0
        for i in range(len(self.z)):
            self.z[i] += 1.0 + 0.0 * total


def test_a_vertex_whose_outputs_are_all_empty_may_have_a_tensor_twice_and_is_refused_where_that_is_written():
    def work(mode, options):
        bench = Bench()
        x, w = bench.variable("x", np.zeros(4, np.float32), 1), bench.variable("w", np.zeros(4, np.float32), 1)
        read_twice = bench.execute(Kept, 1, a=x, rows=[x, x[1:3]], o=x[0:0], p=[x[2:2]], z=w)
        engine = bench.engine(read_twice, mode, options)
        engine.run()
        with pytest.raises(GraphConnectionError, match=r"field Kept\.z .* of variable 'x' that field Kept\.a of the same"):
            bench.engine(bench.execute(Kept, 1, a=x, rows=[], o=x[0:0], p=[], z=x), mode, options)
        return engine.readTensor("x"), engine.readTensor("w")

    x, w = everywhere(work)
    assert x.tolist() == [0] * 4
    assert w.tolist() == [1] * 4


VIEWS = [slice(0, 0), slice(2, 2), slice(0, 4), slice(1, 3), slice(3, 4), slice(4, 6)]


@examples(60)
@given(
    vertices=st.lists(
        st.tuples(*(st.sampled_from(VIEWS) for _ in range(3)), *(st.lists(st.sampled_from(VIEWS), max_size=2) for _ in range(2))),
        min_size=1,
        max_size=3,
    ),
    tiles=st.sampled_from([0, (0, 1, 2) * 2, 1]),
    races=st.sampled_from(["regions", "elements"]),
)
def test_fields_of_few_elements_or_none_run_or_are_refused_in_words(vertices, tiles, races):
    """Which of them is for other tests: here no combination of empty and overlapping fields ends in an error of Python's."""

    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.zeros(6, np.float32), tiles)
        compute = bench.graph.addComputeSet("kept")
        for number, (a, o, z, rows, p) in enumerate(vertices):
            fields = {"a": x[a], "o": x[o], "z": x[z], "rows": [x[row] for row in rows], "p": [x[row] for row in p]}
            bench.vertex(compute, Kept, number, **fields)
        engine = bench.engine(Execute(compute), mode, {**options, "pypoplar.races": races})
        engine.run()
        return engine.readTensor("x")

    with contextlib.suppress(GraphConnectionError, GraphCycleError, CodeletRuntimeError):
        everywhere(work)
