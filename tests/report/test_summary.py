"""The profile summary: Poplar's sections and figures from a report made by hand."""

import json

import numpy as np
import pytest
from attrs import evolve
from lowered_variables import with_one_life
from page_reports import compute, report
from profile_reports import full_report

from pypoplar.errors import InvalidOption
from pypoplar.report.execution import Execution, Step, VertexTypeCycles
from pypoplar.report.insights.ranking import insights
from pypoplar.report.memory_report import MemoryByTile
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import Compilation, Report, ReportGraph, ReportTarget, Version, VertexType
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_values import summary_values

TILES = 16


def make_report(used=4000, steps=(), execution=True):
    """A report of 16 tiles with 300 KB each, `used` bytes of variables on tile t plus 100 t bytes of code."""
    memory = MemoryByTile(
        {"variables": np.full(TILES, used), "exchange_buffers": np.zeros(TILES, np.int64), "code": np.arange(TILES) * 100},
        gaps=np.full(TILES, 4),
        vertex_data={"internal_vertex_state": 64, "edge_pointers": 1280},
        vertex_data_by_type={"Scale": 300, "DotProductVertex": 1044},
    )
    graph = ReportGraph(numVertices=80_000, numEdges=230_000, numVars=5, numComputeSets=2)
    target = ReportTarget("ipu2", numIPUs=1, tilesPerIpu=TILES, bytesPerTile=300 * 1024, clockFrequency=1.85e9)
    types = {"Scale": VertexTypeCycles(10, 50), "DotProductVertex": VertexTypeCycles(50_000, 5_250_000)}
    ran = Execution(tuple(steps), types, ("<anonymous>.",), TILES) if execution else None
    return Report(Compilation(target, graph, memory), ran, Version("0.1.0"))


def compute_step(**changes):
    active = np.arange(TILES)
    values = {"sync_cycles": 900, "compute_cycles": 15_000, "cyclesByTile": active * 1000, "activeCyclesByTile": active * 500}
    return Step(name="multiply", type="OnTileExecute", executions=10, **(values | changes))


EXCHANGE = Step(
    name="multiply (before)",
    type="DoExchange",
    executions=10,
    depth=1,
    exchange_cycles=250,
    exchange_cycles_by_tile=np.full(TILES, 125),
    bytesSentByTile=np.array([1000, *[0] * (TILES - 1)]),
    bytesReceivedByTile=np.array([0, 1000, 1000, *[0] * (TILES - 3)]),
)


def test_summary_has_the_sections_of_poplar_in_order():
    text = summary(make_report(steps=[compute_step()]), {"showExecutionSteps": "true"})
    places = [
        text.index(title)
        for title in (
            "Target:",
            "Graph:",
            "Memory Usage:",
            "Execution:",
            "Cycles by vertex type, in worker slots of all executions:",
            "Execution steps:",
        )
    ]
    assert places == sorted(places)


def test_target_and_graph_are_written_with_units_and_thousands_separators():
    lines = [" ".join(line.split()) for line in summary(make_report()).splitlines()]
    for expected in (
        "Number of IPUs: 1",
        "Total Tiles: 16",
        "Memory Per-Tile: 300.0 kB",
        "Total Memory: 4.7 MB",
        "Clock Speed (approx): 1,850.0 MHz",
        "Timing: model",
        "Number of vertices: 80,000",
        "Number of edges: 230,000",
        "Number of compute sets: 2",
    ):
        assert expected in lines


def test_memory_totals_are_the_sums_over_tiles_and_categories():
    text = summary(make_report())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Excluding Gaps: 76,000 B" in lines  # 16 x 4,000 + 100 x (0 + ... + 15)
    assert "Including Gaps: 76,064 B" in lines
    assert "Variables: 64,000 B" in lines
    assert "Vertex Code: 12,000 B" in lines
    assert "Exchange Buffers: 0 B" in lines
    assert "Maximum (Excluding Gaps): 5,500 B (5.4 K) on tile 15" in lines
    assert "0 tile(s) out of memory" in lines
    assert text.index("DotProductVertex:") < text.index("Scale:")  # the largest type first


