"""Functions that call the next one twice, forty times over: what would be endless if every call were written out."""

import pytest
from attrs import evolve
from profile_reports import differences, full_report

from pypoplar.report.file.sqlite_file import load_report, save_report
from pypoplar.report.nesting import Nesting
from pypoplar.report.notebook_tables import report_html, report_program_html
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.program_nodes import Program
from pypoplar.report.text.summary import summary

DEPTH = 40


@pytest.fixture
def nested():
    """The full report with its steps at the bottom of these functions."""
    report = full_report()
    leaves = report.compilation.step_programs
    function = Program("function 40", "Sequence", leaves)
    for number in reversed(range(DEPTH)):
        calls = tuple(Program("", "Call", (function,)) for _ in range(2))
        function = Program(f"function {number}", "Sequence", calls)
    return evolve(report, compilation=evolve(report.compilation, programs=(function,)))


def test_nodes_are_there_once_and_before_their_parents(nested):
    (root,) = nested.compilation.programs
    nodes = root.nodes()
    place = {id(one): number for number, one in enumerate(nodes)}
    assert len(place) == len(nodes) == 3 + 1 + 3 * DEPTH
    assert all(place[id(child)] < place[id(one)] for one in nodes for child in one.children)
    assert nodes[:3] == list(nested.compilation.step_programs)
    assert nodes[-1] is root


def test_the_summary_writes_a_function_out_at_its_first_call(nested):
    text = summary(nested, {"showExecutionSteps": "true"})
    tree = text[text.index("Execution steps:") :].splitlines()
    assert sum(one.strip() == "Call (its steps are above)" for one in tree) == DEPTH
    assert sum(one.strip() == "Call:" for one in tree) == DEPTH
    assert sum("gather" in one for one in tree) == 1


def test_it_is_saved_and_loaded(nested, tmp_path):
    save_report(nested, tmp_path / "profile.pop")
    assert differences(nested, load_report(tmp_path / "profile.pop")) == []


def test_it_is_traced_and_shown(nested, tmp_path):
    write_trace(nested, tmp_path / "trace", tiles=2)
    assert Nesting(nested.compilation.programs, nested.compilation.step_programs).levels([0], [0])
    for text in (report_html(nested), report_program_html(nested.compilation.programs[0])):
        assert 0 < len(text) < 1_000_000
