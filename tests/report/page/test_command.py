"""`pypoplar report`: where it writes, what it compares, what it says of files that are no profiles."""

import sys

import pytest
from click.testing import CliRunner
from page_reports import compute, report

from pypoplar import FLOAT, Engine, Graph, InOut, IPUModel, Vertex
from pypoplar.cli import main
from pypoplar.errors import MissingFeature
from pypoplar.program import Copy, Execute, Repeat, Sequence
from pypoplar.report.file.sqlite_file import save_report
from pypoplar.report.page import document, write_page


class Double(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x + self.x


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(main, ["report", *map(str, arguments)])


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "profile.pop"
    save_report(report(compute("work", 0, [3, 2, 1, 0]), name="first"), path)
    return path


def test_the_page_stands_beside_the_profile(run, profile):
    result = run(profile)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{profile.with_suffix('.html')}  ")
    assert "<title>" in profile.with_suffix(".html").read_text(encoding="utf-8")


def test_a_directory_stands_for_the_profile_in_it(run, profile):
    assert run(profile.parent).exit_code == 0
    assert (profile.parent / "profile.html").exists()


def test_the_page_goes_where_it_is_told(run, profile, tmp_path):
    assert run(profile, "-o", tmp_path / "page.html").exit_code == 0
    assert (tmp_path / "page.html").exists()
    assert not profile.with_suffix(".html").exists()


def test_two_profiles_are_compared(run, profile, tmp_path):
    save_report(report(compute("work", 0, [5, 2, 1, 0])), tmp_path / "other.pop")
    assert run(profile, tmp_path / "other.pop", "-o", tmp_path / "page.html").exit_code == 0
    assert '"kind":"comparison"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_comparison_stands_beside_the_first_profile_and_leaves_its_page_alone(run, profile, tmp_path):
    save_report(report(compute("work", 0, [5, 2, 1, 0]), name=""), tmp_path / "other.pop")
    assert run(profile).exit_code == 0
    page = profile.with_suffix(".html").read_bytes()
    assert run(profile, tmp_path / "other.pop").exit_code == 0
    assert profile.with_suffix(".html").read_bytes() == page
    text = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert "A: first" in text
    assert f"B: {tmp_path / 'other.pop'}" in text


def test_a_profile_is_not_compared_with_itself(run, profile):
    result = run(profile, profile.parent)
    assert result.exit_code == 2
    assert "are the same profile: nothing to compare" in result.stderr
    assert not list(profile.parent.glob("*.html"))


def test_a_page_does_not_take_the_place_of_a_profile(run, profile, tmp_path):
    save_report(report(compute("work", 0, [5, 2, 1, 0])), tmp_path / "other.pop")
    for arguments in ((profile.parent, "-o", profile), (profile, tmp_path / "other.pop", "-o", tmp_path / "other.pop")):
        before = arguments[-1].read_bytes()
        result = run(*arguments)
        assert result.exit_code == 1
        assert result.stderr == f"Error: {arguments[-1]}: this is the profile itself; choose another file for -o\n"
        assert arguments[-1].read_bytes() == before


def test_a_page_for_a_directory_that_is_not_there_names_it(run, profile, tmp_path):
    result = run(profile, "-o", tmp_path / "none" / "page.html")
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path / 'none' / 'page.html'}: there is no directory {tmp_path / 'none'}\n"


def test_the_page_is_opened_if_asked(run, profile, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    assert run(profile, "--open").exit_code == 0
    assert opened == [profile.with_suffix(".html").as_uri()]


@pytest.mark.parametrize(
    ("name", "content"),
    [("absent.pop", None), ("text.pop", b"not a profile"), ("empty.pop", b""), ("cut.pop", b"SQLite format 3\0" + b"\0" * 50)],
)
def test_what_is_no_profile_is_one_line_with_its_name(run, tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = run(tmp_path / name)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert name in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_a_directory_without_a_profile_is_one_line(run, tmp_path):
    result = run(tmp_path)
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(run, profile, tmp_path):
    result = run(profile, "-o", tmp_path / "absent" / "page.html")
    assert result.exit_code == 1
    assert "absent" in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_plotly_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    document.plotly_script.cache_clear()
    with pytest.raises(MissingFeature, match=r"pip install -e '.\[report\]' in a checkout"):
        write_page(report(), tmp_path / "page.html")


def test_a_real_programs_page_is_the_same_from_its_engine_and_from_its_profile(run, tmp_path):
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x, y = (graph.addVariable(FLOAT, [16], name) for name in "xy")
    doubled = graph.addComputeSet("double")
    for tile in range(16):
        graph.setTileMapping(x[tile], tile)
        graph.setTileMapping(y[tile], 15 - tile)
        graph.setTileMapping(graph.addVertex(doubled, Double, {"x": x[tile]}), tile)
    graph.setInitialValue(x, 1.0)
    engine = Engine(graph, Repeat(5, Sequence([Execute(doubled), Copy(x, y)])), {"profiler.includeFlopEstimates": True})
    engine.loadAndRun(device)
    report = engine.getReport()
    save_report(report, tmp_path / "profile.pop")
    write_page(report, tmp_path / "direct.html")
    assert run(tmp_path).exit_code == 0
    assert (tmp_path / "profile.html").read_bytes() == (tmp_path / "direct.html").read_bytes()
