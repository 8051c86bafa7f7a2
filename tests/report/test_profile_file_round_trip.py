"""A report that is saved and loaded is the same report."""

import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from profile_reports import differences, full_report, reports

from pypoplar import FLOAT, Engine, FileLoadError, Graph, InOut, IPUModel, Vertex
from pypoplar.program import Execute, Sequence
from pypoplar.report.failed_runs import FailedRun, FailedStep, failed_text, read_failed
from pypoplar.report.file.sqlite_file import load_report, save_report


@given(reports())
def test_every_attribute_of_a_report_comes_back(report):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.pop"
        save_report(report, path)
        assert differences(report, load_report(path)) == []


class Nothing(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x


def test_a_compute_set_that_several_steps_execute_is_one_in_a_report_and_in_its_file(tmp_path):
    """No two of a graph have one name; each has the cycles of all its steps."""
    device = IPUModel().createDevice()
    graph = Graph(device)
    x = graph.addVariable(FLOAT, [3], "x")
    graph.setTileMapping(x, 0)
    sets = [graph.addComputeSet("work") for _ in range(2)]
    for compute_set, element in zip(sets, (x[0], x[1]), strict=True):
        graph.setTileMapping(graph.addVertex(compute_set, Nothing, {"x": element}), 0)
    engine = Engine(graph, Sequence(Execute(sets[0]), Execute(sets[1]), Execute(sets[0])))
    engine.load(device)
    engine.run()
    report = engine.getReport()
    save_report(report, tmp_path / "profile.pop")
    loaded = load_report(tmp_path / "profile.pop")
    assert differences(report, loaded) == []
    for known in (report, loaded):
        programs = known.compilation.step_programs
        first, second, third = (program.computeset for program in programs if program.computeset is not None)
        assert first is third
        assert first != second
        assert known.compilation.computeSets == (first, second)
        assert [len(first.ran), len(second.ran)] == [2, 1]


numbers = st.integers(0, 1 << 60)
failed_runs = st.builds(
    FailedRun, st.text(), st.text(), st.lists(st.builds(FailedStep, numbers, st.text(), st.text(), numbers, numbers)).map(tuple)
)


@given(st.lists(failed_runs))
def test_runs_that_failed_come_back(runs):
    assert read_failed(failed_text(runs)) == tuple(runs)


def test_a_report_keeps_its_failed_runs_with_and_without_others(tmp_path):
    failed = (FailedRun("epoch", "RuntimeError: no", (FailedStep(1, "work", "OnTileExecute", 2, 30),)),)
    for number, execution in enumerate((None, full_report().execution)):
        report = evolve(full_report(), execution=execution, failed_runs=failed)
        save_report(report, tmp_path / f"{number}.pop")
        assert load_report(tmp_path / f"{number}.pop").failed_runs == failed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "7",
        "[7]",
        "[[]]",
        "null",
        '[{"name": "a"}]',
        '[{"name": 1, "error": "", "steps": []}]',
        '[{"name": "", "error": "", "steps": 3}]',
    ]
    + [
        json.dumps([{"name": "", "error": "", "steps": [{"number": 0, "name": "", "type": "", "executions": value, "cycles": 0}]}])
        for value in (-1, "1", 1.5, None, True, [])
    ],
)
def test_what_is_no_list_of_failed_runs_is_refused(tmp_path, text):
    path = tmp_path / "profile.pop"
    save_report(full_report(), path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO meta VALUES ('failed_runs', ?)", (text,))
    with pytest.raises(FileLoadError, match=r"meta\.failed_runs"):
        load_report(path)