def test_histogram_counts_every_tile_once():
    text = summary(make_report())
    rows = [line.split() for line in text.splitlines() if " - " in line]
    assert sum(int(row[-1]) for row in rows) == TILES
    assert max(row[3] for row in rows if "*" in row[3]) == "*" * 40


def test_tiles_out_of_memory_are_shown_with_what_fills_them():
    text = summary(make_report(used=306_000))
    assert "4 tile(s) out of memory" in text
    assert text.count("memory usage:") == 4
    assert text.index("Tile # 15 memory usage:") < text.index("Tile # 12 memory usage:")
    over = [" ".join(line.split()) for line in text.splitlines() if "Over by:" in line]
    assert over[0] == f"Over by: {306_000 + 1500 + 4 - 300 * 1024:,} B"


def test_how_many_tiles_do_not_fit_comes_first_with_the_option_that_runs_all_the_same():
    text = summary(make_report(used=306_000))
    after = text[text.index("Memory Usage:\n") :].splitlines()[1]
    assert after == (
        "  Out of memory: 4 of 16 tiles hold more than their 307,200 B."
        " The option pypoplar.run_out_of_memory runs the program all the same."
    )
    assert "Out of memory" not in summary(make_report())


def test_equal_tiles_out_of_memory_are_shown_once():
    report = make_report(used=306_000)
    memory = report.compilation.memory
    even = evolve(memory, categories={name: np.full(TILES, sizes[-1]) for name, sizes in memory.categories.items()})
    even.categories["variables"][3] += 8
    text = summary(with_compilation(report, memory=even))
    assert "Tile # 3 memory usage:" in text
    assert "Memory usage of each of tiles 0-2, 4-15:" in text
    assert text.count("Over by:") == 2


def test_execution_gives_cycles_of_the_mean_tile_as_share_of_the_total():
    text = summary(make_report(steps=[compute_step(), EXCHANGE]))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Total cycles: 16,150 (approx 8.7 microseconds)" in lines
    assert "Tile average compute cycles (including idle threads): 7,500.0 (46.4% of total)" in lines
    assert "Tile average compute cycles (excluding idle threads): 3,750.0 (23.2% of total)" in lines
    assert "Tile average IPU exchange cycles: 125.0 (0.8% of total)" in lines
    assert "Tile average sync cycles: 8,525.0 (52.8% of total)" in lines
    assert "DotProductVertex (50,000 instances): 5,250,000" in lines
    assert text.index("DotProductVertex (50,000") < text.index("Scale (10")


def test_steps_are_listed_on_request_with_cycles_tiles_balance_and_bytes():
    report = make_report(steps=[compute_step(), EXCHANGE])
    assert "Execution steps:" not in summary(report)
    text = summary(report, {"showExecutionSteps": True})
    assert "    OnTileExecute: multiply (10 executions)\n      Cycles: 15,900 (sync 900, compute 15,000)\n" in text
    assert "      Active tiles: 15 (balance 50.0%, of active tiles 53.3%)\n" in text
    assert "      DoExchange: multiply (before) (10 executions)\n        Cycles: 250 (exchange 250)\n" in text
    assert "        Active tiles: 3 " in text
    assert "        Exchange: 1,000 B sent, 2,000 B received\n" in text


def with_compilation(report, **changes):
    return evolve(report, compilation=evolve(report.compilation, **changes))


def leaf(number, name, kind="OnTileExecute", vertices=()):
    compute_set = ComputeSet(name, vertices) if vertices else None
    return Program(name, kind, step=number, computeset=compute_set)


