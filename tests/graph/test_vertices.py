"""Vertices: what the tables hold after connecting, and what is refused."""

from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.codelet.language.fields import InOut, Input, Output, Vector, VectorList, Vertex
from pypoplar.device import IPUModel
from pypoplar.errors import (
    GraphConnectionError,
    InvalidTileMapping,
    PoplarIndexError,
    PoplarTypeError,
    TensorShapeError,
    UnknownField,
    UnknownVertexType,
)
from pypoplar.graph.edge_table import EdgeTable
from pypoplar.graph.graph import Graph
from pypoplar.graph.vertex_introspector import VertexPerfEstimate
from pypoplar.graph.views import concat
from pypoplar.types import BOOL, FLOAT, HALF, INT, SUPPORTED, UNSIGNED_SHORT


class Mixed(Vertex):
    in_: Input[Vector[FLOAT]]
    scale: Input[FLOAT]
    rows: InOut[VectorList[FLOAT]]
    out: Output[FLOAT]
    factor: FLOAT
    count: INT
    flag: BOOL
    table: Vector[HALF]

    def compute(self):
        self.out = self.scale


class Later(Vertex):
    rows: Input[VectorList[FLOAT]]

    def compute(self):
        pass


T = TypeVar("T")


class Both(Vertex, Generic[T]):
    x: Input[Vector[T]]

    def compute(self):
        pass


class Add(Vertex, Generic[T], name="Summed<add>"):
    x: Input[Vector[T]]

    def compute(self):
        pass


class Mul(Add[T], Generic[T], name="Summed<mul>"):
    pass


class Tabled(Vertex):
    x: Input[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]
    factor: INT
    table: Vector[HALF]

    def compute(self):
        pass


class Plain(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = 1.0


class Estimated(Vertex):
    x: Input[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]
    factor: INT

    def compute(self):
        pass

    def cycles(self, vertex):
        rows = vertex.getFieldInfo("rows")
        return 10 * vertex.fieldSize("x") + rows.getSizeAtIndex(1) + vertex.value("factor") + vertex.target.getNumTiles()


FIELDS = {"in": 0, "scale": 1, "rows": 2, "out": 3, "factor": 4, "count": 5, "flag": 6, "table": 7}


def new_graph():
    graph = Graph(IPUModel("tiny").createDevice().getTarget())
    graph.addCodelets(Mixed, Plain)
    return graph


@pytest.fixture
def graph():
    return new_graph()


@pytest.fixture
def x(graph):
    return graph.addVariable(FLOAT, [4, 6], "x")


@pytest.fixture
def compute(graph):
    return graph.addComputeSet("compute")


def edges_of(graph):
    """(vertex, field, row, type, element ids) of every edge, in the order of the table."""
    edges = graph.freeze().edges
    found = []
    for number in range(len(edges.vertex)):
        runs = range(edges.first_run[number], edges.first_run[number + 1])
        ids = [edges.run_start[run] + k * edges.run_step[run] for run in runs for k in range(edges.run_count[run])]
        found.append(
            (
                int(edges.vertex[number]),
                int(edges.field[number]),
                int(edges.row[number]),
                SUPPORTED[edges.type[number]],
                list(map(int, ids)),
            )
        )
    return found


def values_of(graph):
    state = graph.freeze().state
    return {(int(v), int(f)): int(bits) for v, f, bits in zip(state.vertex, state.field, state.bits, strict=True)}


# -- contents of the tables ---------------------------------------------------------------------------------------------------


def test_edges_hold_the_elements_of_the_views_sorted_by_vertex_field_and_row(graph, x, compute):
    y = graph.addVariable(FLOAT, [3], "y")
    first = graph.addVertex(compute, "Mixed", {"out": y[1], "in": x[2], "scale": y[0:1]})
    second = graph.addVertex(compute, "Mixed")
    graph.connect(second["rows"], x[0:2].transpose()[4:6])
    graph.connect(second["in"], concat(x[1][5:6], y))
    graph.connect(first["rows"], [y, x[0][2:4], x[3][0:0]])
    assert edges_of(graph) == [
        (0, 0, 0, FLOAT, list(range(12, 18))),
        (0, 1, 0, FLOAT, [24]),
        (0, 2, 0, FLOAT, [24, 25, 26]),
        (0, 2, 1, FLOAT, [2, 3]),
        (0, 2, 2, FLOAT, []),
        (0, 3, 0, FLOAT, [25]),
        (1, 0, 0, FLOAT, [11, 24, 25, 26]),
        (1, 2, 0, FLOAT, [4, 10]),
        (1, 2, 1, FLOAT, [5, 11]),
    ]
    edges = graph.freeze().edges
    assert (edges.run_count > 0).all()
    assert (edges.run_step[edges.run_count == 1] == 1).all()


def test_a_field_connected_twice_stays_twice_in_the_table(graph, x, compute):
    vertex = graph.addVertex(compute, "Plain", [("x", x[0]), ("x", x[1])])
    graph.connect(vertex["x"], x[2])
    assert [ids[0] for *_, ids in edges_of(graph)] == [0, 6, 12]


def test_a_list_of_no_rows_is_connected_without_edges(graph, x, compute):
    for rows in ([], (), x[0:0], x[0:0].transpose().reshape([0, 6])):
        graph.addVertex(compute, "Mixed", {"rows": rows})
    graph.add_vertices(compute, "Mixed", {"rows": x.reshape([4, 2, 3]).slice(0, 0, 1)})
    last = graph.addVertex(compute, "Mixed")
    graph.connect(last["rows"], [])
    with pytest.raises(UnknownField):
        graph.addVertex(compute, "Mixed", {"rows": [], "none": 1})
    frozen = graph.freeze().edges
    assert edges_of(graph) == []
    assert frozen.no_rows.tolist() == [[vertex, 2] for vertex in range(9)]


def test_frozen_edges_share_the_memory_of_the_graph_whatever_the_order_they_came_in(graph, x, compute):
    vertices = [graph.addVertex(compute, "Mixed") for _ in range(3)]
    for vertex in reversed(vertices):
        graph.connect(vertex["rows"][1], x[1])
        graph.connect(vertex["rows"][0], x[0][0:2])
    first, second = graph.freeze().edges, graph.freeze().edges
    assert np.shares_memory(first.run_start, second.run_start)
    assert first.vertex.tolist() == [0, 0, 1, 1, 2, 2]
    graph.connect(vertices[1]["in"], x[0])
    later = graph.freeze().edges
    assert later.vertex.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert later.run_count.tolist() == [2, 6, 6, 2, 6, 2, 6]


def test_a_scalar_field_takes_one_element_of_any_rank(graph, x, compute):
    for one in (x[1][2], x[1][2:3], x[1:2, 2:3], concat(x[1][2:3], x[0][0:0])):
        graph.addVertex(compute, "Mixed", {"scale": one})
    assert [ids for *_, ids in edges_of(graph)] == [[8]] * 4


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 65])
@pytest.mark.parametrize("view", [
    lambda t, a: (t.slice([2, 1], [len(a) - 1, 4]), a[2:-1, 1:4]),
    lambda t, a: (t.reverse(0).slice(3, len(a)), a[::-1][3:]),
    lambda t, a: (t[1].expand([0]).broadcast(len(a) - 3, 0), np.repeat(a[1:2], len(a) - 3, 0)),
])  # fmt: skip
def test_rows_of_any_matrix_are_edges_and_are_mapped_as_they_lie(graph, compute, rows, view):
    y = graph.addVariable(FLOAT, [rows + 3, 6], "y")
    first = graph.freeze().variables.first[-2]
    matrix, elements = view(y, first + np.arange((rows + 3) * 6).reshape(-1, 6))
    graph.addVertex(compute, "Mixed", {"rows": matrix})
    assert [(edge[2], edge[4]) for edge in edges_of(graph)] == list(enumerate(elements.tolist()))
    graph.setTileMapping(y, 1)
    graph.setTileMapping(matrix, 3)
    mapping = graph.freeze().mapping
    pieces = [
        range(begin, end) for begin, end in zip(mapping.begin[mapping.tile == 3], mapping.end[mapping.tile == 3], strict=True)
    ]
    assert sorted(element for piece in pieces for element in piece) == np.unique(elements).tolist()


