"""The commands that read a profile: `pypoplar summary` and `pypoplar trace`."""

import json
import sys

import pytest
from attrs import evolve
from click.testing import CliRunner
from profile_reports import full_report

from pypoplar.cli import main
from pypoplar.report.file.sqlite_file import save_report
from pypoplar.report.insights.ranking import insight_data
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_values import summary_values
from pypoplar.report.trace import Trace

REPORT = full_report()


@pytest.fixture
def run():
    def call(*arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def profile(tmp_path):
    save_report(REPORT, tmp_path / "profile.pop")
    return tmp_path / "profile.pop"


def test_summary_prints_what_the_engine_would(run, profile):
    assert run("summary", profile).stdout == summary(REPORT)
    assert run("summary", profile.parent).stdout == summary(REPORT)
    everything = {"showExecutionSteps": "true", "showVarStorage": "true"}
    assert run("summary", "--steps", "--variables", profile).stdout == summary(REPORT, everything)


def test_summary_lists_the_longest_steps(run, profile):
    assert run("summary", "--top", 2, profile).stdout == summary(REPORT, top=2)
    assert run("summary", "--top", 0, profile).exit_code == 2


def test_summary_ends_with_what_could_be_gained(run, profile):
    before, _, told = run("summary", "--insights", profile).stdout.partition("\nInsights:\n")
    assert before == summary(REPORT)
    told = " ".join(told.split())
    found = insight_data(REPORT)
    assert found
    for insight in found:
        for key in ("title", "weight", "text", "advice"):
            assert " ".join(insight[key].split()) in told
    assert summary(evolve(REPORT, execution=None), with_insights=True).endswith("\nInsights: none\n")


def test_summary_is_written_for_programs(run, profile):
    assert json.loads(run("summary", "--json", profile).stdout) == json.loads(json.dumps(summary_values(REPORT)))
    values = json.loads(run("summary", "--json", "--steps", "--variables", "--top", 1, profile).stdout)
    assert [step["name"] for step in values["execution"]["steps"]] == ["gather", "multiply", "out"]
    assert [variable["name"] for variable in values["variables"]] == ["x", "temporary"]


def test_trace_is_written_beside_the_profile_or_where_it_is_asked_for(run, profile, tmp_path):
    write_trace(REPORT, tmp_path / "expected", tiles=2)
    write_trace(REPORT, tmp_path / "expected.gz", tiles=2)
    result = run("trace", profile, "--tiles", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{profile.with_suffix('.pftrace.gz')}  ")
    assert " kB, for https://ui.perfetto.dev" in result.stdout
    assert result.stderr == (
        "note: 30 later executions of steps were not recorded\n"
        "note: tiles are as they were in the first and last 10 executions of a step in a run, means in others; "
        "3 of these were too many to keep, and are means\n"
    )
    assert profile.with_suffix(".pftrace.gz").read_bytes() == (tmp_path / "expected.gz").read_bytes()
    assert run("trace", profile.parent, "-o", tmp_path / "other.pftrace", "--tiles", 2).exit_code == 0
    assert (tmp_path / "other.pftrace").read_bytes() == (tmp_path / "expected").read_bytes()


@pytest.mark.parametrize("name", ["trace.pftrace", "trace.pftrace.gz", "trace.perfetto-trace", "trace.perfetto-trace.gz"])
def test_a_trace_has_one_of_the_known_endings(run, profile, tmp_path, name):
    assert run("trace", profile, "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / name).stat().st_size


@pytest.mark.parametrize("name", ["x.txt", "trace", "x.json", "x.gz", "x.pftrace.zip", "x.html"])
def test_a_trace_of_another_ending_is_refused_with_the_known_ones(run, profile, tmp_path, name):
    result = run("trace", profile, "-o", tmp_path / name)
    assert result.exit_code == 2
    assert f"{name}: a trace's name ends in .pftrace.gz, .pftrace, .perfetto-trace.gz or .perfetto-trace" in result.stderr
    assert not (tmp_path / name).exists()


def test_trace_says_when_executions_were_not_recorded(run, tmp_path):
    save_report(evolve(REPORT, execution=evolve(REPORT.execution, trace=Trace())), tmp_path / "profile.pop")
    assert "laid end to end" in run("trace", tmp_path).stderr


@pytest.mark.parametrize("command", ["summary", "trace"])
def test_a_damaged_profile_is_one_line_on_stderr(run, tmp_path, command):
    path = tmp_path / "profile.pop"
    path.write_bytes(b"something else")
    result = run(command, path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {path}: not a profile: it is not an SQLite file\n"
    result = run("--traceback", command, path)
    assert type(result.exception).__name__ == "FileLoadError"
    assert run(command, tmp_path / "none.pop").exit_code == 2


def test_trace_without_its_package_or_place_says_so(run, profile, tmp_path, monkeypatch):
    result = run("trace", profile, "-o", tmp_path / "none" / "trace.pftrace")
    assert result.exit_code == 1
    assert f"there is no directory {tmp_path / 'none'}" in result.stderr
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    result = run("trace", profile)
    assert result.exit_code == 1
    assert "pip install -e '.[trace]' in a checkout" in result.stderr


@pytest.mark.parametrize("named", ["file", "directory"])
def test_a_trace_does_not_take_the_place_of_its_profile(run, profile, named):
    before = profile.read_bytes()
    result = run("trace", profile if named == "file" else profile.parent, "-o", profile)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {profile}: this is the profile itself; choose another file for -o\n"
    assert profile.read_bytes() == before


@pytest.mark.parametrize(("command", "words"), [("summary", "--variables"), ("trace", "ui.perfetto.dev")])
def test_help_says_what_a_profile_is(run, command, words):
    text = run(command, "--help").stdout
    assert words in text
    assert "profile.pop or its directory" in " ".join(text.split())
