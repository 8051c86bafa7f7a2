"""The profile of a program without loops: 10,000 compute sets executed one after the other, as three different ones take turns."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, seconds
from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex
from pypoplar.program import Execute, Sequence
from pypoplar.report.file.sqlite_file import load_report, save_report

MEGABYTE = 1e6
RUNS = 3  # two with accounts of their own, and one more
SETS = 3


class Mix(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.out)):
            self.out[i] = self.a[i] * 0.5 + self.b[i] * 0.25


def engine(steps: int) -> Any:
    """Each set takes rows of two other tiles, the last one on half of the tiles."""
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())
    tiles = graph.getTarget().getNumTiles()
    values = [graph.addVariable(FLOAT, [tiles, 8], f"values {number}") for number in range(SETS)]
    for one in values:
        graph.setInitialValue(one, np.zeros((tiles, 8), np.float32))
        for tile in range(tiles):
            graph.setTileMapping(one[tile], tile)
    sets = [graph.addComputeSet(f"mix {number}") for number in range(SETS)]
    for number, compute_set in enumerate(sets):
        given, made = values[number], values[(number + 1) % SETS]
        for tile in range(tiles if number + 1 < SETS else tiles // 2):
            edges = {"a": given[(tile + 1) % tiles], "b": given[(tile + 7 * number + 5) % tiles], "out": made[tile]}
            graph.setTileMapping(graph.addVertex(compute_set, Mix, edges), tile)
    engine = Engine(graph, Sequence([Execute(sets[number % SETS]) for number in range(steps)]))
    engine.load(device)
    return engine


def measure(smoke: bool) -> list[Figure]:
    steps = 30 if smoke else 10_000
    made = engine(steps)
    for _ in range(RUNS):
        made.run()
    report = made.getReport()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "profile.pop"
        writing, reading = seconds(lambda: save_report(report, path), 3), seconds(lambda: load_report(path), 3)
        size = path.stat().st_size
        assert load_report(path).execution.totalCycles.total == report.execution.totalCycles.total  # type: ignore[union-attr]
    program = f"a program of {steps:,} steps on 1472 tiles without loops, {RUNS} runs"
    return [
        Figure(f"report of {program}", seconds(made.getReport, 3), "s"),
        Figure("its profile: writing", writing, "s", 3.0),
        Figure("its profile: reading", reading, "s", 2.0),
        Figure("its profile: the file", size / MEGABYTE, "MB", 30.0),
    ]


ROW = Row("unrolled", measure)