def test_rows_of_a_list_field_are_connected_one_by_one(graph, x, compute):
    vertex = graph.addVertex(compute, "Mixed")
    graph.connect(vertex["rows"][1], x[1])
    graph.connect(vertex["rows"][0], x[0][0:2])
    assert [(row, len(ids)) for _, _, row, _, ids in edges_of(graph)] == [(0, 2), (1, 6)]
    with pytest.raises(PoplarTypeError, match="no VectorList"):
        vertex["in"][0]
    with pytest.raises(PoplarIndexError):
        vertex["rows"][-1]


def test_vertices_know_codelet_set_tile_and_line(graph, x, compute):
    other = graph.addComputeSet("compute")
    graph.setTileMapping(graph.addVertex(compute, Plain), 3)
    graph.addVertex(other, "Mixed")
    frozen = graph.freeze()
    assert [frozen.codelets[one].name for one in frozen.vertices.codelet] == ["Plain", "Mixed"]
    assert frozen.vertices.compute_set.tolist() == [0, 1]
    assert frozen.compute_sets == ("compute", "compute_1")
    assert frozen.vertices.tile.tolist() == [3, -1]
    places = [frozen.locations[one] for one in frozen.vertices.location]
    assert all(place.file == __file__ for place in places)
    assert places[1].line == places[0].line + 1
    assert (graph.numVertices(), graph.numComputeSets(), graph.getVertexTypes()) == (2, 2, ["Mixed", "Plain"])


def test_vertices_of_a_loop_share_one_line(graph, compute):
    for _ in range(50):
        graph.addVertex(compute, "Plain")
    assert len(graph.freeze().locations) == 1


def test_a_later_tile_wins(graph, compute):
    vertex = graph.addVertex(compute, "Plain")
    graph.setTileMapping(vertex, 3)
    graph.setTileMapping(vertex, np.int64(5))
    assert graph.freeze().vertices.tile.tolist() == [5]
    with pytest.raises(InvalidTileMapping, match="16 tiles"):
        graph.setTileMapping(vertex, 16)


def test_freezing_does_not_stop_the_graph_from_growing(graph, x, compute):
    graph.addVertex(compute, "Plain", {"x": x[0]})
    before = graph.freeze()
    graph.addVertex(compute, "Plain", {"x": x[1]})
    assert len(before.vertices.tile) == 1
    assert len(graph.freeze().vertices.tile) == 2


