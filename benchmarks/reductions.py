"""Reductions: a sum over many elements against NumPy's, and what building one on all tiles takes."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Device, Engine, Graph, IPUModel, popops, poputil
from pypoplar.program import Sequence


def summing(device: Device, elements: int) -> tuple[Graph, Sequence]:
    """The graph and the program of a sum."""
    graph = Graph(device)
    popops.addCodelets(graph)
    vector = graph.addVariable(FLOAT, [elements], "x")
    poputil.mapTensorLinearly(graph, vector)
    program = Sequence()
    popops.reduce(graph, vector, [0], popops.Operation.ADD, program)
    return graph, program


def building(device: Device, elements: int) -> tuple[float, float]:
    """Seconds of graph and Engine."""
    begin = time.perf_counter()
    graph, program = summing(device, elements)
    middle = time.perf_counter()
    Engine(graph, program)
    return middle - begin, time.perf_counter() - middle


def running(device: Device, elements: int) -> tuple[float, float, float]:
    """Seconds of a sum on the device and in NumPy, and its cycles."""
    engine = Engine(*summing(device, elements))
    engine.load(device)
    engine.run()
    cycles = engine.getReport().execution.totalCycles.total
    values = np.ones(elements, np.float32)
    ours, theirs = alternate([engine.run, values.sum])
    return ours, theirs, cycles


def measure(smoke: bool) -> list[Figure]:
    tiles, elements = (8, 10_000) if smoke else (1472, 10_000_000)
    model = IPUModel("bow")
    model.tilesPerIPU = tiles
    device = model.createDevice()
    building(device, elements)  # warms the cache of compiled codelets
    graph, engine = (sorted(times)[1] for times in zip(*(building(device, elements) for _ in range(3)), strict=True))
    ours, theirs, cycles = running(device, elements)
    return [
        Figure(f"the sum of {elements} floats, against NumPy", ours / theirs, "x", 3.0,
               details={"seconds": ours, "numpy": theirs, "cycles": cycles}),
        Figure(f"a sum on {tiles} tiles: graph", graph, "s", 1.0),
        Figure("  its Engine", engine, "s", 1.0),
    ]  # fmt: skip


ROW = Row("reductions", measure)
