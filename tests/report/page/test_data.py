"""What the page draws, against the report that it was made from."""

import json
import zlib
from base64 import b64decode

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from page_reports import LIMIT, compute, events, exchange, leaf, memory, messages, report, variables

from benchmarks.made_report import made_report
from pypoplar.report.compute_set_costs import compute_sets
from pypoplar.report.execution import VertexTypeCycles
from pypoplar.report.page import exchange_data, memory_data
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.comparison import Sides, _merged, change, matched, matched_steps
from pypoplar.report.page.exchange_data import exchanges_data, grouped
from pypoplar.report.page.operation_data import vertex_type_rows
from pypoplar.report.page.page_views import COMPARISON, REPORT
from pypoplar.report.page.program_data import tree_data
from pypoplar.report.page.summary_data import headline, machine_parts, mean_tile_parts
from pypoplar.report.program_nodes import Program
from pypoplar.report.trace import RecordedTiles

EVEN = compute("even", 0, [100, 100, 100, 100])


def unpacked(blocks, reference):
    data = zlib.decompress(b64decode(blocks.texts[reference["block"]]))
    return json.loads(data) if reference["type"] == "json" else np.frombuffer(data, f"<{reference['type']}")


@pytest.mark.parametrize(("held", "facts"), [([LIMIT] * 4, []), ([LIMIT + 1, 0, LIMIT + 1, 0], [("Tiles out of memory, of 4", 2)])])
def test_how_many_tiles_do_not_fit_comes_first(held, facts):
    first, *_ = headline(report(tile_memory=memory(held)))
    assert [(first["label"], first["value"])][: len(facts)] == facts
    assert first["label"].startswith("Tiles out of memory") is bool(facts)


def test_the_parts_of_the_machine_add_up_to_its_cycles():
    execution = made_report(tiles=16, events=100).execution
    assert sum(part["cycles"] for part in machine_parts(execution)) == execution.totalCycles.total


def test_the_parts_of_the_mean_tile_add_up_to_the_machines_cycles():
    execution = made_report(tiles=16, events=100).execution
    parts = {part["part"]: part["cycles"] for part in mean_tile_parts(execution)}
    assert sum(parts.values()) == pytest.approx(execution.totalCycles.total)
    assert parts["compute"] + parts["threads"] == pytest.approx(execution.tile_average.compute_including_idle)
    assert min(parts.values()) >= 0


def test_a_node_of_the_tree_costs_what_the_steps_below_it_cost():
    ran = made_report(tiles=8, events=100)
    tree = tree_data(ran.compilation.programs, ran.execution)
    assert tree["cycles"][0] == ran.execution.totalCycles.total
    for place, above in enumerate(tree["parent"]):
        assert above < place
        below = [tree["cycles"][node] for node, parent in enumerate(tree["parent"]) if parent == place]
        if below:
            assert tree["cycles"][place] == sum(below)


def test_a_step_that_stands_in_two_places_counts_once_in_what_holds_both():
    f, other = compute("f", 0, [30] * 4), compute("g", 1, [5] * 4)
    call = Program("f", "Call", (f.program,))
    root = Program("main", "Sequence", (call, Program("loop", "Repeat", (call, other.program))))
    tree = tree_data((root,), report(f, other).execution)
    assert list(zip(tree["name"], tree["cycles"], strict=True)) == [
        ("main", 35),
        ("f", 30),
        ("f", 30),
        ("loop", 35),
        ("f", 30),
        ("g", 5),
    ]
    assert tree["shared"] == [0, 0, 2, 0, 0, 1]
    assert tree["again"] == [-1, -1, -1, -1, 1, -1]  # the call in the loop is the one before


def test_functions_that_call_each_other_many_times_are_listed_once():
    leaf_step = compute("f", 0, [30] * 4)
    inner = leaf_step.program
    for number in range(40):
        inner = Program(f"f{number}", "Call", (inner, inner))
    tree = tree_data((inner,), report(leaf_step).execution)
    assert tree["cycles"] == [30] * len(tree["cycles"])
    assert len(tree["cycles"]) == 1 + 2 * 40
    assert max(tree["shared"]) == 2**40


