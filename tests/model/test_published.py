"""Published figures against what the model predicts: every row of the table in docs/model.md, by running what was measured."""

import contextlib
import functools
import io
import json
import re
from pathlib import Path
from typing import Annotated

import numpy as np
import published_codelets as published
import pytest
from tutorial_modules import tutorial_module

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Aligned,
    Engine,
    Graph,
    InOut,
    Input,
    IPUModel,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
    concat,
    ipu,
    poplin,
    popops,
)
from pypoplar.presets import CHIPS, TIMINGS
from pypoplar.program import Copy, Execute, Repeat, Sequence
from pypoplar.target import RelativeSyncDelayType, Target

ROOT = Path(__file__).parents[2]
COLUMNS = (
    *(r"(?P<what>[^|]+)", r"(?P<chip>\w+)", "(?P<timing>model|hardware|both)", r"(?P<published>[^|]+)", "(?P<mark>[DM])"),
    *(r"(?P<predicted>[^|]+)", r"(?P<error>[^|]+) %"),
)
ROW = re.compile(r"\| " + r" \| ".join(COLUMNS) + r" \|")


def rows():
    text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8").split("## Published figures")[1].split("\n## ")[0]
    found = [one.groupdict() for one in map(ROW.match, text.splitlines()) if one]
    lines = sum(line.startswith("| ") for line in text.splitlines()) - 2
    assert len(found) == lines, "a row of the table is not of the table's form"

    return {f"{one['what']}, {one['chip']}": one for one in found}


def number(text):
    return float(text.split()[0].replace(",", ""))


# The matrix-vector tutorial, 10000 x 1000


@functools.cache
def tutorial():
    return tutorial_module("tut6_matrix_vector_opt")


class MatrixVector:
    """The tutorial's graph, on a model with the syncs that the tutorial gives it, or on hardware with its own."""

    def __init__(self, chip, timing, rows=10000, columns=1000, by_host=False, codelets=()):
        model = IPUModel(chip, timing)
        if timing == "model":
            model.minIPUSyncDelay, model.relativeSyncDelay = 0, RelativeSyncDelayType.NO_DELAY
        self.device, self.estimates = model.createDevice(), []
        self.graph = graph = Graph(self.device)
        graph.addCodelets(*(codelets or (tutorial().DotProductVertex, tutorial().ReduceVertex)))
        matrix, vector = graph.addVariable(FLOAT, [rows, columns]), graph.addVariable(FLOAT, [columns])
        result = graph.addVariable(FLOAT, [rows])
        set_estimate, graph.setPerfEstimate = graph.setPerfEstimate, lambda *given: self.estimates.append(given)
        with contextlib.redirect_stdout(io.StringIO()):
            multiply = tutorial().buildMultiplyProgram(graph, matrix, vector, result)
        graph.setPerfEstimate = set_estimate
        self.data = {"vector": np.ones(columns, np.float32), "matrix": np.ones((rows, columns), np.float32)}
        self.data["out"] = np.zeros(rows, np.float32)
        inV, inM = (graph.addHostToDeviceFIFO(name, FLOAT, self.data[name].size) for name in ("vector", "matrix"))
        out = graph.addDeviceToHostFIFO("out", FLOAT, rows)
        self.program = Sequence([Copy(inV, vector, by_host), Copy(inM, matrix, by_host), multiply, Copy(result, out, by_host)])

    def execution(self):
        engine = Engine(self.graph, self.program)
        engine.load(self.device)
        for name, array in self.data.items():
            engine.connectStream(name, array)
        engine.run()
        assert (self.data["out"] == 1000).all()
        return engine.getReport().execution

    def estimated(self):
        for one in self.estimates:
            self.graph.setPerfEstimate(*one)
        return self.execution()


@functools.cache
def estimated(chip, timing):
    """The tutorial with its estimates. ipu1's older release did not rearrange streams on the IPU."""
    return MatrixVector(chip, timing, by_host=chip == "ipu1").estimated()


@functools.cache
def compiled(timing):
    """The tutorial with its codelets as they are compiled."""
    return MatrixVector("ipu2", timing).execution()


