"""Values on Input edges: they arrive as they are, cost memory once a tile for equal values, and no exchange."""

import numpy as np
import pytest
from engine_builder import Bench, everywhere, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    UNSIGNED_INT,
    Engine,
    Executable,
    GraphConnectionError,
    GraphMemoryAllocationError,
    InOut,
    Input,
    InvalidTileMapping,
    Output,
    PoplarTypeError,
    TensorShapeError,
    Vector,
    VectorList,
    Vertex,
)
from pypoplar.program import Execute, Sequence


class Axpy(Vertex):
    x: InOut[Vector[FLOAT]]
    scale: Input[FLOAT]
    shift: Input[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * self.scale + self.shift[i % len(self.shift)]


class Types(Vertex):
    a: Input[HALF]
    b: Input[INT]
    c: Input[BOOL]
    d: Input[CHAR]
    e: Input[LONGLONG]
    f: Input[UNSIGNED_INT]
    halves: Input[Vector[HALF]]
    chars: Input[Vector[CHAR]]
    none: Input[Vector[INT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        self.out[0] = FLOAT(self.a)
        self.out[1] = FLOAT(self.b)
        self.out[2] = FLOAT(int(self.c))
        self.out[3] = FLOAT(self.d)
        self.out[4] = FLOAT(int(self.e))
        self.out[5] = FLOAT(self.f)
        self.out[6] = FLOAT(self.halves[2])
        self.out[7] = FLOAT(self.chars[1])
        self.out[8] = FLOAT(len(self.none))


class Fields(Vertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[FLOAT]
    vector: InOut[Vector[FLOAT]]

    def compute(self):
        self.out = self.rows[0][0]


def bench_of(vertices):
    """A graph with a vertex of `Axpy` for each (tile, scale, shift) on two elements of x."""
    bench = Bench()
    x = bench.variable("x", np.arange(2 * len(vertices), dtype=np.float32).reshape(-1, 2), np.repeat([v[0] for v in vertices], 2))
    compute = bench.graph.addComputeSet("axpy")
    for number, (tile, scale, shift) in enumerate(vertices):
        bench.vertex(compute, Axpy, tile, x=x[number], scale=scale, shift=shift)
    return bench, Execute(compute)


def test_values_run_in_both_engines_and_from_a_file():
    vertices = [(0, 2.0, [1, 2]), (0, 2, (1.0, 2.0)), (1, 2.0, np.array([1, 2])), (3, -0.5, [0.25]), (3, 2.0, [1, 2])]

    def work(mode, options):
        bench, program = bench_of(vertices)
        first = Engine(bench.graph, program, options, mode=mode)
        again = Engine(Executable.deserialize(first.executable.serialize()), options, mode=mode)
        for engine in (first, again):
            engine.loadAndRun(bench.device)
            assert engine.readTensor("x").tolist() == [[1, 4], [5, 8], [9, 12], [-2.75, -3.25], [17, 20]]
            assert sum(int(exchange.bytes_sent.sum()) for exchange in engine.executable.exchanges) == 0
        return [step.cycles for step in first.getReport().execution.steps]

    everywhere(work)


def test_equal_values_are_there_once_a_tile():
    bench, program = bench_of([(0, 2.0, [1, 2])] * 3 + [(1, 2.0, [1, 2]), (1, 0.5, [1, 2]), (1, -0.0, [0.0]), (1, 0.0, [2])])
    variables = bench.graph.freeze().variables
    added = dict(zip(variables.names, variables.shapes, strict=True))
    assert added == {
        "x": (7, 2),
        "constant 2.0": (2, 1),
        "constant [1.0, 2.0]": (2, 2),
        "constant 0.5": (1, 1),
        "constant -0.0": (1, 1),
        "constant 0.0": (1, 1),
    }
    engine = bench.engine(program)
    engine.run()
    used = engine.executable.memory
    plain, program = bench_of([(0, 2.0, [1, 2])])
    assert used is not None
    assert plain.graph.freeze().variables.constants[1].tolist() == [2.0]


def test_values_are_counted_in_the_memory_of_their_tiles():
    def bytes_by_tile(values):
        bench, program = bench_of([(tile, 1.0, values) for tile in (0, 0, 5)])
        return np.array([tile.memory.total.excludingGaps for tile in bench.engine(program).getReport().compilation.tiles])

    more = bytes_by_tile(np.arange(1000)) - bytes_by_tile(np.arange(10))
    assert np.flatnonzero(more).tolist() == [0, 5]
    assert (more[[0, 5]] == 990 * 4).all()
    bench, program = bench_of([(3, 1.0, np.zeros(200_000))])
    with pytest.raises(GraphMemoryAllocationError, match=r"tile 3.*constant \[0.0, 0.0, 0.0, 0.0, \.\.\.\]"):
        bench.engine(program)


def test_values_of_every_type_and_names_that_are_taken(mode):
    bench = Bench()
    out = bench.variable("out", np.zeros(9, np.float32))
    taken = bench.variable("constant 1.5", [1.0])
    program = bench.execute(
        Types,
        a=1.5,
        b=-7,
        c=True,
        d=-128,
        e=np.int64(2**24),
        f=np.float64(9.0),
        halves=[1, 2, 3.5],
        chars=np.array([1, -2], np.int8),
        none=[],
        out=out,
    )
    engine = bench.engine(program, mode)
    engine.run()
    assert engine.readTensor("out").tolist() == [1.5, -7, 1, -128, 2**24, 9, 3.5, -2, 0]
    assert bench.graph.freeze().variables.names[:4] == ("out", taken.getDebugStr(), "constant 1.5_1", "constant -7")


def test_many_vertices_take_a_value_for_all_or_one_for_each(mode):
    bench = Bench()
    x = bench.variable("x", np.ones((4, 2), np.float32))
    compute = bench.graph.addComputeSet("axpy")
    tiles = [0, 1, 1, 2]
    shift = np.array([[1, 2], [3, 4], [1, 2], [1, 2]])
    bench.graph.add_vertices(compute, Axpy, {"x": x, "scale": [1, 2, 3, 2], "shift": shift}, tiles)
    bench.graph.add_vertices(compute, Axpy, {"x": x[0:0], "scale": 1, "shift": [0, 0]}, [])
    other = bench.graph.addComputeSet("other")
    bench.graph.add_vertices(other, Axpy, {"x": x, "scale": 10.0, "shift": [[0], [0], [0], [0]]}, tiles)
    third = bench.graph.addComputeSet("third")
    bench.graph.add_vertices(third, Axpy, {"x": x, "scale": np.float32(1), "shift": (0.5, 0.25)}, tiles)
    engine = bench.engine(Sequence([Execute(each) for each in (compute, other, third)]), mode)
    engine.run()
    assert engine.readTensor("x").tolist() == [[20.5, 30.25], [50.5, 60.25], [40.5, 50.25], [30.5, 40.25]]
    shapes = dict(zip(*(getattr(bench.graph.freeze().variables, name) for name in ("names", "shapes")), strict=True))
    assert shapes["constant 2.0"] == (2, 1)
    assert shapes["constant [1.0, 2.0]"] == (3, 2)


@pytest.mark.parametrize(("fields", "error", "text"), [
    ({"scale": 1e300}, PoplarTypeError, r"field 'scale' .*added at .*\.py:\d+: FLOAT cannot hold 1e\+300"),
    ({"shift": [0, 1e300]}, PoplarTypeError, r"field 'shift' .*: the vector is FLOAT, which cannot hold 1e\+300 at index 1"),
    ({"shift": ["a"]}, PoplarTypeError, "needs numbers"),
    ({"scale": [1.0]}, GraphConnectionError, r"takes a tensor of one element, got \[1.0\]"),
    ({"scale": None}, GraphConnectionError, "got None; make a tensor of a value with graph.addConstant, or give a number"),
    ({"shift": 1.0}, GraphConnectionError, "got 1.0; make a tensor of a value with graph.addConstant, or give a list of numbers"),
    ({"shift": [[1.0], [2.0]]}, GraphConnectionError, r"rank 1, got \[\[1.0\], \[2.0\]\]"),
    ({"shift": np.zeros((2, 2))}, GraphConnectionError, "rank 1, got array"),
    ({"x": [1.0]}, GraphConnectionError, "only an Input takes a value: what is written is a variable, graph.addVariable"),
])  # fmt: skip
def test_values_that_are_none_for_the_field_are_refused(fields, error, text):
    bench = Bench()
    compute = bench.graph.addComputeSet("axpy")
    with pytest.raises((error, TensorShapeError), match=text):
        bench.graph.addVertex(compute, Axpy, fields)
    assert bench.graph.numVertices() == 0
    assert len(bench.graph.freeze().variables.names) == 0


def test_only_inputs_of_numbers_and_vectors_take_values():
    bench = Bench()
    compute = bench.graph.addComputeSet("fields")
    for name, value, text in (
        ("out", 1.0, "only an Input takes a value"),
        ("vector", [1.0], "only an Input takes a value"),
        ("rows", [[1.0]], r"row 0 of field 'rows'.* rank 1, got \[1.0\]"),
    ):
        with pytest.raises(GraphConnectionError, match=text):
            bench.graph.addVertex(compute, Fields, {name: value})
        with pytest.raises(GraphConnectionError):
            bench.graph.add_vertices(compute, Fields, {name: value}, [0])
    for name, value, text in (("scale", [1, 2, 3], "has 2 elements, got 3 values"), ("shift", [[1], [2], [3]], "has 2 elements")):
        with pytest.raises(TensorShapeError, match=text):
            bench.graph.add_vertices(compute, Axpy, {name: value}, [0, 1])


def test_a_value_is_connected_once_and_by_connect(mode):
    bench = Bench()
    x = bench.variable("x", [1.0, 2.0])
    compute = bench.graph.addComputeSet("axpy")
    vertex = bench.vertex(compute, Axpy, 0, x=x)
    bench.graph.connect(vertex["shift"], [1.0])
    bench.graph.connect(vertex["scale"], 3.0)
    with pytest.raises(GraphConnectionError, match="is an edge, not a plain field"):
        bench.graph.setInitialValue(vertex["scale"], 2.0)
    engine = bench.engine(Execute(compute), mode)
    engine.run()
    assert engine.readTensor("x").tolist() == [4, 7]
    bench.graph.connect(vertex["scale"], 3.0)
    with pytest.raises(GraphConnectionError, match=r"field Axpy\.scale is connected 2 times"):
        bench.engine(Execute(compute), mode)


def test_a_vertex_without_a_tile_is_what_is_refused():
    bench = Bench()
    compute = bench.graph.addComputeSet("axpy")
    bench.vertex(compute, Axpy, 2, x=bench.variable("x", [1.0], 2), scale=1.0, shift=[1.0])
    bench.graph.addVertex(compute, Axpy, {"x": bench.variable("y", [1.0]), "scale": 1.0, "shift": [1.0]})
    with pytest.raises(InvalidTileMapping, match=r"vertex 1 \(Axpy\) of compute set 'axpy' has no tile"):
        bench.engine(Execute(compute))


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5])


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 3), VALUES, st.lists(VALUES, min_size=1, max_size=3)), min_size=1, max_size=8))
def test_values_are_what_variables_of_the_same_values_are(vertices):
    outcomes = []
    for as_values in (True, False):
        bench = Bench(tiny(4))
        x = bench.variable("x", np.arange(2 * len(vertices), dtype=np.float32).reshape(-1, 2))
        compute = bench.graph.addComputeSet("axpy")
        for number, (tile, scale, shift) in enumerate(vertices):
            if not as_values:
                scale = bench.variable(f"scale {number}", scale, tile)
                shift = bench.variable(f"shift {number}", shift, tile, FLOAT)
            bench.vertex(compute, Axpy, tile, x=x[number], scale=scale, shift=shift)
        engine = bench.engine(Execute(compute), "interpret")
        engine.run()
        outcomes.append((engine.readTensor("x").tolist(), [step.cycles for step in engine.getReport().execution.steps]))
    assert outcomes[0] == outcomes[1]
