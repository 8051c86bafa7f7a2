"""A lattice-Boltzmann step, D2Q9 on 128 x 128 cells with a row on each tile, against the parallel loop in numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, VectorList, Vertex, concat
from pypoplar.program import Execute, Repeat, Sequence

OMEGA = 1.25
# Populations at rest and to the right and left, then those that go up, then those that go down.
WEIGHTS = np.array([16, 4, 4, 4, 1, 1, 4, 1, 1], np.float32) / np.float32(36)


class Step(Vertex):
    """A row of cells takes what its neighbours send, and collides."""

    level: Input[VectorList[FLOAT]]  # what stays in the row
    below: Input[VectorList[FLOAT]]  # of the row below: what goes up
    above: Input[VectorList[FLOAT]]  # of the row above: what goes down
    out: Output[VectorList[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        width = len(self.out[0])
        for x in range(width):
            f0, f1, f2 = self.level[0][x + 1], self.level[1][x], self.level[2][x + 2]
            f3, f4, f5 = self.below[0][x + 1], self.below[1][x], self.below[2][x + 2]
            f6, f7, f8 = self.above[0][x + 1], self.above[1][x], self.above[2][x + 2]
            density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
            u = (f1 + f4 + f7 - f2 - f5 - f8) / density
            v = (f3 + f4 + f5 - f6 - f7 - f8) / density
            still = 1.0 - 1.5 * (u * u + v * v)
            side, corner = density * (OMEGA / 9.0), density * (OMEGA / 36.0)
            rise, fall = u + v, u - v
            self.out[0][x] = (1.0 - OMEGA) * f0 + density * (OMEGA * 4.0 / 9.0) * still
            self.out[1][x] = (1.0 - OMEGA) * f1 + side * (still + 3.0 * u + 4.5 * u * u)
            self.out[2][x] = (1.0 - OMEGA) * f2 + side * (still - 3.0 * u + 4.5 * u * u)
            self.out[3][x] = (1.0 - OMEGA) * f3 + side * (still + 3.0 * v + 4.5 * v * v)
            self.out[4][x] = (1.0 - OMEGA) * f4 + corner * (still + 3.0 * rise + 4.5 * rise * rise)
            self.out[5][x] = (1.0 - OMEGA) * f5 + corner * (still - 3.0 * fall + 4.5 * fall * fall)
            self.out[6][x] = (1.0 - OMEGA) * f6 + side * (still - 3.0 * v + 4.5 * v * v)
            self.out[7][x] = (1.0 - OMEGA) * f7 + corner * (still + 3.0 * fall + 4.5 * fall * fall)
            self.out[8][x] = (1.0 - OMEGA) * f8 + corner * (still - 3.0 * rise + 4.5 * rise * rise)


@numba.njit(parallel=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def plain_step(f: Any, out: Any) -> None:
    one, three, most = np.float32(1.0), np.float32(3.0), np.float32(4.5)
    half, keep = np.float32(1.5), np.float32(1.0 - OMEGA)
    at_rest, to_side, to_corner = np.float32(OMEGA * 4.0 / 9.0), np.float32(OMEGA / 9.0), np.float32(OMEGA / 36.0)
    height, width = f.shape[0], f.shape[2]
    for y in numba.prange(height):
        below, above = y - 1 if y > 0 else height - 1, y + 1 if y < height - 1 else 0
        for x in range(width):
            left = x - 1 if x > 0 else width - 1
            right = x + 1 if x < width - 1 else 0
            f0, f1, f2 = f[y, 0, x], f[y, 1, left], f[y, 2, right]
            f3, f4, f5 = f[below, 3, x], f[below, 4, left], f[below, 5, right]
            f6, f7, f8 = f[above, 6, x], f[above, 7, left], f[above, 8, right]
            density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
            u = (f1 + f4 + f7 - f2 - f5 - f8) / density
            v = (f3 + f4 + f5 - f6 - f7 - f8) / density
            still = one - half * (u * u + v * v)
            side, corner = density * to_side, density * to_corner
            rise, fall = u + v, u - v
            out[y, 0, x] = keep * f0 + density * at_rest * still
            out[y, 1, x] = keep * f1 + side * (still + three * u + most * u * u)
            out[y, 2, x] = keep * f2 + side * (still - three * u + most * u * u)
            out[y, 3, x] = keep * f3 + side * (still + three * v + most * v * v)
            out[y, 4, x] = keep * f4 + corner * (still + three * rise + most * rise * rise)
            out[y, 5, x] = keep * f5 + corner * (still - three * fall + most * fall * fall)
            out[y, 6, x] = keep * f6 + side * (still - three * v + most * v * v)
            out[y, 7, x] = keep * f7 + corner * (still + three * fall + most * fall * fall)
            out[y, 8, x] = keep * f8 + corner * (still - three * rise + most * rise * rise)


def with_halo(rows: Any) -> Any:
    """Rows with their last element before the first, and the first behind the last."""
    return concat([rows[:, -1:], rows, rows[:, :1]], 1)


def engine(size: int, steps: int) -> Any:
    """The populations are two tensors [size, 9, size], each row of cells on a tile; a step goes from the one to the other."""
    model = IPUModel()
    model.tilesPerIPU = size
    device = model.createDevice()
    graph = Graph(device.getTarget())
    buffers = [graph.addVariable(FLOAT, [size, 9, size], name) for name in ("even", "odd")]
    for buffer in buffers:
        for y in range(size):
            graph.setTileMapping(buffer[y], y)
    graph.createHostWrite("f", buffers[0])
    graph.createHostRead("f", buffers[0])
    program = []
    for source, target in (buffers, buffers[::-1]):
        compute_set = graph.addComputeSet("step")
        for y in range(size):
            fields = {
                "level": with_halo(source[y, 0:3]),
                "below": with_halo(source[(y - 1) % size, 3:6]),
                "above": with_halo(source[(y + 1) % size, 6:9]),
                "out": target[y],
            }
            graph.setTileMapping(graph.addVertex(compute_set, Step, fields), y)
        program.append(Execute(compute_set))
    made = Engine(graph, Repeat(steps // 2, Sequence(program)))
    made.load(device)
    return made


def measure(smoke: bool) -> list[Figure]:
    size, steps = (8, 2) if smoke else (128, 200)
    made = engine(size, steps)
    random = np.random.default_rng(0)
    f = (WEIGHTS[:, None] * (1.0 + 0.1 * random.random((size, 9, size)))).astype(np.float32)
    made.writeTensor("f", f)
    other = np.empty_like(f)

    def loops() -> None:
        for _ in range(steps // 2):
            plain_step(f, other)
            plain_step(other, f)

    ours, plain = alternate([made.run, loops], 2 if smoke else 7)
    np.testing.assert_array_equal(made.readTensor("f"), f)
    details = {"seconds": ours / steps, "numba_seconds": plain / steps}
    return [
        Figure(f"lattice-Boltzmann step, {size} x {size}, a row a tile, against numba", ours / plain, "x", 1.3, details=details)
    ]


ROW = Row("lattice", measure)