def test_plain_fields_hold_the_bits_of_their_type(graph, compute):
    vertex = graph.addVertex(compute, "Mixed", {"factor": 1.5, "count": -2, "flag": True, "table": [1.0, 0.5]})
    assert values_of(graph) == {(0, 4): 0x3FC00000, (0, 5): 0xFFFFFFFE, (0, 6): 1}
    table = graph.freeze().state.vectors[0, 7]
    assert (table.dtype, table.tolist()) == (np.float16, [1.0, 0.5])
    graph.setInitialValue(vertex["factor"], 2)
    graph.setInitialValue(vertex["count"], 7.0)
    graph.setInitialValue(vertex["flag"], np.bool_(False))
    graph.connect(vertex["table"], [3.0])
    assert values_of(graph) == {(0, 4): 0x40000000, (0, 5): 7, (0, 6): 0}
    assert graph.freeze().state.vectors[0, 7].tolist() == [3.0]


@pytest.mark.parametrize(("field", "value"), [
    ("count", 1.5), ("count", 1 << 31), ("count", "x"), ("count", None), ("flag", 2), ("factor", "x"), ("factor", [1.0]),
    ("factor", 1e39), ("count", float("nan")), ("table", ["x"]),
])  # fmt: skip
def test_values_that_a_plain_field_cannot_hold_are_refused(graph, compute, field, value):
    with pytest.raises(
        PoplarTypeError, match=rf"field '{field}' .* of Mixed, vertex 0 of compute set 'compute', added at .*\.py:\d+"
    ):
        graph.addVertex(compute, "Mixed", {field: value})
    assert graph.numVertices() == 0


@pytest.mark.parametrize(("field", "value", "text"), [
    ("factor", 1e300, r"FLOAT cannot hold 1e\+300: FLOAT goes from -3.4028235e\+38 to 3.4028235e\+38"),
    ("count", -(1 << 31) - 1, "INT cannot hold -2147483649: INT goes from -2147483648 to 2147483647, in whole numbers"),
    ("table", [1, -7e4], "the vector is HALF, which cannot hold -70000.0 at index 1: HALF goes from -65504 to 65504"),
])  # fmt: skip
def test_a_value_beyond_a_plain_field_is_named_with_the_largest_that_fits(graph, compute, field, value, text):
    vertex = graph.addVertex(compute, "Mixed")
    with pytest.raises(PoplarTypeError, match=rf"^field '{field}' \(\w+\) of Mixed, vertex 0 .* added at .*\.py:\d+: {text}$"):
        graph.setInitialValue(vertex[field], value)
    with pytest.raises(PoplarTypeError, match=text):
        graph.connect(vertex[field], value)


def test_a_value_beyond_the_plain_fields_of_many_vertices_is_named_with_its_index(graph, compute):
    text = "^field 'factor' of 2 vertices is FLOAT, which cannot hold 1e[+]300 at index 1: FLOAT goes"
    with pytest.raises(PoplarTypeError, match=text):
        graph.add_vertices(compute, "Mixed", {"factor": [1.0, 1e300]}, tiles=[0, 1])
    text = r"^field 'table' of 2 vertices is HALF, which cannot hold 70000 at index \[1, 0\]: HALF goes"
    with pytest.raises(PoplarTypeError, match=text):
        graph.add_vertices(compute, "Mixed", {"table": [[1, 2], [70000, 3]]}, tiles=[0, 1])


def test_a_plain_vector_gets_its_size_from_set_field_size_or_its_values(graph, compute):
    vertex = graph.addVertex(compute, "Mixed")
    graph.setFieldSize(vertex["table"], 3)
    assert graph.freeze().state.vectors[0, 7].tolist() == [0, 0, 0]
    graph.setInitialValue(vertex["table"], 2.0)
    assert graph.freeze().state.vectors[0, 7].tolist() == [2, 2, 2]
    with pytest.raises(TensorShapeError, match="has 3 elements, got 2"):
        graph.setInitialValue(vertex["table"], [1, 2])
    with pytest.raises(GraphConnectionError, match="no plain vector"):
        graph.setFieldSize(vertex["in"], 3)
    with pytest.raises(TensorShapeError):
        graph.setFieldSize(vertex["table"], -1)
    other = graph.addVertex(compute, "Mixed", {"table": [1.0, 2.0]})
    with pytest.raises(TensorShapeError, match="has 2 values"):
        graph.setFieldSize(other["table"], 3)


# -- refusals -----------------------------------------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_nearest(graph, compute):
    with pytest.raises(UnknownVertexType, match="did you mean 'Plain'"):
        graph.addVertex(compute, "Plane")
    with pytest.raises(UnknownField, match="'Mixed' has no field 'row'; did you mean 'rows'"):
        graph.addVertex(compute, "Mixed", {"row": 1})
    vertex = graph.addVertex(compute, "Mixed")
    with pytest.raises(KeyError, match="no field 'in_'; did you mean 'in'"):
        vertex["in_"]
    assert graph.numVertices() == 1
    assert graph.hasCodelet("Mixed")
    assert not graph.hasCodelet("Nothing")


