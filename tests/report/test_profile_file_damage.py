"""A file that is not a whole profile is a `FileLoadError` with one sentence, whatever is wrong with it."""

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_reports import differences, full_report

from pypoplar import FileLoadError
from pypoplar.report.file.sqlite_file import SCHEMA, load_report, save_report
from pypoplar.report.report import PROFILE_VERSION

REPORT = full_report()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "profile.pop"
    save_report(REPORT, path)
    return path


@pytest.fixture
def changed(saved, tmp_path):
    """Runs SQL on a copy of the profile and returns its path."""

    def change(*statements):
        path = tmp_path / "changed.pop"
        shutil.copy(saved, path)
        with closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                database.execute(statement)
        return path

    return change


def refusal(path):
    with pytest.raises(FileLoadError) as caught:
        load_report(path)
    text = str(caught.value)
    assert text.startswith(f"{path}")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_a_file_that_is_not_there(tmp_path):
    assert refusal(tmp_path / "none.pop") == "cannot be read: No such file or directory"
    assert refusal(tmp_path).endswith("profile.pop: cannot be read: No such file or directory")


def test_a_file_of_another_form(tmp_path, saved):
    path = tmp_path / "profile.pop"
    for content in (b"", b"SQLite", b"PK\3\4" + b"x" * 5000):
        path.write_bytes(content)
        assert refusal(path) == "not a profile: it is not an SQLite file"


def test_a_database_of_another_application(tmp_path, changed):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE run (run INTEGER)")
    assert refusal(path) == "not a profile: it is an SQLite file of another application"


def test_a_later_version_is_refused_by_its_number(changed):
    message = refusal(changed(f"PRAGMA user_version = {PROFILE_VERSION + 1}"))
    known = f"{', '.join(map(str, range(3, PROFILE_VERSION)))} and {PROFILE_VERSION}"
    assert message == f"a profile of version {PROFILE_VERSION + 1}: this pypoplar reads versions {known}; profile the program again"


def test_recorded_executions_that_no_run_has_and_profiles_of_other_columns_are_refused(changed):
    message = refusal(changed("UPDATE recorded_execution SET execution = 2 WHERE execution = 1"))
    assert message.startswith("recorded_execution.execution")
    message = refusal(changed("UPDATE recorded_execution SET tile_profile = 9"))
    assert message == "recorded_execution.tile_profile is 9: tile_profile has no such row"
    message = refusal(changed("UPDATE recorded_execution SET tile_profile = 0"))
    assert message == "recorded_execution.tile_profile is 0, which has other columns than cycles"
    assert refusal(changed("UPDATE recorded_execution SET run = 7")).startswith("recorded_execution.run")


def test_tables_and_columns_that_are_missing_or_more(changed):
    assert refusal(changed("DROP TABLE run_step")) == "damaged: it has no table run_step"
    message = refusal(changed("ALTER TABLE variable ADD COLUMN more INTEGER"))
    assert message == "damaged: the table variable has other columns than a profile's"


def test_tables_and_indices_of_a_users_own_do_no_harm(changed):
    path = changed("CREATE TABLE notes (note TEXT)", "CREATE INDEX by_tile ON variable_tile (tile)", "DROP VIEW step_total")
    assert differences(REPORT, load_report(path)) == []


