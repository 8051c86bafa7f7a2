"""A million vertices with two edges each through the bulk form: build, check for races, lower; time and memory."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.measure import Figure, Row, in_new_process, peak_bytes
from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex
from pypoplar.program import Execute


class Double(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.x)):
            self.y[i] = self.x[i] + self.x[i]


def build(vertices: int) -> dict[str, float]:
    """Build and compile the graph; seconds of both and the most memory held."""
    model = IPUModel()
    Engine(*program(model, 100))  # warms the cache of compiled codelets
    begin = time.perf_counter()
    graph, execute = program(model, vertices)
    middle = time.perf_counter()
    Engine(graph, execute)
    return {"graph": middle - begin, "engine": time.perf_counter() - middle, "bytes": peak_bytes()}


def program(model: IPUModel, vertices: int) -> tuple[Graph, Execute]:
    graph = Graph(model.createDevice().getTarget())
    tiles = np.arange(vertices) * graph.getTarget().getNumTiles() // vertices
    x = graph.addVariable(FLOAT, [vertices, 2], "x")
    y = graph.addVariable(FLOAT, [vertices, 2], "y")
    for tile in range(graph.getTarget().getNumTiles()):
        begin, end = (int(one) for one in np.searchsorted(tiles, [tile, tile + 1]))
        graph.setTileMapping(x.slice(begin, end), tile)
        graph.setTileMapping(y.slice(begin, end), tile)
    compute_set = graph.addComputeSet("double")
    graph.add_vertices(compute_set, Double, {"x": x, "y": y}, tiles)
    return graph, Execute(compute_set)


def measure(smoke: bool) -> list[Figure]:
    count = 2000 if smoke else 1_000_000
    taken = in_new_process(f"from benchmarks import vertices; vertices.main({count})")
    return [
        Figure(f"{count} vertices with 2 edges: build, check for races, lower", taken["graph"] + taken["engine"], "s", 5.0,
               details=taken),
        Figure("  the most memory held", taken["bytes"] / 1e9, "GB", 3.0),
    ]  # fmt: skip


def main(vertices: int) -> None:
    json.dump(build(vertices), sys.stdout)


ROW = Row("vertices", measure)
