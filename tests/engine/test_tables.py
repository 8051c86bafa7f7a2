"""Constant tables in programs: both engines read them, and each lies once in the memory of the tiles that do."""

import io
import re

import numpy as np
import pytest
from engine_builder import tiny

from pypoplar import (
    FLOAT,
    Engine,
    Executable,
    Graph,
    GraphMemoryAllocationError,
    Input,
    IPUModel,
    MultiVertex,
    Output,
    Vector,
    Vertex,
    compileGraph,
)
from pypoplar.program import Execute, Sequence

TAPS = (0.25, 0.5, 0.25)
MATRIX = np.arange(6).reshape(2, 3)
LARGE = np.zeros(70_000, np.float32)


class Smooth(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            total = 0.0
            for k in range(len(TAPS)):
                total += TAPS[k] * self.x[i + k]
            self.y[i] = total


class Rows(MultiVertex):
    y: Output[Vector[FLOAT]]
    WEIGHTS = [0.25, 0.5, 0.25]  # equal to TAPS

    def compute(self, worker):
        for i in range(worker, len(self.y), 6):
            self.y[i] = MATRIX[i % 2][i % 3] + self.WEIGHTS[i % 3]


class Big(Vertex):
    y: Output[FLOAT]

    def compute(self):
        self.y = LARGE[3]


EXPECTED = [0.25 * i + 0.5 * (i + 1) + 0.25 * (i + 2) for i in range(6)] + [0.25, 4.5, 2.25, 3.25, 1.5, 5.25]


def program():
    """`Smooth` on tiles 0 and 1, then `Rows` on tile 1; results on tile 3."""
    graph = Graph(tiny())
    x, y, z = graph.addConstant(FLOAT, [8], np.arange(8), "x"), *(graph.addVariable(FLOAT, [6], name) for name in "yz")
    for tensor in (x, y, z):
        graph.setTileMapping(tensor, 3)
    smooth, rows = graph.addComputeSet("smooth"), graph.addComputeSet("rows")
    for tile in (0, 1):
        part = {"x": x[3 * tile : 3 * tile + 5], "y": y[3 * tile : 3 * tile + 3]}
        graph.setTileMapping(graph.addVertex(smooth, Smooth, part), tile)
    graph.setTileMapping(graph.addVertex(rows, Rows, {"y": z}), 1)
    graph.createHostRead("y", y)
    graph.createHostRead("z", z)
    return graph, Sequence([Execute(smooth), Execute(rows)])


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_both_engines_read_tables_also_of_an_executable_that_was_saved(mode):
    executable = compileGraph(*program())
    for one in (executable, Executable.deserialize(executable.serialize())):
        engine = Engine(one, mode=mode)
        engine.load(IPUModel("tiny").createDevice())
        engine.run()
        assert [*engine.readTensor("y"), *engine.readTensor("z")] == EXPECTED


def test_a_table_lies_once_in_the_memory_of_each_tile_that_reads_it():
    memory = compileGraph(*program()).memory
    taps, matrix = 16, 24  # bytes, in steps of 8; the weights of `Rows` are the taps
    assert memory.constant_tables[:4].tolist() == [taps, taps + matrix, 0, 0]


def test_the_report_and_the_summary_count_tables():
    engine = Engine(*program())
    memory = engine.getReport().compilation.tiles[1].memory
    assert memory.category["constant_tables"] == memory.category.constantTables.total == 40
    assert memory.alwaysLiveBytes >= 40
    summary = io.StringIO()
    engine.printProfileSummary(summary)
    assert re.search(r"constant tables: +56 B", summary.getvalue(), re.IGNORECASE)


def test_tables_that_fill_a_tile_are_named_where_memory_does_not_suffice():
    graph = Graph(tiny())
    compute_set, out = graph.addComputeSet("big"), graph.addVariable(FLOAT, [100_000], "out")
    graph.setTileMapping(out, 0)
    graph.setTileMapping(graph.addVertex(compute_set, Big, {"y": out[0]}), 0)
    with pytest.raises(GraphMemoryAllocationError, match="constant tables 280,000"):
        compileGraph(graph, Execute(compute_set))
