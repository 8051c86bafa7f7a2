"""IPUs that are alike are planned once, and nothing else shows it: the executables are equal to the byte."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from passes_builder import Builder, FieldStandIn, all_used

from pypoplar import FLOAT, HALF, Graph, Input, IPUModel, Output, Vector, VectorList, Vertex, compileGraph, concat
from pypoplar.compiler.exchange import compute_set_plan
from pypoplar.compiler.exchange.alike_ipus import find_alike
from pypoplar.compiler.exchange.compute_set_edges import Edges, select_edges
from pypoplar.compiler.exchange.graph_index import survey_graph
from pypoplar.compiler.memory.placement import place_variables
from pypoplar.program import Execute, Sequence

TILES = 4  # of an IPU
MARGIN = 3  # elements at both ends of a variable, on the first tile


class Sum(Vertex):
    x: Input[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = 1.0


class Half(Vertex):
    x: Input[Vector[HALF]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = 2.0


@attrs.frozen
class Reading:
    """What a vertex reads of a variable: stretches of the share of its IPU, which may reach beyond it."""

    variable: int
    stretches: tuple[tuple[int, int], ...]

    def of(self, variables: list[Any], sizes: list[int], ipu: int) -> Any:
        first = MARGIN + ipu * sizes[self.variable]
        return concat([variables[self.variable][first + begin : first + end] for begin, end in self.stretches])


@attrs.frozen
class Working:
    """A vertex of each IPU."""

    tile: int
    half: bool
    x: Reading
    rows: tuple[Reading, ...]
    results: int  # elements that it writes


@attrs.frozen
class Change:
    """How an IPU is not like the others."""

    ipu: int
    what: str
    at: int


@attrs.frozen
class Recipe:
    """The same on each of several IPUs, but for changes. Variables are FLOAT but for the last, which is HALF."""

    ipus: int
    sizes: list[int]  # of each variable's share of an IPU
    tiles: list[list[int]]  # of an IPU: where each element of these lies
    shared: int  # elements of a variable that all read; they lie on the first tile
    constant: bool  # whether it is a constant
    vertices: list[Working]
    result_tiles: list[int]
    changes: list[Change]

    def build(self) -> tuple[Graph, Sequence]:
        model = IPUModel("tiny")
        model.numIPUs, model.tilesPerIPU = self.ipus, TILES
        graph = Graph(model.createDevice())
        variables = [self._variable(graph, number) for number in range(len(self.sizes))]
        results = self._placed(graph, "results", FLOAT, self.result_tiles, "exchange")
        shared = graph.addVariable(FLOAT, [self.shared], "all")
        if self.constant:
            shared = graph.addConstant(FLOAT, [self.shared], np.arange(self.shared, dtype=np.float32))
        graph.setTileMapping(shared, 0)
        steps = []
        for name in ("first", "second"):
            compute_set = graph.addComputeSet(name)
            for ipu in range(self.ipus):
                self._vertices(graph, compute_set, variables, shared, results, ipu)
            steps.append(Execute(compute_set))
        return graph, Sequence(steps)

    def _is(self, what: str, ipu: int, at: int) -> bool:
        return any((one.what, one.ipu % self.ipus, one.at % 3) == (what, ipu, at % 3) for one in self.changes)

    def _variable(self, graph: Graph, number: int) -> Any:
        type = HALF if number == len(self.sizes) - 1 else FLOAT
        variable = self._placed(graph, f"v{number}", type, self.tiles[number], "place")
        for ipu in range(self.ipus):
            first = MARGIN + ipu * self.sizes[number]
            value = 7.0 if self._is("value", ipu, number) else 3.0
            graph.setInitialValue(variable[first : first + self.sizes[number]], np.full(self.sizes[number], value))
        return variable

    def _placed(self, graph: Graph, name: str, type: Any, tiles: list[int], change: str) -> Any:
        size = len(tiles)
        variable = graph.addVariable(type, [2 * MARGIN + size * self.ipus], name)
        graph.setTileMapping(variable, 0)
        for ipu in range(self.ipus):
            for at, tile in enumerate(tiles):
                if at == 0 and self._is(change, ipu, 0):
                    tile = (tile + 1) % TILES if change == "place" else TILES  # which is of the next IPU
                place = MARGIN + ipu * size + at
                graph.setTileMapping(variable[place], (ipu * TILES + tile) % (self.ipus * TILES))
        return variable

    def _vertices(self, graph: Graph, compute_set: Any, variables: list[Any], shared: Any, results: Any, ipu: int) -> None:
        written = MARGIN + ipu * len(self.result_tiles)
        for number, working in enumerate(self.vertices):
            x = working.x
            if self._is("edge", ipu, number):
                x = attrs.evolve(x, stretches=((0, 1), (1, 2)))
            count = working.results - 1 if self._is("size", ipu, number) else working.results
            ends = {"x": x.of(variables, self.sizes, ipu), "y": results[written : written + count]}
            if not working.half:
                ends["rows"] = [shared, *(row.of(variables, self.sizes, ipu) for row in working.rows)]
            tile = working.tile + self._is("vertex", ipu, number)
            vertex = graph.addVertex(compute_set, Half if working.half else Sum, ends)
            graph.setTileMapping(vertex, ipu * TILES + tile % TILES)
            written += working.results


@st.composite
def readings(draw: Any, variable: int, size: int) -> Reading:
    begins = draw(st.lists(st.integers(-MARGIN, size), min_size=1, max_size=3))
    return Reading(variable, tuple((begin, draw(st.integers(begin + 1, size + MARGIN))) for begin in begins))


@st.composite
def recipes(draw: Any) -> Recipe:
    sizes = draw(st.lists(st.integers(2, 9), min_size=2, max_size=3))
    tile, last = st.integers(0, TILES - 1), len(sizes) - 1
    vertices = []
    for _ in range(draw(st.integers(1, 4))):
        half = draw(st.booleans())
        floats = st.integers(0, last - 1).flatmap(lambda number: readings(number, sizes[number]))
        x = draw(readings(last, sizes[last]) if half else floats)
        rows = tuple(draw(st.lists(floats, max_size=2)))
        vertices.append(Working(draw(tile), half, x, rows, draw(st.integers(1, 5))))
    results = sum(working.results for working in vertices)
    whats = st.sampled_from(["edge", "size", "exchange", "place", "value", "vertex"])
    return Recipe(
        draw(st.integers(2, 4)),
        sizes,
        [draw(st.lists(tile, min_size=size, max_size=size)) for size in sizes],
        draw(st.integers(1, 4)),
        draw(st.booleans()),
        vertices,
        draw(st.lists(tile, min_size=results, max_size=results)),
        draw(st.lists(st.builds(Change, st.integers(0, 3), whats, st.integers(0, 2)), max_size=2)),
    )


def compiled(graph: Graph, program: Sequence) -> Any:
    return compileGraph(graph, program, {"pypoplar.run_out_of_memory": True}).serialize()


@given(recipes())
@examples(100)
def test_executables_are_equal_to_the_byte_whether_ipus_that_are_alike_are_planned_once_or_not(recipe):
    graph, program = recipe.build()
    once = compiled(graph, program)
    with patch.object(compute_set_plan, "find_alike", lambda *_: None):
        assert compiled(graph, program) == once


ALIKE = Recipe(
    ipus=3,
    sizes=[6, 4],
    tiles=[[0, 0, 1, 1, 2, 3], [0, 1, 1, 2]],
    shared=2,
    constant=False,
    vertices=[
        Working(0, False, Reading(0, ((0, 6),)), (Reading(0, ((-1, 2),)),), 2),
        Working(1, True, Reading(1, ((1, 4),)), (), 1),
        Working(3, False, Reading(0, ((3, 7),)), (), 1),
    ],
    result_tiles=[0, 0, 1, 2],
    changes=[],
)


def planned_vertices(recipe: Recipe) -> list[int]:
    return planned_of(*recipe.build())


def planned_of(graph: Graph, program: Sequence) -> list[int]:
    """How many vertices of each compute set are planned, all of which are planned where no IPU is like another."""
    planned = []
    original = compute_set_plan.plan_vertex_side

    def counting(frozen: Any, homes: Any, survey: Any, edges: Edges) -> Any:
        planned.append(len(edges.vertex))
        return original(frozen, homes, survey, edges)

    with patch.object(compute_set_plan, "plan_vertex_side", counting):
        compiled(graph, program)
    return planned


def test_of_ipus_that_are_alike_one_is_planned():
    # of the first one the variable that all read lies on a tile of its own
    assert planned_vertices(ALIKE) == [6, 6]
    assert planned_vertices(attrs.evolve(ALIKE, ipus=4)) == [6, 6]


@pytest.mark.parametrize("what", ["edge", "size", "exchange", "place", "vertex"])
def test_an_ipu_that_is_nearly_like_others_is_planned_itself(what):
    recipe = attrs.evolve(ALIKE, ipus=4, changes=[Change(3, what, 0)])
    assert planned_vertices(recipe) == [9, 9]
    graph, program = recipe.build()
    with patch.object(compute_set_plan, "find_alike", lambda *_: None):
        alone = compiled(graph, program)
    assert compiled(graph, program) == alone


def test_ipus_whose_initial_values_differ_are_planned_once():
    assert planned_vertices(attrs.evolve(ALIKE, ipus=4, changes=[Change(2, "value", 0)])) == [6, 6]


def test_outputs_that_lie_on_another_ipu_keep_what_they_held():
    """Their old values are not exchanged: where they come from is told by no exchange."""
    changes = [Change(ipu, "exchange", 0) for ipu in range(3)]
    graph, program = attrs.evolve(ALIKE, changes=changes).build()
    once = compiled(graph, program)
    with patch.object(compute_set_plan, "find_alike", lambda *_: None):
        assert compiled(graph, program) == once


@pytest.mark.parametrize("results", ["before", "behind, the last IPU's first"])
def test_inputs_that_go_on_into_the_next_variable_are_planned_once_and_equal(results):
    """Of two variables that follow each other one stretch of elements is read, and both come from another IPU."""
    model = IPUModel("tiny")
    model.numIPUs = 3
    graph = Graph(model.createDevice().getTarget())
    compute_set, tiles = graph.addComputeSet("read"), graph.getTarget().getTilesPerIPU()
    written = [graph.addVariable(FLOAT, [10], "y") for _ in range(3)] if results == "before" else []
    read = [[graph.addVariable(HALF, [5], name) for name in ("one", "two")] for _ in range(3)]
    graph.setTileMapping(graph.addVariable(FLOAT, [1], "between"), 0)
    written = written or [graph.addVariable(FLOAT, [10], "y") for _ in range(3)][::-1]
    for ipu, (parts, y) in enumerate(zip(read, written, strict=True)):
        for part in parts:
            graph.setTileMapping(part, (ipu + 1) % 3 * tiles + 1)
        graph.setTileMapping(y, ipu * tiles)
        graph.setTileMapping(graph.addVertex(compute_set, Half, {"x": concat(parts), "y": y}), ipu * tiles)
    program = Sequence([Execute(compute_set)])
    assert planned_of(graph, program) == [1]
    with patch.object(compute_set_plan, "find_alike", lambda *_: None):
        alone = compiled(graph, program)
    assert compiled(graph, program) == alone


def are_alike(*ipus: Any) -> bool:
    """Whether two IPUs of two tiles are, each with a vertex on its first tile; `ipus` say what that reads, by a builder."""
    builder = Builder(tiles=4)
    codelet = builder.codelet("Reader", FieldStandIn("one"), FieldStandIn("two"))
    compute_set = builder.compute_set()
    for ipu, reads in enumerate(ipus):
        one, two = reads(builder)
        builder.vertex(compute_set, codelet, 2 * ipu, {"one": one, "two": two})
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    survey = survey_graph(graph, homes, ipus=2)
    return find_alike(graph, select_edges(graph, survey, 0), homes, survey) is not None


def reading(one: list[int], two: list[int], *, order: str = "one two", constant: bool = False) -> Any:
    """What reads two variables, each of whose elements lies on one of these tiles; `order` is that in which they are made."""

    def made(builder: Builder) -> tuple[Any, Any]:
        found = {}
        for name in order.split():
            tiles = {"one": one, "two": two}.get(name, one)
            found[name] = builder.variable(len(tiles), tiles, constant=constant and name == "one")
        return found["one"], found["two"]

    return made


def test_ipus_are_alike_that_read_variables_which_lie_alike():
    assert are_alike(reading([0, 1, 1], [0]), reading([2, 3, 3], [2]))


def test_where_what_is_read_lies_on_other_ipus_is_left_open():
    assert are_alike(reading([2, 3, 3], [2]), reading([1, 0, 0], [1]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(reading([0, 1], [0]), reading([2, 3], [3]), id="on another tile"),
        pytest.param(reading([0, 1], [0]), reading([2, 3], [0]), id="on another IPU"),
        pytest.param(reading([0, 1], [0]), reading([2, 3], [2], order="two one"), id="at another place of a tile"),
        pytest.param(reading([2], [2]), reading([0], [0], order="two one"), id="in another order"),
        pytest.param(reading([2], [2]), reading([0], [0], order="one between two"), id="not side by side"),
        pytest.param(reading([2], [2], order="one between two"), reading([0], [0], order="two between one"), id="the other way"),
        pytest.param(reading([2], [2, 3]), reading([0], [0, 0]), id="in fewer pieces"),
        pytest.param(reading([2, 2, 3], [2]), reading([0, 1, 1], [0]), id="cut elsewhere"),
        pytest.param(reading([0, 1], [0]), reading([2, 3], [2], constant=True), id="constant"),
        pytest.param(reading([0, 1], [0]), reading([2, 3], [2, 2]), id="longer"),
    ],
)
def test_ipus_are_not_alike_if_something_that_is_read_lies(first, second):
    assert not are_alike(first, second)


def test_ipus_are_not_alike_if_a_variable_is_read_at_other_distances():
    builder_of = []

    def parts(first: int, second: int) -> Any:
        def made(builder: Builder) -> tuple[Any, Any]:
            if not builder_of or builder_of[0] is not builder:
                builder_of[:] = [builder, builder.variable(8, [2] * 4 + [0] * 4)]
            ids = builder_of[1]
            return ids[first : first + 2], ids[second : second + 1]

        return made

    assert are_alike(parts(0, 3), parts(4, 7))
    assert not are_alike(parts(0, 3), parts(4, 6))


def test_ipus_without_vertices_lead_no_others():
    model = IPUModel()
    model.tilesPerIPU, model.numIPUs = TILES, 4
    graph, program = Graph(model.createDevice()), Sequence()
    for tile, ipus in enumerate(((2,), (1, 2))):  # the others have nothing to do; the two are alike
        compute_set = graph.addComputeSet(f"on {ipus}")
        for ipu in ipus:
            x, y = graph.addVariable(HALF, [4], "x"), graph.addVariable(FLOAT, [4], "y")
            for variable in (x, y):
                graph.setTileMapping(variable, ipu * TILES + tile)
            vertex = graph.addVertex(compute_set, Half, {"x": x, "y": y})
            graph.setTileMapping(vertex, ipu * TILES + 3)
        program.add(Execute(compute_set))
    answers = []

    def noting(*given: Any) -> Any:
        answers.append(find_alike(*given))
        return answers[-1]

    with patch.object(compute_set_plan, "find_alike", noting):
        compiled(graph, program)
    assert answers[0] is None
    assert answers[1] is not None
    assert answers[1].leader[2] == 1
