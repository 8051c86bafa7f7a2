"""What notebooks show: whole HTML that loads nothing, with all of the user's text escaped."""

import re
import tempfile
import webbrowser
from html.parser import HTMLParser
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_reports import full_report

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    Engine,
    Graph,
    GraphMemoryAllocationError,
    InOut,
    Interval,
    IPUModel,
    Tensor,
    Vertex,
    concat,
)
from pypoplar.program import Call, Copy, Execute, If, PrintTensor, Program, Repeat, Sequence, Switch
from pypoplar.program.base import Nothing
from pypoplar.report import palette
from pypoplar.report.execution import Execution, Run, Step, Steps
from pypoplar.report.memory_report import MemoryByTile
from pypoplar.report.notebook_tables import ARGUMENTS, STRIPE, VIEWS, html_of, shares, themed
from pypoplar.report.program_nodes import ComputeSet, VertexInstances
from pypoplar.report.program_nodes import Program as ReportProgram
from pypoplar.report.report import Compilation, Report, ReportGraph, ReportTarget, Version

NASTY = "<script>alert('x')</script> & \"quoted\""
VOID = {"br", "path", "rect"}


class Page(HTMLParser):
    """Reads HTML, and fails where it is not whole or would load or run something."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in {"script", "link", "img", "iframe", "object", "style"}
        assert not [name for name, _ in attributes if name.startswith("on") or name in {"src", "href", "xlink:href"}]
        assert not [name for name, value in attributes if name == "style" and "url" in value]
        self.tags.append(tag)
        self.attributes.append(dict(attributes))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(thing):
    page = Page(thing._repr_html_())
    page.text = " ".join(page.text.split())
    return page


def tiny_graph():
    return Graph(IPUModel("tiny").createDevice())


def test_a_tensor_shows_its_type_and_how_its_bytes_lie_on_tiles():
    graph = tiny_graph()
    x = graph.addVariable(HALF, [4, 5], "x")
    graph.setTileMapping(x, {2: [Interval(0, 8), Interval(9, 12)], 5: [Interval(8, 9), Interval(12, 16)]})
    page = shown(x)
    assert "'x' HALF [4, 5]: 20 elements, 40 bytes" in page.text
    assert "unmapped: 4 of 20 elements have no tile" in page.text
    assert "on 2 of 16 tiles, tiles 2 to 5; at most 22 bytes (tile 2), 16.0 on average" in page.text
    assert "tile 2[0:8) [9:12)" in page.text
    assert "tile 5[8:9) [12:16)" in page.text
    bars = next(attributes["d"] for attributes in page.attributes if "d" in attributes)
    assert bars == "M0 40H0V40H2V0H3V40H5V21.82H6V40H16V40Z"  # 22 and 10 bytes


def test_a_tensor_on_all_tiles_of_a_machine_is_one_small_picture():
    graph = Graph(IPUModel("pod16").createDevice())
    x = graph.addVariable(FLOAT, [200_000, 3], "x")
    tiles = graph.getTarget().getNumTiles()
    graph.setTileMapping(x, [[Interval(600_000 * tile // tiles, 600_000 * (tile + 1) // tiles)] for tile in range(tiles)])
    text = x._repr_html_()
    assert f"on {tiles:,} of {tiles:,} tiles" in text
    assert "&hellip; 23,540 more tiles" in text
    assert len(text) < 60_000


def test_a_tensor_of_a_virtual_graph_is_shown_on_the_tiles_of_the_whole():
    virtual = tiny_graph().createVirtualGraph([4, 9])
    x = virtual.addVariable(FLOAT, [2], "x")
    virtual.setTileMapping(x, 1)
    assert "on 1 of 16 tiles, tile 9; at most 8 bytes (tile 9)" in shown(x).text


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda graph: Tensor(), "the null tensor"),
        (lambda graph: graph.addVariable(FLOAT, [3, 0], "none"), "FLOAT [3, 0]: 0 elements, 0 bytes"),
        (lambda graph: graph.addVariable(FLOAT, [3], "nowhere"), "unmapped: 3 of 3 elements have no tile"),
        (lambda graph: graph.addVariable(FLOAT, [], NASTY), f"{NASTY!r} FLOAT []"),
        (lambda graph: graph.addVariable(FLOAT, [2], "x").broadcast(3), "6 elements, 24 bytes, some of them several times"),
        (lambda graph: graph.addConstant(FLOAT, [2], 1, "c").reverse(0), "'c' FLOAT [2]"),
        (lambda graph: concat(graph.addVariable(FLOAT, [2], "a"), graph.addVariable(FLOAT, [2], "b")), "'a', 'b' FLOAT [4]"),
    ],
    ids=["null", "empty", "unmapped", "escaped", "broadcast", "constant", "several"],
)
def test_every_tensor_is_shown(make, words):
    page = shown(make(tiny_graph()))
    assert words in page.text


def test_a_tile_mapping_is_shown_in_elements():
    graph = tiny_graph()
    x = graph.addVariable(FLOAT, [8], "x")
    graph.setTileMapping(x[:6], 3)
    page = shown(graph.getTileMapping(x, requireComplete=False))
    assert "tile mapping of 6 elements; some elements have no tile" in page.text
    assert "on 1 of 16 tiles, tile 3; at most 6 elements (tile 3)" in page.text


class Bump(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x += 1.0


def ran_engine(name="bump", size=1):
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    x = graph.addVariable(FLOAT, [size], "x")
    graph.setTileMapping(x, 2)
    bump = graph.addComputeSet(name)
    graph.setTileMapping(graph.addVertex(bump, Bump, {"x": x[0]}), 2)
    engine = Engine(graph, Sequence([Repeat(3, Execute(bump))]))
    engine.load(device)
    return engine


def test_a_report_shows_the_machine_the_fullest_tile_and_the_cycles_of_the_mean_tile():
    engine = ran_engine()
    assert "it has not run" in shown(engine.getReport()).text
    engine.run()
    report = engine.getReport()
    page = shown(report)
    whole = report.compilation.memory.including_gaps()
    assert "1 vertex" in page.text
    assert f"tile {whole.argmax()}: {whole.max():,} of {report.compilation.target.bytesPerTile:,} bytes" in page.text
    assert f"{report.execution.totalCycles.total:,}" in page.text
    share = sum(step.sync_cycles for step in report.execution.steps) / report.execution.totalCycles.total
    assert f"Sync {share:.1%}" in page.text
    assert page.tags.count("svg") == 2


def test_the_report_of_a_program_without_memory_enough_says_so():
    with pytest.raises(GraphMemoryAllocationError) as caught:
        ran_engine(size=400_000)
    assert "1 tile out of memory" in shown(caught.value.report).text


def test_a_report_of_nothing_is_shown():
    target = ReportTarget(NASTY, numIPUs=0, tilesPerIpu=0, bytesPerTile=0, clockFrequency=0.0)
    empty = Compilation(target, ReportGraph(0, 0, 0, 0), MemoryByTile({}, np.zeros(0, np.int64)))
    for execution in (None, Execution((), {}), Execution((Step(name="", type="Sync", executions=0),), {})):
        assert NASTY in shown(Report(empty, execution, Version(""), name=NASTY)).text


def test_a_program_shows_what_it_consists_of():
    graph = tiny_graph()
    x, y = (graph.addVariable(FLOAT, [2], name) for name in "xy")
    choice = graph.addVariable(INT, [], "choice")
    copy = Copy(x, y, name="move")
    function = graph.addFunction(Sequence([PrintTensor("t", x)]))
    loop = Repeat(10, Sequence([copy, If(choice, copy), Switch(choice, [(7, copy)], Call(function))]), name=NASTY)
    page = shown(Sequence([loop, Execute(graph.addComputeSet("add"))], "main"))
    for words in (
        "Sequence main",
        f"Repeat {NASTY} · count 10",
        "Copy move · source 'x' FLOAT [2] · destination 'y' FLOAT [2]",
        "then: Copy move",
        "otherwise: Sequence",
        "case 7: Copy move",
        "default: Call · function 0",
        "PrintTensor · title t · tensor 'x' FLOAT [2]",
        "Execute · compute set add",
    ):
        assert words in page.text
    assert "object at" not in page.text
    assert page.tags.count("summary") == page.tags.count("details")


def test_deep_wide_and_shared_programs_are_shown_in_part():
    graph = tiny_graph()
    step = Execute(graph.addComputeSet("add"))
    assert shown(Sequence([step] * 1000)).text.endswith("… 980 more")
    deep = Sequence([step])
    for _ in range(3000):
        deep = Repeat(2, deep)
    assert shown(deep).text.endswith("… 1 more")
    shared = Sequence([step])
    for _ in range(60):
        shared = Sequence([shared, shared])
    assert len(shared._repr_html_()) < 200_000


def test_a_kind_of_program_that_is_half_made_is_shown():
    class Odd(Program):
        def __init__(self):
            self.parts_of_it = [1, NASTY]

        def reads(self):
            return ()

        def writes(self):
            return ()

        def contains(self):
            return Nothing()

    assert f"Odd · parts of it 1, {NASTY}" in shown(Odd()).text


def test_the_program_tree_of_a_report_names_types_steps_and_vertices():
    leaf = ReportProgram(NASTY, "OnTileExecute", step=4, computeset=ComputeSet("a", (VertexInstances("Scale<float>", 1200),)))
    page = shown(ReportProgram("", "Repeat", (leaf,), detail="100 times"))
    assert page.text == f"Repeat 100 timesOnTileExecute: {NASTY} · 1,200 Scale<float> · step 4"
    assert page.tags.count("details") == 1


@given(st.text())
def test_any_name_is_escaped(name):
    page = Page(ReportProgram(name, "Sync")._repr_html_())
    assert set(page.tags) <= {"div", "b", "i"}


# Graphs, engines, runs


class Halve(Vertex):
    x: InOut[FLOAT]

    def compute(self) -> None:
        self.x *= 0.5


def halving(name=NASTY):
    """A graph with a vertex on each of three tiles, and a stream into what they halve."""
    graph = tiny_graph()
    x = graph.addVariable(FLOAT, [3], name)
    halve = graph.addComputeSet(name)
    for tile in range(3):
        graph.setTileMapping(x[tile], tile)
        graph.setTileMapping(graph.addVertex(halve, Halve, {"x": x[tile]}), tile)
    stream = graph.addHostToDeviceFIFO(name, FLOAT, 3)
    graph.createHostRead("x", x)
    return graph, Sequence([Copy(stream, x), Execute(halve)])


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(palette.PHASES)), st.floats(0, 1e9)), min_size=1, max_size=9, unique_by=lambda row: row[0]
    )
)
def test_parts_of_a_bar_that_have_one_colour_are_told_apart_by_stripes(rows):
    html = shares([(name, name, amount) for name, amount in rows])
    marks = re.findall(r'<span style="color: (#\w+); color: light-dark\([^)]*\)">(&#\d+;)</span> (\w+) ', html)
    assert [name for *_, name in marks] == [name for name, amount in rows if amount > 0]
    assert len({(colour, square) for colour, square, _ in marks}) == len(marks)
    threads, whole = dict(rows).get("threads", 0), sum(amount for _, amount in rows)
    assert ("<path" in html) == bool(threads and 1000 * threads / whole > STRIPE / 2)


def test_a_report_draws_idle_threads_with_stripes():
    html = full_report()._repr_html_()
    assert "&#9637;</span> Compute, idle threads" in html
    assert "&#9632;</span> Compute " in html
    bar = html[html.index("<svg", html.index("cycles of the mean tile")) :]
    assert bar[: bar.index("</svg>")].count("<path") == 1


def test_a_graph_shows_how_much_it_has_of_everything():
    graph, _ = halving()
    graph.addVariable(INT, [5], "without tiles")
    constant = graph.addConstant(INT, [2], 1)
    graph.setTileMapping(constant, 1)
    page = shown(graph)
    for words in ("16 tiles", "variables2, 32 bytes", "constants1, 8 bytes", "vertices3 in 1 compute set", "3 of Halve", NASTY):
        assert words in page.text
    assert "5 elements of variables and constants have no tile" in page.text
    assert "tile 1: 12 of" in page.text
    assert page.tags.count("svg") == 1


def test_an_empty_graph_is_shown():
    page = shown(tiny_graph())
    assert "vertices0 in 0 compute sets" in page.text
    assert "svg" not in page.tags


def test_a_virtual_graph_says_which_tiles_it_sees():
    graph, _ = halving()
    assert "4 of 16 tiles, which this virtual graph sees" in shown(graph.createVirtualGraph(4)).text


def test_showing_a_graph_does_not_keep_it_from_growing():
    graph, program = halving()
    shown(graph)
    y = graph.addVariable(FLOAT, [], "y")
    graph.setTileMapping(y, 5)
    added = graph.addVertex(graph.addComputeSet("more"), Halve, {"x": y})
    graph.setTileMapping(added, 5)
    assert "4 of Halve" in shown(graph).text
    Engine(graph, program)


def test_an_engine_shows_its_streams_its_runs_and_its_report():
    graph, program = halving()
    device = IPUModel("tiny").createDevice()
    engine = Engine(graph, program, name="first")
    page = shown(engine)
    assert "loadedno: call load(device)" in page.text
    assert f"streams{NASTY} (to device)" in page.text
    assert "it has not run" in page.text
    engine.connectStream(NASTY, np.ones(3, np.float32))
    engine.load(device)
    engine.run(0, NASTY)
    page = shown(engine)
    cycles = engine.getReport().execution.totalCycles.total
    assert "Engine first" in page.text
    assert "loadedyes" in page.text
    assert f"{NASTY}{cycles:,} cycles" in page.text
    assert "report.open_page() shows all of it in the browser" in page.text


def test_a_run_shows_its_phases_and_its_longest_steps():
    report = full_report()
    page = shown(report.execution.runs[2])
    assert "main (5 runs together): " in page.text
    assert "Compute " in page.text
    assert page.text.index("out50,500 cycles in 10 executions") < page.text.index("multiply4,200 cycles in 10 executions")
    assert shown(Run("", ())).text == "run run: 0 cyclesits longest steps"


def test_an_execution_shows_all_runs():
    page = shown(full_report().execution)
    assert page.text.count("main") == 3
    assert "all runs" in page.text


def test_a_report_opens_its_page_in_the_browser(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for path in (None, tmp_path / "own.html"):
        place = full_report().open_page(path)
        assert opened.pop() == place.resolve().as_uri()
        assert "<title>engine</title>" in place.read_text(encoding="utf-8")
        assert path is None or place == path
    assert {place.name for place in tmp_path.iterdir() if place.is_file()} == {"own.html"}


def test_a_target_is_a_table_of_its_figures():
    page = Page(IPUModel("bow").createDevice().getTarget()._repr_html_())
    assert "target bow" in page.text
    assert "1,472" in page.text
    assert "638,976 bytes of each tile" in page.text
    assert "a tile receives" in page.text


def test_the_steps_of_an_execution_are_a_table(tmp_path):
    steps = full_report().execution.steps
    assert isinstance(steps, Steps)
    page = Page(steps._repr_html_())
    assert page.tags.count("tr") == 1 + len(steps)
    assert page.text.startswith("3 steps")
    for word in ("gather", "OnTileExecute", "executions", "made at", "model.py:20"):
        assert word in page.text


def test_steps_beyond_what_a_notebook_shows_are_counted_and_columns_without_anything_left_out():
    steps = Steps(Step(name=NASTY, type="Sync", executions=1, number=number) for number in range(70))
    page = Page(steps._repr_html_())
    assert page.tags.count("tr") == 61
    assert "10 more" in page.text
    assert "tile balance" not in page.text
    assert Page(Steps()._repr_html_()).text.startswith("0 steps")


def test_every_colour_of_a_view_has_a_form_for_dark_notebooks():
    for shown in (full_report(), full_report().execution, full_report().execution.runs[0]):
        html = html_of(shown)
        assert not re.search(r'(fill|stroke)="#', html)
        told = re.findall(r"(fill|stroke|color|border-color): (#\w+); \1: light-dark\((#\w+), (#\w+)\)", html)
        assert told
        assert len(re.findall(r"(?:fill|stroke|[^-]color|border-color): #", html)) == len(told)
        known = {(colour.light, colour.dark) for colour in palette.ALL.values()}
        assert {(light, dark) for _, first, light, dark in told if first == light} <= known
    assert themed("fill", palette.PHASES["sync"]) == "fill: #570080; fill: light-dark(#570080, #cb4efe)"


@pytest.mark.parametrize("name", [*VIEWS, *ARGUMENTS])
def test_tables_of_views_name_kinds_that_are_there(name):
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(module), kind)
    assert (found.__module__, found.__qualname__) == (module, kind)
