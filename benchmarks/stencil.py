"""A 5-point stencil on rows of 102 x 102 on every tile, against the plain loop in numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, VectorList, Vertex
from pypoplar.program import Execute, Repeat


class Stencil(Vertex):
    x: Input[VectorList[FLOAT]]
    y: Output[VectorList[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(1, len(self.x) - 1):
            for j in range(1, len(self.x[i]) - 1):
                around = self.x[i - 1][j] + self.x[i + 1][j] + self.x[i][j - 1] + self.x[i][j + 1]
                self.y[i - 1][j - 1] = 0.5 * self.x[i][j] + 0.125 * around


@numba.njit(parallel=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def plain_loop(x: Any, y: Any) -> None:
    half, eighth = np.float32(0.5), np.float32(0.125)
    for tile in numba.prange(x.shape[0]):
        for i in range(1, x.shape[1] - 1):
            for j in range(1, x.shape[2] - 1):
                around = x[tile, i - 1, j] + x[tile, i + 1, j] + x[tile, i, j - 1] + x[tile, i, j + 1]
                y[tile, i - 1, j - 1] = half * x[tile, i, j] + eighth * around


def engine(tiles: int, size: int, inner: int) -> Any:
    model = IPUModel()
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    x = graph.addVariable(FLOAT, [tiles, size, size], "x")
    y = graph.addVariable(FLOAT, [tiles, size - 2, size - 2], "y")
    graph.createHostWrite("x", x)
    graph.createHostRead("y", y)
    compute_set = graph.addComputeSet("stencil")
    for tile in range(tiles):
        vertex = graph.addVertex(compute_set, Stencil, {"x": x[tile], "y": y[tile]})
        for one in (vertex, x[tile], y[tile]):
            graph.setTileMapping(one, tile)
    made = Engine(graph, Repeat(inner, Execute(compute_set)))
    made.load(device)
    return made


def measure(smoke: bool) -> list[Figure]:
    tiles, size, inner = (8, 10, 2) if smoke else (1472, 102, 5)
    made = engine(tiles, size, inner)
    x = np.random.default_rng(0).standard_normal((tiles, size, size), np.float32)
    y = np.empty((tiles, size - 2, size - 2), np.float32)
    made.writeTensor("x", x)

    def loops() -> None:
        for _ in range(inner):
            plain_loop(x, y)

    ours, plain = alternate([made.run, loops], 2 if smoke else 7)
    np.testing.assert_array_equal(made.readTensor("y"), y)
    details = {"seconds": ours / inner, "numba_seconds": plain / inner}
    return [Figure(f"5-point stencil, {size} x {size} on {tiles} tiles, against numba", ours / plain, "x", 1.3, details=details)]


ROW = Row("stencil", measure)