@pytest.mark.parametrize(("field", "value", "message"), [
    ("in", lambda x: x, r"is a Vector and takes a tensor of rank 1, got 'x' FLOAT \[4, 6\] of rank 2; use flatten"),
    ("in", lambda x: x[0][0], r"rank 1, got 'x' FLOAT \[\] of rank 0; use flatten"),
    ("scale", lambda x: x[0], r"takes a tensor of one element, got 'x' FLOAT \[6\]"),
    ("rows", lambda x: x[0], r"is a VectorList and takes a tensor of rank 2 or a list .* got 'x' FLOAT \[6\] of rank 1"),
    ("rows", lambda x: [x], r"row 0 of field 'rows' .* rank 1"),
    ("rows", lambda x: 3, r"got 3"),
    ("in", lambda x: [x[0], x[1]], r"is a Vector and takes a tensor of rank 1, got \["),
    ("in", lambda x: 1.0, r"got 1.0; make a tensor of a value with graph.addConstant"),
    ("factor", lambda x: x[0][0], r"is a plain field and takes a value, got tensor 'x' FLOAT \[\]"),
    ("in", lambda x: new_graph().addVariable(FLOAT, [4], "foreign"), r"'foreign' FLOAT \[4\] belongs to another graph"),
])  # fmt: skip
def test_what_does_not_fit_a_field_is_refused_at_the_call(graph, x, compute, field, value, message):
    with pytest.raises(GraphConnectionError, match=message):
        graph.addVertex(compute, "Mixed", {"out": x[0][0], field: value(x)})
    assert graph.numVertices() == 0  # and nothing of it is left
    assert edges_of(graph) == []
    vertex = graph.addVertex(compute, "Mixed")
    with pytest.raises(GraphConnectionError, match=message):
        graph.connect(vertex[field], value(x))


def test_a_field_is_connected_not_assigned(graph, x, compute):
    vertex = graph.addVertex(compute, "Plain")
    with pytest.raises(PoplarTypeError, match=r"write graph.connect\(vertex\['x'\], tensor\), or for a plain field"):
        vertex["x"] = x[0]


OTHER_TYPES = {
    "a vertex": lambda graph, compute, x: graph.addVertex(compute, "Mixed", {"in": x[0]}),
    "a field": lambda graph, compute, x: graph.connect(graph.addVertex(compute, "Mixed")["in"], x[0]),
    "a scalar": lambda graph, compute, x: graph.addVertex(compute, "Mixed", {"scale": x[0][0]}),
    "rows": lambda graph, compute, x: graph.addVertex(compute, "Mixed", {"rows": x}),
    "a list of rows": lambda graph, compute, x: graph.addVertex(compute, "Mixed", {"rows": [x[0], x[1]]}),
    "a row": lambda graph, compute, x: graph.connect(graph.addVertex(compute, "Mixed")["rows"][0], x[0]),
    "no elements": lambda graph, compute, x: graph.addVertex(compute, "Mixed", {"in": x[0][0:0]}),
    "many vertices": lambda graph, compute, x: graph.add_vertices(compute, "Mixed", {"in": x}),
}


@pytest.mark.parametrize("connect", OTHER_TYPES.values(), ids=OTHER_TYPES)
@pytest.mark.parametrize("type", [HALF, INT])
def test_a_tensor_of_another_type_is_refused_at_the_call(graph, compute, connect, type):
    text = rf"Mixed\.\w+ takes elements of type FLOAT, got ('y' )?{type!r} .*; connect a tensor of FLOAT, or make"
    with pytest.raises(GraphConnectionError, match=text) as refusal:
        connect(graph, compute, graph.addVariable(type, [4, 6], "y"))
    assert any(frame.name == "<lambda>" and frame.path == Path(__file__) for frame in refusal.traceback)
    assert edges_of(graph) == []


def test_a_list_that_is_refused_at_a_later_row_is_not_connected_at_all(graph, x, compute):
    vertex = graph.addVertex(compute, "Mixed")
    with pytest.raises(GraphConnectionError, match="row 2 of field 'rows'"):
        graph.connect(vertex["rows"], [x[0], x[1], x])
    assert edges_of(graph) == []


def test_an_estimator_for_a_codelet_that_the_graph_does_not_have_is_refused_by_its_line(graph, compute):
    graph.addVertex(compute, "Plain")
    graph.registerPerfEstimator("Later", lambda vertex, target: 5)
    graph.registerPerfEstimator(Mixed, lambda vertex, target: 6)
    text = r"test_vertices\.py:\d+: an estimator was registered for 'Later', but the graph has no codelet of that name"
    with pytest.raises(UnknownVertexType, match=text):
        graph.freeze()
    graph.addCodelets(Later)
    graph.freeze()
    for name, hint in (("Plane", "; did you mean 'Plain'"), ("Later<float>", "; there are .*'Later'"), ("Bath", "Both<T>")):
        other = new_graph()
        other.addCodelets(Later, Both)
        other.registerPerfEstimator(name, lambda vertex, target: 5)
        with pytest.raises(UnknownVertexType, match=f"registered for '{name}', .*{hint}"):
            other.freeze()
    for name in ("Both", Both, "Both<float>", "Both< half >", Both[FLOAT], Both[HALF]):
        graph.addCodelets(Both)
        graph.registerPerfEstimator(name, lambda vertex, target: 5)
    graph.freeze()
    graph.registerPerfEstimator("Both<flaot>", lambda vertex, target: 5)
    with pytest.raises(UnknownVertexType, match="'Both<flaot>'"):
        graph.freeze()
    with pytest.raises(PoplarTypeError, match="the estimator of Plain: expected a function of a vertex and a target"):
        graph.registerPerfEstimator("Plain", 5)


