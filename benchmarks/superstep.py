"""The cost of a superstep that does next to nothing: one vertex of one element on every tile, inside Repeat."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import Figure, Row, seconds
from pypoplar import INT, Engine, Graph, InOut, IPUModel, Vertex
from pypoplar.program import Execute, Repeat


class Increment(Vertex):
    x: InOut[INT]

    def compute(self):  # type: ignore[no-untyped-def]
        self.x += 1


def engine(rounds: int, options: dict[str, str] | None = None) -> Any:
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())
    tiles = graph.getTarget().getNumTiles()
    x = graph.addVariable(INT, [tiles], "x")
    graph.setInitialValue(x, [0] * tiles)
    graph.createHostRead("x", x)
    compute_set = graph.addComputeSet("increment")
    for tile in range(tiles):
        graph.setTileMapping(x[tile], tile)
        graph.setTileMapping(graph.addVertex(compute_set, Increment, {"x": x[tile]}), tile)
    made = Engine(graph, Repeat(rounds, Execute(compute_set)), options)
    made.load(device)
    return made


def measure(smoke: bool) -> list[Figure]:
    rounds, repeats = (10, 1) if smoke else (20000, 7)
    figures = []
    for what, options, target in (
        ("superstep of 1472 one-element vertices on 1472 tiles", None, 20.0),
        ("  the same with flops, bytes and lines counted", {"profiler.includeFlopEstimates": "true"}, 15.0),
    ):
        made = engine(rounds, options)
        taken = seconds(made.run, repeats)
        assert (made.readTensor("x") == rounds * (repeats + 1)).all()
        figures.append(Figure(what, taken / rounds * 1e6, "us", target))
    return figures


ROW = Row("superstep", measure)