def test_steps_stand_within_the_loops_and_calls_of_the_program_and_what_did_not_run_is_left_out():
    body = Program("", "Sequence", (leaf(1, "forward"), leaf(2, "backward")))
    tree = Program(
        "main",
        "Sequence",
        (
            Program("train", "Repeat", (body,), detail="10 times"),
            Program("", "If", (leaf(3, "never"),)),
            Program("stage", "Sequence", (Program("", "Call", (leaf(4, "shared"),), detail="function 0"),)),
            Program("", "Call", (Program("function 0", "Sequence", (leaf(4, "shared"),)),)),
            Program("", "If", (leaf(5, "then"),), detail="if x"),
        ),
    )
    steps = [
        evolve(compute_step(), name=name, number=number)
        for number, name in ((1, "forward"), (2, "backward"), (4, "shared"), (5, "then"))
    ]
    text = summary(with_compilation(make_report(steps=steps), programs=(tree,)), {"showExecutionSteps": "true"})
    lines = text[text.index("  Execution steps:") :].splitlines()
    assert [line for line in lines if "alance" not in line and "ycles" not in line] == [
        "  Execution steps:",
        "    Repeat 10 times: train:",
        "      OnTileExecute: forward (10 executions)",
        "      OnTileExecute: backward (10 executions)",
        "    Sequence: stage:",
        "      Call function 0:",
        "        OnTileExecute: shared (10 executions)",
        "    Call (its steps are above)",
        "    If x:",
        "      OnTileExecute: then (10 executions)",
    ]


def test_several_programs_are_told_apart_and_steps_of_none_come_last():
    programs = (Program("", "Sequence", (leaf(1, "a"),)), Program("late", "Sequence", (leaf(2, "b"),)), Program("", "Sequence"))
    steps = [evolve(compute_step(), name=name, number=number, executions=1) for number, name in ((7, "c"), (1, "a"), (2, "b"))]
    text = summary(with_compilation(make_report(steps=steps), programs=programs), {"showExecutionSteps": "true"})
    shown = [line for line in text.splitlines() if line.startswith("    ") and ("Program " in line or "OnTile" in line)]
    assert shown == [
        "    Program 0:",
        "      OnTileExecute: a",
        "    Program 1 (late):",
        "      OnTileExecute: b",
        "    OnTileExecute: c",
    ]


def test_sequences_nest_to_any_depth():
    tree = leaf(0, "innermost")
    for _ in range(5000):
        tree = Program("", "Sequence", (tree,))
    report = with_compilation(make_report(steps=[evolve(compute_step(), name="innermost", number=0)]), programs=(tree,))
    assert "    OnTileExecute: innermost (10 executions)\n" in summary(report, {"showExecutionSteps": "true"})


def test_a_step_says_how_busy_its_threads_were_and_what_ran():
    step = compute_step(program=leaf(0, "multiply", vertices=(VertexInstances("Scale", 1200), VertexInstances("Bump", 2))))
    text = summary(make_report(steps=[step]), {"showExecutionSteps": "true"})
    assert "      Thread balance: 50.0%\n      Vertices: Scale (1,200), Bump (2)\n" in text


def test_floating_point_operations_are_compared_with_the_peak():
    report = make_report(steps=[compute_step(flops=1_000_000)])
    execution = evolve(report.execution, cycles_by_vertex_type={"Scale": VertexTypeCycles(10, 50, flops=1_000_000)})
    target = evolve(report.compilation.target, peak_flops_per_cycle={"float": 2.0, "half": 8.0})
    types = (VertexType("Scale", 10, 0, {"estimate": 4, "code": 6, "estimator": 0}),)
    made = with_compilation(evolve(report, execution=execution), target=target, vertex_types=types)
    lines = [" ".join(line.split()) for line in summary(made).splitlines()]
    assert "Floating-point operations (FLOPs): 1,000,000" in lines
    assert "Achieved: 116.352 GFLOP/s" in lines  # 10^6 in 15,900 cycles of 1.85 GHz
    assert "Peak (float): 59.2 GFLOP/s, less than achieved: other units do more" in lines
    assert "Peak (half): 236.8 GFLOP/s, of which achieved 49.14%" in lines
    assert "Scale (10 instances): 50 1,000,000 FLOPs priced by estimate 4, code 6" in lines
    assert "FLOP" not in summary(make_report(steps=[compute_step()]))


def test_what_compiled_and_hand_written_code_would_take_stands_beside_the_cycles_where_it_was_counted():
    types = {"Scale": VertexTypeCycles(10, 50, 0, 0, 1200, 40), "Add": VertexTypeCycles(1, 3000, 0, 0, 600, 580)}
    report = make_report(steps=[compute_step()])
    lines = summary(evolve(report, execution=evolve(report.execution, cycles_by_vertex_type=types))).splitlines()
    assert [line for line in lines if " instance" in line] == [
        "    Add (1 instance):      3,000      compiled 600  bound 580",
        "    Scale (10 instances):     50    compiled 1,200   bound 40",
    ]
    assert "bound" not in summary(report)