def test_an_estimator_of_a_template_serves_its_instances_and_sees_their_types(graph, x, compute):
    def seen(vertex, target):
        types.append((*vertex.templateArguments(), vertex.getFieldInfo("x").elementType()))
        return 10 * vertex.fieldSize("x")

    types = []
    graph.addCodelets(Both, Add, Mul)
    halves = graph.addVariable(HALF, [4], "halves")
    graph.addVertex(compute, Both[FLOAT], {"x": x[0]})
    graph.addVertex(compute, "Both<half>", {"x": halves})
    graph.addVertex(compute, "Summed<add,half>", {"x": halves[:3]})
    graph.addVertex(compute, "Summed<add,float>", {"x": x[0][:2]})
    graph.addVertex(compute, "Summed<mul,float>", {"x": x[0][:5]})
    graph.registerPerfEstimator(Both, seen)
    graph.registerPerfEstimator("Summed<add>", seen)
    graph.registerPerfEstimator("Summed", lambda vertex, target: 3)
    graph.registerPerfEstimator("Summed<add,float>", lambda vertex, target: 4)
    assert graph.freeze().estimates.cycles.tolist() == [60, 40, 30, 4, 3]
    assert types == [(FLOAT, FLOAT), (HALF, HALF), ("add", HALF, HALF)]
    graph.registerPerfEstimator("Summed<sub>", lambda vertex, target: 5)
    with pytest.raises(UnknownVertexType, match="registered for 'Summed<sub>'"):
        graph.freeze()


def test_an_estimator_is_asked_once_for_vertices_of_equal_sizes_and_values(graph, compute):
    def seen(vertex, target):
        fields = vertex.getFieldInfo("rows")
        sizes = [fields.getSizeAtIndex(row) for row in range(fields.size())]
        asked.append((vertex.fieldSize("x"), sizes, vertex.value("factor"), vertex.value("table").tolist()))
        return 1 + sum(sizes) + vertex.value("factor")

    asked = []
    y = graph.addVariable(FLOAT, [100], "y")
    given = [  # x, rows, factor, table
        (5, [3, 1], 0, [1, 2]),
        (5, [3, 1], 0, [1, 2]),
        (5, [1, 3], 0, [1, 2]),
        (5, [3, 1], 1, [1, 2]),
        (5, [3, 1], 0, [2, 1]),
        (4, [3, 1], 0, [1, 2]),
        (5, [3, 1, 0], 0, [1, 2]),
    ]
    for number in range(300):
        size, lengths, factor, table = given[number % len(given)]
        edges = {"x": y[:size], "rows": [y[50 : 50 + length] for length in lengths]}
        vertex = graph.addVertex(compute, Tabled, {**edges, "factor": factor, "table": table})
        if number == 1:
            graph.setPerfEstimate(vertex, 77)
    graph.registerPerfEstimator(Tabled, seen)
    expected = [1 + sum(lengths) + factor for _, lengths, factor, _ in given]
    cycles = graph.freeze().estimates.cycles.tolist()
    assert cycles == [77 if number == 1 else expected[number % len(given)] for number in range(300)]
    distinct = [row for number, row in enumerate(given) if number != 1]
    assert sorted(asked) == sorted(distinct)


def test_an_estimator_is_asked_once_for_vertices_that_are_equal_in_what_it_reads(graph, compute):
    """What it reads of a vertex depends on what it has read: of most `x`, of some `factor` and of one kind the table too."""

    def seen(vertex, target):
        size = vertex.fieldSize("x")
        factor = vertex.value("factor") if size > 2 else 0
        table = vertex.value("table").tolist() if factor == 3 else []
        asked.append((size, factor, table))
        return 100 * size + 10 * factor + int(sum(table))

    asked = []
    y = graph.addVariable(FLOAT, [100], "y")
    expected = []
    for number in range(400):
        size, factor, table = number % 4, number % 5, [number % 7, number]
        graph.addVertex(compute, Tabled, {"x": y[:size], "rows": [y[:3]], "factor": factor, "table": table})
        expected.append(100 * size + (10 * factor + (sum(table) if factor == 3 else 0) if size > 2 else 0))
    graph.registerPerfEstimator(Tabled, seen)
    assert graph.freeze().estimates.cycles.tolist() == expected
    assert len({str(one) for one in asked}) == len(asked)
    assert len(asked) == 3 + 4 + sum(number % 4 == 3 and number % 5 == 3 for number in range(400))


def test_an_estimator_sees_a_list_of_no_rows(graph, compute):
    graph.addVertex(compute, Later, {"rows": []})
    graph.registerPerfEstimator("Later", lambda vertex, target: 7 + vertex.fieldSize("rows") + vertex.getFieldInfo("rows").empty())
    assert graph.freeze().estimates.cycles.tolist() == [8]
    graph.registerPerfEstimator("Later", lambda vertex, target: vertex.getFieldInfo("rows").getSizeAtIndex(0))
    with pytest.raises(PoplarIndexError, match="row 0 is out of range for a field of 0 rows"):
        _ = graph.freeze().estimates


