"""Names and paths with lone surrogates: no encoding holds them, so files and streams have them spelled out."""

import gzip
import io
import json
import os

import pytest
from attrs import evolve
from click.testing import CliRunner
from profile_reports import differences, full_report

from pypoplar import FLOAT, Engine, FileLoadError, Graph, InvalidOption, IPUModel, pva
from pypoplar.cli import main
from pypoplar.program import Copy, Sequence
from pypoplar.report.escaping import escaped
from pypoplar.report.notebook_tables import report_html, report_program_html
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.program_nodes import Program
from pypoplar.report.text.summary import summary

NAME = "\udc80x \ud800 é"
SPELLED = "\\udc80x \\ud800 é"


@pytest.fixture
def hostile():
    """The full report with the name wherever a report has one."""
    report = full_report(NAME)
    renamed = {program: evolve(program, name=NAME) for program in report.compilation.step_programs}
    leaves = tuple(renamed.values())
    root = Program(NAME, "Sequence", (Program(NAME, "Repeat", leaves, detail=NAME),))
    variables = evolve(report.compilation.loweredVariables, names=(NAME, "y"))
    compilation = evolve(
        report.compilation, programs=(root,), step_programs=leaves, loweredVariables=variables, options={NAME: NAME}
    )
    runs = tuple(
        evolve(run, name=NAME, steps=tuple(evolve(step, name=NAME, program=renamed[step.program]) for step in run.steps))
        for run in report.execution.runs
    )
    steps = tuple(evolve(step, name=NAME, program=renamed[step.program]) for step in report.execution.steps)
    return evolve(report, compilation=compilation, execution=evolve(report.execution, steps=steps, runs=runs, programs=(NAME,)))


def test_a_text_without_them_is_the_same():
    assert escaped("é 漢字 \U0001f600 \\udc80") == "é 漢字 \U0001f600 \\udc80"
    assert escaped(NAME) == SPELLED


def test_the_profile_has_them_spelled_out(hostile, tmp_path):
    pva.save_report(hostile, tmp_path / "profile.pop")
    report = pva.openReport(tmp_path / "profile.pop")
    assert (report.name, report.compilation.programs[0].name) == (SPELLED, SPELLED)
    assert report.compilation.loweredVariables[0].name == report.execution.steps[0].name == SPELLED
    assert report.compilation.options == {SPELLED: SPELLED}
    pva.save_report(report, tmp_path / "again.pop")
    assert differences(report, pva.openReport(tmp_path / "again.pop")) == []


def test_the_summary_goes_into_a_strict_stream(hostile):
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict")
    stream.write(summary(hostile, {"showExecutionSteps": "true", "showVarStorage": "true"}))
    stream.flush()
    assert f"DoExchange: {SPELLED}" in stream.buffer.getvalue().decode()


def test_the_summary_for_programs_has_them_spelled_out(hostile, tmp_path):
    pva.save_report(hostile, tmp_path / "profile.pop")
    result = CliRunner().invoke(main, ["summary", "--json", str(tmp_path)], catch_exceptions=False)
    assert SPELLED in [step["name"] for step in json.loads(result.stdout)["execution"]["steps"]]


@pytest.mark.parametrize("ending", ["pftrace", "pftrace.gz"])
def test_the_trace_has_them_spelled_out(hostile, tmp_path, ending):
    path = tmp_path / f"trace.{ending}"
    write_trace(hostile, path)
    content = gzip.decompress(path.read_bytes()) if ending.endswith("gz") else path.read_bytes()
    assert content.count(SPELLED.encode()) > 2


def test_the_pages_are_written(hostile, tmp_path):
    pva.write_page(hostile, tmp_path / "page.html")
    pva.write_comparison(hostile, full_report(), tmp_path / "comparison.html")
    assert f"<title>{SPELLED}</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<h1>A: {SPELLED}" in (tmp_path / "comparison.html").read_text(encoding="utf-8")


def test_notebooks_can_send_what_they_show(hostile):
    for text in (report_html(hostile), report_program_html(hostile.compilation.programs[0])):
        assert SPELLED in text
        text.encode()


@pytest.mark.parametrize("name", [b"\x80x", "é".encode("latin-1")])
def test_files_are_found_by_names_that_are_no_text(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    path.mkdir()
    pva.save_report(full_report(), path / "profile.pop")
    assert differences(full_report(), pva.openReport(path)) == []
    for command, ending in (("summary", None), ("report", "html"), ("trace", "pftrace.gz")):
        result = CliRunner().invoke(main, [command, str(path)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        if ending:
            assert (path / f"profile.{ending}").exists()
            assert escaped(str(path)) in result.output


@pytest.fixture
def hostile_engine():
    """An engine of a graph whose names no encoding holds."""
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x, y = (graph.addVariable(FLOAT, [4], name) for name in (NAME, "y"))
    for tile, variable in enumerate((x, y)):
        graph.setTileMapping(variable, tile)
    engine = Engine(graph, Sequence([Copy(x, y, name=NAME)]))
    engine.load(device)
    engine.run(0)
    return graph, engine


def test_an_engine_reports_names_of_the_user(hostile_engine, tmp_path):
    graph, engine = hostile_engine
    pva.save_report(engine.getReport(), tmp_path / "profile.pop")
    assert SPELLED in {variable.name for variable in pva.openReport(tmp_path / "profile.pop").compilation.loweredVariables}
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict")
    engine.printProfileSummary(stream, {"showVarStorage": "true", "showExecutionSteps": "true"})
    graph.outputComputationGraph(stream)
    graph.outputVertexGraph(stream)
    stream.flush()
    assert SPELLED in stream.buffer.getvalue().decode()


def test_an_engine_whose_name_cannot_be_a_directory_is_refused():
    device = IPUModel("tiny").createDevice()
    with pytest.raises(InvalidOption, match=r"'\\ud800' cannot be one"):
        Engine(Graph(device.getTarget()), Sequence(), {"autoReport.all": "true"}, name="\ud800")


def test_a_path_that_no_file_can_have_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileLoadError, match="cannot be read: No file has such a name"):
        pva.openReport(tmp_path / "\ud800")
    with pytest.raises(OSError, match="No file has such a name"):
        pva.save_report(full_report(), tmp_path / "\ud800")
    with pytest.raises(OSError, match="No file has such a name"):
        pva.write_page(full_report(), tmp_path / "\ud800")