VARIABLES = with_one_life(
    names=("weights", "early", "late", "bias"),
    always=np.array([True, False, False, True]),
    begin=np.array([-1, 0, 2, -1]),
    end=np.array([-1, 2, 4, -1]),
    first=np.array([0, 2, 3, 5, 6]),
    tile=np.array([0, 1, 0, 0, 1, 3]),
    bytes=np.array([100, 200, 50, 70, 80, 4000]),
)


def test_variables_are_listed_by_size_with_when_they_live():
    steps = tuple(leaf(number, name) for number, name in enumerate("abcde"))
    report = with_compilation(make_report(), loweredVariables=VARIABLES, step_programs=steps)
    assert "Liveness" not in summary(report)
    assert "Liveness" not in summary(make_report(), {"showVarStorage": "true"})  # where variables are not known
    text = summary(report, {"showVarStorage": "true"})
    lines = [" ".join(line.split()) for line in text[text.index("Variable Storage Liveness") :].splitlines()]
    assert lines == [
        "Variable Storage Liveness: All tiles",
        "Always-live bytes: 4,300",
        *("Always-live variables:", "bias 4,000 B", "weights 300 B"),
        "Maximum live bytes (including always-live): 4,450",
        "Maximum not-always-live bytes: 150 at step 2 (OnTileExecute c)",
        *("Not-always-live variables at that step:", "late 150 B"),
        "Not-always-live bytes by program step:",
        *("steps 0 to 1: 50", "steps 2 to 3: 150", "step 4 (OnTileExecute e): 0"),
        *("", "Execution:"),
        *lines[lines.index("Execution:") + 1 :],
    ]


def test_of_very_many_variables_the_smallest_are_summed():
    count = 350
    variables = with_one_life(
        names=tuple(f"v{number}" for number in range(count)),
        always=np.ones(count, bool),
        begin=np.full(count, -1),
        end=np.full(count, -1),
        first=np.arange(count + 1),
        tile=np.zeros(count, np.int64),
        bytes=np.arange(1, count + 1),
    )
    text = summary(with_compilation(make_report(), loweredVariables=variables), {"showVarStorage": "true"})
    assert "(250 smaller ones)" in text
    assert f"{sum(range(1, 251)):,} B" in text


def test_memory_is_shown_by_ipu_on_request():
    target = evolve(make_report().compilation.target, numIPUs=2, tilesPerIpu=8)
    report = with_compilation(make_report(used=306_000), target=target)
    assert "IPU 1" not in summary(report)
    lines = [" ".join(line.split()) for line in summary(report, {"showPerIpuMemoryUsage": "true"}).splitlines()]
    place = lines.index("IPU 1 (tiles 8 to 15):")
    used = 8 * 306_000 + 100 * sum(range(8, 16))
    assert lines[place + 1 : place + 6] == [
        f"Including Gaps: {used + 32:,} B ({(used + 32) / (8 * 300 * 1024):.1%} of the IPU)",
        f"Excluding Gaps: {used:,} B ({used / (8 * 300 * 1024):.1%} of the IPU)",
        "Maximum (Including Gaps): 307,504 B (300.3 K) on tile 15",
        "Maximum (Excluding Gaps): 307,500 B (300.3 K) on tile 15",
        "4 tile(s) out of memory",
    ]
    assert lines[lines.index("IPU 0 (tiles 0 to 7):") + 5] == "0 tile(s) out of memory"


def test_the_longest_steps_come_first_and_as_many_as_are_asked_for():
    report = make_report(steps=[EXCHANGE, compute_step()])
    assert "Longest steps" not in summary(report)
    lines = [line.strip() for line in summary(report, top=1).splitlines()]
    place = lines.index("Longest steps (1 of 2):")
    assert lines[place + 1].startswith("OnTileExecute: ")
    assert lines[place + 1].endswith("% of total")
    assert not any(line.startswith("DoExchange") for line in lines)
    assert "Longest steps (2 of 2):" in summary(report, top=5)