IN_CPP = """
#include <poplar/Vertex.hpp>
using namespace poplar;
struct DotProductVertex : Vertex {
  Input<Vector<float>> a, b; Output<float> out;
  bool compute() {
    float total = 0;
    for (unsigned i = 0; i < a.size(); ++i) total += a[i] * b[i];
    *out = total;
    return true;
  }
};
struct ReduceVertex : Vertex {
  Input<Vector<float>> in; Output<float> out;
  bool compute() {
    float total = 0;
    for (auto value : in) total += value;
    *out = total;
    return true;
  }
};
"""


def plan(chip, timing, part):
    """The planner of the tutorial: 0 for its best total, 1 to 4 for its parts, -1 for the worst total."""
    target = IPUModel(chip, timing).createDevice().getTarget()
    costs = [tutorial().estimateCycles(target, 10000, 1000, split) for split in range(1, 1000)]
    return max(cost[0] for cost in costs) if part < 0 else min(costs)[part]


# The halo exchange


class IncludedHalos(Vertex):
    block: Input[VectorList[FLOAT]]
    out: Output[VectorList[FLOAT]]

    def compute(self):
        for y in range(len(self.out)):
            for x in range(len(self.out[y])):
                self.out[y][x] = self.block[y][x] + self.block[y + 2][x + 2]


class Fill(Vertex):
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = 1.0


def with_halo(tensor, constant, row, column, rows, columns, side):
    """A block of a tensor with its neighbours' edges, zeros where it has no neighbour."""
    bands = []
    for down in (-1, 0, 1):
        parts = []
        for right in (-1, 0, 1):
            at, to = (row + down, column + right), (row + down + 1, column + right + 1)
            first = [side * one + (side - 1 if step < 0 else 0) for one, step in zip(at, (down, right), strict=True)]
            last = [side * one - (side - 1 if step > 0 else 0) for one, step in zip(to, (down, right), strict=True)]
            shape = [end - begin for begin, end in zip(first, last, strict=True)]
            inside = 0 <= at[0] < rows and 0 <= at[1] < columns
            parts.append(tensor.slice(first, last) if inside else constant(shape))
        bands.append(concat(parts, 1))
    return concat(bands)


