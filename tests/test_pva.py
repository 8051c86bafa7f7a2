"""Profiles read as Graphcore's analysis library reads them, with the lines of its tutorial."""

import importlib
import subprocess
import sys

import pytest
from attrs import evolve
from profile_reports import differences

from pypoplar import FLOAT, Engine, FileLoadError, Graph, InOut, IPUModel, Vector, Vertex, pva
from pypoplar.program import Copy, Execute, Repeat, Sequence
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import PROFILE_VERSION


class Double(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] + self.x[i]


@pytest.fixture(scope="module")
def made():
    """The report of a program that ran twice."""
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x, y = graph.addVariable(FLOAT, [64], "x"), graph.addVariable(FLOAT, [64], "y")
    graph.setInitialValue(x, [1.0] * 64)
    double = graph.addComputeSet("double")
    for tile in range(4):
        part = slice(16 * tile, 16 * tile + 16)
        graph.setTileMapping(x[part], tile)
        graph.setTileMapping(y[part], (tile + 1) % 4)
        graph.setTileMapping(graph.addVertex(double, Double, {"x": x[part]}), tile)
    engine = Engine(graph, Sequence([Repeat(3, Execute(double)), Copy(x, y)]))
    engine.load(device)
    engine.run(0)
    engine.run(0)
    return engine.getReport()


