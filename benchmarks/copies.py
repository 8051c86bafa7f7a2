"""Ten thousand explicit copies between tiles, each a program of its own: building the graph and its programs, and the Engine."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.measure import Figure, Row, in_new_process
from pypoplar import FLOAT, Engine, Graph, IPUModel
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


def measure(smoke: bool) -> list[Figure]:
    count = 100 if smoke else 10_000
    taken = in_new_process(f"from benchmarks import copies; copies.main({count})")
    what = f"{count} explicit copies between tiles: graph and Engine"
    return [Figure(what, taken["graph"] + taken["engine"], "s", 3.0, details=taken)]


def main(copies: int) -> None:
    json.dump(build(copies), sys.stdout)


ROW = Row("copies", measure)
