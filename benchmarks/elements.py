"""Calls on elements: what building 20 of them on all tiles costs a vertex, and four of them over many elements against NumPy."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Device, Engine, Graph, IPUModel, Tensor, poplin, popnn, popops, poputil
from pypoplar.popops import expr
from pypoplar.popops.expr import _1, _2
from pypoplar.program import Sequence

CALLS = 20


def operands(device: Device, elements: int) -> tuple[Graph, Tensor, Tensor]:
    """A graph with two vectors over all tiles."""
    graph = Graph(device)
    popops.addCodelets(graph)
    tensors = [graph.addVariable(FLOAT, [elements], name) for name in "ab"]
    for tensor in tensors:
        poputil.mapTensorLinearly(graph, tensor)
    return graph, tensors[0], tensors[1]


def building(calls: int, tiles: int) -> tuple[float, float]:
    """Microseconds a vertex of graph and Engine."""
    model = IPUModel("bow")
    model.tilesPerIPU = tiles
    graph, a, b = operands(model.createDevice(), 64 * tiles)
    program = Sequence()
    begin = time.perf_counter()
    for number in range(calls):
        (popops.mulInPlace if number % 2 else popops.addInPlace)(graph, a, b, program)
    middle = time.perf_counter()
    Engine(graph, program)
    scale = 1e6 / (calls * tiles)
    return (middle - begin) * scale, (time.perf_counter() - middle) * scale


def four_calls(graph: Graph, a: Tensor, b: Tensor, program: Sequence) -> None:
    for call in (popops.addInPlace, popops.mulInPlace, popops.subInPlace, popops.maxInPlace):
        call(graph, a, b, program)


def one_map(graph: Graph, a: Tensor, b: Tensor, program: Sequence) -> None:
    popops.mapInPlace(graph, expr.Max((_1 + _2) * _2 - _2, _2), [a, b], program)


def running(elements: int) -> tuple[float, float, float]:
    """Seconds of four calls on the device, of the same as one map, and in NumPy."""
    device = IPUModel("bow").createDevice()
    engines = []
    for compute in (four_calls, one_map):
        graph, a, b = operands(device, elements)
        program = Sequence()
        compute(graph, a, b, program)
        engines.append(Engine(graph, program))
        engines[-1].load(device)
    x, y = np.ones(elements, np.float32), np.ones(elements, np.float32)

    def host() -> None:
        np.add(x, y, out=x)
        np.multiply(x, y, out=x)
        np.subtract(x, y, out=x)
        np.maximum(x, y, out=x)

    calls, mapped, theirs = alternate([engines[0].run, engines[1].run, host])
    return calls, mapped, theirs


def adding() -> float:
    """Milliseconds in which a graph learns the device code of all libraries, once Python has read it."""

    def add() -> None:
        graph = Graph(IPUModel("bow").createDevice())
        for library in (popops, poplin, popnn):
            library.addCodelets(graph)

    return 1000 * alternate([add])[0]


def measure(smoke: bool) -> list[Figure]:
    tiles, elements = (8, 10_000) if smoke else (1472, 10_000_000)
    building(CALLS, tiles)  # warms the cache of compiled codelets
    graph, engine = (sorted(times)[1] for times in zip(*(building(CALLS, tiles) for _ in range(3)), strict=True))
    calls, mapped, theirs = running(elements)
    return [
        Figure(f"{CALLS} element calls on {tiles} tiles: graph, a vertex", graph, "us", 10.0),
        Figure(f"{CALLS} element calls on {tiles} tiles: Engine, a vertex", engine, "us", 8.0),
        Figure(f"4 element calls over {elements} floats, against NumPy", calls / theirs, "x", 1.0,
               details={"seconds": calls, "numpy": theirs}),
        Figure("  the same as one map", mapped / theirs, "x", 0.6, details={"seconds": mapped}),
        Figure("addCodelets of all libraries", adding(), "ms", 50.0),
    ]  # fmt: skip


ROW = Row("elements", measure)