@pytest.fixture(scope="module")
def report(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "profile.pop"
    pva.save_report(made, path)
    return pva.openReport(path)


def test_the_report_of_an_engine_comes_back_whole(report, made):
    assert len(made.execution.runs) == 2
    assert len(made.execution.trace) > 0
    assert differences(made, report) == []


def test_another_process_reads_the_same(made, tmp_path):
    pva.save_report(made, tmp_path / "profile.pop")
    program = "from pypoplar import pva; print(pva.openReport('profile.pop').execution.totalCycles.total)"
    process = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(process.stdout) == made.execution.totalCycles.total


def test_the_lines_of_the_tutorial_work(report, made):
    assert report.compilation.graph.numComputeSets == 1
    assert report.compilation.target.numTiles == 16
    assert report.poplarVersion.string == made.poplarVersion.string
    cycles = sum(step.ipus[0].cycles for step in report.execution.steps)
    assert cycles == made.execution.totalCycles.total > 0
    sizes = [tile.memory.total.includingGaps for tile in report.compilation.tiles]
    assert sizes == made.compilation.memory.including_gaps().tolist()
    assert sum(tile.memory.total.excludingGaps for tile in report.compilation.tiles) > 0
    assert report.compilation.tiles[0].memory.category.vertexCode.total > 0
    assert [run.cycles for run in report.execution.runs] == [run.cycles for run in made.execution.runs]


def test_a_visitor_meets_the_program_of_each_step(report):
    class Names(pva.ProgramVisitor):
        def __init__(self):
            self.met = []

        def visitOnTileExecute(self, program):
            self.met.append((program.name, [(vertices.type.name, vertices.count) for vertices in program.computeset.vertices]))

        def visitDoExchange(self, program):
            self.met.append(program.name)

    names = Names()
    for step in report.execution.steps:
        step.program.accept(names)
    executed = [meeting for meeting in names.met if isinstance(meeting, tuple)]
    assert executed == [("double", [("Double", 4)])]
    assert len(names.met) == sum(step.type in ("OnTileExecute", "DoExchange") for step in report.execution.steps)


def test_liveness_is_by_step(report, made):
    steps = report.compilation.livenessProgramSteps
    assert len(steps) == len(made.compilation.program_steps) == len(made.compilation.step_programs) - 1 > 0
    assert [step.notAlwaysLiveMemory.bytes for step in steps] == [
        step.notAlwaysLiveMemory.bytes for step in made.compilation.livenessProgramSteps
    ]
    assert [tile.memory.alwaysLiveBytes for tile in report.compilation.tiles] == [
        tile.memory.alwaysLiveBytes for tile in made.compilation.tiles
    ]
    always = report.compilation.alwaysLiveVariables
    assert sum(variable.size for variable in always) == sum(
        variable.size for tile in range(16) for variable in report.compilation.alwaysLiveVariablesForTile(tile)
    )


def test_ipus_have_their_tiles(report):
    (ipu,) = report.compilation.ipus
    assert [tile.number for tile in ipu.tiles] == list(range(16))


def test_the_directory_of_a_profile_and_a_second_path_are_accepted(made, tmp_path):
    pva.save_report(made, tmp_path / "profile.pop")
    assert pva.openReport(tmp_path, tmp_path / "debug.cbor").compilation.target.numTiles == 16
    with pytest.raises(FileLoadError, match=r"profile\.pop: cannot be read: No such file"):
        pva.openReport((tmp_path / "empty").mkdir() or tmp_path / "empty")


def test_versions_and_settings_say_what_is_so(report, made):
    assert report.version.major == PROFILE_VERSION
    assert report.instrumentationSettings.computeInstrumentationLevel == "Tile"
    options = {"debug.computeInstrumentationLevel": "vertex"}
    other = evolve(made, compilation=evolve(made.compilation, options=options))
    assert other.instrumentationSettings.computeInstrumentationLevel == "Vertex"


@pytest.mark.parametrize(
    ("find", "message"),
    [
        (lambda report: report.execution.steps[0].cyclesFrom, "libpva has it, here execution.trace"),
        (lambda report: report.compilation.target.numTile, "'ReportTarget' object has no attribute 'numTile'"),
        (lambda report: report.compiled, "'Report' object has no attribute 'compiled'$"),
    ],
)
def test_an_attribute_that_is_not_there_is_an_attribute_error_with_a_hint(report, find, message):
    with pytest.raises(AttributeError, match=message):
        find(report)


def test_vertices_and_cycles_by_tile_are_there_under_libpvas_names(report):
    types = {vertices.type.name for tile in report.compilation.tiles for vertices in tile.memory.vertices}
    assert types == {vertices.name for program in report.compilation.computeSets for vertices in program.vertices}
    assert all(len(compute_set.cyclesByTile()) == 16 for compute_set in report.compilation.computeSets)


def test_a_visitor_without_a_method_for_a_type_goes_on():
    program = Program("x", "Sync", computeset=ComputeSet("a", (VertexInstances("V", 2),)))
    assert program.accept(pva.ProgramVisitor()) is None


def test_everything_that_is_documented_is_public():
    assert len(set(pva.__all__)) == len(pva.__all__)
    for name in pva.__all__:
        assert getattr(pva, name).__doc__, name


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("pypoplar.profile.profile_file", {"save_report": "save_report"}),
        ("pypoplar.profile.page", {"write_page": "write_page", "write_comparison": "write_comparison"}),
    ],
)
def test_the_old_paths_are_the_same_functions(module, names):
    for old, new in names.items():
        assert getattr(importlib.import_module(module), old) is getattr(pva, new)


def test_a_report_goes_through_the_old_paths_as_through_the_new_ones(made, tmp_path):
    from pypoplar.profile.page import write_comparison, write_page
    from pypoplar.profile.profile_file import load_report, save_report

    save_report(made, tmp_path / "old.pop")
    pva.save_report(made, tmp_path / "new.pop")
    assert (tmp_path / "old.pop").read_bytes() == (tmp_path / "new.pop").read_bytes()
    assert differences(load_report(tmp_path / "old.pop"), pva.openReport(tmp_path / "new.pop")) == []
    write_page(made, tmp_path / "old.html")
    pva.write_page(made, tmp_path / "new.html")
    assert (tmp_path / "old.html").read_bytes() == (tmp_path / "new.html").read_bytes()
    write_comparison(made, made, tmp_path / "old.html")
    pva.write_comparison(made, made, tmp_path / "new.html")
    assert (tmp_path / "old.html").read_bytes() == (tmp_path / "new.html").read_bytes()
