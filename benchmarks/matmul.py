"""A product of two square matrices on 1472 tiles, against NumPy's of float32, and making its program."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate, seconds
from pypoplar import FLOAT, HALF, Device, Engine, Graph, IPUModel, poplin
from pypoplar.program import Sequence

PAUSE = 0.1  # seconds after which NumPy's threads sleep
SLOWEST = {FLOAT: 5.0, HALF: 6.0}  # times NumPy's float32 product


def program(device: Device, type: Any, size: int) -> tuple[Graph, Sequence]:
    """The graph of a product of [size, size] matrices that are mapped for it."""
    graph, prog = Graph(device), Sequence()
    poplin.addCodelets(graph)
    shape = [size, size]
    left = poplin.createMatMulInputLHS(graph, type, shape, shape, "left")
    right = poplin.createMatMulInputRHS(graph, type, shape, shape, "right")
    graph.createHostWrite("left", left)
    graph.createHostWrite("right", right)
    graph.createHostRead("product", poplin.matMul(graph, left, right, prog, "product"))
    return graph, prog


def measure(smoke: bool) -> list[Figure]:
    size, repeats = (64, 1) if smoke else (1024, 9)
    device = IPUModel().createDevice()
    random = np.random.default_rng(0)
    left, right = (random.standard_normal((size, size), np.float32) for _ in range(2))
    figures = []
    for type, slowest in SLOWEST.items():
        graph, prog = program(device, type, size)
        engine = Engine(graph, prog)
        engine.load(device)
        engine.writeTensor("left", left.astype(type.dtype))
        engine.writeTensor("right", right.astype(type.dtype))
        ours, plain = alternate([engine.run, lambda: left @ right], repeats, pause=0.0 if smoke else PAUSE)
        np.testing.assert_allclose(engine.readTensor("product"), left @ right, atol=1e-3 if type is FLOAT else 0.5)
        what, details = f"{type.__name__} product, {size}^3", {"seconds": ours, "numpy_seconds": plain}
        figures.append(Figure(f"{what}, against NumPy's float32", ours / plain, "x", slowest, details=details))
        build = seconds(lambda type=type: program(device, type, size), repeats, clock=time.process_time)
        make = seconds(lambda graph=graph, prog=prog: Engine(graph, prog), repeats, clock=time.process_time)
        figures.append(Figure(f"{what}: graph, processor time", build, "s", 0.15))
        figures.append(Figure(f"{what}: Engine, warm, processor time", make, "s", 0.15))
    return figures


ROW = Row("matmul", measure)
