"""What checks and derived cycles cost: a codelet on one thread, in cache, against the bare loop in numba on the same arrays.

A tile has one vertex, so that nothing runs side by side but in the last dot product. The second figure of each three is with the
option profiler.includeFlopEstimates, which counts floating-point operations, bytes and executions of lines; the third with a
profile of the execution, which counts lines alone. Times are the processor's: there is one thread, and what else the machine does
should not count.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.matvec import DotProduct
from benchmarks.measure import Figure, Row, alternate
from benchmarks.stencil import Stencil
from pypoplar import FLOAT, Engine, Graph, IPUModel
from pypoplar.program import Execute, Repeat

OPTIONS: dict[str, Any] = {"pypoplar.threads": 1}
COUNTING: dict[str, Any] = {**OPTIONS, "profiler.includeFlopEstimates": True}
LINES: dict[str, Any] = {
    **OPTIONS,
    "autoReport.outputExecutionProfile": True,
    "autoReport.executionProfileProgramRunCount": 0,  # no file is written before the end
}
LIMIT, LINES_LIMIT = 1.3, 1.5


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def plain_dots(a: Any, b: Any, out: Any) -> None:
    for v in range(a.shape[0]):
        total = np.float32(0.0)
        for i in range(a.shape[1]):
            total += a[v, i] * b[v, i]
        out[v] = total


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def plain_stencils(x: Any, y: Any) -> None:
    half, eighth = np.float32(0.5), np.float32(0.125)
    for v in range(x.shape[0]):
        for i in range(1, x.shape[1] - 1):
            for j in range(1, x.shape[2] - 1):
                around = x[v, i - 1, j] + x[v, i + 1, j] + x[v, i, j - 1] + x[v, i, j + 1]
                y[v, i - 1, j - 1] = half * x[v, i, j] + eighth * around


def engines(codelet: Any, inputs: dict[str, Any], output: tuple[str, list[int]], tiles: int, inner: int, place: str) -> list[Any]:
    """Engines that run a vertex for each index of dimension 0 of the arrays `inner` times.

    They run as usual, counting flops, and recording lines for profiles in the directory `place`.
    """
    model = IPUModel()
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    name, shape = output
    tensors = {one: graph.addVariable(FLOAT, list(array.shape), one) for one, array in inputs.items()}
    tensors[name] = graph.addVariable(FLOAT, shape, name)
    compute_set = graph.addComputeSet("vertices")
    for number in range(shape[0]):
        pieces = {one: tensor[number] for one, tensor in tensors.items()}
        for one in (graph.addVertex(compute_set, codelet, pieces), *pieces.values()):
            graph.setTileMapping(one, number * tiles // shape[0])
    for given in inputs:
        graph.createHostWrite(given, tensors[given])
    graph.createHostRead(name, tensors[name])
    made = []
    for options in (OPTIONS, COUNTING, {**LINES, "autoReport.directory": place}):
        engine = Engine(graph, Repeat(inner, Execute(compute_set)), options)
        engine.load(device)
        for given, array in inputs.items():
            engine.writeTensor(given, array)
        made.append(engine)
    return made


def compare(
    what: str, ways: list[Any], output: str, plain: Callable[[], None], result: Any, inner: int, smoke: bool
) -> list[Figure]:
    """The engines' times over the plain loop's, whose result has to be theirs to the bit."""

    def loops() -> None:
        for _ in range(inner):
            plain()

    works = [*(engine.run for engine in ways), loops]
    usual, counting, lines, bare = alternate(works, 2 if smoke else 15, clock=time.process_time)
    for engine in ways:
        np.testing.assert_array_equal(engine.readTensor(output), result)
    seconds = {"seconds": usual, "counting_seconds": counting, "lines_seconds": lines, "numba_seconds": bare}
    details = {name: of_all / inner for name, of_all in seconds.items()}
    return [
        Figure(f"{what}, against numba", usual / bare, "x", LIMIT, details=details),
        Figure("  the same with flops, bytes and lines counted", counting / bare, "x"),
        Figure("  the same with lines counted", lines / bare, "x", LINES_LIMIT),
    ]


def dots(length: int, tiles: int, vertices: int, smoke: bool, place: str) -> list[Figure]:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((vertices, length), np.float32) for _ in range(2))
    result = np.empty(vertices, np.float32)
    inner = 2 if smoke else max(1, 20_000_000 // (length * vertices))
    ways = engines(DotProduct, {"a": a, "b": b}, ("out", [vertices]), tiles, inner, place)
    what = f"dot product of {length} floats, {vertices // tiles} a tile"
    return compare(what, ways, "out", lambda: plain_dots(a, b, result), result, inner, smoke)


def stencils(size: int, tiles: int, smoke: bool, place: str) -> list[Figure]:
    x = np.random.default_rng(0).standard_normal((tiles, size, size), np.float32)
    y = np.empty((tiles, size - 2, size - 2), np.float32)
    inner = 2 if smoke else max(1, 60_000_000 // x.size)
    ways = engines(Stencil, {"x": x}, ("y", list(y.shape)), tiles, inner, place)
    return compare(f"5-point stencil, {size} x {size}", ways, "y", lambda: plain_stencils(x, y), y, inner, smoke)


def measure(smoke: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory() as place:
        figures = measure_all(smoke, place)
        gc.collect()  # engines write their profiles as they go
    return figures


def measure_all(smoke: bool, place: str) -> list[Figure]:
    if smoke:
        return [*dots(20, 2, 2, True, place), *stencils(10, 2, True, place)]
    return [
        *dots(1000, 16, 16, False, place),
        *dots(10_000, 4, 4, False, place),
        *dots(1000, 2, 16, False, place),
        *stencils(34, 16, False, place),
        *stencils(102, 4, False, place),
    ]


ROW = Row("counting", measure)