def test_an_edge_is_no_plain_field(graph, x, compute):
    vertex = graph.addVertex(compute, "Mixed")
    with pytest.raises(GraphConnectionError, match="is an edge, not a plain field"):
        graph.setInitialValue(vertex["in"], 1.0)


def test_things_of_other_graphs_and_other_kinds_are_refused(graph, x, compute):
    other = new_graph()
    vertex = graph.addVertex(compute, "Plain")
    for wrong in (
        lambda: other.addVertex(compute, "Plain"),
        lambda: graph.addVertex("compute", "Plain"),
        lambda: graph.addVertex(compute, "Plain", 3),
        lambda: graph.addVertex(compute, "Plain", ["x"]),
        lambda: other.connect(vertex["x"], x[0]),
        lambda: other.setInitialValue(vertex["x"], 1),
        lambda: other.setTileMapping(vertex, 1),
        lambda: graph.connect(vertex, x[0]),
        lambda: graph.setPerfEstimate("vertex", 5),
        lambda: graph.setPerfEstimate(vertex, -5),
        lambda: list(vertex),
        lambda: list(vertex["x"]),
    ):
        with pytest.raises(PoplarTypeError):
            wrong()


def test_handles_compare_by_what_they_stand_for(graph, compute):
    vertex = graph.addVertex(compute, "Plain")
    assert vertex != graph.addVertex(compute, "Plain")
    assert vertex == vertex["x"]._vertex
    assert graph.add_vertices(compute, "Plain", {}, [1])[0].getId() == 2
    assert compute != graph.addComputeSet()
    assert {compute: 1}[compute] == 1
    assert {vertex: 1}[vertex] == 1
    assert compute.getId() == 0
    assert "Plain, vertex 0 of compute set 'compute', added at" in repr(vertex)
    assert repr(compute) == "<ComputeSet 'compute'>"
    assert "field 'x'" in repr(vertex["x"])


# -- estimates ----------------------------------------------------------------------------------------------------------------


def test_the_last_estimate_of_a_vertex_wins(graph, compute):
    vertices = [graph.addVertex(compute, "Plain") for _ in range(3)]
    graph.setPerfEstimate(vertices[2], 30)
    graph.setPerfEstimate(vertices[0], 10, 5)
    graph.setCycleEstimate(vertices[2], 31)
    estimates = graph.freeze().estimates
    assert (estimates.vertex.tolist(), estimates.cycles.tolist(), estimates.flops.tolist()) == ([0, 2], [10, 31], [5, -1])
    assert not estimates.by_estimator.any()


def test_estimators_serve_the_vertices_without_an_estimate(graph, x, compute):
    for size in (2, 3):
        graph.addVertex(compute, Estimated, {"x": x[0][0:size], "rows": [x[1], x[2][0:4]], "factor": 1000})
    vertex = graph.addVertex(compute, Estimated)
    graph.setPerfEstimate(vertex, 7)
    estimates = graph.freeze().estimates
    assert estimates.cycles.tolist() == [20 + 4 + 1000 + 16, 30 + 4 + 1000 + 16, 7]
    graph.registerPerfEstimator("Estimated", lambda vertex, target: VertexPerfEstimate(target.getNumTiles(), vertex.fieldSize("x")))
    estimates = graph.freeze().estimates
    assert (estimates.cycles.tolist(), estimates.flops.tolist()) == ([16, 16, 7], [2, 3, -1])
    assert estimates.by_estimator.tolist() == [True, True, False]


@pytest.mark.parametrize("given", [(2**41,), (5, 2**41), (np.array([1, 2**62]),), (-1,)])
def test_estimates_whose_sums_could_overflow_are_refused(graph, compute, given):
    made = graph.add_vertices(compute, "Plain", {}, [1, 1])
    with pytest.raises(PoplarTypeError, match=r"is at least 0 and at most 2\*\*40, got"):
        graph.setPerfEstimate(made if np.ndim(given[0]) else made[0], *given)


@pytest.mark.parametrize("answer", [2**41, 2**70, (3, 2**63)])
def test_an_estimator_whose_sums_could_overflow_is_refused(graph, compute, answer):
    graph.addVertex(compute, "Plain")
    graph.registerPerfEstimator("Plain", lambda vertex, target: answer)
    with pytest.raises(PoplarTypeError, match=r"the estimator of Plain must return cycles as an int of 0 to 2\*\*40"):
        _ = graph.freeze().estimates


@pytest.mark.parametrize(("estimator", "got"), [(lambda vertex: 3, r"<lambda>\(vertex\), .*:\d+"), (9, "int")])
def test_an_estimator_that_cannot_be_called_is_refused_when_it_is_registered(graph, estimator, got):
    with pytest.raises(PoplarTypeError, match=f"the estimator of Plain: expected a function of a vertex and a target, got {got}"):
        graph.registerPerfEstimator("Plain", estimator)


def test_an_estimator_that_answers_nonsense_is_refused(graph, compute):
    graph.addVertex(compute, "Plain")
    graph.registerPerfEstimator("Plain", lambda vertex, target: -1)
    with pytest.raises(PoplarTypeError, match="estimator of Plain"):
        _ = graph.freeze().estimates
    graph.registerPerfEstimator("Plain", lambda vertex, target: vertex.fieldSize("y"))
    with pytest.raises(UnknownField, match="no field 'y'"):
        _ = graph.freeze().estimates


