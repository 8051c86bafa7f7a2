"""`pypoplar compare`: what it prints, when it fails, and what it refuses to judge."""

import pytest
from attrs import evolve
from click.testing import CliRunner
from page_reports import compute, report

from pypoplar.cli import main
from pypoplar.report.file.sqlite_file import save_report


@pytest.fixture
def profile(tmp_path):
    """Saves a report of a compute step of so many cycles."""

    def call(name, cycles, **more):
        path = tmp_path / f"{name}.pop"
        save_report(report(*([compute("layer/work", 0, [cycles] * 4)] if cycles else []), **more), path)
        return path

    return call


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def test_differences_are_printed_and_are_no_failure(profile):
    result = compare(profile("a", 200), profile("b", 250))
    assert result.stdout.splitlines() == [
        "all cycles rose from 200 to 250 cycles (+25.0 %)",
        "compute of 'layer/work' rose from 200 to 250 cycles (+25.0 %)",
    ]
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_rise_above_the_limit_is_exit_code_1_with_the_words(profile):
    result = compare(profile("a", 200), profile("b", 250), "--fail-above", "5%")
    assert result.exit_code == 1
    assert "compute of 'layer/work' rose" in result.stdout
    assert result.stderr == "more than 5 %: all cycles rose from 200 to 250 cycles (+25.0 %)\n"


@pytest.mark.parametrize("limit", ["25%", "25.0 %", "100%"])
def test_a_rise_up_to_the_limit_and_a_fall_are_fine(profile, limit):
    assert compare(profile("a", 200), profile("b", 250), "--fail-above", limit).exit_code == 0
    assert compare(profile("c", 250), profile("d", 100), "--fail-above", "0%").exit_code == 0


@pytest.mark.parametrize(
    "limit", ["5", "0.05", "-5%", "5%%", "%", "", "nan%", "inf%", "1e2%", "five%", "5 percent", "5%\n6%", "\u0665%"]
)
def test_a_limit_that_is_no_percentage_is_refused(profile, limit):
    result = compare(profile("a", 200), profile("b", 250), "--fail-above", limit)
    assert result.exit_code == 2
    assert "write one such as 5% or 0.5%" in result.stderr
    assert result.stdout == ""


def test_one_file_by_two_names_is_refused(profile, tmp_path):
    path = profile("a", 200)
    (tmp_path / "linked.pop").symlink_to(path)
    for other in (path, tmp_path / "linked.pop"):
        result = compare(path, other)
        assert result.exit_code == 2
        assert "are the same profile: nothing to compare" in result.stderr


def test_equal_profiles_say_so(profile):
    assert compare(profile("a", 200), profile("b", 200), "--fail-above", "0%").stdout.splitlines() == [
        "all cycles: unchanged at 200",
        "no difference in cycles or memory",
    ]


def test_profiles_that_cannot_be_judged_are_told_and_refused_for_a_limit(profile, tmp_path):
    ran, bare = profile("a", 200), profile("b", 0)
    result = compare(ran, bare)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "note: B has not run: it has no cycles to compare")
    result = compare(ran, bare, "--fail-above", "5%")
    assert result.exit_code == 2
    assert "--fail-above cannot judge these: B has not run: it has no cycles to compare" in result.stderr

    whole = report(compute("layer/work", 0, [200] * 4))
    target = evolve(whole.compilation.target, system="bow")
    save_report(evolve(whole, compilation=evolve(whole.compilation, target=target)), tmp_path / "other.pop")
    result = compare(ran, tmp_path / "other.pop", "--fail-above", "5%")
    assert result.exit_code == 2
    assert "the targets differ: not named in A, bow in B" in result.stderr


def test_what_is_no_profile_is_one_line(profile, tmp_path):
    (tmp_path / "text.pop").write_bytes(b"text")
    for other in (tmp_path / "text.pop", tmp_path / "none.pop"):
        result = compare(profile("a", 200), other)
        assert result.exit_code in (1, 2)
        assert "text.pop" in result.stderr or "none.pop" in result.stderr


def test_names_of_terminal_codes_are_spelled_out(tmp_path):
    for name, cycles in (("a", 1), ("b", 2)):
        save_report(report(compute("\x1b[31mred\udc80", 0, [cycles] * 4)), tmp_path / f"{name}.pop")
    assert "\udc80" not in compare(tmp_path / "a.pop", tmp_path / "b.pop").stdout


def test_how_many_differences_are_printed_can_be_chosen(tmp_path):
    for name, more in (("a", 0), ("b", 1)):
        steps = [compute("s" * (number + 1), number, [10 + more] * 4) for number in range(30)]
        save_report(report(*steps), tmp_path / f"{name}.pop")
    assert compare(tmp_path / "a.pop", tmp_path / "b.pop").stdout.count("rose") == 21
    assert compare(tmp_path / "a.pop", tmp_path / "b.pop", "--top", "2").stdout.endswith("and 28 smaller differences of cycles\n")
    assert compare(tmp_path / "a.pop", tmp_path / "b.pop", "--top", "0").exit_code == 2
