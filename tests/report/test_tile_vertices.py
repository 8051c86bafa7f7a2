"""Vertices by tile, and those of the tile that a compute step waits for."""

import numpy as np
import pytest
from attrs import evolve
from engine_builder import Add, Bench, tiny
from profile_reports import full_report

from pypoplar import FLOAT, HALF, Engine, InOut, Input, Output, Vector, VectorList, Vertex, pva
from pypoplar.program import Execute, Repeat, Sequence
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices, VerticesByTile

TILES = 4


class Rows(Vertex):
    """The sum of all rows."""

    rows: Input[VectorList[FLOAT]]
    total: Output[FLOAT]
    scale: FLOAT

    def compute(self) -> None:
        total = 0.0
        for i in range(len(self.rows)):
            for j in range(len(self.rows[i])):
                total += self.rows[i][j]
        self.total = total * self.scale


class Double(Vertex):
    x: InOut[Vector[HALF]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * 2.0


@pytest.fixture
def bench() -> Bench:
    return Bench(tiny(TILES))


def mixed(bench: Bench) -> Sequence:
    """Vertices of three types in two compute sets; the first waits for tile 2."""
    first, second = bench.graph.addComputeSet("first"), bench.graph.addComputeSet("second")
    for tile, sizes in {0: [10], 2: [30, 200, 100]}.items():
        for number, size in enumerate(sizes):
            x = bench.variable(f"x{tile}{number}", np.zeros(size), tile, HALF)
            bench.vertex(first, Double, tile, x=x)
    lists = [[3, 5], [100], [2, 2, 2]]
    for number, rows in enumerate(lists):
        tensors = [bench.variable(f"row{number}{place}", np.ones(size), 2) for place, size in enumerate(rows)]
        total = bench.variable(f"total{number}", 0.0, 2)
        bench.vertex(first, Rows, 2, rows=tensors, total=total, scale=1.0)
    bench.vertex(second, Add, 1, value=bench.variable("value", 0, 1), amount=1)
    return Sequence([Repeat(3, Execute(first)), Execute(second), Execute(first)])


def ran(bench: Bench, program: Sequence, options: dict[str, str] | None = None) -> Engine:
    engine = bench.engine(program, options=options)
    engine.run()
    return engine


@pytest.mark.parametrize("races", ["regions", "elements"])
def test_the_vertices_of_the_slowest_tile_are_told_with_their_sizes(bench, races):
    execution = ran(bench, mixed(bench), {"pypoplar.races": races}).getReport().execution
    told = {step.name: execution.slowest_vertices[step.number] for step in execution.steps if step.type == "OnTileExecute"}
    assert sorted(told["first"], key=lambda vertices: vertices.name) == [
        SizedVertices("Double", 3, (FieldSizes("x", 30, 200),)),
        SizedVertices("Rows", 3, (FieldSizes("rows", 6, 100),)),
    ]
    assert told["second"] == (SizedVertices("Add", 1),)
    assert told["first"][0].told() == "3 vertices of Double (x 30 to 200)"
    assert told["second"][0].told() == "1 vertex of Add"


@pytest.mark.parametrize("races", ["regions", "elements"])
def test_the_vertices_of_all_tiles_take_what_their_types_take(bench, races):
    engine = ran(bench, mixed(bench), {"pypoplar.races": races})
    compilation = engine.getReport().compilation
    by_tile = [{vertices.name: vertices.count for vertices in tile.memory.vertices} for tile in compilation.tiles]
    assert by_tile == [{"Double": 1}, {"Add": 1}, {"Double": 3, "Rows": 3}, {}]
    for kind in compilation.vertex_types:
        own = [vertices for tile in compilation.tiles for vertices in tile.memory.vertices if vertices.type.name == kind.name]
        assert (sum(vertices.count for vertices in own), sum(vertices.size for vertices in own)) == (kind.instances, kind.memory)
    pointers = compilation.memory.categories["edge_pointers"]
    doubles = [vertices.size for tile in compilation.tiles[:1] for vertices in tile.memory.vertices]
    assert doubles == [pointers[0]]
    rows = next(vertices for vertices in compilation.tiles[2].memory.vertices if vertices.name == "Rows")
    assert rows.size == 3 * (4 + 4 * 2 + 4 + 8) + 6 * 8  # itself, a list, a pointer, its state; six rows


def test_a_compute_set_knows_its_cycles_by_tile(bench):
    report = ran(bench, mixed(bench)).getReport()
    sets = {compute_set.name: compute_set for compute_set in report.compilation.computeSets}
    for name, compute_set in sets.items():
        rows = [step.cyclesByTile for step in report.execution.steps if step.name == name and step.type == "OnTileExecute"]
        assert len(rows) == {"first": 2, "second": 1}[name]
        assert compute_set.cyclesByTile().tolist() == np.sum(rows, 0).tolist()
    assert np.flatnonzero(sets["first"].cyclesByTile()).tolist() == [0, 2]


def test_a_compute_set_that_has_not_run_has_no_cycles(bench):
    (compute_set, _) = bench.engine(mixed(bench)).getReport().compilation.computeSets
    assert compute_set.cyclesByTile().tolist() == []


def test_a_file_has_them_all(tmp_path, bench):
    report = ran(bench, mixed(bench)).getReport()
    pva.save_report(report, tmp_path / "profile.pop")
    read = pva.openReport(tmp_path / "profile.pop")
    assert read.execution.slowest_vertices == report.execution.slowest_vertices
    for tile, other in zip(read.compilation.tiles, report.compilation.tiles, strict=True):
        assert tile.memory.vertices == other.memory.vertices
    for compute_set, other in zip(read.compilation.computeSets, report.compilation.computeSets, strict=True):
        assert compute_set.cyclesByTile().tolist() == other.cyclesByTile().tolist()


def test_vertices_of_types_that_a_report_does_not_have_are_refused(tmp_path):
    report = full_report()
    memory = report.compilation.memory
    with pytest.raises(ValueError, match=r"memory\.vertices has other types than vertex_types"):
        pva.save_report(
            evolve(
                report,
                compilation=evolve(
                    report.compilation, memory=evolve(memory, vertices=evolve(memory.vertices, names=("Zero", "Multiply<float>")))
                ),
            ),
            tmp_path / "profile.pop",
        )


def test_vertices_that_are_not_known_by_tile_are_absent_and_not_none():
    report = full_report()
    memory = evolve(report.compilation.memory, vertices=VerticesByTile())
    tile = evolve(report.compilation, memory=memory).tiles[0]
    with pytest.raises(AttributeError, match="the profile is of an older version, profile the program again"):
        _ = tile.memory.vertices
