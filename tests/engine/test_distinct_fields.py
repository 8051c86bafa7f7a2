"""Fields that are demanded to be apart: of two in one memory one is copied, priced and counted; else there is no Engine."""

import io
import re
from typing import Annotated

import numpy as np
import pytest
from demanding_codelets import check_apart, demanding
from engine_builder import Bench, everywhere

from pypoplar import (
    FLOAT,
    INT,
    Aligned,
    Engine,
    Executable,
    FileLoadError,
    GraphConnectionError,
    InOut,
    Input,
    MemoryElemConstraintsError,
    MultiVertex,
    Output,
    Vector,
    VectorList,
    Vertex,
    compileGraph,
    concat,
)
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.program import Copy, Execute, Sequence

ELEMENTS = {"pypoplar.races": "elements"}
COPY = 35 * 6  # cycles of a vertex that copies, beside the bytes


class Dot(Vertex):
    x: Input[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.x)):
            total += self.x[i] * self.y[i]
        self.out = total


class Shift(Vertex):
    """In place it would read what it has written."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(1, len(self.x)):
            self.y[i] = self.x[i - 1]


class Three(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    c: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = self.a[0] + self.b[1] * self.c[2]


class Rows(Vertex):
    rows: Input[VectorList[FLOAT]]
    x: Input[Vector[FLOAT]]
    more: Input[VectorList[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = self.x[0]
        for row in self.rows:
            for value in row:
                total += value
        for row in self.more:
            total += row[0]
        self.out = total


class AddTo(Vertex, constraint="elem(*x) != elem(*y)"):
    x: InOut[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += self.y[i]


APART = "elem(*x) != elem(*y)"
DOT, SHIFT = demanding(Dot, {}, APART), demanding(Shift, {}, APART)
THREE = demanding(Three, {}, ["elem(*a) != elem(*b) && elem(*b) != elem(*c)", "elem(*a) != elem(*c)"])


def executable_of(codelet, views, tile=0, home=0, size=12, **more):
    """The executable of a vertex on a tile, whose fields are views of a variable."""
    bench = Bench()
    x = bench.variable("x", np.arange(float(size)), home)
    out = {} if codelet.__name__ == "Shift" else {"out": bench.variable("out", 0.0, tile)}
    fields = {name: view(x) for name, view in views.items()}
    return compileGraph(bench.graph, bench.execute(codelet, tile, **fields, **out, **more))


def moved(executable, tile=0):
    """Cycles of the copies on a tile, before and after the compute set."""
    return [int(step.rearrange_cycles[tile]) for step in executable.steps if len(step.rearrange_cycles)]


def whole(x):
    return x


def every_third(x):
    return x.subSample(3, 0)


@pytest.mark.parametrize(("x", "y"), [(whole, whole), (lambda x: x[0:6], lambda x: x[4:10]), (every_third, every_third)])
def test_of_two_inputs_that_overlap_one_is_copied(x, y):
    views = {"x": x, "y": y}
    apart, plain = executable_of(DOT, views), executable_of(Dot, views)
    assert check_apart(apart) == 1
    copies = [bytes for bytes in moved(apart) if bytes]
    assert sum(copies) - sum(moved(plain)) > 0
    count = y(Bench().variable("t", np.zeros(12))).numElements()
    grown = apart.memory.exchange_buffers - plain.memory.exchange_buffers
    assert grown.tolist() == [-(-4 * count // 8) * 8, *[0] * 15]
    for name in ("variables", "vertex_state", "edge_pointers", "gaps"):
        assert (getattr(apart.memory, name) == getattr(plain.memory, name)).all()


def test_a_copy_costs_its_bytes_and_a_vertex_that_copies():
    assert moved(executable_of(DOT, {"x": whole, "y": whole})) == [48 // 8 + COPY]
    assert moved(executable_of(Dot, {"x": whole, "y": whole})) == []
    assert moved(executable_of(SHIFT, {"x": whole, "y": whole})) == [48 // 8 + COPY]


@pytest.mark.parametrize(("x", "y"), [(lambda x: x[0:6], lambda x: x[6:12]), (lambda x: x[3:3], whole), (whole, lambda x: x[0:0])])
def test_fields_that_do_not_overlap_are_left_where_they_are(x, y):
    apart, plain = (executable_of(codelet, {"x": x, "y": y}) for codelet in (DOT, Dot))
    assert check_apart(apart) == 1
    assert moved(apart) == moved(plain)
    assert (apart.memory.total() == plain.memory.total()).all()
    assert (apart.computes.words == plain.computes.words).all()


def test_what_is_in_two_buffers_anyway_is_not_copied_once_more():
    """One of them is strided."""
    views = {"x": lambda x: x[0:4], "y": every_third}
    apart, plain = executable_of(DOT, views), executable_of(Dot, views)
    assert check_apart(apart) == 1
    assert moved(apart) == moved(plain)
    assert (apart.memory.total() == plain.memory.total()).all()


def test_two_inputs_from_elsewhere_arrive_once_and_one_is_copied():
    views = {"x": lambda x: x[0:6], "y": lambda x: x[4:10]}
    apart, plain = executable_of(DOT, views, 1), executable_of(Dot, views, 1)
    assert check_apart(apart) == 1
    assert [one.account.bytes_received.tolist() for one in apart.exchanges] == [
        one.account.bytes_received.tolist() for one in plain.exchanges
    ]
    assert (moved(apart, 1)[0], moved(plain, 1)[0]) == (24 // 8 + COPY, 0)
    assert apart.memory.exchange_buffers[1] - plain.memory.exchange_buffers[1] == 24


def test_an_input_arrives_where_the_output_does_not_depart():
    """It is not the same memory then, and nothing has to be copied."""
    apart = executable_of(SHIFT, {"x": whole, "y": whole}, 1)
    assert check_apart(apart) == 1
    assert moved(apart, 1) == [0, 0]


def test_constants_lie_on_a_tile_as_often_as_it_takes():
    def executable(codelet):
        bench = Bench()
        return compileGraph(bench.graph, bench.execute(codelet, x=[1.0, 2.0], y=[1.0, 2.0], out=bench.variable("out", 0.0)))

    apart, plain = executable(DOT), executable(Dot)
    assert check_apart(apart) == 1
    assert moved(apart) == []
    assert apart.memory.total()[0] - plain.memory.total()[0] == 8


@pytest.mark.parametrize("tile", [0, 1])
def test_results_are_those_of_fields_that_overlap(tile):
    for codelet in (DOT, Dot):

        def work(mode, options, codelet=codelet):
            bench = Bench()
            x, out = bench.variable("x", np.arange(12.0)), bench.variable("out", np.zeros(4), 2)
            compute_set = bench.graph.addComputeSet("dots")
            for number, (one, other) in enumerate([(x, x), (x[0:8], x[4:12]), (every_third(x),) * 2, (x[1:5], x[1:5])]):
                bench.vertex(compute_set, codelet, tile, x=one, y=other, out=out[number])
            engine = bench.engine(Execute(compute_set), mode, options)
            check_apart(engine.executable)
            engine.run()
            return engine.readTensor("out")

        values = np.arange(12.0)
        expected = [values @ values, values[:8] @ values[4:], values[::3] @ values[::3], values[1:5] @ values[1:5]]
        for options in ({}, ELEMENTS):
            assert everywhere(work, options).tolist() == expected


ORDERS = {
    "straight": (whole, list(range(8))),
    "in two pieces": (lambda x: concat([x[4:8], x[0:4]]), [4, 5, 6, 7, 0, 1, 2, 3]),
    "reversed": (lambda x: x.reverse(0), list(range(7, -1, -1))),
}


@pytest.mark.parametrize("home", [0, 1, [0, 1] * 4])
@pytest.mark.parametrize(("view", "order"), ORDERS.values(), ids=ORDERS)
def test_an_input_that_is_one_tensor_with_an_output_keeps_what_it_was(home, view, order):
    """Without the demand the vertex reads what it has written; `pypoplar.races` = "elements" has nothing against it with it."""

    def work(codelet):
        def run(mode, options):
            bench = Bench()
            x = bench.variable("x", np.arange(8.0), home)
            engine = bench.engine(bench.execute(codelet, x=view(x), y=view(x)), mode, options)
            assert engine.executable.in_place.tolist() == ([] if codelet is SHIFT else [[0, 0, 1]])
            check_apart(engine.executable)
            engine.run()
            return engine.readTensor("x")

        return run

    shifted, in_place = np.arange(8.0), np.arange(8.0)
    shifted[order[1:]], in_place[order] = order[:-1], order[0]
    assert everywhere(work(SHIFT)).tolist() == everywhere(work(SHIFT), ELEMENTS).tolist() == shifted.tolist()
    assert everywhere(work(Shift)).tolist() == in_place.tolist()


def test_two_inputs_where_an_output_is_may_be_apart_from_each_other_only():
    class Sum(Vertex, constraint="elem(*a) != elem(*b)"):
        a: Input[Vector[FLOAT]]
        b: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(1, len(self.y)):
                self.y[i] = self.a[i - 1] + self.b[i - 1]

    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(1.0, 6.0))
        engine = bench.engine(bench.execute(Sum, a=x, b=x, y=x), mode, options)
        assert check_apart(engine.executable) == 1
        assert engine.executable.in_place.tolist() == [[0, 0, 2]]
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work).tolist() == [1, 2, 4, 7, 11]  # a is what has been written, b what was


def test_three_fields_have_three_places():
    def work(mode, options):
        bench = Bench()
        x, out = bench.variable("x", np.arange(9.0)), bench.variable("out", np.zeros(6), 2)
        compute_set = bench.graph.addComputeSet("three")
        for number, tile in enumerate((0, 0, 1)):
            bench.vertex(compute_set, THREE, tile, a=x, b=x, c=x, out=out[2 * number])
            every = x.subSample(2, 0)
            bench.vertex(compute_set, THREE, tile, a=every, b=every, c=every, out=out[2 * number + 1])
        engine = bench.engine(Execute(compute_set), mode, options)
        assert check_apart(engine.executable) == 18
        copies = engine.executable.memory.exchange_buffers[:2] - [16, 8]  # which vertices share; results depart from the rest
        assert copies.tolist() == [2 * 40 + 3 * 24, 3 * 40 + 3 * 24]
        engine.run()
        return engine.readTensor("out")

    assert everywhere(work).tolist() == [2, 8] * 3
    assert everywhere(work, ELEMENTS).tolist() == [2, 8] * 3


def test_rows_are_apart_from_vectors_and_other_rows():
    codelet = demanding(Rows, {}, ["elem(**rows) != elem(*x)", "elem(**more) != elem(**rows)"])

    def work(codelet):
        def run(mode, options):
            bench = Bench()
            x, out = bench.variable("x", np.arange(12.0).reshape(3, 4)), bench.variable("out", 0.0)
            engine = bench.engine(bench.execute(codelet, rows=x, x=x[1], more=[x[0], x[2, 1:]], out=out), mode, options)
            assert check_apart(engine.executable) == (3 + 6 if codelet is not Rows else 0)
            engine.run()
            return engine.readTensor("out").tolist(), engine.executable.memory.exchange_buffers[0]

        return run

    (total, buffers), (plain, none) = everywhere(work(codelet)), everywhere(work(Rows))
    assert (total, none) == (plain, 0)
    assert buffers == 16 + 16 + 16  # x, which is the second row, and the two of `more`


def test_a_copy_is_aligned_as_it_is_demanded():
    class Both(Vertex, constraint="elem(*x) != elem(*y)"):
        x: Input[Annotated[Vector[FLOAT], Aligned(16)]]
        y: Input[Annotated[Vector[FLOAT], Aligned(32)]]
        out: Output[FLOAT]

        def compute(self):
            self.out = self.x[0] + self.y[1]

    executable = executable_of(Both, {"x": lambda x: x[1:5], "y": lambda x: x[1:5]})
    assert check_apart(executable) == 1
    start = executable.computes.words
    assert start[0] % 16 == 0 == start[2] % 32


class Take(MultiVertex, constraint="elem(*x) != elem(*y)"):
    """In place a worker would write what another reads."""

    x: Input[Vector[INT]]
    y: Output[Vector[INT]]

    def compute(self, worker):
        for i in range(worker, len(self.y), 6):
            self.y[i] = self.x[len(self.x) - 1 - i]


@pytest.mark.parametrize("options", [{}, ELEMENTS])
def test_workers_do_not_race_for_what_is_copied(options):
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(20), 1)
        engine = bench.engine(bench.execute(Take, x=x, y=x), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work, options).tolist() == list(range(19, -1, -1))


def refused(codelet, **views):
    bench = Bench()
    x = bench.variable("v", np.zeros(12), 3)
    program = bench.execute(codelet, 2, **{name: x[view] for name, view in views.items()})
    with pytest.raises(GraphConnectionError) as caught:
        Engine(bench.graph, program)
    return caught.value


@pytest.mark.parametrize(
    ("x", "y", "elements"),
    [
        (slice(0, 12), slice(0, 12), "[0:12)"),
        (slice(0, 4), slice(2, 8), "[2:4)"),
        (slice(6, 12), slice(0, 12), "[6:12)"),
        (slice(3, 4), slice(0, 12), "[3:4)"),
    ],
)
def test_what_is_written_and_overlaps_is_refused_by_the_demand(x, y, elements):
    error = refused(AddTo, x=x, y=y)
    assert isinstance(error, MemoryElemConstraintsError)
    assert isinstance(error, ValueError)
    assert re.search(r"engine_builder\.py:\d+: field AddTo\.x writes to elements ", str(error))
    assert f"{elements} of variable 'v' that field AddTo.y of the same vertex reads; AddTo, at " in str(error)
    assert re.search(
        r"test_distinct_fields\.py:\d+, demands 'elem\(\*x\) != elem\(\*y\)', and what is written cannot be", str(error)
    )
    remedy = "cannot be in two places: copy one of the two into a variable of its own before: "
    assert str(error).endswith(remedy + "vertex 0 (AddTo) on tile 2 of compute set 'AddTo'")


def test_two_outputs_that_overlap_are_refused_by_the_demand():
    class Split(Vertex, constraint="elem(*low) != elem(**high)"):
        low: Output[Vector[FLOAT]]
        high: Output[VectorList[FLOAT]]

        def compute(self):
            self.low[0] = 1.0
            self.high[0][0] = 2.0

    bench = Bench()
    x = bench.variable("v", np.zeros(12), 3)
    program = bench.execute(Split, 2, low=x[0:6], high=[x[8:12], x[5:8]])
    with pytest.raises(
        MemoryElemConstraintsError, match=r"Split\.low writes to elements \[5:6\) .* field Split\.high\[1\] .* writes; Split"
    ):
        Engine(bench.graph, program)


def test_an_overlap_that_no_constraint_names_is_refused_as_before():
    class Other(Vertex, constraint="elem(*x) != elem(*y)"):
        x: InOut[Vector[FLOAT]]
        y: Input[Vector[FLOAT]]
        z: InOut[Vector[FLOAT]]

        def compute(self):
            self.x[0] = self.y[0]
            self.z[0] = self.y[0]

    error = refused(Other, x=slice(0, 4), y=slice(4, 8), z=slice(3, 4))
    assert type(error) is GraphConnectionError
    assert "use one InOut field for both" in str(error)


def test_a_copy_of_one_makes_them_apart():
    """What the message says."""

    def work(mode, options):
        bench = Bench()
        x, z = bench.variable("x", np.arange(4.0), 1), bench.variable("z", np.zeros(4), 2)
        engine = bench.engine(Sequence([Copy(x, z), bench.execute(AddTo, x=x, y=z)]), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work).tolist() == [0, 2, 4, 6]


def test_demands_are_saved_with_the_executable_and_hold_when_it_is_loaded():
    executable = executable_of(DOT, {"x": whole, "y": whole})
    file = io.BytesIO()
    executable.save(file)
    file.seek(0)
    loaded = Executable.load(file)
    assert check_apart(loaded) == 1
    assert loaded.codelets[0].typed.distinct == (("x", "y"),)


def test_a_file_whose_fields_are_not_apart_is_refused():
    executable = executable_of(DOT, {"x": whole, "y": whole})
    verify(executable)
    executable.computes.words[2] = executable.computes.words[0] + 44
    with pytest.raises(FileLoadError, match=r"the memory of field 'x' of Dot: vertex.* is not apart from field 'y'"):
        verify(executable)
