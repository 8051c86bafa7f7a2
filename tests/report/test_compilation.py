"""What a report says of the compiled program: exchanges, vertex types, options, target."""

import numpy as np
import pytest
from attrs import evolve
from engine_builder import Bench, tiny
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import CHAR, FLOAT, HALF, INT, Engine, Input, Output, Target, Vector, Vertex
from pypoplar.presets import TIMINGS
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.report.memory_report import LoweredVariables
from pypoplar.report.notebook_tables import machine
from pypoplar.report.page.summary_data import summary_data
from pypoplar.report.text.summary import summary


class Total(Vertex):
    x: Input[Vector[INT]]
    total: Output[INT]

    def compute(self):
        self.total = 0
        for value in self.x:
            self.total = self.total + value


class Sum(Vertex):
    a: Input[FLOAT]
    b: Input[FLOAT]
    out: Output[FLOAT]

    def compute(self):
        self.out = self.a + self.b


def report_of(options=None):
    bench = Bench()
    x, y = bench.variable("x", np.arange(10.0), [3] * 5 + [4] * 5), bench.variable("y", np.zeros(10), np.arange(10) % 2)
    out = bench.variable("out", np.zeros(1), [7])
    compute_set = bench.graph.addComputeSet("sum")
    bench.vertex(compute_set, Sum, 7, a=x[0], b=x[9], out=out[0])
    engine = Engine(bench.graph, Sequence([Copy(x, y), Execute(compute_set)]), options)
    return engine.getReport(), engine.executable


def test_exchanges_have_one_row_for_each_pair_of_tiles():
    report, executable = report_of()
    copy, before = report.compilation.exchanges
    assert (copy.phase, before.phase, before.name) == ("copy", "before", "sum")
    assert list(zip(copy.source, copy.destination, copy.bytes, strict=True)) == [(3, 0, 12), (3, 1, 8), (4, 0, 8), (4, 1, 12)]
    assert list(zip(before.source, before.destination, before.bytes, strict=True)) == [(3, 7, 4), (4, 7, 4)]
    assert executable.steps[copy.step].name == "Copy"
    assert report.compilation.exchanges[:1][0] is copy


def test_vertex_types_have_their_instances_and_memory():
    report, _ = report_of()
    (vertex_type,) = report.compilation.vertex_types
    assert (vertex_type.name, vertex_type.instances) == ("Sum", 1)
    assert vertex_type.memory == report.compilation.memory.vertex_data_by_type["Sum"] > 0


def test_options_that_were_set_are_in_the_report():
    report, _ = report_of({"debug.instrument": "true"})
    assert report.compilation.options == {"debug.instrument": "true"}


def test_categories_go_by_our_names_and_by_libpvas():
    report, _ = report_of()
    category = report.compilation.tiles[7].memory.category
    assert category.vertexCode.total == category["code"] > 0
    assert category.variable.total == category["variables"] == 4
    assert dict(report.compilation.tiles[7:8][0].memory.category) == dict(category)


def test_vertex_types_say_what_priced_their_vertices():
    bench = Bench()
    x = bench.variable("x", np.zeros(3), [0, 1, 2])
    compute_set = bench.graph.addComputeSet("sum")
    vertices = [bench.vertex(compute_set, Sum, number, a=x[number], b=x[number]) for number in range(3)]
    for number, vertex in enumerate(vertices):
        out = bench.variable(f"out {number}", np.zeros(1), [number])
        bench.graph.connect(vertex["out"], out[0])
    bench.graph.setPerfEstimate(vertices[0], 7)
    (vertex_type,) = Engine(bench.graph, Execute(compute_set)).getReport().compilation.vertex_types
    assert vertex_type.priced_by == {"estimate": 1, "estimator": 0, "code": 2}


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_report_says_which_timing_it_follows(timing):
    bench = Bench(tiny(timing=timing))
    report = Engine(bench.graph, Sequence([])).getReport()
    assert report.compilation.target.timing == timing
    assert f"Timing: {timing}" in [" ".join(line.split()) for line in summary(report).splitlines()]
    facts = {fact["label"]: fact["value"] for fact in summary_data(report)["target"]}
    assert facts["Timing"] == timing
    assert ("hardware timing" in machine(report.compilation.target)) == (timing == "hardware")


def test_the_targets_ceilings_are_those_of_the_machine():
    target = report_of()[0].compilation.target
    bow = Target.of_preset("bow")
    assert target.peak_flops_per_cycle[
        "half, convolution units"
    ] * bow.getNumTiles() * bow.getTileClockFrequency() == bow.peak_flops(HALF)
    assert target.memory_bytes_per_cycle == 24


