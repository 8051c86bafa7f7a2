"""Each rule on a program that is made for its fault, and on the same program without it."""

import math
import re
from io import StringIO
from typing import Annotated

import numpy as np
import pytest
from engine_builder import Bench, tiny
from numpy.typing import NDArray

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    Aligned,
    Engine,
    InOut,
    Input,
    MultiVertex,
    Output,
    Vector,
    VectorList,
    Vertex,
    ipu,
    poplin,
    popops,
    pva,
)
from pypoplar.codelet.operations.table import OPERATIONS
from pypoplar.program import Copy, Execute, Program, Repeat, Sequence
from pypoplar.report.insights.dear_functions import FUNCTIONS, dear_lines, dear_operation
from pypoplar.report.insights.insight import Insight
from pypoplar.report.insights.ranking import insights
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.exchange_data import exchanges_data
from pypoplar.report.text.summary_values import summary_values

TILES = 4
WORKERS = 6


class Work(Vertex):
    """So many rounds over one number."""

    x: InOut[FLOAT]
    rounds: INT

    def compute(self) -> None:
        for _ in range(self.rounds):
            self.x = self.x * 1.5 + 1.0


class WorkInHalf(Vertex):
    """The same in half."""

    x: InOut[HALF]
    rounds: INT

    def compute(self) -> None:
        for _ in range(self.rounds):
            self.x = self.x * 1.5 + 1.0


class Remainders(Vertex):
    """Remainders by a number that only the vertex knows, or by one that the code names."""

    x: InOut[INT]
    rounds: INT

    def compute(self) -> None:
        total = 0
        for i in range(self.rounds):
            total += i % self.rounds
        self.x = total


class Masks(Vertex):
    """As `Remainders`, by a power of two that the code names."""

    x: InOut[INT]
    rounds: INT

    def compute(self) -> None:
        total = 0
        for i in range(self.rounds):
            total += i % 64
        self.x = total


class Gather(Vertex):
    """The sum of what other tiles hold."""

    x: Input[Vector[FLOAT]]
    total: Output[FLOAT]

    def compute(self) -> None:
        total = 0.0
        for i in range(len(self.x)):
            total += self.x[i]
        self.total = total


def found(bench: Bench, *programs: Program, options: dict[str, str] | None = None) -> dict[str, Insight]:
    """The findings of a run by their rules; they are told as any are: by weight, and by what they could save."""
    engine = bench.engine(Sequence(list(programs)), options={"profiler.includeFlopEstimates": "true", **(options or {})})
    engine.run()
    findings = insights(engine.getReport())
    assert all(finding.share >= 0.005 for finding in findings)
    return {finding.rule: finding for finding in findings}


def work(bench: Bench, rounds: dict[int, list[int]], codelet: type[Vertex] = Work, type: type = FLOAT) -> Execute:
    """A compute set of vertices with so many rounds on each tile."""
    compute_set = bench.graph.addComputeSet("work")
    for tile, vertices in rounds.items():
        for count in vertices:
            x = bench.graph.addVariable(type, [], f"x{tile}")
            bench.graph.setTileMapping(x, tile)
            bench.graph.setInitialValue(x, np.zeros([], type.dtype))
            bench.vertex(compute_set, codelet, tile, x=x, rounds=count)
    return Execute(compute_set)


def even(bench: Bench, rounds: int = 500, vertices: int = WORKERS) -> Execute:
    return work(bench, {tile: [rounds] * vertices for tile in range(TILES)})


def values(count: int) -> NDArray[np.float32]:
    return np.arange(count, dtype=np.float32)


@pytest.fixture
def bench() -> Bench:
    return Bench(tiny(TILES))


def test_a_tile_with_more_work_than_others_is_the_worst_balance(bench):
    finding = found(bench, work(bench, {tile: [1000 if tile == 2 else 500] * WORKERS for tile in range(TILES)}))["worst_balance"]
    assert finding.title == 'Worst tile balance: "work"'
    assert " The slowest is tile 2: " in finding.text
    assert 0.3 < finding.share < 0.375


def test_equal_work_has_no_worst_balance(bench):
    assert "worst_balance" not in found(bench, even(bench))


