"""The profile summary: Poplar's sections and figures from a report made by hand."""

import numpy as np
import pytest

from pypoplar.errors import InvalidOption
from pypoplar.profile.execution import Execution, Step, VertexTypeCycles
from pypoplar.profile.report import Compilation, Report, ReportGraph, ReportTarget, Version
from pypoplar.profile.summary import summary
from pypoplar.profile.tile_memory import MemoryByTile

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
        text.index(one)
        for one in ("Target:", "Graph:", "Memory Usage:", "Execution:", "Cycles by vertex type:", "Execution steps:")
    ]
    assert places == sorted(places)


def test_target_and_graph_are_written_with_units_and_thousands_separators():
    lines = [" ".join(one.split()) for one in summary(make_report()).splitlines()]
    for expected in (
        "Number of IPUs: 1",
        "Total Tiles: 16",
        "Memory Per-Tile: 300.0 kB",
        "Total Memory: 4.7 MB",
        "Clock Speed (approx): 1,850.0 MHz",
        "Number of vertices: 80,000",
        "Number of edges: 230,000",
        "Number of compute sets: 2",
    ):
        assert expected in lines


def test_memory_totals_are_the_sums_over_tiles_and_categories():
    text = summary(make_report())
    lines = [" ".join(one.split()) for one in text.splitlines()]
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
    rows = [one.split() for one in text.splitlines() if " - " in one]
    assert sum(int(row[-1]) for row in rows) == TILES
    assert max(row[3] for row in rows if "*" in row[3]) == "*" * 40


def test_tiles_out_of_memory_are_shown_with_what_fills_them():
    text = summary(make_report(used=306_000))
    assert "4 tile(s) out of memory" in text
    assert text.count("memory usage:") == 4
    assert text.index("Tile # 15 memory usage:") < text.index("Tile # 12 memory usage:")
    over = [" ".join(one.split()) for one in text.splitlines() if "Over by:" in one]
    assert over[0] == f"Over by: {306_000 + 1500 + 4 - 300 * 1024:,} B"


def test_execution_gives_cycles_of_the_mean_tile_as_share_of_the_total():
    text = summary(make_report(steps=[compute_step(), EXCHANGE]))
    lines = [" ".join(one.split()) for one in text.splitlines()]
    assert "Total cycles: 16,150 (approx 8.7 microseconds)" in lines
    assert "Tile average compute cycles (including idle threads): 7,500.0 (46.4% of total)" in lines
    assert "Tile average compute cycles (excluding idle threads): 3,750.0 (23.2% of total)" in lines
    assert "Tile average IPU exchange cycles: 125.0 (0.8% of total)" in lines
    assert "Tile average sync cycles: 900.0 (5.6% of total)" in lines
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
    assert [one.number for one in tiles] == list(range(TILES))
    assert tiles[-1].memory.category == {"variables": 4000, "exchange_buffers": 0, "code": 1500}
    assert tiles[3].memory.total.excludingGaps == 4300
    assert tiles[3].memory.total.includingGaps == 4304
    with pytest.raises(IndexError):
        tiles[TILES]
