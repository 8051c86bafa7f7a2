"""Programs nested as deep as they go, and functions that call the next one twice: what would be endless if written out."""

import json
import zlib
from base64 import b64decode

import pytest
from attrs import evolve
from profile_reports import DEEPEST, KINDS, deepest_report, differences, full_report

from pypoplar import pva
from pypoplar.report.file.sqlite_file import load_report, save_report
from pypoplar.report.nesting import Nesting
from pypoplar.report.notebook_tables import report_html, report_program_html
from pypoplar.report.page import write_comparison, write_page
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.page_views import REPORT
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.program_nodes import Program
from pypoplar.report.text.summary import summary

DEPTH = 40  # of functions, each of which calls the next one twice


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
    place = {id(program): number for number, program in enumerate(nodes)}
    assert len(place) == len(nodes) == 3 + 1 + 3 * DEPTH
    assert all(place[id(child)] < place[id(program)] for program in nodes for child in program.children)
    assert nodes[:3] == list(nested.compilation.step_programs)
    assert nodes[-1] is root


def test_the_summary_writes_a_function_out_at_its_first_call(nested):
    text = summary(nested, {"showExecutionSteps": "true"})
    tree = text[text.index("Execution steps:") :].splitlines()
    assert sum(line.strip() == "Call (its steps are above)" for line in tree) == DEPTH
    assert sum(line.strip() == "Call:" for line in tree) == DEPTH
    assert sum("gather" in line for line in tree) == 1


def test_it_is_saved_and_loaded(nested, tmp_path):
    save_report(nested, tmp_path / "profile.pop")
    assert differences(nested, load_report(tmp_path / "profile.pop")) == []


def test_it_is_traced_and_shown(nested, tmp_path):
    write_trace(nested, tmp_path / "trace", tiles=2)
    assert Nesting(nested.compilation.programs, nested.compilation.step_programs).levels([0], [0])
    for text in (report_html(nested), report_program_html(nested.compilation.programs[0])):
        assert 0 < len(text) < 1_000_000


@pytest.fixture(scope="module")
def deepest():
    return deepest_report()


def test_the_summary_shows_the_steps_of_the_deepest_nest(deepest):
    text = summary(deepest, {"showExecutionSteps": "true"})
    (line,) = (line for line in text.splitlines() if line.endswith("DoExchange: gather (14 executions)"))
    shown = sum(KINDS[number % len(KINDS)] != "Sequence" for number in range(DEEPEST)) + 1  # "body" too; nameless sequences are not
    assert len(line) - len(line.lstrip()) == 4 + 2 * shown


def test_the_deepest_nest_is_saved_and_loaded(deepest, tmp_path):
    save_report(deepest, tmp_path / "profile.pop")
    report = load_report(tmp_path / "profile.pop")
    assert differences(deepest, report) == []
    (root,) = report.compilation.programs
    assert max(depth for depth, _ in root.walk()) == DEEPEST + 2
    assert len(root.nodes()) == DEEPEST + 5


def test_a_visitor_meets_every_program_of_the_deepest_nest(deepest):
    class Counting(pva.ProgramVisitor):
        repeats = 0

        def visitRepeat(self, program):
            self.repeats += 1

    visitor = Counting()
    for _, program in deepest.compilation.programs[0].walk():
        program.accept(visitor)
    assert visitor.repeats == DEEPEST / len(KINDS)


def test_the_deepest_nest_is_on_the_page(deepest, tmp_path):
    tree = REPORT.parts["tree"](deepest, blocks := Blocks())
    data = json.loads(zlib.decompress(b64decode(blocks.texts[tree["block"]])))
    assert len(data["parent"]) == DEEPEST + 5
    assert set(data["cycles"][: DEEPEST + 2]) == {deepest.execution.totalCycles.total}
    write_page(deepest, tmp_path / "page.html")
    write_comparison(deepest, deepest, tmp_path / "comparison.html")


def test_the_deepest_nest_is_traced_level_by_level(deepest, tmp_path):
    levels = Nesting(deepest.compilation.programs, deepest.compilation.step_programs).levels([0, 0, 0], [0, 1, 2])
    assert len(levels) == DEEPEST + 2 + 3
    write_trace(deepest, tmp_path / "trace")


def test_notebooks_show_the_top_of_the_deepest_nest(deepest):
    for text in (report_html(deepest), report_program_html(deepest.compilation.programs[0])):
        assert 0 < len(text) < 10_000


@pytest.mark.parametrize("form", [deepest_report, lambda: deepest_report("other")])
def test_trees_of_programs_are_equal_if_all_their_nodes_are(deepest, form):
    (root,), (other,) = deepest.compilation.programs, form().compilation.programs
    assert (root == other) == (root.name == other.name)
    assert root != other or hash(root) == hash(other)
    assert root != "main"


def test_functions_that_call_each_other_twice_are_compared_once(nested):
    (root,) = nested.compilation.programs
    leaf = nested.compilation.step_programs[0]
    copies = {}
    for program in root.nodes():
        children = tuple(copies[id(child)] for child in program.children)
        copies[id(program)] = evolve(program, children=children, detail="other" if program is leaf else program.detail)
    changed = copies[id(root)]
    assert root == evolve(root, children=tuple(root.children))
    assert root != changed
    assert hash(root) == hash(changed)


def test_the_repr_of_a_program_is_short_whatever_it_consists_of(deepest, nested):
    small = Program("main", "Sequence", (Program("work", "OnTileExecute", step=0),))
    assert repr(small) == (
        "Program(name='main', type='Sequence', children=(Program(name='work', type='OnTileExecute', children=(), step=0,"
        " detail='', computeset=None, made_at=''),), step=-1, detail='', computeset=None, made_at='')"
    )
    assert "children=<1 programs>" in repr(deepest.compilation.programs[0])
    assert len(repr(nested.compilation.programs[0])) < 1000
