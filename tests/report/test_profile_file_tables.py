"""A profile that lacks rows: it is refused in one sentence, or every view of it is made, whatever they partner."""

import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from page_browser import browser
from profile_reports import full_report

from pypoplar import ApplicationRuntimeError, FileLoadError
from pypoplar.report import page
from pypoplar.report.file.sqlite_file import SCHEMA, load_report, save_report
from pypoplar.report.naming import differences
from pypoplar.report.page.blocks import json_text
from pypoplar.report.page.page_views import REPORT as PAGE
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_values import summary_values

REPORT = full_report()
ALL = {"showExecutionSteps": True, "showVarStorage": True}


def schema():
    """The tables of a profile, and the columns of each."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA.read_text(encoding="utf-8"))
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")] for table in tables}


TABLES = schema()
DEMANDED = {  # what others point to, or one row at least
    *("meta", "target", "graph", "tile", "memory_category", "vertex_type", "variable", "compute_set", "program", "static_step"),
    *("exchange", "step", "run", "run_step", "tile_profile", "line_profile", "codelet", "codelet_line", "vertex_group"),
    "longest_vertex",
    "run_ipu",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "profile.pop"
    save_report(REPORT, path)
    with closing(sqlite3.connect(path)) as database:
        for table in TABLES:
            assert database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0], table
    return path


def changed(saved, *statements):
    """The path of a copy of the profile on which SQL was run."""
    path = saved.with_name("changed.pop")
    shutil.copy(saved, path)
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


def make_every_view(report, folder):
    """Every view of a report, also beside one that has all, in both orders; what is saved of it is read again."""
    assert summary(report, ALL)
    assert summary(report, ALL, 3, with_insights=True)
    assert json_text(summary_values(report, all_steps=True, variables=True))
    page.write_page(report, folder / "page.html")
    for sides in ((report, REPORT), (REPORT, report)):
        page.write_comparison(*sides, folder / "comparison.html")
        assert differences.comparison_text(*sides, 20)
        differences.exceeded(*sides, Fraction(1, 20))
    for shown in (report, report.execution):
        assert shown is None or shown._repr_html_()
    assert len(report.compilation.livenessProgramSteps) == len(report.compilation.program_steps)
    if report.execution is None:
        with pytest.raises(ApplicationRuntimeError, match="the profile has no runs to trace: run the program before it is saved"):
            write_trace(report, folder / "trace.pftrace")
    else:
        write_trace(report, folder / "trace.pftrace")
    save_report(report, folder / "again.pop")
    load_report(folder / "again.pop")


def refusal(path):
    """Why a profile is refused; None if it is not, and its views are made."""
    try:
        report = load_report(path)
    except FileLoadError as problem:
        text = str(problem)
        assert text.startswith(f"{path}: ")
        assert "\n" not in text
        return text
    make_every_view(report, path.parent)
    return None


def test_the_whole_report_has_every_view(saved):
    assert refusal(saved) is None


@pytest.mark.parametrize("table", TABLES)
def test_an_empty_table_is_refused_where_others_point_to_it_and_shown_as_nothing_elsewhere(saved, table):
    assert (refusal(changed(saved, f"DELETE FROM {table}")) is not None) == (table in DEMANDED)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_left_out_is_named(saved, table):
    path = changed(saved, f"DROP TABLE {table}")
    assert refusal(path) == f"{path}: damaged: it has no table {table}"


@examples(60)
@given(tables=st.sets(st.sampled_from(sorted(TABLES)), min_size=2, max_size=8))
def test_several_empty_tables_are_refused_or_shown_as_nothing(saved, tables):
    refusal(changed(saved, *(f"DELETE FROM {table}" for table in tables)))


@examples(60)
@given(data=st.data(), table=st.sampled_from(sorted(TABLES)))
def test_a_row_that_is_left_out_is_refused_or_shown_as_nothing(saved, data, table):
    place = data.draw(st.integers(0, 5))
    one = f"FROM {table} LIMIT 1 OFFSET {place} % (SELECT COUNT(*) FROM {table})"
    same = " AND ".join(f"{column} IS (SELECT {column} {one})" for column in TABLES[table])
    refusal(changed(saved, f"DELETE FROM {table} WHERE {same}"))


@pytest.mark.parametrize("column", ["cycles", "flops", "memory_bytes", "compiled_cycles", "bound_cycles"])
def test_vertex_types_that_cost_nothing_have_every_view(saved, column):
    """Types are told by their shares, of which there are none."""
    lower = ["UPDATE vertex_type_cycles SET bound_cycles = 0"] if column == "compiled_cycles" else []
    assert refusal(changed(saved, *lower, f"UPDATE vertex_type_cycles SET {column} = 0")) is None


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as window:
        yield window


@pytest.mark.slow  # what the page is made of, without a browser: test_an_empty_table_is_refused_where_others_point_to_it_...
@pytest.mark.parametrize("table", sorted(TABLES.keys() - DEMANDED))
def test_pages_of_a_profile_with_an_empty_table_are_drawn(saved, window, table):
    document = saved.with_suffix(".html")
    page.write_page(load_report(changed(saved, f"DELETE FROM {table}")), document)
    window.open(document)
    for view in PAGE.views:
        window.tab(view.name)
        assert window.text(f"#panel-{view.name}")
    assert window.console() == []