def test_a_deep_tree_is_no_trouble():
    program = leaf("work", 0)
    for _ in range(5000):
        program = Program("", "Repeat", (program,))
    assert tree_data((program,), report(EVEN).execution)["cycles"] == [100] * 5001


def test_compute_sets_of_one_name_are_one_row():
    costs = compute_sets(
        report(compute("a", 0, [4, 0, 0, 0], times=2), compute("a", 1, [0, 8, 0, 0]), compute("b", 2, [3, 3, 3, 3])).execution
    )
    assert [(cost.name, cost.steps, cost.executions, cost.cycles, cost.balance) for cost in costs] == [
        ("a", 2, 3, 12, 0.25),
        ("b", 1, 1, 3, 1.0),
    ]
    assert costs[0].lost == 9


def test_vertex_types_join_what_was_compiled_and_what_ran():
    (row,) = vertex_type_rows(report(EVEN))
    assert (row["name"], row["instances"], row["cycles"], row["memory"], row["priced_by"]) == ("Work", 4, 100, 64, "code 4")


def test_vertex_types_say_what_their_code_takes_beside_their_cycles():
    (row,) = vertex_type_rows(report(EVEN, types={"Work": VertexTypeCycles(4, 100, 7, 8, 90, 60)}))
    assert (row["cycles"], row["compiled_cycles"], row["bound_cycles"]) == (100, 90, 60)


def test_tile_rows_and_trace_are_those_of_the_report():
    small_report = report(
        EVEN, exchange("move", 1, [4, 2, 0, 0], [8, 0, 0, 0], [0, 8, 0, 0]), trace=events((0, 100), (1, 4), (0, 100))
    )
    blocks = Blocks()
    execution = REPORT.data(small_report, blocks)["execution"]
    steps = unpacked(blocks, execution["steps"])
    rows = unpacked(blocks, execution["rows"]["chunks"][0]).reshape(-1, 4)
    assert rows[steps["rows"]["compute"][0]].tolist() == [100, 100, 100, 100]
    assert rows[steps["rows"]["sent"][1]].tolist() == [8, 0, 0, 0]
    assert steps["rows"]["sent"][0] == -1
    assert unpacked(blocks, execution["trace"]["begin"]).tolist() == [0, 100, 104]
    assert unpacked(blocks, execution["trace"]["step"]).tolist() == [0, 1, 0]


def test_recorded_tiles_are_rows_of_the_events_that_the_trace_has():
    tiles = RecordedTiles(
        np.array([0, 0, 0], np.int32),
        np.zeros(3, np.int32),
        np.array([0, 1, 7]),
        np.array([0, 1, 2, 3]),
        np.arange(3),
        np.array([7, 9, 5]),
    )
    trace = evolve(events((0, 100), (1, 4), (0, 100)), recorded=3, tiles=tiles, unrecorded=2)
    move = exchange("move", 1, [4, 2, 0, 0], [8, 0, 0, 0], [0, 8, 0, 0])
    blocks = Blocks()
    execution = REPORT.data(report(EVEN, move, trace=trace), blocks)["execution"]
    assert (execution["trace"]["recorded"], execution["trace"]["unrecorded"]) == (3, 2)
    recorded = unpacked(blocks, execution["trace"]["tiles"])
    assert recorded["event"] == [0, 2]
    rows = unpacked(blocks, execution["rows"]["chunks"][0]).reshape(-1, 4)
    assert rows[recorded["row"]].tolist() == [[7, 0, 0, 0], [0, 9, 0, 0]]


def test_a_report_that_has_not_run_says_so_by_what_is_absent():
    data = REPORT.data(report(), Blocks())
    assert [data[name] for name in ("execution", "compute_sets", "tree", "liveness", "variables", "exchanges")] == [None] * 6
    assert data["summary"]["machine"] is None


def test_too_many_places_of_variables_are_left_out_but_not_the_variables(monkeypatch):
    lowered = variables(("x", False, 0, 1), ("y", True, -1, -1), places=[{0: 30, 1: 2}, {0: 20}])
    monkeypatch.setattr(memory_data, "MOST_PLACES", 2)
    blocks = Blocks()
    data = memory_data.variables_data(lowered, blocks)
    assert data["tile"] is None
    assert unpacked(blocks, data["total"]).tolist() == [32, 20]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 100)), min_size=1))
