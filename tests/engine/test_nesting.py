"""Programs nest 5,000 deep: they run in both engines and are reported. Deeper ones are refused with the user's line."""

import inspect
import io
import sys

import numpy as np
import pytest
from engine_builder import Add, Bench

from pypoplar import BOOL, ControlProgramError, Engine, Executable, SyncType, compileGraph, cycleCount, pva
from pypoplar.compiler.control import program_walk, usage
from pypoplar.compiler.control.program_walk import DEEPEST
from pypoplar.program import (
    Call,
    If,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    Sync,
)
from pypoplar.report.page.program_data import tree_data
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.text.summary import summary


class Nests:
    """Programs of which each runs the one within it once; the innermost adds 1 to x."""

    def __init__(self):
        self.bench = Bench()
        x = self.bench.variable("x", 0)
        self.add = self.bench.execute(Add, value=x, amount=1)
        self.yes, self.no = (self.bench.variable(name, value, type=BOOL) for name, value in (("yes", True), ("no", False)))
        self.seven = self.bench.variable("seven", 7)

    def around(self, kind, program):
        match kind:
            case "Repeat":
                return Repeat(1, Sequence([program]))
            case "then":
                return If(self.yes, program)
            case "else":
                return If(self.no, Sequence(), program)
            case "Switch":
                return Switch(self.seven, [(3, Sequence()), (7, program)])
            case "default":
                return Switch(self.seven, [(3, Sequence())], program)
            case "RepeatWhileTrue":
                return RepeatWhileTrue(program, self.no, Sequence())
            case "RepeatWhileFalse":
                return RepeatWhileFalse(Sequence([program]), self.yes, Sequence())
            case "Call":
                return Call(self.bench.graph.addFunction(program))
            case "cycleCount":
                sequence = Sequence([program])
                cycleCount(self.bench.graph, sequence, 3)
                return sequence
        raise AssertionError(kind)

    def nest(self, kinds, depth, inside=None):
        program = self.add if inside is None else inside
        for level in range(depth):
            program = self.around(kinds[level % len(kinds)], program)
        return program


DEEP = sys.getrecursionlimit() + 500  # what goes down by calls does not come so far
KINDS = ("Repeat", "then", "else", "Switch", "default", "RepeatWhileTrue", "RepeatWhileFalse", "Call", "cycleCount")


@pytest.fixture
def nests():
    return Nests()


def runs(executable, device, mode):
    """What x is after a run."""
    engine = Engine(executable, mode=mode)
    engine.load(device)
    engine.run()
    return int(engine.readTensor("x"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_nest_of_one_kind_runs_in_both_engines(nests, kind):
    executable = compileGraph(nests.bench.graph, nests.nest([kind], DEEP))
    assert [runs(executable, nests.bench.device, mode) for mode in ("native", "interpret")] == [1, 1]


def test_a_nest_of_all_kinds_is_run_saved_and_reported(nests, tmp_path):
    program = nests.nest(KINDS, DEEPEST)
    graph, device = nests.bench.graph, nests.bench.device
    executable, content = compileGraph(graph, program), io.BytesIO()
    assert runs(executable, device, "interpret") == 1
    executable.save(content)
    content.seek(0)
    engine = Engine(Executable.load(content))
    engine.load(device)
    engine.run()
    assert engine.readTensor("x") == 1
    report = engine.getReport()
    assert "Add" in summary(report, {"showExecutionSteps": "true"})
    pva.save_report(report, tmp_path / "profile.pop")
    again = pva.openReport(tmp_path / "profile.pop")
    (root,), (other,) = report.compilation.programs, again.compilation.programs
    assert max(depth for depth, _ in root.walk()) > DEEPEST
    assert root == other
    assert hash(root) == hash(other)
    assert repr(root) == repr(other)
    tree = tree_data(again.compilation.programs, again.execution)
    assert tree["cycles"][0] == sum(step.cycles for step in again.execution.steps)
    pva.write_page(again, tmp_path / "page.html")
    write_trace(again, tmp_path / "trace")
    for shown in (again, root, program):
        assert "<" in shown._repr_html_()
    drawing = io.StringIO()
    graph.outputComputationGraph(drawing, program)
    assert "Add" in drawing.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_a_nest_of_any_kind_that_is_deeper_is_refused_with_the_users_line(nests, kind, monkeypatch):
    for module in (program_walk, usage):
        monkeypatch.setattr(module, "DEEPEST", 50)
    compileGraph(nests.bench.graph, nests.nest([kind], 50))
    with pytest.raises(ControlProgramError, match=rf"programs nest 51 deep at <.*{__file__}:\d+>: at most 50 "):
        compileGraph(nests.bench.graph, nests.nest([kind], 51))


@pytest.mark.parametrize("kinds", [("then",), KINDS], ids=["within a program", "through functions"])
def test_a_nest_is_refused_beyond_5000(nests, kinds):
    with pytest.raises(ControlProgramError, match=rf"programs nest 5,001 deep at <.*{__file__}:\d+>: at most 5,000 "):
        compileGraph(nests.bench.graph, nests.nest(kinds, DEEPEST + 1))


def test_a_function_counts_where_it_is_called(nests):
    function = nests.bench.graph.addFunction(nests.nest(["Repeat"], 3_000))
    call = Call(function)
    line = inspect.currentframe().f_lineno - 1
    compileGraph(nests.bench.graph, nests.nest(["then"], 1_999, call))
    with pytest.raises(ControlProgramError, match=rf"nest 5,001 deep at <Call made at {__file__}:{line}>"):
        compileGraph(nests.bench.graph, nests.nest(["then"], 2_000, call))


def test_sequences_nest_without_end(nests):
    program = nests.add
    for level in range(3 * DEEPEST):
        program = Sequence([program], name="named" if level % 2 else "")
    executable = compileGraph(nests.bench.graph, program)
    assert runs(executable, nests.bench.device, "native") == 1


def test_a_program_that_holds_itself_is_refused(nests):
    sequence = Sequence([Sync(SyncType.INTERNAL)])
    sequence.programs.append(sequence)
    with pytest.raises(ControlProgramError, match=rf"<Sequence made at {__file__}:\d+> holds itself"):
        compileGraph(nests.bench.graph, sequence)
    loop = Repeat(2, nests.add)
    loop.body = Sequence([loop])
    with pytest.raises(ControlProgramError, match="holds itself"):
        compileGraph(nests.bench.graph, loop)


def test_a_program_may_stand_in_several_places(nests):
    twice = Sequence([nests.add, nests.add])
    executable = compileGraph(nests.bench.graph, Sequence([twice, Repeat(3, twice), twice]))
    assert [runs(executable, nests.bench.device, mode) for mode in ("native", "interpret")] == [10, 10]


def test_functions_that_call_the_next_one_twice_are_compiled_once_each(nests):
    program = nests.add
    for _ in range(40):
        call = Call(nests.bench.graph.addFunction(program))
        program = Sequence([call, call])
    assert compileGraph(nests.bench.graph, Sequence([program])).call_depth == 40


def test_a_nest_needs_no_more_of_pythons_stack_than_a_flat_program(nests):
    program = nests.nest(KINDS, 500)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        executable = compileGraph(nests.bench.graph, program)
    finally:
        sys.setrecursionlimit(before)
    assert isinstance(executable.program, np.ndarray)
