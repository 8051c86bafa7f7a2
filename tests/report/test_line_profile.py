"""Cycles by source line: lines have all that their vertex type was charged, and each compute set names its slowest vertex."""

import inspect

import numpy as np
import pytest
from engine_builder import Bench, tiny

from pypoplar import (
    FLOAT,
    Engine,
    Executable,
    Graph,
    InOut,
    Input,
    IPUModel,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
    popops,
)
from pypoplar.program import Execute, Repeat, Sequence
from pypoplar.report.line_profile import CodeletText, FieldSize, LinePart, LineProfile, SourceLine, VertexGroup

LINES = {"profiler.includeFlopEstimates": "true"}


def halved(value):
    return value * 0.5


class Halve(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            if self.x[i] > 0.0:
                self.x[i] = halved(self.x[i])


class Guessed(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1.0

    def cycles(self, vertex):
        return 101


class Shared(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] *= 2.0


class Rows(SupervisorVertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for r in range(len(self.rows)):
            total += self.rows[r][0]
        self.out = total


@pytest.fixture
def bench():
    return Bench(tiny(8))


def program(bench):
    graph = bench.graph
    work, rest = graph.addComputeSet("work"), graph.addComputeSet("rest")
    for tile in range(4):
        bench.vertex(work, Halve, tile, x=bench.variable(f"x{tile}", np.linspace(-1, 1, 4 + 3 * tile, dtype=np.float32), tile))
        bench.vertex(work, Shared, tile, x=bench.variable(f"y{tile}", np.ones(7, np.float32), tile))
        bench.vertex(rest, Guessed, tile, x=bench.variable(f"z{tile}", np.ones(5, np.float32), tile))
    pieces = [bench.variable(f"r{row}", np.ones(row + 1, np.float32), 5) for row in range(3)]
    bench.vertex(rest, Rows, 5, rows=pieces, out=bench.variable("out", np.zeros(1, np.float32), 5)[0])
    return Sequence(Execute(work), Repeat(2, Execute(rest)))


def ran(bench, options=LINES, runs=1, mode="native"):
    engine = bench.engine(program(bench), mode, options)
    for _ in range(runs):
        engine.run()
    return engine.getReport()


@pytest.mark.parametrize("mode", ["native", "interpret"])
@pytest.mark.parametrize("cost", ["compiled", "scalar"])
def test_lines_have_all_slots_of_their_vertex_type(bench, mode, cost):
    execution = ran(bench, {**LINES, "pypoplar.codelet_cost": cost}, 3, mode).execution
    assert set(execution.lines.vertex_types) == {"Halve", "Shared", "Guessed", "Rows"}
    for name, costs in execution.cycles_by_vertex_type.items():
        lines = execution.lines.lines(name)
        assert sum(line.slots for line in lines) == costs.cycles
        assert sum(line.share for line in lines) == pytest.approx(1)
        if cost == "compiled":
            assert sum(line.compiled for line in lines) == costs.compiled_cycles
            if name != "Shared":  # the bound of a MultiVertex is that of the worker with the largest
                assert sum(line.bound for line in lines) == costs.bound_cycles
            assert all(line.bound <= line.compiled for line in lines)
        else:
            assert {(line.compiled, line.bound) for line in lines} == {(None, None)}
        groups = execution.lines.groups_of(name)
        assert sum(group.slots for group in groups) == costs.cycles
        assert sum(group.vertices for group in groups) == costs.instances
        for group in groups:
            assert sum(line.slots for line in execution.lines.lines(name, group.compute_set)) == group.slots


def test_a_line_is_shown_as_it_stands_with_its_place_and_what_it_ran(bench):
    lines = ran(bench).execution.lines.lines("Halve")
    source, first = inspect.getsourcelines(Halve.compute)
    of_compute = [line for line in lines if line.source.function == "compute"]
    assert [line.source.text for line in of_compute] == [line.rstrip("\n") for line in source]
    assert [line.source.line for line in of_compute] == list(range(first, first + len(source)))
    assert {line.source.file for line in lines} == {__file__}
    definition, loop, test, then = of_compute
    assert definition.executions == 4  # entry and exit of each vertex
    assert loop.slots > 0
    assert test.executions == 4 + 7 + 10 + 13
    assert then.executions == 2 + 3 + 5 + 6  # the positive ones
    helper = next(line for line in lines if line.source.function == "halved" and "return" in line.source.text)
    assert (helper.source.text, helper.executions) == ("    return value * 0.5", then.executions)
    assert helper.slots >= helper.executions


def test_lines_share_what_an_estimate_says_in_proportion_to_their_code(bench):
    lines = ran(bench).execution.lines.lines("Guessed")
    assert sum(line.slots for line in lines) == 101 * 4 * 2
    whole = sum(line.compiled for line in lines)
    for line in lines:
        assert abs(line.slots - line.compiled * 101 * 8 / whole) <= 1


def test_each_compute_set_names_its_slowest_vertex_with_tile_and_sizes(bench):
    slowest = {vertex.compute_set: vertex for vertex in ran(bench).execution.lines.slowest}
    assert (slowest["work"].vertex_type, slowest["work"].tile, slowest["work"].sizes) == ("Halve", 3, (FieldSize("x", 13),))
    step = next(step for step in ran(Bench(tiny(8))).execution.steps if step.name == "work")
    assert 0 < slowest["work"].cycles <= step.slowest_tile_cycles
    assert (slowest["rest"].vertex_type, slowest["rest"].tile) == ("Guessed", 0)
    assert slowest["rest"].cycles == 101 * 6


@pytest.mark.parametrize("races", ["regions", "elements"])
def test_the_size_of_a_list_has_its_rows(races):
    bench = Bench(tiny(8))
    pieces = [bench.variable(f"r{row}", np.ones(row + 1, np.float32), 5) for row in range(3)]
    execute = bench.execute(Rows, 5, rows=pieces, out=bench.variable("out", np.zeros(1, np.float32), 5)[0])
    engine = bench.engine(execute, "native", {**LINES, "pypoplar.races": races})
    engine.run()
    (vertex,) = engine.getReport().execution.lines.slowest
    assert vertex.sizes == (FieldSize("rows", 6, 3),)
    assert str(vertex.sizes[0]) == "rows 6 in 3 rows"


def test_blocks_that_ran_say_where_and_how_often(bench):
    execution = ran(bench).execution
    blocks = [block for block in execution.blocks if block.vertex_type == "Halve"]
    assert {block.compute_set for block in blocks} == {"work"}
    assert sum(block.slots for block in blocks) == execution.cycles_by_vertex_type["Halve"].cycles
    assert max(block.executions for block in blocks) == 34
    assert all(block.lines for block in blocks if block.slots)


def test_without_a_profile_of_the_execution_there_are_no_lines(bench):
    execution = ran(bench, {}).execution
    assert execution.lines is None
    assert execution.blocks == ()


def test_lines_of_a_library_share_its_estimate():
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    a, b = (graph.addVariable(FLOAT, [64], name) for name in "ab")
    for tensor in (a, b):
        graph.setTileMapping(tensor, 3)
    sequence = Sequence()
    popops.addCodelets(graph)
    popops.addInPlace(graph, a, b, sequence, "sum")
    engine = Engine(graph, sequence, LINES)
    engine.load(device)
    engine.run()
    report = engine.getReport()
    (name,) = report.execution.lines.vertex_types
    (kind,) = [kind for kind in report.compilation.vertex_types if kind.name == name]
    assert kind.priced_by["estimator"] > 0
    lines = report.execution.lines.lines(name)
    assert sum(line.slots for line in lines) == report.execution.cycles_by_vertex_type[name].cycles
    assert sum(line.slots > 0 for line in lines) > 1
    assert all(line.source.text for line in lines if line.slots)


def test_an_executable_from_a_file_knows_the_text_of_its_lines(bench, tmp_path):
    engine = bench.engine(program(bench), "native", LINES)
    engine.run()
    engine.executable.save(tmp_path / "program.exe")
    loaded = Engine(Executable.load(tmp_path / "program.exe"), LINES)
    loaded.load(bench.device)
    loaded.run()
    for name in ("Halve", "Shared", "Guessed", "Rows"):
        assert loaded.getReport().execution.lines.lines(name) == engine.getReport().execution.lines.lines(name)


def test_lines_end_where_python_ends_them(bench, tmp_path):
    lines = [
        "from pypoplar import FLOAT, InOut, Vertex",
        "class Odd(Vertex):",
        "    x: InOut[FLOAT]",
        "    def compute(self):",
        "        t = 1.0",
        "\f",
        "        t += self.x  # \u2028 \x1c",
        "        self.x = t",
    ]
    file = tmp_path / "odd.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    bench.graph.addCodelets(str(file))
    engine = bench.engine(bench.execute("Odd", x=bench.variable("x", np.ones(1, np.float32))[0]), "native", LINES)
    engine.run()
    costs = engine.getReport().execution.lines.lines("Odd")
    assert [(cost.source.line, cost.source.text) for cost in costs] == list(enumerate(lines, 1))[3:]
    assert [cost.source.line for cost in costs if cost.slots] == [4, 7, 8]


def test_what_costs_nothing_as_code_is_charged_to_its_first_line():
    lines = (SourceLine("compute", "f.py", 1, "def compute(self):"), SourceLine("compute", "f.py", 2, "    pass"))
    text = CodeletText("Nothing", 1, lines, ((LinePart(1, 0, 0),),))
    profile = LineProfile(True, (text,), (VertexGroup("set", "Nothing", 2, 50, (2,)),))
    assert [line.slots for line in profile.lines("Nothing")] == [50, 0]


def test_lines_of_what_has_not_run_are_refused_with_the_nearest_name(bench):
    lines = ran(bench).execution.lines
    with pytest.raises(KeyError, match="no vertex of the type 'Halv' has run; did you mean 'Halve'"):
        lines.lines("Halv")
    with pytest.raises(KeyError, match="no vertex of the type 'Nope' has run; there are 'Halve'"):
        lines.groups_of("Nope")
    with pytest.raises(KeyError, match="no vertex of 'Halve' has run in compute set 'rest'; there are 'work'"):
        lines.lines("Halve", "rest")
    with pytest.raises(TypeError, match=r"<LineProfile of 4 vertex types: 'Guessed', .* is not iterable: lines\(vertex_type\)"):
        list(lines)


def test_reports_are_short_where_they_are_printed(bench):
    report = ran(bench)
    for shown in (report, report.compilation, report.execution, report.execution.lines, report.compilation.loweredVariables):
        assert len(repr(shown)) < 250
    assert all(len(repr(step)) < 600 for step in report.compilation.livenessProgramSteps)
    assert (
        repr(report.execution)
        == f"<Execution of 1 run, {len(report.execution.steps)} steps: {report.execution.totalCycles.total:,} cycles>"
    )
    assert repr(report.compilation).startswith("<Compilation for 8 tiles of ")
    assert repr(LineProfile(True)) == "<LineProfile of 0 vertex types>"


def test_tiles_and_variables_that_are_not_there_are_refused_by_number(bench):
    compilation = ran(bench).compilation
    assert compilation.tiles[-1].number == 7
    for number in (8, -9):
        with pytest.raises(IndexError, match=f"there is no tile {number}: they go from 0 to 7"):
            compilation.tiles[number]
    with pytest.raises(IndexError, match="there is no variable 1,000: they go from 0 to"):
        compilation.loweredVariables[1000]
