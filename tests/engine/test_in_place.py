"""One tensor on an Input and an Output of a vertex: it is worked on in place, wherever it lies and however it is cut."""

from itertools import pairwise

import numpy as np
import pytest
from engine_builder import Bench, everywhere, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    CodeletRuntimeError,
    Executable,
    GraphConnectionError,
    GraphCycleError,
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
    compileGraph,
    concat,
)
from pypoplar.program import Copy, Execute, Sequence

ELEMENTS = {"pypoplar.races": "elements"}


class Double(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i] * 2.0


class DoubleInOut(Vertex):
    """What `Double` does to one tensor."""

    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.y[i] * 2.0


class Running(Vertex):
    """Reads what it has written."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(1, len(self.x)):
            self.y[i] = self.x[i] + self.x[i - 1]


class RunningHalves(SupervisorVertex):
    x: Input[Vector[HALF]]
    y: Output[Vector[HALF]]

    def compute(self):
        for i in range(1, len(self.x)):
            self.y[i] = self.x[i] + self.x[i - 1]


class Dealt(MultiVertex):
    """Each worker takes four elements, and reads what it has written."""

    x: Input[Vector[INT]]
    y: Output[Vector[INT]]

    def compute(self, worker):
        for i in range(4 * worker, min(4 * worker + 4, len(self.y))):
            if i % 4 > 0:
                self.y[i] = self.x[i] + self.x[i - 1]


class ByTurns(MultiVertex):
    """Each worker reads what the worker before has written."""

    x: Input[Vector[INT]]
    y: Output[Vector[INT]]

    def compute(self, worker):
        for i in range(worker, len(self.y), 6):
            if i > 0:
                self.y[i] = self.x[i] + self.x[i - 1]


class Number(Vertex):
    x: Input[INT]
    again: Input[Vector[INT]]
    y: Output[INT]

    def compute(self):
        self.y = self.x + 1
        self.y = self.x * 2 + self.again[0]


class RowSums(Vertex):
    """Rows, one of them the result; and a local that may be a row of either."""

    rows: Input[VectorList[FLOAT]]
    out: Output[VectorList[FLOAT]]
    which: INT

    def compute(self):
        for r in range(len(self.out)):
            target = self.out[r]
            for i in range(len(target)):
                total = 0.0
                for row in self.rows:
                    total += row[i]
                target[i] = total
        seen = self.rows[0]
        if self.which > 0:
            seen = self.out[0]
        last = self.rows[1:]
        if self.which > 1:
            last = self.out[1:]
        self.out[0][0] = seen[0] + last[0][0]


class Reversed(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[len(self.x) - 1 - i]


class Last(Vertex):
    """Writes its last element only."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        total = 0.0
        for value in self.x:
            total += value
        self.y[len(self.y) - 1] = total


