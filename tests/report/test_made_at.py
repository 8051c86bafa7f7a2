"""Reports and errors name the lines of the user's code on the host that made compute sets, variables and programs."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pypoplar import FLOAT, Engine, Graph, GraphCycleError, GraphMemoryAllocationError, InOut, IPUModel, Vertex, popops, pva
from pypoplar.graph.location import LocationTable
from pypoplar.program import Call, Copy, Execute, Repeat, Sequence
from pypoplar.report.execution import Execution, Step
from pypoplar.report.program_nodes import Program
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_host_lines import host_lines_section

HERE = Path(__file__).name
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


class Square(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x * self.x


def line(mark):
    """Where the line with a mark behind it stands, as reports say it."""
    (number,) = [number for number, text in enumerate(LINES, 1) if text.endswith(f"# {mark}")]
    return f"{__file__}:{number}"


@pytest.fixture(scope="module")
def report():
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x = graph.addVariable(FLOAT, [4], "x")  # x
    y = graph.addVariable(FLOAT, [4], "y")
    graph.setTileMapping(y, 3)
    square = graph.addComputeSet("square")  # set
    for tile in range(4):
        graph.setTileMapping(x[tile], tile)
        graph.setTileMapping(graph.addVertex(square, Square, {"x": x[tile]}), tile)
    inner = Execute(square)  # execute
    loop = Repeat(3, inner)  # loop
    function = graph.addFunction(Sequence([Copy(x, y, "there")]))  # function
    main = Sequence([loop, Call(function)])
    popops.addCodelets(graph)
    popops.addInPlace(graph, x, y, main, "sum")  # library
    engine = Engine(graph, main)
    engine.loadAndRun(device)
    return engine.getReport()


@pytest.fixture(params=["made", "read"])
def either(request, report, tmp_path):
    """The report, as it was made and as a file gives it back."""
    if request.param == "made":
        return report
    pva.save_report(report, tmp_path / "profile.pop")
    return pva.openReport(tmp_path / "profile.pop")


def nodes(report):
    return [program for root in report.compilation.programs for _, program in root.walk()]


def test_programs_know_the_line_that_made_them(either):
    made_at = {(program.type, program.name): program.made_at for program in nodes(either)}
    assert made_at["Repeat", ""] == line("loop")
    assert made_at["OnTileExecute", "square"] == line("execute")
    assert made_at["DoExchange", "there"] == line("function")
    assert made_at["Sequence", "function 0"] == line("function")
    assert [step.program.made_at for step in either.execution.steps if step.name == "square"] == [line("execute")]


def test_compute_sets_know_the_line_that_made_them(either):
    (square,) = [compute_set for compute_set in either.compilation.computeSets if compute_set.name == "square"]
    assert square.made_at == line("set")


def test_variables_know_the_line_that_made_them(either):
    assert {variable.name: variable.made_at for variable in either.compilation.loweredVariables}["x"] == line("x")


def test_what_a_library_makes_has_the_line_that_called_it(either):
    (step,) = [step for step in either.execution.steps if step.name.startswith("sum") and step.type == "OnTileExecute"]
    assert (step.program.made_at, step.program.computeset.made_at) == (line("library"), line("library"))


def test_lines_can_be_queried(report, tmp_path):
    pva.save_report(report, tmp_path / "profile.pop")
    query = "SELECT place FROM variable JOIN made_at ON kind = 'variable' AND number = variable WHERE name = 'x'"
    with closing(sqlite3.connect(tmp_path / "profile.pop")) as database:
        assert database.execute(query).fetchall() == [(line("x"),)]


def short(mark):
    return f"{HERE}:{line(mark).rpartition(':')[2]}"


def test_the_summary_names_lines_of_steps_and_variables(either):
    text = summary(either, {"showExecutionSteps": True, "showVarStorage": True})
    of_square = sum(step.cycles for step in either.execution.steps if step.name == "square")
    total = either.execution.totalCycles.total
    (told,) = [told for told in text.splitlines() if told.startswith(f"    {short('execute')} ")]
    assert told.split() == [short("execute"), f"{of_square:,}", f"{of_square / total:.1%}", "square"]
    assert f"    {short('library')} " in text
    assert re.search(rf"  x +16 B  {re.escape(short('x'))}\n", text)


def test_files_of_one_name_are_told_apart_in_the_summary():
    steps = [
        Step(
            name="a",
            type="DoExchange",
            executions=1,
            number=number,
            sync_cycles=9 - number,
            program=Program("a", "DoExchange", made_at=place),
        )
        for number, place in enumerate(["/x/model.py:3", "/y/model.py:3", "/y/main.py:4"])
    ]
    text = "\n".join(host_lines_section(Execution(tuple(steps), {}, (), 1)))
    assert [told.split()[0] for told in text.splitlines()[1:]] == ["/x/model.py:3", "/y/model.py:3", "main.py:4"]


def test_the_page_has_the_lines_of_steps_programs_compute_sets_and_variables(either):
    from pypoplar.report.compute_set_costs import compute_sets
    from pypoplar.report.page.blocks import Blocks, TileRows
    from pypoplar.report.page.operation_data import compute_set_rows
    from pypoplar.report.page.program_data import tree_data
    from pypoplar.report.page.step_data import steps_table

    execution = either.execution
    table = steps_table(execution.steps, TileRows(Blocks(), 16))
    assert dict(zip(table["name"], table["made_at"], strict=True))["square"] == short("execute")
    assert dict(zip(table["name"], table["set_made_at"], strict=True))["square"] == short("set")
    assert short("loop") in tree_data(either.compilation.programs, execution)["made_at"]
    assert {row["name"]: row["made_at"] for row in compute_set_rows(execution)}["square"] == short("set")
    assert {cost.name: cost.made_at for cost in compute_sets(execution)}["square"] == line("set")


def test_out_of_memory_names_the_line_of_each_variable_that_it_names():
    graph = Graph(IPUModel("tiny").createDevice().getTarget())
    big = graph.addVariable(FLOAT, [1 << 20], "big")  # big
    graph.setTileMapping(big, 2)
    with pytest.raises(GraphMemoryAllocationError) as raised:
        Engine(graph, Copy(big, graph.clone(big)))
    assert f"  variable 'big' was made at {line('big')}\n" in str(raised.value)
    variables = raised.value.report.compilation.loweredVariables
    assert [variable.made_at for variable in variables if variable.name == "big"] == [line("big")]


@pytest.mark.parametrize("races", ["regions", "elements"])
def test_a_race_names_the_lines_of_its_compute_set_and_variable(races):
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x = graph.addVariable(FLOAT, [2], "x")  # raced
    graph.setTileMapping(x, 0)
    square = graph.addComputeSet("square")  # race
    for _ in range(2):
        graph.setTileMapping(graph.addVertex(square, Square, {"x": x[0]}), 0)
    with pytest.raises(GraphCycleError) as raised:
        Engine(graph, Execute(square), {"pypoplar.races": races}).loadAndRun(device)
    assert f"the compute set was made at {line('race')}, variable 'x' " in str(raised.value)
    assert f"at {line('raced')}" in str(raised.value)


def test_a_line_that_made_many_things_is_looked_up_once():
    table = LocationTable()
    numbers = [table.note(1) for _ in range(1000)]
    locations = table.all_of(numbers)
    assert len(table) == 1
    assert {id(location) for location in locations} == {id(locations[0])}
