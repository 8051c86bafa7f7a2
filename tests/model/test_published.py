"""Published figures against what the model predicts: every row of the table in docs/model.md, by running what was measured."""

import contextlib
import functools
import importlib.util
import io
import re
from pathlib import Path

import numpy as np
import published_codelets as published
import pytest

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    Engine,
    Graph,
    InOut,
    Input,
    IPUModel,
    Output,
    Vector,
    VectorList,
    Vertex,
    concat,
    poplin,
    popops,
)
from pypoplar.program import Copy, Execute, Repeat, Sequence
from pypoplar.target import RelativeSyncDelayType, Target

ROOT = Path(__file__).parents[2]
COLUMNS = (r"(?P<what>[^|]+)", r"(?P<chip>\w+)", r"(?P<published>[^|]+)", "[DM]", r"(?P<predicted>[^|]+)", r"(?P<error>[^|]+) %")
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
    spec = importlib.util.spec_from_file_location("tut6", ROOT / "tutorials" / "tut6_matrix_vector_opt.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class MatrixVector:
    """The tutorial's graph; its estimates are set after it has run without."""

    def __init__(self, chip, rows=10000, columns=1000, by_host=False):
        model = IPUModel(chip)
        model.minIPUSyncDelay, model.relativeSyncDelay = 0, RelativeSyncDelayType.NO_DELAY
        self.device, self.estimates = model.createDevice(), []
        self.graph = graph = Graph(self.device)
        graph.addCodelets(tutorial().DotProductVertex, tutorial().ReduceVertex)
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
def matrix_vector(chip):
    """Execution without and with the tutorial's estimates. ipu1's older release did not rearrange streams on the IPU."""
    made = MatrixVector(chip, by_host=chip == "ipu1")
    return (made.execution() if chip == "ipu2" else None), made.estimated()


def model(chip):
    return matrix_vector(chip)[1]


def hardware():
    return matrix_vector("ipu2")[0]


def plan(chip, part):
    """The planner of the tutorial: 0 for its best total, 1 to 4 for its parts, -1 for the worst total."""
    target = IPUModel(chip).createDevice().getTarget()
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
def halo_exchange(tiles=128, columns=2, side=100):
    """Ten rounds forth and back, as published; all but the first and the last row of tiles are alike, so fewer tiles do."""
    chip = IPUModel("ipu1")
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


def one_tile(chip, codelets=()):
    device_model = IPUModel(chip)
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


def add_floats(n):
    device, graph = one_tile("bow")
    popops.addCodelets(graph)
    program = Sequence()
    popops.add(graph, on_tile(graph, FLOAT, [n]), on_tile(graph, FLOAT, [n]), program)
    engine = Engine(graph, program)
    engine.load(device)
    engine.run()
    (step,) = engine.getReport().execution.steps
    return int(step.cyclesByTile[0])


def convolution(rows):
    """ConvPartial1x1Out of 16 channels, which poplin's block product stands for."""
    device, graph = one_tile("bow")
    poplin.addCodelets(graph)
    compute_set = graph.addComputeSet("conv")
    fields = {"a": on_tile(graph, HALF, [rows, 16]), "b": on_tile(graph, HALF, [16, 16]), "out": on_tile(graph, FLOAT, [rows, 16])}
    vertex = graph.addVertex(compute_set, "poplin::BlockProduct<half>", {**fields, "rowGroups": 6, "columnShare": 16})
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
def triad():
    """Elements a second of 1472 tiles whose six workers have 7500 each, by the estimate of an assembler loop: a pair in a slot."""
    elements, workers = 7500, 6
    device, graph = one_tile("ipu2", [Triad])
    compute_set = graph.addComputeSet("triad")
    for _ in range(workers):
        fields = {name: on_tile(graph, FLOAT, [elements]) for name in "abc"}
        vertex = graph.addVertex(compute_set, "Triad", {**fields, "k": 2.0})
        graph.setTileMapping(vertex, 0)
        pair = 2 * 3 * FLOAT.size  # two loads and a store of 64 bits, which the memory allows in one cycle
        graph.setPerfEstimate(vertex, 12 + 3 * FLOAT.size * elements // pair)
    seconds = compute_cycles(device, graph, compute_set) / 1.33e9
    return 1472 * workers * elements / seconds


def peak(chip):
    target = Target.of_preset(chip)
    units = target.getNumConvUnits(FLOAT, FLOAT) * target.getConvUnitInputLoadElemsPerCycle(FLOAT)
    return 2 * units * target.getNumTiles() * target.getTileClockFrequency()


class AddFloat(Vertex):
    data: InOut[Vector[FLOAT]]
    c: FLOAT

    def compute(self):
        c = self.c  # in a register, as in the listing
        for i in range(len(self.data)):
            self.data[i] += c


class AddOne(Vertex):
    data: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.data)):
            self.data[i] += 1


