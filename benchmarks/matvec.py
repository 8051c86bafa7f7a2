"""Matrix times vector in segments: graph building, Engine, and the two compute sets against NumPy.

The same program as the example: one `addVertex`, `slice` and `setTileMapping` at a time, as a newcomer writes it.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex
from pypoplar.program import Copy, Execute, Repeat, Sequence


class DotProduct(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):  # type: ignore[no-untyped-def]
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Reduce(Vertex):
    in_: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):  # type: ignore[no-untyped-def]
        self.out = 0.0
        for value in self.in_:
            self.out += value


def build(rows: int, columns: int, segments: int) -> tuple[Any, Any, Any]:
    """The graph, the program that loads the operands, and the program of the two compute sets."""
    graph = Graph(IPUModel().createDevice().getTarget())
    graph.addCodelets(DotProduct, Reduce)
    tiles = graph.getTarget().getNumTiles()
    matrix = graph.addVariable(FLOAT, [rows, columns], "matrix")
    vector = graph.addVariable(FLOAT, [columns], "vector")
    result = graph.addVariable(FLOAT, [rows], "result")
    partials = graph.addVariable(FLOAT, [rows, segments], "partials")
    for i in range(columns):
        graph.setTileMapping(vector[i], i * tiles // columns)
    multiply = graph.addComputeSet("multiply")
    for s in range(segments):
        begin, end = s * columns // segments, (s + 1) * columns // segments
        for row in range(rows):
            tile = (s * rows + row) * tiles // (segments * rows)
            piece = matrix[row].slice(begin, end)
            edges = {"a": piece, "b": vector.slice(begin, end), "out": partials[row][s]}
            vertex = graph.addVertex(multiply, "DotProduct", edges)
            graph.setTileMapping(vertex, tile)
            graph.setTileMapping(piece, tile)
            graph.setTileMapping(partials[row][s], tile)
    reduce = graph.addComputeSet("reduce")
    for row in range(rows):
        vertex = graph.addVertex(reduce, "Reduce")
        graph.connect(vertex["in"], partials[row])
        graph.connect(vertex["out"], result[row])
        graph.setTileMapping(vertex, row * tiles // rows)
        graph.setTileMapping(result[row], row * tiles // rows)
    matrix_in = graph.addHostToDeviceFIFO("matrix", FLOAT, rows * columns)
    vector_in = graph.addHostToDeviceFIFO("vector", FLOAT, columns)
    graph.createHostRead("result", result)
    return graph, Sequence([Copy(matrix_in, matrix), Copy(vector_in, vector)]), Sequence([Execute(multiply), Execute(reduce)])


@numba.njit(parallel=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def strict_loop(matrix: Any, vector: Any, segments: int, result: Any) -> None:
    """The same sums in the same order, with nothing around them."""
    rows, columns = matrix.shape
    for row in numba.prange(rows):
        total = np.float32(0.0)
        for s in range(segments):
            partial = np.float32(0.0)
            for i in range(s * columns // segments, (s + 1) * columns // segments):
                partial += matrix[row, i] * vector[i]
            total += partial
        result[row] = total


def measure(smoke: bool) -> list[Figure]:
    rows, columns, segments, inner = (200, 60, 3, 2) if smoke else (10000, 1000, 7, 20)
    random = np.random.default_rng(0)
    matrix = random.standard_normal((rows, columns), np.float32)
    vector = random.standard_normal(columns, np.float32)
    Engine(*programs(build(50, 20, 2), 1))  # warms the cache of compiled codelets
    begin = time.perf_counter()
    built = build(rows, columns, segments)
    middle = time.perf_counter()
    engine = Engine(*programs(built, inner))
    end = time.perf_counter()
    engine.load(IPUModel().createDevice())
    engine.connectStream("matrix", matrix)
    engine.connectStream("vector", vector)
    engine.run(0)
    strict = np.empty(rows, np.float32)

    def many_products() -> None:
        for _ in range(inner):
            matrix @ vector

    def many_loops() -> None:
        for _ in range(inner):
            strict_loop(matrix, vector, segments, strict)

    ours, numpys, loops = (
        taken / inner for taken in alternate([lambda: engine.run(1), many_products, many_loops], 3 if smoke else 9)
    )
    np.testing.assert_array_equal(engine.readTensor("result"), strict)
    size = f"{rows} x {columns}, {segments} segments"
    return [
        Figure(f"{size}: building the graph", middle - begin, "s", 3.0),
        Figure(f"{size}: Engine, warm cache", end - middle, "s", 2.0),
        Figure(f"{size}: its two compute sets against NumPy's product", ours / numpys, "x", 3.0,
               details={"seconds": ours, "numpy_seconds": numpys}),
        Figure("  the bare strict loop in numba against NumPy's product", loops / numpys, "x", details={"seconds": loops}),
    ]  # fmt: skip


def programs(built: tuple[Any, Any, Any], inner: int) -> tuple[Any, list[Any]]:
    """The Engine's arguments: the graph, and two programs, loading and `inner` times the product."""
    graph, loading, product = built
    return graph, [loading, Repeat(inner, product)]


ROW = Row("matvec", measure)