@functools.cache
def halo_exchange(timing, tiles=128, columns=2, side=100):
    """Ten rounds forth and back, as published; all but the first and the last row of tiles are alike, so fewer tiles do."""
    chip = IPUModel("ipu1", timing)
    chip.tilesPerIPU = tiles
    device = chip.createDevice()
    graph = Graph(device)
    graph.addCodelets(IncludedHalos, Fill)
    grid = [graph.addVariable(FLOAT, [tiles // columns * side, columns * side]) for _ in range(2)]
    sets = [graph.addComputeSet(name) for name in ("fill", "forth", "back")]
    for tile in range(tiles):
        row, column = divmod(tile, columns)
        begin, end = [row * side, column * side], [(row + 1) * side, (column + 1) * side]
        for tensor in grid:
            graph.setTileMapping(tensor.slice(begin, end), tile)

        def zeros(shape, tile=tile):
            made = graph.addConstant(FLOAT, shape, np.zeros(shape, np.float32))
            graph.setTileMapping(made, tile)
            return made

        fields = [("Fill", {"out": grid[0].slice(begin, end).flatten()})]
        for one, other in (grid, grid[::-1]):
            block = with_halo(one, zeros, row, column, tiles // columns, columns, side)
            fields.append(("IncludedHalos", {"block": block, "out": other.slice(begin, end)}))
        for compute_set, (codelet, connected) in zip(sets, fields, strict=True):
            vertex = graph.addVertex(compute_set, codelet, connected)
            graph.setTileMapping(vertex, tile)
            graph.setPerfEstimate(vertex, 100)
    engine = Engine(graph, Sequence([Execute(sets[0]), Repeat(10, Sequence([Execute(sets[1]), Execute(sets[2])]))]))
    engine.load(device)
    engine.run()
    return engine.getReport().execution


# Single tiles


def one_tile(chip, timing, codelets=()):
    device_model = IPUModel(chip, timing)
    device_model.tilesPerIPU = 2
    device = device_model.createDevice()
    graph = Graph(device)
    graph.addCodelets(*codelets)
    return device, graph


def compute_cycles(device, graph, compute_set):
    engine = Engine(graph, Execute(compute_set))
    engine.load(device)
    engine.run()
    (step,) = engine.getReport().execution.steps
    return int(step.cyclesByTile[0])


def on_tile(graph, type, shape):
    made = graph.addVariable(type, shape)
    graph.setTileMapping(made, 0)
    graph.setInitialValue(made, np.zeros(shape, type.dtype))
    return made


def add_floats(n, timing):
    device, graph = one_tile("bow", timing)
    popops.addCodelets(graph)
    program = Sequence()
    popops.add(graph, on_tile(graph, FLOAT, [n]), on_tile(graph, FLOAT, [n]), program)
    engine = Engine(graph, program)
    engine.load(device)
    engine.run()
    (step,) = engine.getReport().execution.steps
    return int(step.cyclesByTile[0])


def convolution(rows, timing):
    """ConvPartial1x1Out of 16 channels, which poplin's block product stands for."""
    device, graph = one_tile("bow", timing)
    poplin.addCodelets(graph)
    compute_set = graph.addComputeSet("conv")
    lengths = {"a": (HALF, 16 * rows), "b": (HALF, 16 * 16), "out": (FLOAT, 16 * rows)}
    fields = {name: on_tile(graph, type, [length]) for name, (type, length) in lengths.items()}
    shape = {"groups": 1, "depth": 16, "columns": 16, "stride": 16, "rowGroups": 6, "columnShare": 16}
    vertex = graph.addVertex(compute_set, "poplin::BlockProduct<half,float>", {**fields, **shape})
    graph.setTileMapping(vertex, 0)
    return compute_cycles(device, graph, compute_set)


class Triad(Vertex):
    a: Output[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    c: Input[Vector[FLOAT]]
    k: FLOAT

    def compute(self):
        for i in range(len(self.a)):
            self.a[i] = self.b[i] + self.k * self.c[i]


@functools.cache
def triad(timing):
    """Elements a second of 1472 tiles whose six workers have 7500 each, by the estimate of an assembler loop: a pair in a slot."""
    elements, workers = 7500, 6
    device, graph = one_tile("ipu2", timing, [Triad])
    compute_set = graph.addComputeSet("triad")
    for _ in range(workers):
        fields = {name: on_tile(graph, FLOAT, [elements]) for name in "abc"}
        vertex = graph.addVertex(compute_set, "Triad", {**fields, "k": 2.0})
        graph.setTileMapping(vertex, 0)
        pair = 2 * 3 * FLOAT.size  # two loads and a store of 64 bits, which the memory allows in one cycle
        graph.setPerfEstimate(vertex, 12 + 3 * FLOAT.size * elements // pair)
    seconds = compute_cycles(device, graph, compute_set) / 1.33e9
    return 1472 * workers * elements / seconds


def peak(chip, timing):
    target = Target.of_preset(chip, timing=timing)
    units = target.getNumConvUnits(FLOAT, FLOAT) * target.getConvUnitInputLoadElemsPerCycle(FLOAT)
    return 2 * units * target.getNumTiles() * target.getTileClockFrequency()


class AddFloat(Vertex):
    data: InOut[Vector[FLOAT]]
    c: FLOAT

    def compute(self):
        c = self.c  # in a register, as in the listing
        for i in range(len(self.data)):
            self.data[i] += c


class AddPairs(AddFloat):
    data: InOut[Annotated[Vector[FLOAT], Aligned(8)]]


class AddOne(Vertex):
    data: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.data)):
            self.data[i] += 1


class Volatile(SupervisorVertex):
    """``for (volatile int i{}; i < 100; ++i);``: every access is made, as scalar prices have it."""

    i: InOut[INT]

    def compute(self):
        self.i = 0
        while self.i < 100:
            self.i += 1


class LongVolatile(SupervisorVertex):
    """The same with twice the rounds."""

    i: InOut[INT]

    def compute(self):
        self.i = 0
        while self.i < 200:
            self.i += 1


class Counter(SupervisorVertex):
    """Stores both words of the cycle counter."""

    out: Output[Vector[UNSIGNED_INT]]

    def compute(self):
        self.out[0] = ipu.cycle_count()
        self.out[1] = ipu.cycle_count()


def in_turn(timing, codelet, fields, options=None):
    """An engine that has run two compute sets in turn, each of one vertex on the same tile."""
    device, graph = one_tile("ipu2", timing, [codelet])
    sets = []
    for number in range(2):
        compute_set = graph.addComputeSet(f"set {number}")
        vertex = graph.addVertex(compute_set, codelet, fields(graph, number))
        graph.setTileMapping(vertex, 0)
        sets.append(Execute(compute_set))
    engine = Engine(graph, Sequence(sets), options)
    engine.load(device)
    engine.run()
    return engine


def volatile(timing, codelet=Volatile):
    """Cycles of two vertices in compute sets in turn."""

    def fields(graph, number):
        return {"i": on_tile(graph, INT, [])}

    return in_turn(timing, codelet, fields, {"pypoplar.codelet_cost": "scalar"}).getReport().execution.totalCycles.total


def readings(timing):
    """Cycles from a reading of the counter to that of the next compute set."""

    def fields(graph, number):
        words = on_tile(graph, UNSIGNED_INT, [2])
        graph.createHostRead(f"words {number}", words)
        return {"out": words}

    engine = in_turn(timing, Counter, fields)
    first, second = (int(engine.readTensor(f"words {number}")[0]) for number in range(2))
    return second - first


def stream_of_an_int(timing):
    _, graph = one_tile("ipu2", timing)
    program = Copy(graph.addHostToDeviceFIFO("in", INT, 1), on_tile(graph, INT, [1]))
    (step,) = Engine(graph, program).executable.steps[1:]
    return step.fixed_cycles


def slots_of_element(codelet, type, **values):
    cycles = []
    for n in (100, 200):
        device, graph = one_tile("ipu1", "model", [codelet])
        compute_set = graph.addComputeSet("loop")
        vertex = graph.addVertex(compute_set, codelet.__name__, {"data": on_tile(graph, type, [n]), **values})
        graph.setTileMapping(vertex, 0)
        cycles.append(compute_cycles(device, graph, compute_set))
    return (cycles[1] - cycles[0]) / 6 / 100


def of_type(name, what, timing):
    return getattr(estimated("ipu1", timing).cycles_by_vertex_type[name], what)


TIMED = {  # functions of the target's timing
    "Tutorial: planner, best total, ipu2": lambda timing: plan("ipu2", timing, 0),
    "Tutorial: planner, compute, ipu2": lambda timing: plan("ipu2", timing, 1),
    "Tutorial: planner, exchange, ipu2": lambda timing: plan("ipu2", timing, 2),
    "Tutorial: planner, exchange of the reduction, ipu2": lambda timing: plan("ipu2", timing, 3),
    "Tutorial: planner, reduction, ipu2": lambda timing: plan("ipu2", timing, 4),
    "Tutorial: planner, worst total, ipu2": lambda timing: plan("ipu2", timing, -1),
    "Tutorial: planner, worst total, ipu1": lambda timing: plan("ipu1", timing, -1),
    "Tutorial: total cycles, ipu2": lambda timing: estimated("ipu2", timing).totalCycles.total,
    "Tutorial: compute with idle threads, ipu2": lambda timing: estimated("ipu2", timing).tile_average.compute_including_idle,
    "Tutorial: compute without idle threads, ipu2": lambda timing: estimated("ipu2", timing).tile_average.compute_excluding_idle,
    "Tutorial: IPU exchange, ipu2": lambda timing: estimated("ipu2", timing).tile_average.exchange,
    "Tutorial: host exchange, ipu2": lambda timing: estimated("ipu2", timing).tile_average.host_exchange,
    "Tutorial: sync, ipu2": lambda timing: estimated("ipu2", timing).tile_average.sync,
    "Tutorial on hardware: compute of the compiled codelets, ipu2": lambda timing: (
        compiled(timing).tile_average.compute_including_idle
    ),
    "Tutorial on hardware: IPU exchange, ipu2": lambda timing: compiled(timing).tile_average.exchange,
    "Tutorial on hardware: host exchange, ipu2": lambda timing: compiled(timing).tile_average.host_exchange,
    "Tutorial: total cycles, ipu1": lambda timing: estimated("ipu1", timing).totalCycles.total,
    "Tutorial: compute with idle threads, ipu1": lambda timing: estimated("ipu1", timing).tile_average.compute_including_idle,
    "Tutorial: compute without idle threads, ipu1": lambda timing: estimated("ipu1", timing).tile_average.compute_excluding_idle,
    "Tutorial: IPU exchange, ipu1": lambda timing: estimated("ipu1", timing).tile_average.exchange,
    "Tutorial: host exchange, ipu1": lambda timing: estimated("ipu1", timing).tile_average.host_exchange,
    "Tutorial: sync, ipu1": lambda timing: estimated("ipu1", timing).tile_average.sync,
    "Tutorial: instances of DotProductVertex, ipu1": lambda timing: of_type("DotProductVertex", "instances", timing),
    "Tutorial: cycles of DotProductVertex, ipu1": lambda timing: of_type("DotProductVertex", "cycles", timing),
    "Tutorial: instances of ReduceVertex, ipu1": lambda timing: of_type("ReduceVertex", "instances", timing),
    "Tutorial: cycles of ReduceVertex, ipu1": lambda timing: of_type("ReduceVertex", "cycles", timing),
    "Halo exchange: total cycles, ipu1": lambda timing: halo_exchange(timing).totalCycles.total,
    "Halo exchange: IPU exchange, ipu1": lambda timing: halo_exchange(timing).tile_average.exchange,
    "BinaryOp1D add f32: 10 elements, bow": lambda timing: add_floats(10, timing),
    "BinaryOp1D add f32: 1024 elements, bow": lambda timing: add_floats(1024, timing),
    "ConvPartial1x1 f16: 16 rows, bow": lambda timing: convolution(16, timing),
    "ConvPartial1x1 f16: 1024 rows, bow": lambda timing: convolution(1024, timing),
    "ConvPartial1x1 f16: 2048 rows, bow": lambda timing: convolution(2048, timing),
    "STREAM triad f32 in assembler: TB/s, ipu2": lambda timing: triad(timing) * 3 * FLOAT.size / 1e12,
    "STREAM triad f32 in assembler: TFLOP/s, ipu2": lambda timing: triad(timing) * 2 / 1e12,
    "AMP f32: peak TFLOP/s, bow": lambda timing: peak("bow", timing) / 1e12,
    "Rounds of a SupervisorVertex: cycles of one, ipu2": lambda timing: (volatile(timing, LongVolatile) - volatile(timing)) / 200,
    "Two compute sets in turn, of a SupervisorVertex each: cycles, ipu2": volatile,
    "Two readings of the cycle counter in compute sets in turn: cycles between, ipu2": readings,
    "Stream of an int: cycles, ipu2": stream_of_an_int,
}
UNTIMED = {  # what the compiler makes of a codelet
    "Listing of `data[i] += c` on floats: slots an element, ipu1": lambda: slots_of_element(AddFloat, FLOAT, c=1.0),
    "The same, aligned and vectorised: slots an element, ipu1": lambda: slots_of_element(AddPairs, FLOAT, c=1.0),
    "Listing of `data[i] += 1` on ints: slots an element, ipu1": lambda: slots_of_element(AddOne, INT),
    "Listing of Aliev-Panfilov: bundles a point, ipu2": lambda: len(published.inner_round(published.AlievPanfilov, "ipu2").bundles),
    "Listing of Aliev-Panfilov: instructions a point, ipu2": lambda: published.instructions(
        published.inner_round(published.AlievPanfilov, "ipu2")
    ),
    "Listing of a masked loop of squares: slots an element, ipu1": lambda: published.inner_round(published.Squares, "ipu1").slots,
    "The same, ipu2": lambda: published.inner_round(published.Squares, "ipu2").slots,
    "An operation on 32-bit integers: slots, ipu2": lambda: published.straight_slots(published.Integers),
    "The same, `~`, ipu2": lambda: published.straight_slots(published.Inverted),
    "An operation on 64-bit integers, `&`: slots, ipu2": lambda: published.straight_slots(published.WideAnd),
    "The same, `+`, ipu2": lambda: published.straight_slots(published.WideSum),
    "The same, `*`, ipu2": lambda: published.straight_slots(published.WideProduct),
    "The same, `~` on 64 bits, ipu2": lambda: published.straight_slots(published.WideInverted),
    "The same, `<<`, ipu2": lambda: published.straight_slots(published.WideShift),
}


# What was predicted before targets had a timing, but for compiled code
BEFORE = json.loads((Path(__file__).parent / "predictions_of_the_vendors_model.json").read_text(encoding="utf-8"))


def predicted(what, timing):
    return TIMED[what](timing) if what in TIMED else UNTIMED[what]()


LONG = {"Tutorial: total cycles, ipu1"}  # the same program as for ipu2


def test_every_row_of_the_document_is_predicted():
    assert rows().keys() == {**TIMED, **UNTIMED}.keys()
    assert not TIMED.keys() & UNTIMED.keys()


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=pytest.mark.slow if what in LONG else ()) for what in (*TIMED, *UNTIMED)]
)
def test_a_published_figure_is_predicted_with_the_error_that_the_document_states(what):
    row = rows()[what]
    published, shown = number(row["published"]), row["predicted"]
    decimals = len(shown.partition(".")[2])
    for timing in ("model", "hardware") if row["timing"] == "both" else (row["timing"],):
        prediction = predicted(what, timing)
        assert f"{prediction:,.{decimals}f}" == shown
        assert f"{100 * (prediction / published - 1):+.1f}" == row["error"].strip()


@pytest.mark.slow
def test_the_published_product_of_matrix_and_vector_costs_the_same_in_cpp():
    pytest.importorskip("clang")
    in_cpp = MatrixVector("ipu2", "hardware", codelets=(io.StringIO(IN_CPP),)).execution()
    assert in_cpp.tile_average == compiled("hardware").tile_average
    assert f"{in_cpp.tile_average.compute_including_idle:,.1f}" == rows()[
        "Tutorial on hardware: compute of the compiled codelets, ipu2"]["predicted"]  # fmt: skip


def test_the_settings_of_the_document_are_those_of_the_targets():
    text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8").split("## Timing")[1].split("\n## ")[0]
    shown = {}
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith(("| setting", "| ---")):
            what, *figures = (cell.strip() for cell in line.strip("|").split("|"))
            shown[re.match(r"`?([\w ]+)", what)[1]] = figures[:2]

    def figures(timing):
        ipu1, ipu2, bow = (Target.of_preset(chip, timing=timing) for chip in CHIPS)
        return {
            "syncs_without_exchange": "yes" if ipu2.syncs_without_exchange else "no",
            "compute_set_start_cycles": f"{ipu2.compute_set_start_cycles}",
            "host_sync_seconds": f"{ipu2.host_sync_seconds * 1e6:.2f} us",
            "host link": f"{ipu2.host_write_bytes_per_second / 1e9:g} GB/s",
            "supervisor_instruction_cycles": f"{ipu2.supervisor_instruction_cycles}",
            "rptCountMax": f"{ipu1.rpt_count_max}; {bow.rpt_count_max}",
        }

    assert shown == {name: [figures(timing)[name] for timing in TIMINGS] for name in figures("model")}


def test_a_row_names_its_timing_where_that_makes_a_difference():
    assert all(rows()[what]["timing"] == "both" for what in UNTIMED)
    assert {row["timing"] for row in rows().values() if row["mark"] == "D"} <= {"model", "both"}


@pytest.mark.parametrize("what", BEFORE)
def test_the_timing_of_the_vendors_model_moves_no_prediction_by_a_percent(what):
    assert predicted(what, "model") == pytest.approx(BEFORE[what], rel=0.01)


def test_every_row_of_the_vendors_model_is_held_to_what_it_was():
    assert {what for what, row in rows().items() if row["timing"] == "model"} <= BEFORE.keys()