def test_variables_live_when_the_program_needs_them():
    bench = Bench()
    x, out = bench.variable("x", np.arange(4.0), [0, 0, 1, 1]), bench.variable("out", np.zeros(4), 2)
    early, late = (bench.graph.addVariable(FLOAT, [4], name) for name in ("early", "late"))
    for variable in (early, late):
        bench.graph.setTileMapping(variable, 3)
    program = Sequence([Copy(x, early), Copy(early, out), Copy(out, late), Copy(late, out)])
    compilation = Engine(bench.graph, program).getReport().compilation
    by_name = {variable.name: variable for variable in compilation.loweredVariables}
    assert by_name["x"].always_live
    assert by_name["out"].always_live
    assert by_name["x"].size == 16
    steps = compilation.livenessProgramSteps
    alive = [[variable.name for variable in step.notAlwaysLiveVariables] for step in steps]
    assert alive == [["early"], ["early"], ["late"], ["late"]]
    assert [step.number for step in steps] == compilation.program_steps == [1, 2, 3, 4]  # the host's own transfers are no program's
    assert [step.notAlwaysLiveMemory.bytes for step in steps] == [16, 16, 16, 16]
    assert [steps[0].notAlwaysLiveMemoryForTile(tile).bytes for tile in (2, 3)] == [0, 16]
    memory = compilation.tiles[3].memory
    assert memory.category["variables"] == memory.notAlwaysLiveBytes == 16  # they share their place
    assert compilation.tiles[2].memory.alwaysLiveBytes >= 16
    assert [variable.name for variable in compilation.alwaysLiveVariablesForTile(2)] == ["out"]


def test_exchange_buffers_live_while_their_compute_set_is_executed():
    report, executable = report_of()
    compilation = report.compilation
    (buffer,) = [variable for variable in compilation.loweredVariables if not variable.always_live]
    assert (buffer.name, buffer.size) == ("exchange buffer of sum", int(executable.memory.exchange_buffers.sum()))
    sizes = [step.notAlwaysLiveMemory.bytes for step in compilation.livenessProgramSteps]
    assert sizes == [0, buffer.size, buffer.size]  # copy, exchange, compute
    assert compilation.tiles[7].memory.notAlwaysLiveBytes == buffer.size > 0


def test_variables_by_address_lie_apart_or_live_at_other_times():
    bench = Bench(tiny())
    x = bench.variable("x", np.zeros(6), 2)
    parts = [bench.graph.addVariable(FLOAT, [size], f"part{size}") for size in (3, 5)]
    for part in parts:
        bench.graph.setTileMapping(part, 2)
    copies = [step for part in parts for step in (Copy(x[: len(part)], part), Copy(part, x[: len(part)]))]
    variables = Engine(bench.graph, Sequence(*copies)).getReport().compilation.loweredVariables
    placed = variables.byAddress(2)
    assert [(one.variable.name, one.begin, one.end, one.shares) for one in placed] == [
        ("x", 0, 24, 0),
        ("part3", 24, 36, 1),
        ("part5", 24, 44, 1),
    ]
    assert variables.byAddress(3) == ()
    assert evolve(variables, offset=np.zeros(0, np.int64), span=np.zeros(0, np.int64)).byAddress(2) == ()


def test_pieces_of_less_than_a_word_reach_as_far_as_the_words_that_they_begin():
    bench = Bench(tiny())
    parts = [bench.graph.addVariable(type, [6], name) for name, type in (("bytes", CHAR), ("halves", HALF))]
    for part in parts:
        for place in range(6):
            bench.graph.setTileMapping(part[place], place % 2)
    copies = [Copy(part[3:], part[:3]) for part in parts]
    variables = Engine(bench.graph, Sequence(*copies)).getReport().compilation.loweredVariables
    placed = variables.byAddress(1)
    assert [(one.variable.name, one.variable.size, one.begin, one.end) for one in placed] == [
        ("bytes", 3, 0, 9),
        ("halves", 6, 16, 26),
    ]


def test_exchange_buffers_lie_behind_the_variables_of_their_tile():
    bench = Bench(tiny())
    x, y = bench.variable("x", np.zeros(4, int), [1, 2, 3, 4]), bench.variable("y", [0], 2)
    compute_set = bench.graph.addComputeSet("sum")
    bench.vertex(compute_set, Total, 2, x=x, total=y[0])
    report = Engine(bench.graph, Execute(compute_set)).getReport()
    placed = report.compilation.loweredVariables.byAddress(2)
    *before, buffer = placed
    assert buffer.variable.name == "exchange buffer of sum"
    assert buffer.begin >= max(one.end for one in before) > 0
    assert {one.shares for one in placed} == {0}


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=9))
def test_how_many_share_addresses_is_how_many_overlap(places):
    count = len(places)
    rows = np.arange(count + 1)
    begin, size = np.array(places, np.int64).reshape(-1, 2).T.copy()
    tiles = np.zeros(count, np.int64)
    names = tuple(map(str, range(count)))
    nothing = np.zeros(0, np.int64)
    variables = LoweredVariables(
        names, np.zeros(count, bool), np.zeros(count + 1, np.int64), nothing, nothing, rows, tiles, size, (), begin, size
    )
    for one in variables.byAddress(0):
        others = [other for other in variables.byAddress(0) if other.variable.name != one.variable.name]
        assert one.shares == sum(other.begin < one.end and one.begin < other.end for other in others)
