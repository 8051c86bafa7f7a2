"""Ten thousand explicit copies between tiles, each a program of its own: building the graph and its programs, and the Engine.

And one copy of a transposed matrix, every element of which comes from another place.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.measure import Figure, Row, in_new_process
from pypoplar import FLOAT, Engine, Graph, IPUModel, poputil
from pypoplar.program import Copy, Sequence


def program(copies: int) -> tuple[Graph, Sequence]:
    """Rows of a tensor, one on each tile, copied to random other ones."""
    graph = Graph(IPUModel().createDevice())
    tiles = graph.getTarget().getNumTiles()
    source, target = (graph.addVariable(FLOAT, [tiles, 8], name) for name in ("source", "target"))
    for tile in range(tiles):
        graph.setTileMapping(source[tile], tile)
        graph.setTileMapping(target[tile], tile)
    ends = np.random.default_rng(0).integers(0, tiles, (copies, 2)).tolist()
    return graph, Sequence([Copy(source[row], target[other]) for row, other in ends])


def build(copies: int) -> dict[str, float]:
    """Seconds of both parts."""
    Engine(*program(10))  # warms what is loaded once
    begin = time.perf_counter()
    graph, sequence = program(copies)
    middle = time.perf_counter()
    Engine(graph, sequence)
    return {"graph": middle - begin, "engine": time.perf_counter() - middle}


def transposed(size: int) -> dict[str, float]:
    """Seconds of graph and Engine of a copy of a transposed matrix."""
    Engine(*program(10))
    begin = time.perf_counter()
    graph = Graph(IPUModel().createDevice())
    source, target = (graph.addVariable(FLOAT, [size, size], name) for name in ("source", "target"))
    for tensor in (source, target):
        poputil.mapTensorLinearly(graph, tensor)
    middle = time.perf_counter()
    Engine(graph, Copy(source.transpose(), target))
    return {"graph": middle - begin, "engine": time.perf_counter() - middle}


def measure(smoke: bool) -> list[Figure]:
    count = 100 if smoke else 10_000
    taken = in_new_process(f"from benchmarks import copies; copies.main({count})")
    what = f"{count} explicit copies between tiles: graph and Engine"
    size = 64 if smoke else 2048
    matrix = in_new_process(f"from benchmarks import copies; copies.main({size}, whole=True)")
    return [
        Figure(what, taken["graph"] + taken["engine"], "s", 3.0, details=taken),
        Figure(f"Copy of a transposed {size} x {size} matrix: Engine", matrix["engine"], "s", 1.5, details=matrix),
    ]


def main(size: int, *, whole: bool = False) -> None:
    json.dump(transposed(size) if whole else build(size), sys.stdout)


ROW = Row("copies", measure)