def test_syncs_are_told_apart_from_waiting():
    report = make_report(steps=[compute_step(), EXCHANGE])
    mean = report.execution.tile_average
    lines = [" ".join(line.split()) for line in summary(report).splitlines()]
    place = next(place for place, line in enumerate(lines) if line.startswith("Tile average sync cycles:"))
    assert lines[place + 1].startswith(f"of them the syncs themselves: {mean.sync - mean.waiting:,.1f} (")
    assert lines[place + 2].startswith(f"of them waiting for slower tiles: {mean.waiting:,.1f} (")


def test_the_slowest_tile_of_a_step_is_named_with_its_vertices():
    report = full_report()
    lines = [line.strip() for line in summary(report, {"showExecutionSteps": "true"}).splitlines()]
    assert (
        "Slowest tile 0: 5,600 cycles against 3,150 of the mean tile, 4 vertices of Multiply<float> (x 10 to 12, y 10),"
        " 1 vertex of Zero" in lines
    )
    assert "Slowest tile 0: 420 cycles against 210 of the mean tile, 448 B received, in 56 pieces" in lines


def test_the_values_for_programs_are_those_of_the_report():
    report = full_report()
    values = json.loads(json.dumps(summary_values(report)))
    execution = values["execution"]
    assert execution["cycles"] == sum(execution["phases"].values()) == report.execution.totalCycles.total
    mean = execution["mean_tile"]
    parts = ("compute_including_idle", "exchange", "copies", "global_exchange", "host_exchange", "sync", "waiting")
    assert sum(mean[part] for part in parts) == pytest.approx(execution["cycles"])
    assert [step["name"] for step in execution["steps"]] == ["out", "multiply", "gather"]
    assert execution["steps"][1]["slowest_tile"]["vertices"][0]["sizes"][0] == {"name": "x", "least": 10, "most": 12}
    assert values["memory"]["fullest_tile"] == {"tile": 0, "bytes": 472, "limit": 1 << 19}
    assert [finding["rule"] for finding in values["insights"]] == [finding.rule for finding in insights(report)]
    assert "variables" not in values
    assert [variable["name"] for variable in summary_values(report, variables=True)["variables"]] == ["x", "temporary"]


def test_the_values_have_what_the_text_has():
    report = full_report()
    values = json.loads(json.dumps(summary_values(report, all_steps=True, variables=True)))
    execution, (gather, multiply, out) = values["execution"], values["execution"]["steps"]
    profile = report.execution.lines
    assert [lines["vertex_type"] for lines in execution["lines"]] == ["Multiply<float>", "Zero"]
    first = execution["lines"][0]
    assert (first["instances"], first["slots"], sum(line["slots"] for line in first["lines"])) == (8, 9000, 9000)
    assert first["lines"][1] == {
        "function": "compute",
        "file": "codelets/multiply.py",
        "line": 8,
        "text": "        for i in range(len(self.x)):",
        "slots": 2250,
        "share": 0.25,
        "compiled": 2250,
        "bound": 288,
        "executions": profile.lines("Multiply<float>")[1].executions,
    }
    assert execution["slowest_vertices"][0]["tile"] == 2
    assert execution["slowest_vertices"][0]["sizes"][1] == {"name": "rows", "elements": 12, "rows": 3}
    step = report.execution.steps[1]
    assert multiply["active_tile_balance"] == step.activeTileBalance == pytest.approx(3150 / 4200)
    assert multiply["thread_balance"] == step.thread_balance == int(step.activeCyclesByTile.sum()) / int(step.cyclesByTile.sum())
    assert multiply["vertices"] == {"Multiply<float>": 8, "Zero": 1}
    assert (gather["thread_balance"], out["tile_balance"], out["active_tile_balance"]) == (None, None, None)
    assert (
        values["liveness"]["most_live_bytes"] == max(step["not_always_live_bytes"] for step in values["liveness"]["steps"]) == 100
    )
    assert [step["step"] for step in values["liveness"]["steps"]] == [0, 1, 2]
    assert values["memory"]["vertex_data"] == dict(report.compilation.memory.vertex_data)


