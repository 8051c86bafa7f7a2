"""Calls on elements: what building 20 of them on all tiles costs a vertex, and four of them over many elements against NumPy."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Device, Engine, Graph, IPUModel, Tensor, popops, poputil
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


def running(elements: int) -> tuple[float, float]:
    """Seconds of four calls on the device, and in NumPy."""
    device = IPUModel("bow").createDevice()
    graph, a, b = operands(device, elements)
    program = Sequence()
    for call in (popops.addInPlace, popops.mulInPlace, popops.subInPlace, popops.maxInPlace):
        call(graph, a, b, program)
    engine = Engine(graph, program)
    engine.load(device)
    x, y = np.ones(elements, np.float32), np.ones(elements, np.float32)

    def host() -> None:
        np.add(x, y, out=x)
        np.multiply(x, y, out=x)
        np.subtract(x, y, out=x)
        np.maximum(x, y, out=x)

    ours, theirs = alternate([engine.run, host])
    return ours, theirs


def measure(smoke: bool) -> list[Figure]:
    tiles, elements = (8, 10_000) if smoke else (1472, 10_000_000)
    building(CALLS, tiles)  # warms the cache of compiled codelets
    graph, engine = (sorted(times)[1] for times in zip(*(building(CALLS, tiles) for _ in range(3)), strict=True))
    ours, theirs = running(elements)
    return [
        Figure(f"{CALLS} element calls on {tiles} tiles: graph, a vertex", graph, "us", 10.0),
        Figure(f"{CALLS} element calls on {tiles} tiles: Engine, a vertex", engine, "us", 8.0),
        Figure(f"4 element calls over {elements} floats, against NumPy", ours / theirs, "x", 1.0,
               details={"seconds": ours, "numpy": theirs}),
    ]  # fmt: skip


ROW = Row("elements", measure)