def test_grouping_tiles_keeps_every_byte_in_its_group(rows):
    source, destination, size = grouped(messages("move", 0, *rows))
    kept = {(int(a), int(b)): int(c) for a, b, c in zip(source, destination, size, strict=True)}
    expected = {}
    for begin, end, count in rows:
        key = (begin // 4 * 4, end // 4 * 4)
        expected[key] = expected.get(key, 0) + count
    assert kept == expected


def test_only_exchanges_with_too_many_pairs_become_coarse(monkeypatch):
    monkeypatch.setattr(exchange_data, "MOST_PAIRS", 6)
    large = messages("large", 0, *((tile, other, 4) for tile in range(4) for other in range(4)))
    ran = report(compute("large", 0, [1, 1, 1, 1], times=5)).execution
    data = exchanges_data((large, messages("small", 1, (0, 3, 8))), ran, Blocks())
    assert [
        (exchange["width"], exchange["rows"], exchange["pairs"], exchange["executions"], exchange["bytes"])
        for exchange in data["list"]
    ] == [
        (4, 1, 16, 5, 64),
        (1, 1, 1, 0, 8),
    ]


def test_differences_are_of_the_second_from_the_first():
    assert change(200, 150) == {"difference": -50, "percent": -0.25}
    assert change(0, 150) == {"difference": 150, "percent": None}
    assert change(None, 150) == {"difference": None, "percent": None}


def test_rows_are_matched_by_name_and_what_is_new_costs_nothing_before():
    rows = matched(
        [{"name": "x", "cycles": 10}, {"name": "y", "cycles": 5}],
        [{"name": "x", "cycles": 15}, {"name": "z", "cycles": 7}],
        ("cycles",),
    )
    assert [(row["name"], row["a_cycles"], row["b_cycles"], row["difference"], row["percent"]) for row in rows] == [
        ("x", 10, 15, 5, 0.5),
        ("y", 5, None, -5, -1.0),
        ("z", None, 7, 7, None),
    ]


def test_steps_are_matched_by_type_name_and_turn():
    a = {0: compute("x", 0, [1] * 4), 1: compute("x", 1, [2] * 4), 2: compute("y", 2, [3] * 4)}
    b = {
        0: compute("new", 0, [9] * 4),
        1: compute("x", 1, [1] * 4),
        2: exchange("y", 2, [4] * 4, [0] * 4, [0] * 4),
        3: compute("x", 3, [5] * 4),
    }
    rows = [(row["name"], row["type"], row["a_step"], row["b_step"], row["difference"]) for row in matched_steps(a, b)]
    assert rows == [
        ("new", "OnTileExecute", None, 0, 9),
        ("x", "OnTileExecute", 0, 1, 0),
        ("y", "DoExchange", None, 2, 4),
        ("x", "OnTileExecute", 1, 3, 3),
        ("y", "OnTileExecute", 2, None, -3),
    ]


@given(st.lists(st.integers(), unique=True), st.lists(st.integers(), unique=True))
def test_merged_order_has_every_key_once_and_keeps_the_first_order(a, b):
    merged = _merged(a, b)
    assert sorted(merged) == sorted(set(a) | set(b))
    assert [key for key in merged if key in set(a)] == a


def test_comparing_a_report_with_itself_finds_no_difference():
    ran = made_report(tiles=8, events=100)
    blocks = Blocks()
    data = COMPARISON.data(Sides(ran, ran), blocks)
    assert all(
        not fact.get("difference") for part in ("headline", "graph", "target", "options", "categories") for fact in data[part]
    )
    for part in ("steps", "compute_sets", "vertex_types"):
        assert all(row["difference"] == 0 for row in unpacked(blocks, data[part]))


def test_a_report_that_has_not_run_can_be_compared():
    data = COMPARISON.data(Sides(report(EVEN), report(tile_memory=memory([1, 2, 3, 4]))), Blocks())
    assert data["ran"] == (True, False)
    assert data["steps"] is None
    cycles = next(fact for fact in data["headline"] if fact["label"] == "Cycles")
    assert (cycles["a"], cycles["b"], cycles["difference"]) == (100, None, None)