def slots_of_element(codelet, type, **values):
    cycles = []
    for n in (100, 200):
        device, graph = one_tile("ipu1", [codelet])
        compute_set = graph.addComputeSet("loop")
        vertex = graph.addVertex(compute_set, codelet.__name__, {"data": on_tile(graph, type, [n]), **values})
        graph.setTileMapping(vertex, 0)
        cycles.append(compute_cycles(device, graph, compute_set))
    return (cycles[1] - cycles[0]) / 6 / 100


def of_type(name, what):
    return getattr(model("ipu1").cycles_by_vertex_type[name], what)


PREDICTIONS = {
    "Tutorial: planner, best total, ipu2": lambda: plan("ipu2", 0),
    "Tutorial: planner, compute, ipu2": lambda: plan("ipu2", 1),
    "Tutorial: planner, exchange, ipu2": lambda: plan("ipu2", 2),
    "Tutorial: planner, exchange of the reduction, ipu2": lambda: plan("ipu2", 3),
    "Tutorial: planner, reduction, ipu2": lambda: plan("ipu2", 4),
    "Tutorial: planner, worst total, ipu2": lambda: plan("ipu2", -1),
    "Tutorial: planner, worst total, ipu1": lambda: plan("ipu1", -1),
    "Tutorial: total cycles, ipu2": lambda: model("ipu2").totalCycles.total,
    "Tutorial: compute with idle threads, ipu2": lambda: model("ipu2").tile_average.compute_including_idle,
    "Tutorial: compute without idle threads, ipu2": lambda: model("ipu2").tile_average.compute_excluding_idle,
    "Tutorial: IPU exchange, ipu2": lambda: model("ipu2").tile_average.exchange,
    "Tutorial: host exchange, ipu2": lambda: model("ipu2").tile_average.host_exchange,
    "Tutorial: sync, ipu2": lambda: model("ipu2").tile_average.sync,
    "Tutorial on hardware: compute of the compiled codelets, ipu2": lambda: hardware().tile_average.compute_including_idle,
    "Tutorial on hardware: IPU exchange, ipu2": lambda: hardware().tile_average.exchange,
    "Tutorial on hardware: host exchange, ipu2": lambda: hardware().tile_average.host_exchange,
    "Tutorial: total cycles, ipu1": lambda: model("ipu1").totalCycles.total,
    "Tutorial: compute with idle threads, ipu1": lambda: model("ipu1").tile_average.compute_including_idle,
    "Tutorial: compute without idle threads, ipu1": lambda: model("ipu1").tile_average.compute_excluding_idle,
    "Tutorial: IPU exchange, ipu1": lambda: model("ipu1").tile_average.exchange,
    "Tutorial: host exchange, ipu1": lambda: model("ipu1").tile_average.host_exchange,
    "Tutorial: sync, ipu1": lambda: model("ipu1").tile_average.sync,
    "Tutorial: instances of DotProductVertex, ipu1": lambda: of_type("DotProductVertex", "instances"),
    "Tutorial: cycles of DotProductVertex, ipu1": lambda: of_type("DotProductVertex", "cycles"),
    "Tutorial: instances of ReduceVertex, ipu1": lambda: of_type("ReduceVertex", "instances"),
    "Tutorial: cycles of ReduceVertex, ipu1": lambda: of_type("ReduceVertex", "cycles"),
    "Halo exchange: total cycles, ipu1": lambda: halo_exchange().totalCycles.total,
    "Halo exchange: IPU exchange, ipu1": lambda: halo_exchange().tile_average.exchange,
    "BinaryOp1D add f32: 10 elements, bow": lambda: add_floats(10),
    "BinaryOp1D add f32: 1024 elements, bow": lambda: add_floats(1024),
    "ConvPartial1x1 f16: 16 rows, bow": lambda: convolution(16),
    "ConvPartial1x1 f16: 1024 rows, bow": lambda: convolution(1024),
    "ConvPartial1x1 f16: 2048 rows, bow": lambda: convolution(2048),
    "STREAM triad f32 in assembler: TB/s, ipu2": lambda: triad() * 3 * FLOAT.size / 1e12,
    "STREAM triad f32 in assembler: TFLOP/s, ipu2": lambda: triad() * 2 / 1e12,
    "AMP f32: peak TFLOP/s, bow": lambda: peak("bow") / 1e12,
    "Listing of `data[i] += c` on floats: slots an element, ipu1": lambda: slots_of_element(AddFloat, FLOAT, c=1.0),
    "The same, aligned and vectorised: slots an element, ipu1": lambda: slots_of_element(AddFloat, FLOAT, c=1.0),
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


def test_every_row_of_the_document_is_predicted():
    assert rows().keys() == PREDICTIONS.keys()


@pytest.mark.parametrize("what", PREDICTIONS)
def test_a_published_figure_is_predicted_with_the_error_that_the_document_states(what):
    row, predicted = rows()[what], PREDICTIONS[what]()
    published, shown = number(row["published"]), row["predicted"]
    decimals = len(shown.partition(".")[2])
    assert f"{predicted:,.{decimals}f}" == shown
    assert f"{100 * (predicted / published - 1):+.1f}" == row["error"].strip()