# -- many at once -------------------------------------------------------------------------------------------------------------


def one_by_one(graph, compute, connections, values, tiles):
    for number, tile in enumerate(tiles):
        fields = {name: tensor[number] for name, tensor in connections.items()}
        fields |= {name: value[number] if np.ndim(value) else value for name, value in values.items()}
        graph.setTileMapping(graph.addVertex(compute, "Mixed", fields), int(tile))


@examples(60)
@given(data=st.data())
def test_many_at_once_are_the_same_as_one_by_one(data):
    frozen = []
    count, length, rows = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3))
    view = data.draw(st.sampled_from(["plain", "transposed", "reversed", "joined", "broadcast"]))
    names = data.draw(st.permutations(["in", "scale", "rows"]))
    tiles = np.array(data.draw(st.lists(st.integers(0, 15), min_size=count, max_size=count)), np.int64)
    for bulk in (False, True):
        graph = new_graph()
        compute = graph.addComputeSet()
        graph.addVertex(compute, "Plain", {"x": graph.addVariable(FLOAT, [2])})

        def operand(*shape, graph=graph):
            whole = graph.addVariable(FLOAT, shape)
            if view == "transposed":
                return graph.addVariable(FLOAT, shape[::-1]).dimShuffle(range(len(shape) - 1, -1, -1))
            if view == "reversed":
                return whole.reverse(len(shape) - 1)
            if view == "joined":
                return concat(whole, graph.addVariable(FLOAT, shape)).subSample(2)
            return graph.addVariable(FLOAT, [1, *shape[1:]]).broadcast(shape[0], 0) if view == "broadcast" else whole

        shapes = {"in": (count, length), "scale": (count,), "rows": (count, rows, length)}
        connections = {name: operand(*shapes[name]) for name in names}
        values = {"factor": 2.5, "count": np.arange(count), "flag": np.arange(count) % 2 == 0}
        if bulk:
            made = graph.add_vertices(compute, "Mixed", connections | values, tiles)
            assert len(made) == count
        else:
            one_by_one(graph, compute, connections, values, tiles)
        whole = graph.freeze()
        frozen.append((edges_of(graph), values_of(graph), whole.vertices.codelet.tolist(), whole.vertices.tile.tolist()))
    assert frozen[0] == frozen[1]


def test_rows_of_different_lengths_are_given_one_by_one_for_all_vertices(compute, graph, x):
    short, long = graph.addVariable(FLOAT, [4, 2], "short"), graph.addVariable(FLOAT, [3, 4], "long").transpose()
    made = graph.add_vertices(compute, "Mixed", {"rows": [x, short, long], "in": x}, [3, 2, 1, 0])
    edges = edges_of(graph)
    for vertex in made:
        graph.addVertex(compute, "Mixed", {"rows": [rows[vertex.getId()] for rows in (x, short, long)], "in": x[vertex.getId()]})
    assert [(edge[0] + 4, *edge[1:]) for edge in edges] == edges_of(graph)[len(edges) :]
    for rows, error, message in (
        ([x, long.transpose()], TensorShapeError, "row 1 of field 'rows' of 4 vertices needs dimension 0 of size 4, got 'long'"),
        ([x, x[0]], GraphConnectionError, "row 1 of field 'rows' of 4 vertices needs a tensor of rank 2, got 'x'"),
        ([x, x.reinterpret(INT)], GraphConnectionError, "rows takes elements of type FLOAT"),
        ([x, 1.0], GraphConnectionError, "needs one tensor whose dimension 0 goes over the vertices"),
    ):
        with pytest.raises(error, match=message):
            graph.add_vertices(compute, "Mixed", {"in": x, "rows": rows})
    assert graph.numVertices() == 8


def test_a_range_of_vertices_is_a_handle_for_tiles_and_estimates(graph, x, compute):
    made = graph.add_vertices(compute, Plain, {"x": x})
    assert [one.getId() for one in made] == [0, 1, 2, 3]
    assert made[-1] == made[3]
    assert repr(made) == "<VertexRange of 4 Plain>"
    graph.setTileMapping(made, [3, 2, 1, 0])
    assert graph.freeze().vertices.tile.tolist() == [3, 2, 1, 0]
    graph.setTileMapping(made, 7)
    assert graph.freeze().vertices.tile.tolist() == [7] * 4
    graph.setPerfEstimate(made, np.arange(4) * 10, 1)
    graph.setPerfEstimate(made[1], 99)
    assert graph.freeze().estimates.cycles.tolist() == [0, 99, 20, 30]
    with pytest.raises(PoplarIndexError):
        made[4]
    with pytest.raises(InvalidTileMapping, match="need 4 tiles"):
        graph.setTileMapping(made, [1, 2])
    with pytest.raises(InvalidTileMapping, match="tile 16 for number 2 of"):
        graph.setTileMapping(made, [1, 2, 16, 3])


