"""Profiles of older versions open: what they lack is absent, not 0."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from profile_reports import differences

from pypoplar import FileLoadError, pva
from pypoplar.cli import main
from pypoplar.report.file.sqlite_file import UPGRADES
from pypoplar.report.report import PROFILE_VERSION

FILES = Path(__file__).with_name("files")
EXCHANGE = "Exchange and copies on the tile"


@pytest.fixture
def older(tmp_path):
    """A profile that the release of version 3 wrote, of three runs on 16 tiles."""
    return unpacked(3, tmp_path)


@pytest.fixture(params=sorted(UPGRADES))
def any_older(request, tmp_path):
    """The same of each older version."""
    return unpacked(request.param, tmp_path)


def unpacked(version, folder):
    path = folder / "older.pop"
    path.write_bytes(gzip.decompress((FILES / f"profile_version_{version}.pop.gz").read_bytes()))
    return path


def test_all_versions_before_this_one_but_the_first_two_are_known():
    assert sorted(UPGRADES) == list(range(3, PROFILE_VERSION))


def test_an_older_profile_opens_with_its_figures(older):
    report = pva.openReport(older)
    execution = report.execution
    assert (report.name, execution.totalCycles.total, len(execution.runs)) == ("older", 11520, 3)
    assert [(step.name, step.exchange_cycles, step.cycles) for step in execution.steps] == [
        ("layer1/double", 0, 6300),
        ("layer1/move", 3330, 5220),
    ]
    assert execution.tile_average.exchange == 230.625
    assert not execution.copies_known


def test_what_an_older_profile_does_not_know_is_still_not_known_when_it_is_saved_again(older, tmp_path):
    report = pva.openReport(older)
    pva.save_report(report, tmp_path / "again.pop")
    again = pva.openReport(tmp_path / "again.pop")
    assert differences(report, again) == []
    assert not again.execution.copies_known


def test_the_commands_show_an_older_profile(older, tmp_path):
    before = older.read_bytes()
    text = CliRunner().invoke(main, ["summary", str(older), "--steps"])
    assert "Total cycles:" in text.output
    assert "11,520" in text.output
    assert "copies" not in text.output
    assert CliRunner().invoke(main, ["report", str(older)]).exit_code == 0
    page = older.with_suffix(".html").read_text(encoding="utf-8")
    assert EXCHANGE in page
    assert '"part":"copies"' not in page
    trace = CliRunner().invoke(main, ["trace", str(older)])
    assert "the profile does not tell them apart" in trace.stderr
    assert older.read_bytes() == before


@pytest.mark.parametrize("version", [3, 4])
def test_profiles_from_before_lines_of_the_host_were_kept_name_none(version, tmp_path):
    any_older = unpacked(version, tmp_path)
    report = pva.openReport(any_older)
    places = {program.made_at for root in report.compilation.programs for program in root.nodes()}
    assert places | {variable.made_at for variable in report.compilation.loweredVariables} == {""}
    pva.save_report(report, tmp_path / "again.pop")
    assert differences(report, pva.openReport(tmp_path / "again.pop")) == []
    text = CliRunner().invoke(main, ["summary", str(any_older), "--steps"])
    assert "on the host" not in text.output
    assert CliRunner().invoke(main, ["report", str(any_older)]).exit_code == 0


def test_an_older_profile_that_is_damaged_is_refused(any_older):
    with closing(sqlite3.connect(any_older)) as database, database:
        database.execute("DROP TABLE trace_event")
    with pytest.raises(FileLoadError, match="damaged: it has no table trace_event"):
        pva.openReport(any_older)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_profiles_from_before_hints_about_loops_know_none_nor_the_hosts_link(version, tmp_path):
    report = pva.openReport(unpacked(version, tmp_path))
    assert report.compilation.target.host_link is None
    assert {kind.elements for kind in report.compilation.vertex_types} == {()}
    lines = report.execution.lines
    assert {text.loops for text in (lines.texts if lines is not None else ())} <= {()}
    pva.save_report(report, tmp_path / "again.pop")
    assert differences(report, pva.openReport(tmp_path / "again.pop")) == []


def test_times_of_tiles_in_older_profiles_are_all_means_and_addresses_not_known(any_older, tmp_path):
    report = pva.openReport(any_older)
    trace = report.execution.trace
    assert (trace.recorded, len(trace.tiles), trace.unrecorded) == (0, 0, 0)
    assert report.compilation.loweredVariables.byAddress(0) == ()
    pva.save_report(report, tmp_path / "again.pop")
    assert differences(report, pva.openReport(tmp_path / "again.pop")) == []


@pytest.mark.parametrize("version", [3, 4])
def test_pieces_are_not_known_of_an_older_profile(version, tmp_path):
    steps = pva.openReport(unpacked(version, tmp_path)).execution.steps
    assert {len(step.pieces_by_tile) for step in steps} == {0}
    assert {step.most_pieces for step in steps} == {None}


def test_a_profile_with_the_views_of_an_earlier_release_opens(tmp_path):
    """Its codelet has an estimate of 101 cycles, and ran 96 times."""
    path = unpacked(4, tmp_path)
    lines = pva.openReport(path).execution.lines.lines("Guessed")
    assert [(line.slots, line.compiled, line.bound) for line in lines] == [(2374, 1152, 672), (3166, 1536, 960), (4156, 2016, 480)]
    pva.save_report(pva.openReport(path), tmp_path / "again.pop")
    with closing(sqlite3.connect(tmp_path / "again.pop")) as database:
        rows = database.execute("SELECT slots_charged, slots_compiled, bound FROM line_cost ORDER BY line").fetchall()
    assert rows == [(line.slots, line.compiled, line.bound) for line in lines]
    assert sum(row[0] for row in rows) == 96 * 101
