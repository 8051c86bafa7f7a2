"""The pytest plugin: its fixtures and its option."""

import pytest

TEST = """
    seen = []

    def test_mode(mode):
        seen.append(mode)
        assert type(mode) is str
        assert mode in ("interpret", "native")

    def test_ipu(ipu):
        assert ipu.getTarget().getNumTiles() == 16
"""


@pytest.fixture
def run(pytester):
    def call(*arguments):
        loaded = pytester.plugins = ["pypoplar.testing.plugin"]
        assert loaded
        return pytester.runpytest(*arguments)

    return call


def test_a_test_runs_in_both_modes_unless_told(pytester, run):
    pytester.makepyfile(TEST)
    run().assert_outcomes(passed=3)


@pytest.mark.parametrize("mode", ["interpret", "native"])
def test_the_option_chooses_a_mode(pytester, run, mode):
    pytester.makepyfile(TEST)
    result = run("-v", "--pypoplar-mode", mode)
    result.assert_outcomes(passed=2, deselected=1)
    result.stdout.fnmatch_lines([f"*test_mode?{mode}? PASSED*"])


def test_an_unknown_mode_is_refused(pytester, run):
    pytester.makepyfile(TEST)
    result = run("--pypoplar-mode", "fast")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*invalid choice: 'fast'*"])


def test_parameters_of_the_users_own_are_left_alone(pytester, run):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("mode", ["interpret", "native", "other"])
        def test_own(mode):
            assert mode
        """
    )
    run("--pypoplar-mode", "native").assert_outcomes(passed=3)


FAILING = """
    import pytest
    from pypoplar import FLOAT, Graph, Input, IPUModel, Output, Vector, Vertex, testing

    class Shift(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(len(self.x)):
                self.y[i] = self.x[i + 1]

    def test_index():
        testing.run_vertex(Shift, {"x": [1.0, 2.0], "y": [0.0, 0.0]})

    def test_field():
        testing.run_vertex(Shift, {"x": [1.0, 2.0], "z": [0.0]})

    def test_graph():
        graph = Graph(IPUModel("tiny").createDevice().getTarget())
        graph.setTileMapping(graph.addVariable(FLOAT, [4], "x"), 99)
"""


def test_errors_are_shown_at_the_line_of_the_test_and_not_in_ours(pytester, run, monkeypatch):
    monkeypatch.delenv("PYPOPLAR_FULL_TRACEBACK", raising=False)
    pytester.makepyfile(FAILING)
    result = run()
    result.assert_outcomes(failed=3)
    lines = result.stdout.lines
    assert not [line for line in lines if "pypoplar/" in line.replace("\\", "/") or "def run_vertex" in line]
    assert [line for line in lines if line.startswith(">")] == [
        '>       testing.run_vertex(Shift, {"x": [1.0, 2.0], "y": [0.0, 0.0]})',
        '>       testing.run_vertex(Shift, {"x": [1.0, 2.0], "z": [0.0]})',
        '>       graph.setTileMapping(graph.addVariable(FLOAT, [4], "x"), 99)',
    ]
    result.stdout.fnmatch_lines(["E *self.x[[]i + 1[]]*", "E *codelet 'Shift' has no field 'z'*", "E *tile 99*"])


def test_whole_tracebacks_are_there_when_asked_for(pytester, run, monkeypatch):
    monkeypatch.setenv("PYPOPLAR_FULL_TRACEBACK", "1")
    pytester.makepyfile(FAILING)
    assert any("single_vertex.py:" in line for line in run().stdout.lines)