def columns(*kinds):
    """Table and column of every column of one of these types, and whether it may be NULL."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA.read_text(encoding="utf-8"))
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [
            (table, name)
            for table in tables
            for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")
            if kind in kinds
        ]


@pytest.mark.parametrize(("table", "column"), columns("INTEGER", "REAL"))
@pytest.mark.parametrize("value", ["'a'", "-2", "1.5e300", "x'00'"])
def test_a_number_of_another_kind_or_range_is_refused(changed, table, column, value):
    """In rows with the largest value: `full_report` has some for all columns. What a step does not have by tile is not read."""
    if value == "1.5e300" and (table, column) in columns("REAL"):
        value = "9e999"  # infinity
    order = f"(SELECT MAX({column}) FROM {table})"
    try:
        path = changed("PRAGMA ignore_check_constraints = 1", f"UPDATE {table} SET {column} = {value} WHERE {column} = {order}")
    except sqlite3.IntegrityError:  # a primary key that is an integer takes nothing else
        assert value != "-2"
        return
    message = refusal(path)
    assert table in message or column in message


@pytest.mark.parametrize(("table", "column"), columns("TEXT"))
def test_a_text_of_another_kind_is_refused(changed, table, column):
    message = refusal(changed(f"UPDATE {table} SET {column} = x'ff00' WHERE {column} = (SELECT MIN({column}) FROM {table})"))
    assert message == f"{table}.{column} has a value that is not text"
    if column == "columns":
        assert "the columns are cycles" in refusal(changed(f"UPDATE {table} SET {column} = 'cycles cycle'"))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("tile_memory", "category"),
        ("tile_memory", "tile"),
        ("tile", "tile"),
        ("memory_category", "category"),
        ("vertex_type", "vertex_type"),
        ("vertex_type_pricing", "vertex_type"),
        ("variable", "variable"),
        ("variable", "always_live"),
        ("variable_life", "variable"),
        ("variable_life", "first_step"),
        ("variable_life", "end_step"),
        ("variable_tile", "variable"),
        ("variable_tile", "tile"),
        ("compute_set", "compute_set"),
        ("compute_set_vertex", "compute_set"),
        ("program", "program"),
        ("program", "step"),
        ("program", "compute_set"),
        ("program_child", "parent"),
        ("program_child", "position"),
        ("program_child", "child"),
        ("entry", "entry"),
        ("entry", "program"),
        ("static_step", "step"),
        ("static_step", "program"),
        ("exchange", "exchange"),
        ("exchange", "step"),
        ("exchange", "message_list"),
        ("exchange_message", "message_list"),
        ("exchange_message", "source"),
        ("exchange_message", "destination"),
        ("step", "step"),
        ("step", "program"),
        ("run", "run"),
        ("run_step", "run"),
        ("run_step", "step"),
        ("run_step", "tile_profile"),
        ("tile_profile", "tile_profile"),
        ("tile_profile_tile", "tile_profile"),
        ("tile_profile_tile", "tile"),
        ("codelet", "codelet"),
        ("codelet_line", "codelet"),
        ("codelet_line", "place"),
        ("block_line", "codelet"),
        ("block_line", "block"),
        ("block_line", "place"),
        ("vertex_group", "vertex_group"),
        ("vertex_group", "codelet"),
        ("block_execution", "vertex_group"),
        ("block_execution", "block"),
        ("longest_vertex", "longest_vertex"),
        ("longest_vertex", "tile"),
        ("longest_vertex_field", "longest_vertex"),
        ("trace_event", "event"),
        ("trace_event", "run"),
        ("trace_event", "step"),
    ],
)
def test_a_number_of_nothing_is_refused(changed, table, column):
    message = refusal(changed(f"UPDATE {table} SET {column} = 1000 WHERE {column} = (SELECT MAX({column}) FROM {table})"))
    assert message.startswith((f"{table}.{column}", "run_step.step is", "run_step_ipu has", "tile_profile_tile has")) or table in (
        "tile",
        "static_step",
    )


def test_rows_that_are_missing_are_refused(changed):
    assert refusal(changed("DELETE FROM target")) == "target has 0 rows: expected 1"
    assert refusal(changed("INSERT INTO execution SELECT * FROM execution")) == "execution has 2 rows: expected at most 1"
    assert refusal(changed("DELETE FROM meta WHERE key = 'created'")) == "meta has no row created"
    assert refusal(changed("DELETE FROM tile WHERE tile = 2")).startswith("tile has ")
    assert refusal(changed("INSERT INTO run_step SELECT * FROM run_step LIMIT 1")).endswith("twice")
    message = refusal(changed("UPDATE vertex_type_cycles SET bound_cycles = compiled_cycles + 1 WHERE name = 'Zero'"))
    assert message == "vertex_type_cycles of 'Zero' has more bound_cycles than compiled_cycles"
    assert refusal(changed("INSERT INTO line_profile VALUES (1)")) == "line_profile has 2 rows: expected at most 1"
    assert refusal(changed("DELETE FROM line_profile")) == "line_profile has 0 rows: codelet and longest_vertex have some"
    assert refusal(changed("UPDATE line_profile SET compiled = 2")) == "line_profile.compiled is 2: expected 0 to 1"
    message = refusal(changed("UPDATE codelet SET vertex_type = 'Zero'"))
    assert message == "codelet.vertex_type has one name twice"
    message = refusal(changed("UPDATE block_line SET bound = slots + 1 WHERE place = 2"))
    assert message == "block_line of codelet 0 has a bound above its slots"
    message = refusal(changed("DELETE FROM codelet_line WHERE codelet = 0 AND place = 1"))
    assert message == "codelet_line.place of codelet 0 is 2: expected 1"
    message = refusal(changed("UPDATE run_step SET tile_profile = 0 WHERE run = 1 AND step = 1"))
    assert message == "run_step.tile_profile of step 1 in run 1 has other columns than in an earlier run"
    assert "too many" in refusal(changed(f"UPDATE run_step SET times = {1 << 61} WHERE run = 0 AND step = 0"))
    message = refusal(changed("UPDATE slowest_vertex SET least = most + 1 WHERE field = 'y'"))
    assert message == "slowest_vertex of step 1 has a larger least than most"
    assert "not a step that ran" in refusal(changed("UPDATE slowest_vertex SET step = 2000"))
    assert refusal(changed("UPDATE target SET replicas = 0")) == "target.replicas is 0: expected 1 to 4611686018427387903"
    assert refusal(changed("UPDATE target SET replicas = 2")) == "target.ipus is 1: expected a multiple of the 2 replicas"
    assert refusal(changed("UPDATE tile SET always_live = NULL WHERE tile = 1")).startswith("tile.always_live is NULL in some")


def test_a_file_that_ends_early_is_refused(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "profile.pop"
    for length in range(0, len(content), 1000):
        path.write_bytes(content[:length])
        refusal(path)


@given(st.data())
def test_bytes_that_changed_give_an_error_or_a_report(saved, data):
    content = bytearray(saved.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = saved.with_name("bytes.pop")
    path.write_bytes(content)
    with suppress(FileLoadError):
        compilation = load_report(path).compilation
        assert len(compilation.tiles) == compilation.target.numTiles


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "profile.pop"
    save_report(REPORT, path)
    before = path.read_bytes()
    broken = full_report(name=3.5j)
    with pytest.raises(sqlite3.Error):
        save_report(broken, path)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["profile.pop"]


def test_a_place_that_cannot_be_written_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        save_report(REPORT, tmp_path / "none" / "profile.pop")


def test_equal_reports_give_equal_files(tmp_path):
    for name in ("one.pop", "other.pop"):
        save_report(full_report(), tmp_path / name)
    assert Path(tmp_path / "one.pop").read_bytes() == Path(tmp_path / "other.pop").read_bytes()