def test_tiles_that_do_not_fit_are_listed_in_the_values_equal_ones_together():
    report = make_report(used=306_000)
    memory = report.compilation.memory
    even = evolve(memory, categories={name: np.full(TILES, sizes[-1]) for name, sizes in memory.categories.items()})
    even.categories["variables"][3] += 8
    values = summary_values(with_compilation(report, memory=even))["memory"]
    fullest, others = values["out_of_memory"]
    assert (fullest["tiles"], others["tiles"]) == ([3], [tile for tile in range(TILES) if tile != 3])
    assert fullest["bytes"] - others["bytes"] == fullest["over_by"] - others["over_by"] == 8
    assert sum(len(group["tiles"]) for group in values["out_of_memory"]) == values["tiles_out_of_memory"] == TILES
    assert summary_values(full_report())["memory"]["out_of_memory"] == []


def test_what_was_not_recorded_is_null_in_the_values():
    ran = report(compute("work", 0, [100] * 4))
    execution = summary_values(ran)["execution"]
    (kind,) = execution["vertex_types"]
    nothing = ("compiled", "bound", "flops", "memory_bytes")
    assert [kind[name] for name in nothing] == [None] * 4
    assert [execution[name] for name in ("flops", "flops_per_second", "lines", "slowest_vertices")] == [None] * 4
    assert (execution["steps"][0]["flops"], execution["steps"][0]["memory_bytes"]) == (None, None)
    options = {"profiler.includeFlopEstimates": "true"}
    counted = summary_values(evolve(ran, compilation=evolve(ran.compilation, options=options)))["execution"]
    assert (counted["flops"], counted["vertex_types"][0]["flops"], counted["steps"][0]["memory_bytes"]) == (0, 0, 0)


@pytest.mark.parametrize("compiled", [True, False])
def test_slots_of_the_code_are_those_of_its_lines_where_nothing_else_has_them(compiled):
    whole = full_report()
    types = {name: VertexTypeCycles(cost.instances, cost.cycles) for name, cost in whole.execution.cycles_by_vertex_type.items()}
    lines = evolve(whole.execution.lines, compiled=compiled)
    ran = evolve(whole, execution=evolve(whole.execution, cycles_by_vertex_type=types, lines=lines))
    kinds = {kind["name"]: kind for kind in summary_values(ran)["execution"]["vertex_types"]}
    assert kinds["Multiply<float>"]["compiled"] == (9000 if compiled else None)
    assert kinds["Multiply<float>"]["bound"] == (1728 + 288 + 3348 if compiled else None)


def test_the_values_have_the_longest_steps_or_all_in_order():
    report = full_report()

    def names(**options):
        return [step["name"] for step in summary_values(report, **options)["execution"]["steps"]]

    assert names(top=1) == ["out"]
    assert names(top=1, all_steps=True) == ["gather", "multiply", "out"]


def test_the_values_of_a_program_that_has_not_run_have_no_execution():
    assert summary_values(evolve(full_report(), execution=None))["execution"] is None


def test_what_a_profile_does_not_tell_apart_is_null():
    report = full_report()
    values = summary_values(evolve(report, execution=evolve(report.execution, copies_known=False)))
    assert values["execution"]["phases"]["copies"] is None


def test_a_program_that_has_not_run_has_no_execution_section():
    assert "Execution" not in summary(make_report(execution=False), {"showExecutionSteps": "true"})


@pytest.mark.parametrize(
    ("options", "words"), [({"showExecutionStep": "true"}, "showExecutionSteps"), ({"showVarStorage": "yes"}, "yes")]
)
def test_wrong_options_are_refused_with_the_nearest_name(options, words):
    with pytest.raises(InvalidOption, match=words):
        summary(make_report(), options)


def test_a_tile_of_the_report_has_its_own_memory_by_category():
    tiles = make_report().compilation.tiles
    assert len(tiles) == TILES
    assert [tile.number for tile in tiles] == list(range(TILES))
    assert tiles[-1].memory.category == {"variables": 4000, "exchange_buffers": 0, "code": 1500}
    assert tiles[3].memory.total.excludingGaps == 4300
    assert tiles[3].memory.total.includingGaps == 4304
    with pytest.raises(IndexError):
        tiles[TILES]
