"""From nothing to the first result: importing, and a first program of three codelets with a warm and an empty cache."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Figure, Row, in_new_process

IMPORT = """
import time, json
begin = time.perf_counter()
import pypoplar
print(json.dumps({"seconds": time.perf_counter() - begin}))
"""
FIRST = "from benchmarks import startup; startup.first_program(); print('{}')"


def first_program() -> None:
    """Three codelets on 16 tiles each, one after the other."""
    from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex
    from pypoplar.program import Execute, Sequence

    class Square(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):  # type: ignore[no-untyped-def]
            for i in range(len(self.x)):
                self.y[i] = self.x[i] * self.x[i]

    class Shift(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):  # type: ignore[no-untyped-def]
            for i in range(len(self.x)):
                self.y[i] = self.x[i] + 1.0

    class Largest(Vertex):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

        def compute(self):  # type: ignore[no-untyped-def]
            largest = self.x[0]
            for value in self.x:
                largest = max(largest, value)
            for i in range(len(self.y)):
                self.y[i] = largest

    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    tensors = [graph.addVariable(FLOAT, [16, 4], f"t{number}") for number in range(4)]
    steps = []
    for tensor in tensors:
        for tile in range(16):
            graph.setTileMapping(tensor[tile], tile)
    for codelet, source, target in zip((Square, Shift, Largest), tensors, tensors[1:], strict=False):
        compute_set = graph.addComputeSet(codelet.__name__)
        for tile in range(16):
            vertex = graph.addVertex(compute_set, codelet, {"x": source[tile], "y": target[tile]})
            graph.setTileMapping(vertex, tile)
        steps.append(Execute(compute_set))
    graph.createHostWrite("in", tensors[0])
    graph.createHostRead("out", tensors[-1])
    engine = Engine(graph, Sequence(steps))
    engine.load(device)
    values = np.arange(64, dtype=np.float32).reshape(16, 4)
    engine.writeTensor("in", values)
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("out"), np.repeat((values**2 + 1).max(1), 4).reshape(16, 4))


def measure(smoke: bool) -> list[Figure]:
    repeats = 1 if smoke else 5

    def median(once: Callable[[], float]) -> float:
        return statistics.median(once() for _ in range(repeats))

    with tempfile.TemporaryDirectory() as warm:
        imported = median(lambda: in_new_process(IMPORT, PYPOPLAR_CACHE_DIR=warm)["seconds"])
        in_new_process(FIRST, PYPOPLAR_CACHE_DIR=warm)
        again = median(lambda: in_new_process(FIRST, PYPOPLAR_CACHE_DIR=warm)["wall"])
    return [
        Figure("import pypoplar", imported, "s", 0.5),
        Figure("first program of three codelets, warm cache, from the start of Python", again, "s", 1.0),
        Figure("the same with an empty cache", median(with_empty_cache), "s", 2.0),
    ]


def with_empty_cache() -> float:
    with tempfile.TemporaryDirectory() as empty:
        return float(in_new_process(FIRST, PYPOPLAR_CACHE_DIR=empty)["wall"])


ROW = Row("startup", measure)