def test_a_tile_that_sends_most_is_the_limit_of_an_exchange_though_others_receive_as_much(bench):
    x, y = bench.variable("x", values(1200), 3), bench.variable("y", values(1200), [i // 400 for i in range(1200)])
    finding = found(bench, Copy(x, y, name="scatter"))["biggest_exchange"]
    assert finding.title == 'Biggest exchange: "scatter"'
    assert "and moves 4,800 B." in finding.text
    assert " The limit is tile 3: 1,200 cycles against 600 of the mean tile, 4,800 B sent." in finding.text


def test_a_tile_that_receives_most_is_the_limit_of_an_exchange(bench):
    x, y = bench.variable("x", values(1200), [i // 400 for i in range(1200)]), bench.variable("y", values(1200), 3)
    finding = found(bench, Copy(x, y, name="gather"))["biggest_exchange"]
    assert finding.text.endswith(" The limit is tile 3: 1,200 cycles against 600 of the mean tile, 4,800 B received, in 3 pieces.")


def test_the_slowest_tile_of_a_compute_set_is_told_with_its_exchange(bench):
    x, total = bench.variable("x", values(1200), 0), bench.variable("total", 0.0, 1)
    finding = found(bench, bench.execute(Gather, 1, x=x, total=total), even(bench, rounds=1))["worst_balance"]
    assert finding.text.endswith(" of the mean tile, 1 vertex of Gather (x 1,200), 4,800 B received.")


def test_what_stays_on_its_tile_is_no_exchange(bench):
    assert "biggest_exchange" not in found(bench, even(bench))


def stream(bench: Bench, mapping: list[int]) -> Copy:
    x = bench.variable("x", values(1200), mapping)
    return Copy(bench.graph.addHostToDeviceFIFO("images", FLOAT, 1200), x)


def streamed(bench: Bench, mapping: list[int]) -> dict[str, Insight]:
    engine = bench.engine(stream(bench, mapping))
    engine.connectStream("images", values(1200))
    engine.run()
    return {finding.rule: finding for finding in insights(engine.getReport())}


def test_a_stream_that_is_rearranged_is_an_exchange_with_bytes_and_a_link(bench):
    finding = streamed(bench, [i % TILES for i in range(1200)])["biggest_exchange"]
    assert finding.text.startswith('Rearranging the stream "images" between its order and the tensor\'s tiles takes ')
    assert "and moves 3,600 B." in finding.text
    assert " B sent, 900 B received, in 225 pieces." in finding.text
    assert finding.link.startswith("exchange?step=")


def test_a_stream_in_the_order_of_the_tiles_is_no_exchange(bench):
    assert "biggest_exchange" not in streamed(bench, [i // 300 for i in range(1200)])


def test_a_program_that_only_streams_is_bound_by_the_host(bench):
    finding = streamed(bench, [i // 300 for i in range(1200)])["host_bound"]
    assert (finding.title, finding.weight) == ("Bound by the host", "grave")


@pytest.mark.parametrize(("elements", "advice"), [(1200, "Copy more in fewer stream copies"), (120_000, "Send fewer bytes")])
def test_syncs_and_bytes_of_the_host_are_told_apart_and_what_is_more_is_advised(bench, elements, advice):
    x = bench.variable("x", values(elements), [i * TILES // elements for i in range(elements)])
    engine = bench.engine(Repeat(5, Copy(bench.graph.addHostToDeviceFIFO("images", FLOAT, elements), x)))
    engine.connectStream("images", values(elements))
    engine.run()
    report = engine.getReport()
    (finding,) = (one for one in insights(report) if one.rule == "host_bound")
    target = bench.graph.getTarget()
    syncs = round(5 * target.host_sync_seconds * target.getTileClockFrequency())
    cycles = sum(step.host_exchange_cycles for step in report.execution.steps)
    assert f" 5 transfers take {syncs:,} of them for syncs, " in finding.text
    assert finding.text.endswith(f" of the total; the rest, {1 - syncs / cycles:.1%} of them, for bytes.")
    assert finding.advice.startswith(advice)
    assert "eep data on the device over several runs, or move loops from the host into a Repeat." in finding.advice


def test_a_program_without_streams_is_not_bound_by_the_host(bench):
    assert "host_bound" not in found(bench, even(bench))


def test_many_small_steps_are_bound_by_their_syncs(bench):
    finding = found(bench, Repeat(100, even(bench, rounds=1)))["sync_bound"]
    assert (finding.title, finding.weight) == ("Bound by synchronisation", "grave")


def test_a_long_step_is_not_bound_by_its_sync(bench):
    assert "sync_bound" not in found(bench, even(bench, rounds=20_000))


def test_one_vertex_a_tile_leaves_worker_threads_idle(bench):
    finding = found(bench, even(bench, vertices=1))["idle_worker_threads"]
    assert finding.weight == "grave"
    assert 0.7 < finding.share < 5 / 6


def test_idle_threads_of_a_short_step_are_not_grave(bench):
    long = work(bench, {tile: [20_000] * WORKERS for tile in range(TILES)})
    finding = found(bench, long, even(bench, rounds=1500, vertices=1))["idle_worker_threads"]
    assert finding.weight == "good to know"
    assert 0.04 < finding.share < 0.07


def test_a_vertex_for_every_worker_leaves_none_idle(bench):
    assert "idle_worker_threads" not in found(bench, even(bench))


def test_a_tile_without_vertices_is_unused(bench):
    finding = found(bench, work(bench, {tile: [500] * WORKERS for tile in range(3)}))["unused_tiles"]
    assert finding.text.startswith("1 of 4 tiles never compute, 25.0%; the first is tile 3.")
    assert 0.2 < finding.share <= 0.25


def test_unused_tiles_of_a_program_that_hardly_computes_are_not_told(bench):
    assert "unused_tiles" not in found(bench, Repeat(1000, stream_of(bench)), work(bench, {0: [1] * WORKERS}))


def stream_of(bench: Bench) -> Copy:
    """Copies between tiles that take long."""
    x, y = bench.variable("x", values(1200), 0), bench.variable("y", values(1200), 1)
    return Copy(x, y)


def test_where_all_tiles_compute_none_is_unused(bench):
    assert "unused_tiles" not in found(bench, even(bench))


def test_the_dearest_vertex_type_is_told(bench):
    assert found(bench, even(bench))["dearest_vertex_type"].title.endswith('vertex type: "Work"')


def test_a_division_by_what_no_code_names_is_told_with_its_line(bench):
    of_lines = {"autoReport.outputExecutionProfile": "true"}
    finding = found(bench, work(bench, {tile: [500] * WORKERS for tile in range(TILES)}, Remainders, INT), options=of_lines)[
        "dearest_vertex_type"
    ]
    assert finding.weight == "grave"
    assert re.search(r" 9\d\.\d% of them go to line \d+ of test_programs\.py, `total \+= i % self\.rounds`\. Hand", finding.text)
    assert finding.advice.startswith("This line divides with a remainder, which is a subroutine")
    masks = found(bench, work(bench, {tile: [500] * WORKERS for tile in range(TILES)}, Masks, INT), options=of_lines)[
        "dearest_vertex_type"
    ]
    assert "divides" not in masks.advice


def test_vertices_that_hardly_cost_anything_are_not_told(bench):
    assert "dearest_vertex_type" not in found(bench, Repeat(1000, stream_of(bench)), even(bench, rounds=1))


def test_float_code_is_compared_with_the_peak_of_float_and_half_with_that_of_half(bench):
    in_float = found(bench, even(bench))["far_from_peak"]
    assert in_float.text.endswith(" of float, convolution units.")
    other = Bench(tiny(TILES))
    in_half = found(other, work(other, {0: [500] * WORKERS}, WorkInHalf, HALF))["far_from_peak"]
    assert in_half.text.endswith(" of half, convolution units.")


def test_code_without_floating_point_has_no_rate(bench):
    assert "far_from_peak" not in found(bench, stream_of(bench))


def held(bench: Bench, elements: list[int], options: dict[str, str] | None = None) -> dict[str, Insight]:
    """The findings of a program with so many floats on each tile."""
    for tile, count in enumerate(elements):
        bench.variable(f"x{tile}", values(count), tile)
    engine: Engine = bench.engine(Sequence([]), options=options)
    return {finding.rule: finding for finding in insights(engine.getReport())}


def test_a_tile_that_holds_more_than_others_is_the_fullest(bench):
    finding = held(bench, [1000, 1000, 20_000, 1000])["largest_tile"]
    assert (finding.title, finding.weight) == ("Fullest tile: 2", "good to know")


def test_tiles_that_are_equally_full_have_no_fullest(bench):
    assert "largest_tile" not in held(bench, [20_000] * TILES)


def test_tiles_that_do_not_fit_come_first(bench):
    limit = bench.graph.getTarget().getBytesPerTile() // 4
    finding = held(bench, [limit + 1, 10, limit + 1, 10], {"pypoplar.run_out_of_memory": "true"})["largest_tile"]
    assert finding.text.startswith("2 of 4 tiles do not fit. ")
    assert finding.weight == "grave"


def test_what_lives_at_times_only_has_a_peak(bench):
    temporary = bench.graph.addVariable(FLOAT, [10_000], "temporary")
    bench.graph.setTileMapping(temporary, 0)
    x = bench.variable("x", values(10_000), 0)
    finding = found(bench, Copy(x, temporary), Copy(temporary, x))["peak_liveness"]
    assert '"temporary" 40,000 B' in finding.text


def test_what_always_lives_has_no_peak(bench):
    assert "peak_liveness" not in found(bench, even(bench))


class Waves(Vertex):
    """Functions of software, on lines of their own."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            y = self.x[i] * 0.5  # math.tan() here is none
            wave = math.sin(y) + 1.0
            self.x[i] = wave + math.erf(y)


class Halve(Vertex):
    """One operation an element."""

    x: InOut[Vector[INT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] >>= 1


OF_LINES = {"autoReport.outputExecutionProfile": "true"}


def vectors(bench: Bench, codelet: type[Vertex], type: type, lengths: dict[int, list[int]], name: str = "vectors") -> Execute:
    """A compute set of vertices with vectors of these lengths on each tile."""
    compute_set = bench.graph.addComputeSet(name)
    for tile, of_tile in lengths.items():
        for length in of_tile:
            x = bench.graph.addVariable(type, [length], f"x{tile}")
            bench.graph.setTileMapping(x, tile)
            bench.graph.setInitialValue(x, np.ones(length, type.dtype))
            bench.vertex(compute_set, codelet, tile, x=x)
    return Execute(compute_set)


def test_a_function_of_software_is_told_with_its_line_and_price_and_what_another_form_saves(bench):
    program = vectors(bench, Waves, FLOAT, {tile: [50] * WORKERS for tile in range(TILES)})
    finding = found(bench, program, options=OF_LINES)["dearest_vertex_type"]
    assert finding.weight == "grave"
    assert re.search(r" 98\.\d% of them go to line \d+ of test_programs\.py, `wave = math\.sin\(y\) \+ 1\.0`\.", finding.text)
    assert finding.advice.startswith("This line calls math.sin, a function of software: it takes 2,30")
    assert "polynomial" in finding.advice
    least = re.search(r"could do with ([\d,]+), without the functions of software that it calls\.", finding.text)
    assert int(least[1].replace(",", "")) < 0.03 * 24 * 50 * 2302
    assert 0.97 < finding.share < 0.99


def test_a_function_that_is_not_the_dearest_line_is_told_with_its_own(bench):
    program = vectors(bench, Waves, FLOAT, {tile: [50] * WORKERS for tile in range(TILES)})
    engine = bench.engine(program, options=OF_LINES)
    engine.run()
    execution = engine.getReport().execution
    assert [line.names for line in dear_lines(execution, "Waves")] == [("sin",), ("erf",)]
    of_erf = dear_lines(execution, "Waves")[1]
    assert re.match(r"Line \d+ of test_programs\.py, `.*math\.erf\(y\)` calls math\.erf, a function", of_erf.told(None))


def test_without_lines_the_option_that_tells_them_is_named(bench):
    program = vectors(bench, Waves, FLOAT, {tile: [50] * WORKERS for tile in range(TILES)})
    engine = bench.engine(program)
    engine.run()
    (finding,) = (finding for finding in insights(engine.getReport()) if finding.rule == "dearest_vertex_type")
    assert "autoReport.outputExecutionProfile" in finding.advice


def test_half_is_advised_where_there_are_floats_only(bench):
    of_int = found(bench, vectors(bench, Halve, INT, {tile: [500] * WORKERS for tile in range(TILES)}))["dearest_vertex_type"]
    other = Bench(tiny(TILES))
    of_float = found(other, even(other))
    assert "half" not in of_int.advice
    assert "half halves the bytes" in of_float["dearest_vertex_type"].advice


def test_lines_of_a_librarys_estimated_vertices_are_not_offered(bench):
    x = bench.variable("x", values(4000), [i // 1000 for i in range(4000)])
    program = Sequence([])
    popops.expInPlace(bench.graph, x, program)
    finding = found(bench, program, options=OF_LINES)["dearest_vertex_type"]
    assert "line" not in finding.text
    assert finding.lines == ""
    assert "its code is not for editing" in finding.text
    assert finding.share <= 0.5


@pytest.mark.parametrize("cost", ["compiled", "scalar"])
def test_a_bound_is_never_above_what_was_charged(bench, cost):
    x, y = bench.variable("x", values(4000), [i // 1000 for i in range(4000)]), bench.variable("y", values(256), 0)
    program = vectors(bench, Waves, FLOAT, {0: [7]})
    of_library = Sequence([])
    poplin.addCodelets(bench.graph)
    popops.tanhInPlace(bench.graph, x, of_library)
    product = poplin.matMul(bench.graph, y.reshape([16, 16]), y.reshape([16, 16]), of_library)
    assert product.numElements() == 256
    engine = bench.engine(
        Sequence([program, of_library]),
        options={"profiler.includeFlopEstimates": "true", "pypoplar.codelet_cost": cost, **OF_LINES},
    )
    engine.run()
    execution = engine.getReport().execution
    assert all(charged.bound_cycles <= charged.cycles for charged in execution.cycles_by_vertex_type.values())
    for name in execution.lines.vertex_types:
        assert all((line.bound or 0) <= line.slots for line in execution.lines.lines(name))


def balance(bench: Bench, lengths: dict[int, list[int]]) -> Insight:
    return found(bench, vectors(bench, Halve, INT, lengths))["worst_balance"]


@pytest.mark.parametrize(
    ("of_tile", "words"),
    [
        ([4000], "split the vertex of tile 0"),
        ([4000, 100], "split the longest of the 2 vertices of tile 0"),
        ([4000, 3900, 4000, 100, 100, 100], "split the longest of the 6 vertices of tile 0"),
        ([4000, *[100] * 11], "split the longest of the 12 vertices of tile 0"),
        ([400] * 12, "move some of the 12 vertices of tile 0"),
        ([700, 400, 400, *[400] * 9], "move some of the 12 vertices of tile 0"),
    ],
)
def test_a_tile_that_waits_for_one_vertex_is_to_split_it_and_not_to_move_it(of_tile, words):
    finding = balance(Bench(tiny(TILES)), {0: of_tile, **{tile: [100] * WORKERS for tile in range(1, TILES)}})
    assert words in finding.advice
    assert ("to move one gains nothing" in finding.advice) is ("longest" in words)


def test_moving_gains_nothing_where_one_vertex_decides_and_splitting_what_was_promised():
    others = {tile: [100] * WORKERS for tile in range(1, TILES)}

    def cycles(lengths: dict[int, list[int]]) -> int:
        bench = Bench(tiny(TILES))
        engine = bench.engine(vectors(bench, Halve, INT, lengths))
        engine.run()
        return int(engine.getReport().execution.totalCycles.total)

    before = cycles({0: [4000, 100, 100], **others})
    assert cycles({0: [4000, 100], **others, 1: [100] * (WORKERS + 1)}) >= before
    finding = balance(Bench(tiny(TILES)), {0: [4000, 100, 100], **others})
    split = cycles({tile: [900] * 2 + [100] * 4 for tile in range(TILES)})
    assert before - split >= 0.9 * finding.share * before


def test_what_all_compute_sets_could_save_is_not_said_of_one():
    bench = Bench(tiny(TILES))
    sets = []
    for place in range(8):
        lengths = {tile: [900 if tile == place % TILES else 300] * WORKERS for tile in range(TILES)}
        sets.append(vectors(bench, Halve, INT, lengths, name=f"part{place}"))
    finding = found(bench, *sets)["worst_balance"]
    assert finding.title == "Tile balance of 8 compute sets"
    share = f"{finding.share:.1%}"
    assert finding.text.startswith(f"All compute sets together would save {share} of the total if each were spread evenly. In ")
    assert finding.text.count(share) == 1


def test_an_exchange_of_many_pieces_says_so_and_what_helps_and_does_not_ask_to_map_data_elsewhere(bench):
    words = 400
    x, y = bench.variable("x", values(2 * words), 0), bench.variable("y", values(words), 1)
    scattered = bench.engine(Copy(x.subSample(2, 0), y, name="columns"))
    scattered.run()
    report = scattered.getReport()
    (step,) = report.execution.steps
    assert step.pieces_by_tile.tolist() == [words, words, 0, 0]
    assert step.most_pieces == words
    assert step.exchange_cycles == 3 * words
    (finding,) = (one for one in insights(report) if one.rule == "biggest_exchange")
    assert finding.text.endswith(
        " Its time is that of its pieces: 400 pieces of 4 B in the mean, at 3 cycles each; its bytes in one piece would take 400."
    )
    promised = finding.share * report.execution.totalCycles.total
    assert "one piece" in finding.advice
    assert "pack them" in finding.advice
    assert "Map data" not in finding.advice
    whole = Bench(tiny(TILES))
    x, y = whole.variable("x", values(words), 0), whole.variable("y", values(words), 1)
    followed = whole.engine(Copy(x, y, name="columns"))
    followed.run()
    (step,) = followed.getReport().execution.steps
    assert (step.exchange_cycles, step.most_pieces) == (400, 1)
    assert report.execution.totalCycles.total - followed.getReport().execution.totalCycles.total == round(promised) == 800
    (finding,) = (one for one in insights(followed.getReport()) if one.rule == "biggest_exchange")
    assert "piece" not in finding.text + finding.advice


def test_summary_json_page_and_trace_tell_the_pieces_of_an_exchange(bench, tmp_path):
    x, y = bench.variable("x", values(800), 0), bench.variable("y", values(400), 1)
    engine = bench.engine(Repeat(3, Copy(x.subSample(2, 0), y, name="columns")))
    engine.run()
    report = engine.getReport()
    text = StringIO()
    engine.printProfileSummary(text, {"showExecutionSteps": "true"})
    assert "Exchange: 4,800 B sent, 4,800 B received, at most 1,200 pieces at a tile's port" in text.getvalue()
    assert "4,800 B sent, in 1,200 pieces" in text.getvalue()
    (step,) = summary_values(report)["execution"]["steps"]
    assert step["most_pieces"] == 1200
    assert step["slowest_tile"]["pieces"] == 1200
    listed = exchanges_data(report.compilation.exchanges, report.execution, Blocks())["list"]
    assert [(one["cycles"], one["pieces"], one["executions"]) for one in listed] == [(1200, 400, 3)]
    pva.save_report(report, tmp_path / "pieces.pop")
    (again,) = pva.openReport(tmp_path / "pieces.pop").execution.steps
    assert again.pieces_by_tile.tolist() == [1200, 1200, 0, 0]


def test_a_copy_that_stays_on_its_tile_is_not_asked_to_map_data_to_the_tiles_that_use_it(bench):
    x, y = bench.variable("x", values(400), 0), bench.variable("y", values(400), 0)
    finding = found(bench, Copy(x, y))["biggest_exchange"]
    assert "work in place" in finding.advice
    assert "Map data" not in finding.advice


class Dot(Vertex):
    """A sum of products."""

    x: Input[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    total: Output[FLOAT]

    def compute(self) -> None:
        total = 0.0
        for i in range(len(self.x)):
            total += self.x[i] * self.y[i]
        self.total = total


def test_sums_of_products_are_told_to_be_a_matrix_product(bench):
    compute_set = bench.graph.addComputeSet("dot")
    for number in range(TILES * WORKERS):
        tile = number % TILES
        x, y = (bench.variable(f"{name}{number}", values(500), tile) for name in "xy")
        bench.vertex(compute_set, Dot, tile, x=x, y=y, total=bench.variable(f"total{number}", 0.0, tile))
    findings = found(bench, Execute(compute_set))
    assert "poplin.matMul" in findings["dearest_vertex_type"].advice
    assert findings["dearest_vertex_type"].share > 0.65
    assert sum(finding.share for finding in findings.values() if not finding.of_memory) <= 1
    assert "poplin.matMul" not in found(other := Bench(tiny(TILES)), even(other))["dearest_vertex_type"].advice


class Shares(MultiVertex):
    """So many rounds for each element."""

    x: InOut[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        for i in ipu.worker_range(worker, len(self.x)):
            value = self.x[i]
            for _ in range(100):
                value = value * 0.5 + 1.0
            self.x[i] = value


class Alone(Vertex):
    """A long way for one number."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        for _ in range(1000):
            for i in range(len(self.x)):
                self.x[i] = self.x[i] * 0.5 + 1.0


def test_unequal_shares_of_a_multivertex_are_idle_threads_with_what_to_do(bench):
    unequal = found(bench, vectors(bench, Shares, FLOAT, {tile: [7] for tile in range(TILES)}, "shares"))
    finding = unequal["idle_worker_threads"]
    assert finding.title == 'Idle worker threads: "shares"'
    assert "1 vertex of Shares (x 7)" in finding.text
    assert 0.35 < finding.share < 5 / 12
    assert "7 elements take as long as 12" in finding.advice
    other = Bench(tiny(TILES))
    assert "idle_worker_threads" not in found(other, vectors(other, Shares, FLOAT, {tile: [12] for tile in range(TILES)}))


def test_idle_threads_name_compute_set_tile_and_vertices_and_what_to_divide(bench):
    few = found(bench, vectors(bench, Waves, FLOAT, {tile: [50] for tile in range(TILES)}, "waves"))["idle_worker_threads"]
    assert few.title == 'Idle worker threads: "waves"'
    assert ' The most in compute set "waves", on tile 0 (3 others take as long): ' in few.text
    assert few.text.endswith("1 vertex of Waves (x 50).")
    assert few.advice.endswith("its 1 vertex has a thread each, and to put those of several tiles on one gains nothing.")
    other = Bench(tiny(TILES))
    over = found(other, vectors(other, Waves, FLOAT, {tile: [50] * 7 for tile in range(TILES)}))["idle_worker_threads"]
    assert over.advice.startswith("Put a multiple of 6 equal vertices on each tile")


def test_a_tile_with_what_cannot_be_divided_is_waited_for_and_is_no_work_of_unused_tiles(bench):
    alone, beside = vectors(bench, Alone, FLOAT, {1: [1]}, "count"), even(bench)
    findings = found(bench, alone, beside)
    finding = findings["lone_vertices"]
    assert finding.title == 'Waiting for one tile: "count"'
    assert "1 tile computes, and all others wait for" in finding.text
    assert "1 vertex of Alone (x 1)." in finding.text
    assert 0.3 < finding.share < 1
    assert "compute set of a step before or behind it" in finding.advice
    other = Bench(tiny(TILES))
    assert "lone_vertices" not in found(other, vectors(other, Alone, FLOAT, {1: [4]}, "count"), even(other))


def test_what_each_part_of_a_vertex_does_once_is_not_promised_to_whom_divides_it(bench):
    promised = []
    for length in (2, 200):
        other = Bench(tiny(TILES))
        program = vectors(other, Waves, FLOAT, {tile: [length] for tile in range(TILES)})
        promised.append(found(other, program, options=OF_LINES)["idle_worker_threads"].share)
    once = Bench(tiny(TILES))
    program = vectors(once, Once, FLOAT, {tile: [4] for tile in range(TILES)})
    assert "idle_worker_threads" not in found(once, program, options=OF_LINES)
    assert promised[0] < promised[1] < 5 / 6


class Once(Vertex):
    """The same for any number of elements."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        self.x[0] = math.sin(math.sin(math.sin(self.x[0])))


def test_vertices_with_a_thread_each_are_told_to_be_divided_not_moved_to_unused_tiles(bench):
    few = found(bench, vectors(bench, Waves, FLOAT, {0: [50] * WORKERS, 1: [50] * WORKERS}))["unused_tiles"]
    assert "if it can be divided so and does not become more" in few.text
    assert "only dividing them helps" in few.advice
    other = Bench(tiny(TILES))
    many = found(other, vectors(other, Waves, FLOAT, {0: [50] * 12, 1: [50] * 12}))["unused_tiles"]
    assert "only dividing them helps" not in many.advice


class Searches(MultiVertex):
    """Each worker does something once, and has a share of the elements."""

    x: InOut[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        once = math.sin(math.sin(float(worker)))
        for i in ipu.worker_range(worker, self.x):
            self.x[i] = self.x[i] * 1.5 + once


def test_more_tiles_promise_no_more_than_splitting_a_multi_vertex_gains():
    def run(lengths):
        other = Bench(tiny(TILES))
        engine = other.engine(vectors(other, Searches, FLOAT, lengths), options=OF_LINES)
        engine.run()
        return engine.getReport()

    before, after = run({0: [2400], 1: [2400]}), run({tile: [1200] for tile in range(TILES)})
    (finding,) = (one for one in insights(before) if one.rule == "unused_tiles")
    cycles = [report.execution.totalCycles.total for report in (before, after)]
    assert finding.share == pytest.approx(1 - cycles[1] / cycles[0], rel=0.1)
    assert finding.share < 0.35  # not half, as there are twice as many tiles
    moved = run({0: [1200] * 2, 1: [1200] * 2})
    (finding,) = (one for one in insights(moved) if one.rule == "unused_tiles")
    gain = 1 - cycles[1] / moved.execution.totalCycles.total
    assert finding.share == pytest.approx(gain, rel=0.1)


def test_many_compute_sets_on_few_tiles_may_be_a_network_of_which_there_are_more():
    for sets, told in ((15, False), (16, True)):
        other = Bench(tiny(TILES))
        programs = [vectors(other, Waves, FLOAT, {0: [50] * 12}, f"set{number}") for number in range(sets)]
        assert ("as in a network that sorts" in found(other, *programs)["unused_tiles"].advice) is told


def test_the_dearest_vertex_type_is_the_one_that_tiles_wait_for(bench):
    """Though another one takes more slots, on more threads."""
    slow = vectors(bench, Waves, FLOAT, {tile: [20] for tile in range(TILES)}, "slow")
    busy = vectors(bench, Alone, FLOAT, {tile: [1] * WORKERS for tile in range(TILES)}, "busy")
    engine = bench.engine(Sequence([slow, busy]), options=OF_LINES)
    engine.run()
    costs = engine.getReport().execution.cycles_by_vertex_type
    assert costs["Alone"].cycles > costs["Waves"].cycles
    (finding,) = (one for one in insights(engine.getReport()) if one.rule == "dearest_vertex_type")
    assert finding.title == 'Most expensive vertex type: "Waves"'
    cycles = {step.name: step.compute_cycles for step in engine.getReport().execution.steps}
    assert cycles["slow"] > cycles["busy"]
    assert finding.text.startswith(f'Tiles wait {cycles["slow"]:,} cycles for vertices of "Waves", ')


def test_a_librarys_vertices_on_few_tiles_are_told_to_be_mapped_by_rows():
    other = Bench(tiny(16))
    x = other.graph.addVariable(FLOAT, [8, 200], "x")
    other.graph.setInitialValue(x, np.ones([8, 200], np.float32))
    other.graph.setTileMapping(x, 3)
    sequence = Sequence([even(other, rounds=5)])
    popops.addCodelets(other.graph)
    popops.mapInPlace(other.graph, popops.expr.Tanh(popops.expr._1), [x], sequence, "tanh")
    assert "mapTensorLinearly(graph, t, row, row)" in found(other, sequence)["worst_balance"].advice


class Many(Vertex):
    """Nothing of this can be one tensor, which the compiler does not know."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    c: Output[Vector[FLOAT]]
    d: Output[Vector[FLOAT]]
    rate: FLOAT
    bias: FLOAT

    def compute(self) -> None:
        for i in range(len(self.a)):
            self.c[i] = self.a[i] * self.rate + self.bias
            self.d[i] = self.b[i] * self.rate - self.bias


class Locals(Vertex):
    """As `Many`, with the fields in locals."""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    c: Output[Vector[FLOAT]]
    d: Output[Vector[FLOAT]]
    rate: FLOAT
    bias: FLOAT

    def compute(self) -> None:
        rate, bias = self.rate, self.bias
        for i in range(len(self.a)):
            self.c[i] = self.a[i] * rate + bias
            self.d[i] = self.b[i] * rate - bias


class Choice(Vertex):
    """What no element is above."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            value = self.x[i]
            if value > 0.5:
                value = 0.5
            self.x[i] = value * 2.0 + 1.0


class Minimum(Vertex):
    """As `Choice`, without a branch."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] = min(self.x[i], 0.5) * 2.0 + 1.0


class Aligned8(Vertex):
    """As `Minimum`, aligned."""

    x: InOut[Annotated[Vector[FLOAT], Aligned(8)]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] = min(self.x[i], 0.5) * 2.0 + 1.0


def four(bench: Bench, codelet: type[Vertex]) -> Execute:
    """A compute set of vertices with four vectors and two numbers."""
    compute_set = bench.graph.addComputeSet("four")
    for number in range(TILES * WORKERS):
        fields = {name: bench.variable(f"{name}{number}", values(200), number % TILES) for name in "abcd"}
        bench.vertex(compute_set, codelet, number % TILES, **fields, rate=1.5, bias=0.5)
    return Execute(compute_set)


def slots_of(bench: Bench, program: Program) -> tuple[Insight, int, int]:
    """The finding about the dearest vertex type, the slots that it names for hand-written code, and those that it takes."""
    engine = bench.engine(program, options={**OF_LINES, "profiler.includeFlopEstimates": "true"})
    engine.run()
    report = engine.getReport()
    (finding,) = (one for one in insights(report) if one.rule == "dearest_vertex_type")
    (cost,) = report.execution.cycles_by_vertex_type.values()
    least = re.search(r"could do with ([\d,]+)", finding.text)
    return finding, int(least[1].replace(",", "")), cost.cycles


@pytest.mark.parametrize(
    ("make", "reason", "cure"),
    [
        (lambda bench, first: four(bench, Many if first else Locals), "to tell that nothing overlaps takes", "into locals"),
        (
            lambda bench, first: vectors(
                bench, Choice if first else Minimum, FLOAT, {tile: [500] * WORKERS for tile in range(TILES)}
            ),
            "there are branches in it",
            "`min`, `max`",
        ),
    ],
    ids=["fields", "branch"],
)
def test_a_loop_that_is_not_on_vectors_is_told_with_line_reason_and_cure_and_its_bound_is_not_beaten(bench, make, reason, cure):
    finding, least, slots = slots_of(bench, make(bench, True))
    assert re.search(
        r" Its loop of line \d+ of test_programs\.py, `for i in range\(len\(self\.[ax]\)\):` takes 9\d\.\d% of", finding.text
    )
    assert f"it does not run on vectors ({reason}" in finding.text
    assert cure in finding.advice
    other = Bench(tiny(TILES))
    cured, _, fewer = slots_of(other, make(other, False))
    assert least <= fewer < 0.8 * slots
    assert "on vectors" not in cured.text + cured.advice


def test_what_aligned_vectors_save_is_told_and_is_what_they_save(bench):
    lengths = {tile: [500] * WORKERS for tile in range(TILES)}
    finding, _, slots = slots_of(bench, vectors(bench, Minimum, FLOAT, lengths))
    saved = re.search(
        r"Let x begin at multiples of 8 bytes, .*Aligned\(8\)\]`: .* the vertices ([\d.]+)% fewer slots", finding.advice
    )
    other = Bench(tiny(TILES))
    aligned, _, fewer = slots_of(other, vectors(other, Aligned8, FLOAT, lengths))
    assert float(saved[1]) / 100 == pytest.approx(1 - fewer / slots, abs=0.001)
    assert "Aligned" not in aligned.advice


class ScaledBits(Vertex):
    """Integers, beside one number that is none."""

    x: InOut[Vector[INT]]
    rate: FLOAT

    def compute(self) -> None:
        many = int(self.rate)
        for i in range(len(self.x)):
            self.x[i] = (self.x[i] >> 1) + many


def test_half_is_not_advised_for_integers_beside_a_number(bench):
    compute_set = bench.graph.addComputeSet("bits")
    for number in range(TILES * WORKERS):
        x = bench.variable(f"x{number}", np.ones(500, np.int32), number % TILES)
        bench.vertex(compute_set, ScaledBits, number % TILES, x=x, rate=3.0)
    assert "half" not in found(bench, Execute(compute_set))["dearest_vertex_type"].advice


def test_the_price_of_a_function_is_that_of_the_listing_and_stands_beside_what_its_line_takes(bench):
    for name, function in FUNCTIONS.items():
        assert function.price == OPERATIONS[f"{name}_f32"].price("ipu2").slots
        assert function.half == OPERATIONS[f"{name}_f16"].price("ipu2").slots
    program = vectors(bench, Errors, FLOAT, {tile: [50] * WORKERS for tile in range(TILES)})
    finding = found(bench, program, options=OF_LINES)["dearest_vertex_type"]
    assert re.search(
        r"calls math\.erf, a function of software: it takes 4[2-9] slots each time, 41 of them for it\.", finding.advice
    )


@pytest.mark.parametrize(
    ("vertex_type", "told"),
    [
        (
            "popops::Map<mul(_1,sin(_1)),float>",
            "It computes a function of software, in slots of each element: sin 2,300. In half, sin 25. Or map something else: on ",
        ),
        ("popops::Map<add(tan(_1),erf(_1)),float>", "in slots of each element: tan 5,100, erf 41. In half, erf 13. Or map"),
        ("popops::Map<tan(_1),float>", "tan 5,100. In half it takes no less. Or map something else: on a bounded interval"),
        ("popops::Map<pow(_1,_2),float>", "pow 312. In half it takes no less."),
    ],
)
def test_a_librarys_operation_is_told_with_the_functions_of_software_that_it_computes(vertex_type, told):
    assert told in dear_operation(vertex_type)


def test_a_librarys_operation_without_functions_of_software_and_of_halves_has_none_to_tell(bench):
    assert {dear_operation(name) for name in ("popops::Map<exp(_1),float>", "popops::Map<sin(_1),half>", "Wave")} == {""}
    popops.addCodelets(bench.graph)
    x, program = bench.variable("x", np.ones(400, np.float32), 0), Sequence()
    popops.sin(bench.graph, x, program)
    advice = found(bench, program)["dearest_vertex_type"].advice
    assert "sin 2,300" in advice
    assert "half as much" not in advice


class Errors(Vertex):
    """One function of software."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] = math.erf(self.x[i])


def error(x: float) -> float:
    """What is told to be written in the place of `math.erf`."""
    t = 1.0 / (1.0 + 0.3275911 * abs(x))
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return min(max(x * 1e30, -1.0), 1.0) * (1.0 - p * math.exp(-x * x))


class OtherErrors(Vertex):
    """As `Errors`, by an approximation."""

    x: InOut[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] = error(self.x[i])


def test_another_form_of_a_function_takes_no_less_than_was_promised(bench):
    lengths = {tile: [500] * WORKERS for tile in range(TILES)}
    finding, least, slots = slots_of(bench, vectors(bench, Errors, FLOAT, lengths))
    other = Bench(tiny(TILES))
    _, _, fewer = slots_of(other, vectors(other, OtherErrors, FLOAT, lengths))
    assert least <= fewer < 1.35 * least
    assert 1 - fewer / slots <= finding.share + 0.02
    assert "takes about 27 slots, and 16 in a loop on vectors" in finding.advice


class Pick(Vertex):
    """Some elements of many."""

    table: Input[Vector[FLOAT]]  # self.table[:] is only said here
    where: Input[Vector[INT]]
    total: Output[FLOAT]

    def compute(self) -> None:
        total = float(len(self.table))
        for i in range(len(self.where)):
            total += self.table[self.where[i]]
        self.total = total


class PickOfSlice(Vertex):
    """As `Pick`, of a slice, of which nobody knows what is read."""

    table: Input[Vector[FLOAT]]
    where: Input[Vector[INT]]
    total: Output[FLOAT]

    def compute(self) -> None:
        total = 0.0
        some = self.table[0 : len(self.table)]
        for i in range(len(self.where)):
            total += some[self.where[i]]
        self.total = total


def pick(bench: Bench, codelet: type[Vertex], read: int) -> Insight:
    """The biggest exchange where vertices read so many of 1,200 elements of another tile."""
    x, where = bench.variable("x", values(1200), 0), bench.variable("where", np.arange(read, dtype=np.int32), 1)
    program = bench.execute(codelet, 1, table=x, where=where, total=bench.variable("total", 0.0, 1))
    return found(bench, Repeat(3, program), options=OF_LINES)["biggest_exchange"]


def test_an_exchange_of_which_little_is_read_says_how_little_and_to_connect_that(bench):
    finding = pick(bench, Pick, 20)
    assert ' Of the 1,200 elements of "table" that a vertex of Pick is connected to, it reads 80 at most' in finding.text
    assert finding.advice.startswith('Connect only the elements of "table" that are read: `concat` of slices')
    assert "Map data" not in finding.advice
    whole = pick(Bench(tiny(TILES)), PickOfSlice, 20)
    assert "it reads" not in whole.text
    assert finding.share == pytest.approx(whole.share * (1 - 80 / 1200), rel=0.1)


@pytest.mark.parametrize(("read", "told"), [(75, True), (76, False), (1200, False)])
def test_an_exchange_of_which_a_quarter_may_be_read_is_told_as_any(bench, read, told):
    assert ("it reads" in pick(bench, Pick, read).text) is told


class PickOfRows(Vertex):
    """As `Pick`, of rows, of which each is read in full."""

    table: Input[VectorList[FLOAT]]
    total: Output[FLOAT]

    def compute(self) -> None:
        total = 0.0
        for k in range(len(self.table)):
            row = self.table[k]
            for i in range(len(row)):
                total += row[i]
        self.total = total


def test_rows_of_a_list_are_not_taken_for_what_is_read_of_it(bench):
    x = bench.variable("x", values(1200), 0).reshape([4, 300])
    program = bench.execute(PickOfRows, 1, table=x, total=bench.variable("total", 0.0, 1))
    assert "it reads" not in found(bench, program, options=OF_LINES)["biggest_exchange"].text


def test_a_vertex_that_takes_a_little_longer_than_all_others_is_not_what_tiles_wait_for(bench):
    compute_set = bench.graph.addComputeSet("both")
    for number in range(TILES * WORKERS):
        tile = number % TILES
        x = bench.graph.addVariable(FLOAT, [50], f"x{number}")
        bench.graph.setTileMapping(x, tile)
        bench.graph.setInitialValue(x, 1.0)
        if tile:
            bench.vertex(compute_set, Waves, tile, x=x)
    alone = bench.variable("alone", np.zeros(32, np.float32), 0)
    bench.vertex(compute_set, Alone, 0, x=alone)
    findings = found(bench, Execute(compute_set), options=OF_LINES)
    assert "1 vertex of Alone (x 32)" in findings["worst_balance"].text
    assert findings["dearest_vertex_type"].title == 'Most expensive vertex type: "Waves"'
    assert findings["idle_worker_threads"].share < 0.25  # those of the other tiles are busy
