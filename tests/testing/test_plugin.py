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