class Sum(Vertex):
    """Eight of them run side by side, unless they work in place."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        total = 0.0
        for value in self.x:
            total += value
        self.y[0] = total
        self.y[1] = self.x[0]


def of_vector(codelet, before):
    """What a codelet leaves of its tensor."""
    after = before.copy()
    if codelet in (Double, DoubleInOut):
        return after * after.dtype.type(2)
    if codelet is Reversed:
        for i in range(len(after)):
            after[i] = after[len(after) - 1 - i]
        return after
    if codelet is Sum:
        total = np.float32(0)
        for value in before:
            total += value
        after[0] = total
        after[1] = after[0]
        return after
    if codelet is Dealt:
        for i in range(len(after)):
            after[i] += after[i - 1] if i % 4 else 0
        return after
    for i in range(1, len(after)):
        after[i] += after[i - 1]
    return after


def cut(tensor, cuts):
    """The same view, of several slices."""
    bounds = [0, *sorted(place % (tensor.numElements() + 1) for place in cuts), tensor.numElements()]
    return concat([tensor[begin:end] for begin, end in pairwise(bounds)])


@st.composite
def pieces(draw):
    """Disjoint views of places 0 to 23: in order or not."""
    places = draw(st.permutations(range(24)) | st.just(list(range(24))) | st.just(list(range(23, -1, -1))))
    sizes = draw(st.lists(st.integers(2, 9), min_size=1, max_size=9))
    views, begin = [], 0
    for size in sizes:
        views.append(places[begin : begin + size])
        begin += size
    return [view for view in views if len(view) >= 2]


CODELETS = [Double, Running, RunningHalves, Dealt, Reversed, Sum]


@examples(40)
@given(
    codelet=st.sampled_from(CODELETS),
    views=pieces(),
    tiles=st.lists(st.integers(0, 2), min_size=24, max_size=24) | st.integers(0, 2),
    homes=st.lists(st.integers(0, 2), min_size=9, max_size=9),
    cuts=st.lists(st.integers(0, 9), max_size=2),
    shared=st.booleans(),
)
def test_in_place_is_what_numpy_does_in_place(codelet, views, tiles, homes, cuts, shared):
    values = np.arange(1, 25) % 7

    def work(mode, options):
        bench = Bench(tiny(3))
        type = {RunningHalves: HALF, Dealt: INT}.get(codelet, FLOAT)
        x = bench.variable("x", values, tiles, type)
        between = bench.graph.addVariable(type, [24], "between")
        bench.graph.setTileMapping(between, 1)
        compute_set = bench.graph.addComputeSet("in place")
        for view, home in zip(views, homes, strict=False):
            tensor = concat([between[place].expand([0]) for place in view])
            bench.vertex(compute_set, codelet, home, x=cut(tensor, cuts), y=tensor)
        program = Sequence([Copy(x, between), Execute(compute_set), Copy(between, x)])
        engine = bench.engine([program, Copy(x, between)] if shared else program, mode, options)
        engine.run(0)
        return engine.readTensor("x")

    got = everywhere(work)
    expected = values.astype(got.dtype)
    for view, _ in zip(views, homes, strict=False):
        expected[view] = of_vector(codelet, expected[view])
    np.testing.assert_array_equal(got, expected)
    if codelet is Double:
        np.testing.assert_array_equal(everywhere(work, ELEMENTS), expected)


@examples(25)
@given(views=pieces(), tiles=st.lists(st.integers(0, 2), min_size=24, max_size=24), home=st.integers(0, 2))
def test_it_moves_and_costs_what_an_inout_does(views, tiles, home):
    def executable(codelet):
        bench = Bench(tiny(3))
        x = bench.variable("x", np.arange(24.0), tiles)
        compute_set = bench.graph.addComputeSet("in place")
        for view in views:
            tensor = concat([x[place].expand([0]) for place in view])
            fields = {"y": tensor} if codelet is DoubleInOut else {"x": tensor, "y": tensor}
            bench.vertex(compute_set, codelet, home, **fields)
        return compileGraph(bench.graph, Execute(compute_set))

    in_place, inout = executable(Double), executable(DoubleInOut)
    for name in ("exchange_buffers", "variables"):
        assert (getattr(in_place.memory, name) == getattr(inout.memory, name)).all()
    for one, other in zip(in_place.exchanges, inout.exchanges, strict=True):
        assert (one.account.bytes_sent == other.account.bytes_sent).all()
        assert (one.account.bytes_received == other.account.bytes_received).all()
    assert [step.fixed_cycles for step in in_place.steps] == [step.fixed_cycles for step in inout.steps]


def test_scalars_and_a_vector_of_one_element_work_in_place():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", [3, 5, 7], [2, 3, 4])
        engine = bench.engine(bench.execute(Number, 3, x=x[1], again=x[1:2], y=x[1]), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work).tolist() == [3, 18, 7]
    with pytest.raises(CodeletRuntimeError, match="element 0 of an Input is read after the vertex has written it"):
        everywhere(work, ELEMENTS)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("mapping", [0, [0, 1, 2] * 4])
def test_rows_work_in_place(which, mapping):
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(12.0).reshape(3, 4), mapping)
        engine = bench.engine(bench.execute(RowSums, 1, rows=x, out=[x[2], x[0]], which=which), mode, options)
        engine.run()
        return engine.readTensor("x")

    before = np.arange(12.0).reshape(3, 4)
    before[2] = before.sum(0)
    before[0] = before.sum(0)
    before[2, 0] = before[2 if which else 0, 0] + before[0 if which > 1 else 1, 0]
    assert everywhere(work).tolist() == before.tolist()


def test_in_elements_mode_a_read_after_the_write_names_line_element_and_remedy():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.ones(6), 2)
        bench.engine(bench.execute(Running, 3, x=x, y=x), mode, options).run()

    with pytest.raises(CodeletRuntimeError) as caught:
        everywhere(work, ELEMENTS)
    text = str(caught.value)
    assert "test_in_place.py" in text
    assert "self.y[i] = self.x[i] + self.x[i - 1]" in text
    assert (
        "Running.compute: element 1 of an Input is read after the vertex has written it through the Output that is the same "
        "tensor: what it holds then is open; use one InOut field for both" in text
    )


@pytest.mark.parametrize(
    ("codelet", "error", "what"),
    [
        (Dealt, CodeletRuntimeError, "element 1 of an Input is read after"),
        (ByTurns, GraphCycleError, "worker 2 reads element 1 of field 'x', which worker 1 has written"),
    ],
)
def test_in_elements_mode_the_writes_of_workers_count_too(codelet, error, what):
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.ones(7, np.int32), 2)
        bench.engine(bench.execute(codelet, 3, x=x, y=x), mode, options).run()

    with pytest.raises(error, match=what):
        everywhere(work, ELEMENTS)


def test_in_elements_mode_a_race_with_another_vertex_names_the_input():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.ones(6), 2)
        compute_set = bench.graph.addComputeSet("both")
        bench.vertex(compute_set, Double, 3, x=x[0:4], y=x[0:4])
        bench.vertex(compute_set, Last, 4, x=x[3:6], y=x[3:6])
        bench.engine(Execute(compute_set), mode, options).run()

    with pytest.raises(GraphCycleError, match=r"Field Double.y wrote to elements \[3:4\).*that were read elsewhere.*Last\.x"):
        everywhere(work, ELEMENTS)
    with pytest.raises(GraphCycleError, match=r"Field Double.y writes to element"):
        everywhere(work)


@pytest.mark.parametrize(
    ("views", "what"),
    [
        ((slice(0, 4), slice(0, 3)), r"field Double\.y writes to elements \[0:3\) of variable 'x' that field Double\.x"),
        ((slice(0, 4), slice(1, 5)), r"field Double\.y writes to elements \[1:4\) of variable 'x' that field Double\.x"),
    ],
)
def test_other_overlaps_stay_refused(views, what):
    bench = Bench()
    x = bench.variable("x", np.ones(6))
    program = bench.execute(Double, 3, x=x[views[0]], y=x[views[1]])
    with pytest.raises(GraphConnectionError, match=what + " of the same vertex reads; use one InOut field for both"):
        bench.engine(program)


def test_the_same_elements_in_another_order_stay_refused():
    bench = Bench()
    x = bench.variable("x", np.ones(6))
    with pytest.raises(GraphConnectionError, match="use one InOut field for both"):
        bench.engine(bench.execute(Double, 3, x=x.reverse(0), y=x))


class Three(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    z: InOut[Vector[FLOAT]]
    w: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.y[i] = self.x[i]
            self.z[i] += 1.0
            self.w[i] = 1.0


@pytest.mark.parametrize("fields", [("x", "z"), ("y", "z"), ("y", "w"), ("x", "y", "z"), ("x", "y", "w")])
def test_what_is_more_than_inputs_and_one_output_stays_refused(fields):
    bench = Bench()
    variables = {name: bench.variable(name, np.ones(6)) for name in ("x", "y", "z", "w")}
    shared = bench.variable("shared", np.ones(6))
    with pytest.raises(GraphConnectionError, match="use one InOut field for both"):
        bench.engine(bench.execute(Three, 3, **variables | dict.fromkeys(fields, shared)))


def test_a_vertex_in_place_leaves_others_of_its_codelet_alone():
    """They share machine code, which then takes no Input of theirs for another memory than the Output."""

    def work(mode, options):
        bench = Bench()
        x, y = bench.variable("x", np.arange(40.0), 3), bench.variable("y", np.zeros(40), 3)
        compute_set = bench.graph.addComputeSet("sums")
        for number in range(20):
            piece = slice(2 * number, 2 * number + 2)
            bench.vertex(compute_set, Sum, 3, x=x[piece], y=x[piece] if number == 7 else y[piece])
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("x"), engine.readTensor("y")

    x, y = everywhere(work)
    expected = np.arange(40.0).reshape(20, 2)
    sums = np.stack((expected.sum(1), expected[:, 0]), 1)
    sums[7] = 0
    np.testing.assert_array_equal(y.reshape(20, 2), sums)
    assert x[14:16].tolist() == [29, 29]


def one_in_place():
    bench = Bench()
    x = bench.variable("x", np.arange(6.0))
    return compileGraph(bench.graph, bench.execute(Double, 3, x=x, y=x)), bench


def test_what_is_in_place_is_saved_and_loaded(tmp_path):
    executable, _ = one_in_place()
    executable.save(tmp_path / "file")
    assert Executable.load(tmp_path / "file").in_place.tolist() == executable.in_place.tolist() == [[0, 0, 1]]
