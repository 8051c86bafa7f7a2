"""Plain fields: what gives them their values, and that nothing else does."""

import inspect
import re

import numpy as np
import pytest
from engine_builder import tiny

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    Engine,
    Executable,
    Graph,
    GraphConnectionError,
    IPUModel,
    Output,
    PoplarTypeError,
    TensorShapeError,
    Vector,
    Vertex,
    default,
)
from pypoplar.program import Execute

MODES = ["native", "interpret"]


class Scale(Vertex):
    out: Output[FLOAT]
    factor: FLOAT
    in_: INT = 4

    def compute(self):
        self.out = self.factor * self.in_


class WritesFirst(Vertex):
    out: Output[FLOAT]
    count: INT
    table: Vector[BOOL]

    def compute(self):
        self.count = 0
        self.out = float(self.count)


class Every(Vertex):
    out: Output[Vector[FLOAT]]
    a: FLOAT = default(-0.5)
    b: HALF = 0.25
    c: INT = -7
    d: UNSIGNED_INT = 2**32 - 1
    e: SHORT = -300
    f: CHAR = -3
    g: UNSIGNED_CHAR = 255
    h: BOOL = True
    i: LONGLONG = -(2**40)
    j: UNSIGNED_LONGLONG = 2**63
    k: Vector[HALF] = (1, 0.1)

    def compute(self):
        self.out[0], self.out[1], self.out[2], self.out[3] = self.a, self.b, self.c, self.d
        self.out[4], self.out[5], self.out[6], self.out[7] = self.e, self.f, self.g, float(self.h)
        self.out[8], self.out[9], self.out[10], self.out[11] = float(self.i), float(self.j), self.k[0], self.k[1]
        self.c += 1  # kept over runs


DEFAULTS = [-0.5, 0.25, -7, 2**32 - 1, -300, -3, 255, 1, -(2**40), 2**63, 1, float(np.float16(0.1))]


def graph_of(codelet, count=1, width=None, **values):
    """A graph with `count` vertices, each with its part of the output, which is read as "out"."""
    graph = Graph(tiny())
    shape = [count] if width is None else [count, width]
    out = graph.addVariable(FLOAT, shape, "out")
    compute_set = graph.addComputeSet("the set")
    graph.setTileMapping(out, 0)
    vertices = [graph.addVertex(compute_set, codelet, {"out": out[number], **values}) for number in range(count)]
    for number, vertex in enumerate(vertices):
        graph.setTileMapping(vertex, number % 3)
    graph.createHostRead("out", out)
    return graph, compute_set, vertices


def outputs(engine, runs=1):
    engine.load(IPUModel("tiny").createDevice())
    for _ in range(runs):
        engine.run(0)
    return engine.readTensor("out")


def refusal_of(codelet, **values):
    graph, compute_set, _ = graph_of(codelet, **values)
    with pytest.raises(GraphConnectionError) as caught:
        Engine(graph, Execute(compute_set))
    return str(caught.value)


def line_of(codelet):
    return inspect.getsourcelines(codelet)[1]


def test_a_plain_field_that_is_never_set_is_an_error_that_names_it_its_class_and_all_vertices():
    message = refusal_of(Scale, count=4)
    assert re.fullmatch(
        r".*test_plain_fields\.py:\d+: plain field Scale\.factor is never set; give it a value in addVertex or with "
        rf"graph\.setInitialValue, or a default in the class, Scale at .*test_plain_fields\.py:{line_of(Scale)}: "
        r"factor: FLOAT = 0\.0: vertex 0 \(Scale\) on tile 0 of compute set 'the set'; "
        r"the same holds for 3 more vertices \(4 in all, on tiles 0-2\)",
        message,
    )


def test_it_is_an_error_even_if_compute_writes_it_first_and_all_of_a_vertex_are_named():
    assert "plain fields WritesFirst.count, WritesFirst.table are never set; give each a value" in refusal_of(WritesFirst)
    message = refusal_of(type("Named", (WritesFirst,), {"__module__": __name__, "count": 1}))
    assert "plain field Named.table is never set" in message
    assert "table: Vector[BOOL] = [False, False]" in message


def test_only_the_vertices_without_a_value_are_counted():
    graph, compute_set, vertices = graph_of(Scale, count=3)
    graph.setInitialValue(vertices[0]["factor"], 1.0)
    with pytest.raises(GraphConnectionError, match=r"vertex 1 \(Scale\) on tile 1.* for 1 more vertex \(2 in all"):
        Engine(graph, Execute(compute_set))
    for vertex in vertices:
        graph.setInitialValue(vertex["factor"], 3.0)
    assert outputs(Engine(graph, Execute(compute_set))).tolist() == [12, 12, 12]


def test_a_vertex_that_no_program_runs_needs_no_value():
    graph, _, _ = graph_of(Scale)
    Engine(graph, Execute(graph.addComputeSet("another")))


