"""The tables of a profile are documented, hold plain values, and say in SQL what the report says."""

import importlib.util
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_reports import full_report

from pypoplar.report.file.sqlite_file import load_report, save_report
from pypoplar.report.line_profile import CodeletText, LinePart, LineProfile, SourceLine, VertexGroup
from pypoplar.report.memory_report import live_bytes
from pypoplar.report.trace import Trace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "profile-file.md").read_text(encoding="utf-8")


def queries():
    spec = importlib.util.spec_from_file_location("documents_tables", ROOT / "docs" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.QUERIES


@pytest.fixture
def select(tmp_path):
    """Runs a query on the profile of a report, and checks that values are plain."""

    def run(query, report=None):
        path = tmp_path / "profile.pop"
        save_report(report or full_report(), path)
        with closing(sqlite3.connect(path)) as database:
            rows = database.execute(query).fetchall()
        assert {type(value) for row in rows for value in row} <= {int, float, str, type(None)}
        return rows

    return run


def test_every_table_and_column_is_documented_with_its_meaning(select):
    sections = dict(re.findall(r"^### (\w+)\n\n\S.*\n\n((?:\|.*\n)+)", PAGE, re.MULTILINE))
    tables = [name for (name,) in select("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert set(sections) == set(tables)
    for name in tables:
        columns = [row[0] for row in select(f"SELECT name FROM pragma_table_info('{name}')")]
        assert re.findall(r"^\| `(\w+)` \| .+ \| \S.* \|$", sections[name], re.MULTILINE) == columns
    for (view,) in select("SELECT name FROM sqlite_schema WHERE type = 'view'"):
        assert re.search(rf"^\| `{view}` \| \S.* \|$", PAGE, re.MULTILINE), view


@pytest.mark.parametrize("title", list(queries()))
def test_an_example_query_finds_something(select, title):
    assert f"{title}:\n\n```sql\n{queries()[title].strip()}\n```" in PAGE
    for statement in queries()[title].split(";"):
        if statement.strip():
            assert select(statement)


def test_the_tree_query_writes_the_program_out(select):
    rows = select(queries()["The program's tree, with shared parts written out"])
    assert [row.rstrip() for (row,) in rows] == [
        " Sequence",
        "   Repeat  10 times",
        "     Sequence step",
        "       DoExchange gather",
        "       OnTileExecute multiply",
        "   Call",
        "     Sequence step",
        "       DoExchange gather",
        "       OnTileExecute multiply",
        "   StreamCopy out",
    ]


def test_views_of_steps_and_runs_say_what_the_report_says(select):
    execution = full_report().execution
    assert select("SELECT step, executions, cycles FROM step_total") == [
        (step.number, step.executions, step.cycles) for step in execution.steps
    ]
    assert select("SELECT name, runs, cycles FROM run_total") == [(run.name, run.count, run.cycles) for run in execution.runs]
    cycles = sum(step.cyclesByTile for step in execution.steps if len(step.cyclesByTile))
    assert select("SELECT cycles FROM tile_total ORDER BY tile") == [(cycles,) for cycles in cycles.tolist()]


def test_views_count_once_what_is_there_with_and_without_runs(select):
    report = full_report()
    other = tuple(evolve(step, executions=step.executions + 1) for step in report.execution.steps)  # not the sum of the runs
    for runs, trace in (((), Trace()), (report.execution.runs, report.execution.trace)):
        changed = evolve(report, execution=evolve(report.execution, steps=other, runs=runs, trace=trace))
        assert select("SELECT executions, cycles FROM step_total", changed) == [(row.executions, row.cycles) for row in other]
        assert select("SELECT SUM(bytes_sent) FROM tile_total", changed) == [(int(other[0].bytesSentByTile.sum()),)]


def test_views_of_memory_say_what_the_report_says(select):
    compilation = full_report().compilation
    memory, variables = compilation.memory, compilation.loweredVariables
    rows = select("SELECT excluding_gaps, including_gaps FROM tile_total_memory")
    assert rows == list(zip(memory.excluding_gaps().tolist(), memory.including_gaps().tolist(), strict=True))
    assert select("SELECT name, bytes FROM category_total") == [
        (name, category.sum()) for name, category in memory.categories.items()
    ]
    assert select("SELECT name, bytes FROM variable_total") == [(variable.name, variable.size) for variable in variables]
    assert [row for (row,) in select("SELECT not_always_live FROM liveness")] == live_bytes(variables, 3).tolist()


def test_tiles_that_have_nothing_have_no_row(select):
    assert select("SELECT COUNT(*) FROM tile_memory") == [(6,)]
    assert select("SELECT tile FROM run_step_tile WHERE run = 0 AND step = 1") == [(0,), (1,), (2,)]
    assert select("SELECT COUNT(*) FROM run_step_tile WHERE run = 0 AND step = 2") == [(0,)]


def test_what_tiles_do_again_is_stored_once(select):
    """The full report's two steps by tile, in three runs that execute them 2, 2 and 10 times."""
    assert select("SELECT tile_profile, columns FROM tile_profile ORDER BY tile_profile") == [
        (0, "exchange_cycles copy_cycles bytes_sent bytes_received pieces"),
        (1, "cycles active_cycles"),
        (2, "cycles"),
        (3, "cycles"),
    ]
    assert select("SELECT run, tile_profile, times FROM run_step WHERE step = 1") == [(0, 1, 2), (1, 1, 2), (2, 1, 10)]
    assert select("SELECT tile, cycles FROM tile_profile_tile WHERE tile_profile = 1") == [(0, 400), (1, 300), (2, 200)]
    assert select("SELECT run, SUM(cycles), SUM(bytes_sent) FROM run_step_tile GROUP BY run") == [
        (0, 1800, 128),
        (1, 1800, 128),
        (2, 9000, 640),
    ]


def test_what_tiles_did_in_single_executions_is_there_by_tile(select):
    query = "SELECT run, step, execution, tile, cycles FROM recorded_execution JOIN tile_profile_tile USING (tile_profile)"
    assert select(query) == [(0, 1, 0, 0, 400), (0, 1, 0, 1, 250), (0, 1, 1, 0, 400), (0, 1, 1, 1, 350), (0, 1, 1, 2, 400)]
    assert select("SELECT recorded, unrecorded FROM execution") == [(10, 3)]


def test_executions_that_cannot_be_alike_are_stored_together(select):
    report = full_report()
    (run,) = (run for run in report.execution.runs if run.count > 1)
    uneven = evolve(run.steps[1], cyclesByTile=run.steps[1].cyclesByTile + 1)
    changed = evolve(report, execution=evolve(report.execution, steps=(uneven,), runs=(), trace=Trace()))
    assert select("SELECT tile_profile, times FROM run_step", changed) == [(0, 1)]
    assert select("SELECT cycles FROM tile_profile_tile", changed) == [(4001,), (3001,), (2001,), (1,)]


def test_messages_that_several_exchanges_move_are_stored_once(select):
    report = full_report()
    (exchange,) = report.compilation.exchanges
    other = evolve(exchange, name="other", bytes=exchange.bytes + 1)
    again = evolve(exchange, step=2, bytes=exchange.bytes.copy())
    changed = evolve(report, compilation=evolve(report.compilation, exchanges=(exchange, other, again)))
    assert select("SELECT name, step, message_list FROM exchange ORDER BY exchange", changed) == [
        ("gather", 0, 0),
        ("other", 0, 1),
        ("gather", 2, 0),
    ]
    assert select("SELECT COUNT(*) FROM exchange_message", changed) == [(4,)]
    (query,) = (text for title, text in queries().items() if title == "Who sends the most to whom")
    assert [name for name, *_ in select(query, changed)].count("gather") == 4


def test_steps_that_do_the_same_share_arrays_when_they_are_loaded(tmp_path):
    save_report(full_report(), tmp_path / "profile.pop")
    first, second, third = load_report(tmp_path / "profile.pop").execution.runs
    assert first.steps[1].cyclesByTile is second.steps[1].cyclesByTile
    with pytest.raises(ValueError, match="read-only"):
        third.steps[1].cyclesByTile[0] = 0


amounts = st.integers(0, 1000)


@st.composite
def line_profiles(draw):
    """Texts of up to four lines, of which blocks may have none, and groups with and without estimates."""
    texts, groups = [], []
    for number in range(draw(st.integers(1, 2))):
        lines = tuple(SourceLine("compute", "f.py", place + 1, "x") for place in range(draw(st.integers(1, 4))))
        blocks = []
        for places in draw(st.lists(st.lists(st.integers(0, len(lines) - 1), unique=True, max_size=3), max_size=3)):
            pairs = [sorted((draw(amounts), draw(amounts))) for _ in places]
            blocks.append(tuple(LinePart(place, slots, bound) for place, (bound, slots) in zip(places, pairs, strict=True)))
        texts.append(CodeletText(f"T{number}", draw(st.sampled_from([1, 6])), lines, tuple(blocks)))
        for name in draw(st.lists(st.sampled_from("abc"), max_size=3)):
            groups.append(VertexGroup(name, f"T{number}", 1, draw(amounts), tuple(draw(amounts) for _ in blocks)))
    return LineProfile(draw(st.booleans()), tuple(texts), tuple(groups))


LINE_COSTS = "SELECT vertex_type, line, slots_charged, slots_compiled, bound FROM line_cost ORDER BY vertex_type, line"


def line_costs(lines, select):
    report = full_report()
    return select(LINE_COSTS, evolve(report, execution=evolve(report.execution, lines=lines)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line_profiles())
def test_the_view_of_lines_says_what_the_report_says(select, lines):
    known = evolve(lines, compiled=True)  # what costs nothing at all is left out, whether compiled is shown or not
    assert line_costs(lines, select) == [
        (text.vertex_type, cost.source.line, cost.slots, cost.compiled, cost.bound)
        for text in lines.texts
        for cost, whole in zip(lines.lines(text.vertex_type), known.lines(text.vertex_type), strict=True)
        if whole.slots or whole.compiled
    ]


@given(line_profiles())
def test_blocks_and_lines_have_all_slots_of_their_vertices(lines):
    for group in lines.groups:
        only = evolve(lines, groups=(group,))
        ran = any(group.executions)
        assert sum(block.slots for block in only.blocks) == group.slots * ran
        costs = only.lines(group.vertex_type)
        assert sum(cost.slots for cost in costs) == group.slots
        if lines.compiled:
            assert sum(block.compiled for block in only.blocks) == sum(cost.compiled for cost in costs)
        else:
            assert all(block.compiled is None for block in only.blocks)


def test_slots_whose_products_are_beyond_64_bits_still_add_up(select):
    lines = tuple(SourceLine("compute", "f.py", place + 1, "x") for place in range(3))
    text = CodeletText("T", 1, lines, (tuple(LinePart(place, 3 + place, 0) for place in range(3)),))
    rows = line_costs(LineProfile(True, (text,), (VertexGroup("a", "T", 1, (1 << 50) + 1, (1 << 40,)),)), select)
    assert sum(row[2] for row in rows) == (1 << 50) + 1
    assert [row[2] / (1 << 50) for row in rows] == pytest.approx([3 / 12, 4 / 12, 5 / 12])