@pytest.mark.parametrize(("connections", "tiles", "error", "message"), [
    (lambda x: {"x": x[0]}, 0, GraphConnectionError, r"field 'x' of 6 vertices needs a tensor of rank 2, got 'x' FLOAT \[6\]"),
    (lambda x: {"x": 3}, [0, 1], GraphConnectionError, "needs one tensor whose dimension 0 goes over the vertices"),
    (lambda x: {"y": x}, 0, UnknownField, "no field 'y'"),
    (lambda x: {"x": x}, [0, 1], InvalidTileMapping, "need 4 tiles"),
    (lambda x: {"x": x}, [0, 1, 2, 99], InvalidTileMapping, "tile 99"),
    (lambda x: {"x": x}, [0.5] * 4, PoplarTypeError, "whole numbers"),
    (lambda x: {}, 3, TensorShapeError, "neither is given"),
    (lambda x: {"x": new_graph().addVariable(FLOAT, [4, 6])}, 0, GraphConnectionError, "another graph"),
])  # fmt: skip
def test_many_that_do_not_fit_are_refused_and_none_is_added(graph, x, compute, connections, tiles, error, message):
    with pytest.raises(error, match=message):
        graph.add_vertices(compute, "Plain", connections(x), tiles)
    assert graph.numVertices() == 0
    assert edges_of(graph) == []


def test_fields_of_many_vertices_have_as_many_rows(graph, x, compute):
    with pytest.raises(TensorShapeError, match="field 'scale' of 4 vertices needs dimension 0 of size 4"):
        graph.add_vertices(compute, "Mixed", {"in": x, "scale": x[0]})
    with pytest.raises(TensorShapeError, match="4 elements, got 3"):
        graph.add_vertices(compute, "Mixed", {"in": x, "factor": [1, 2, 3]})
    with pytest.raises(PoplarTypeError, match="field 'count' of 4 vertices is INT"):
        graph.add_vertices(compute, "Mixed", {"in": x, "count": 0.5})
    assert graph.numVertices() == 0
    made = graph.add_vertices(compute, "Mixed", {"in": x, "table": [[1.0], [2.0], [3.0], [4.0]]})
    assert [graph.freeze().state.vectors[one.getId(), 7].tolist() for one in made] == [[1], [2], [3], [4]]
    graph.add_vertices(compute, "Mixed", {"in": x, "table": [1.0, 2.0]})
    assert graph.freeze().state.vectors[5, 7].tolist() == [1, 2]
    with pytest.raises(TensorShapeError, match="row for each vertex"):
        graph.add_vertices(compute, "Mixed", {"in": x, "table": [[1.0], [2.0]]})


def test_types_by_number_are_those_of_the_supported_list():
    graph = new_graph()
    compute = graph.addComputeSet()
    for type in SUPPORTED:
        graph.addVertex(compute, Both[type], {"x": graph.addVariable(type, [1])})
    assert [one[3] for one in edges_of(graph)] == list(SUPPORTED)
    assert UNSIGNED_SHORT in SUPPORTED


def test_edges_stay_as_they_are_when_an_engine_has_seen_them():
    """The compiler reads the memory of the graph's own table, which grows on, is cut, and is read again."""
    graph = Graph(IPUModel("tiny").createDevice())
    x = graph.addVariable(FLOAT, [2000], "x")
    graph.addCodelets(Both)
    cs, nowhere = graph.addComputeSet("many"), np.zeros(2000, np.int64)
    graph.add_vertices(cs, "Both<float>", {"x": x.reshape([2000, 1])}, nowhere)
    first = graph.freeze().edges
    with pytest.raises(ValueError, match="read-only"):
        first.run_start[0] = 7
    names = ("vertex", "run_start", "run_count", "run_step")
    before = [getattr(first, name).copy() for name in names]
    for vertices in (2000, 3):  # in a block, and one by one
        with pytest.raises(UnknownField):
            graph.add_vertices(cs, "Both<float>", {"x": x.reshape([2000, 1])[:vertices], "y": x[:vertices]}, nowhere[:vertices])
    for number in range(3):
        graph.addVertex(cs, "Both<float>", {"x": x[number : number + 1]})
    second = graph.freeze().edges
    assert [len(first.vertex), len(second.vertex)] == [2000, 2003]
    for name, column in zip(names, before, strict=True):
        np.testing.assert_array_equal(getattr(first, name), column)
        np.testing.assert_array_equal(getattr(second, name)[:2000], column)
    assert second.run_start[2000:].tolist() == [0, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 3, 600])), max_size=6), st.integers(0, 4), st.booleans())
@examples(40)
def test_edges_are_taken_back_to_a_vertex_wherever_they_are_kept(added, first, seen):
    """In blocks, in rows, or in the one block that is left of all when an engine has seen them."""
    table, kept = EdgeTable(), EdgeTable()
    x = Graph(IPUModel("tiny").createDevice()).addVariable(FLOAT, [600], "x")
    added = sorted(added)
    for vertex, rows in added:
        for target in (table, kept) if vertex < first else (table,):
            target.connect_rows(vertex, 0, x[:rows].reshape([rows, 1]))
    if seen:
        table.freeze()
    table.remove(first)
    for name in ("vertex", "row", "first_run", "run_start", "run_count"):
        np.testing.assert_array_equal(getattr(table.freeze(), name), getattr(kept.freeze(), name))
    table.connect(9, 0, x)
    assert table.freeze().vertex[-1] == 9