def test_the_size_of_a_vector_is_enough():
    graph, compute_set, (vertex,) = graph_of(WritesFirst)
    graph.setInitialValue(vertex["count"], 1)
    graph.setFieldSize(vertex["table"], 2)
    assert outputs(Engine(graph, Execute(compute_set))).tolist() == [0]


@pytest.mark.parametrize("mode", MODES)
def test_defaults_of_every_type_are_what_vertices_hold(mode):
    graph, compute_set, _ = graph_of(Every, count=2, width=12)
    engine = Engine(graph, Execute(compute_set), mode=mode)
    expected = np.array([DEFAULTS, DEFAULTS], np.float32)
    np.testing.assert_array_equal(outputs(engine), expected)
    expected[:, 2] += 2
    np.testing.assert_array_equal(outputs(engine, 3), expected)  # load began with the defaults anew


@pytest.mark.parametrize("mode", MODES)
def test_defaults_are_in_an_executable_that_is_saved(mode):
    graph, compute_set, _ = graph_of(Every, width=12)
    executable = Executable.deserialize(Engine(graph, Execute(compute_set)).executable.serialize())
    np.testing.assert_array_equal(outputs(Engine(executable, mode=mode))[0], np.array(DEFAULTS, np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_a_value_of_the_vertex_wins_over_the_default(mode):
    graph, compute_set, vertices = graph_of(Every, count=3, width=12, c=9)
    graph.setInitialValue(vertices[1]["k"], [5, 6])
    graph.setInitialValue(vertices[2]["c"], 11)
    given = outputs(Engine(graph, Execute(compute_set), mode=mode))
    assert given[:, 2].tolist() == [9, 9, 11]
    assert given[:, 10].tolist() == [1, 5, 1]


def test_vertices_added_at_once_have_defaults_and_values():
    graph = Graph(tiny())
    out = graph.addVariable(FLOAT, [5], "out")
    graph.setTileMapping(out, 0)
    compute_set = graph.addComputeSet("the set")
    graph.add_vertices(compute_set, Scale, {"out": out, "factor": np.arange(5)}, tiles=np.arange(5))
    graph.createHostRead("out", out)
    assert outputs(Engine(graph, Execute(compute_set))).tolist() == [0, 4, 8, 12, 16]


def test_the_size_of_a_vector_with_a_default_is_the_default_s():
    graph, compute_set, (vertex,) = graph_of(Every, width=12)
    graph.setFieldSize(vertex["k"], 2)
    assert outputs(Engine(graph, Execute(compute_set)))[0, 10:].tolist() == DEFAULTS[10:]
    with pytest.raises(TensorShapeError, match=r"field 'k' .* has 2 values, so its size cannot be 3"):
        graph.setFieldSize(vertex["k"], 3)


def test_estimators_see_defaults():
    seen = []

    class Estimated(Vertex):
        out: Output[FLOAT]
        n: INT = 3
        table: Vector[INT] = [1, 2]

        def compute(self):
            self.out = 1.0

        def cycles(self, vertex):
            seen.append((vertex.value("n"), vertex.fieldSize("table"), list(vertex.value("table"))))
            return 10

    graph, compute_set, _ = graph_of(Estimated)
    Engine(graph, Execute(compute_set))
    assert seen == [(3, 2, [1, 2])]


@pytest.mark.parametrize(
    "given",
    [
        {"c": -7, "d": 2**32 - 1, "e": -(2**15), "f": -128, "g": 255, "i": -(2**63), "j": 2**64 - 1},
        {"a": 3, "b": -2, "c": 0, "d": 1, "e": 32767, "h": 1, "i": 2**63 - 1, "j": 2**63},
        {"a": 0.5, "c": 4.0, "h": True, "g": np.uint8(200), "i": np.int64(-1)},
    ],
)
def test_one_value_for_many_vertices_is_that_of_each(given):
    states = []
    for whole in (True, False):
        graph = Graph(tiny())
        out = graph.addVariable(FLOAT, [3, 2], "out")
        graph.setTileMapping(out, 0)
        cs = graph.addComputeSet("every")
        graph.add_vertices(
            cs, Every, {"out": out, **{name: value if whole else [value] * 3 for name, value in given.items()}}, [0] * 3
        )
        frozen = graph.freeze().state
        states.append((frozen.vertex.tolist(), frozen.field.tolist(), frozen.bits.tolist()))
    assert states[0] == states[1]


@pytest.mark.parametrize(("field", "value"), [("c", 2**31), ("d", -1), ("e", 2**15), ("g", 256), ("j", 2**64), ("h", 2)])
def test_a_number_beyond_its_type_is_refused_for_many_vertices_as_in_a_list(field, value):
    said = []
    for given in (value, [value] * 3):
        graph = Graph(tiny())
        out = graph.addVariable(FLOAT, [3, 2], "out")
        with pytest.raises(PoplarTypeError) as refused:
            graph.add_vertices(graph.addComputeSet("every"), Every, {"out": out, field: given}, [0] * 3)
        said.append(str(refused.value).replace(" at index 0", ""))
    assert said[0] == said[1]
    assert "cannot hold" in said[0]
