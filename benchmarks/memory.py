"""Host memory: how much more than the simulated memory in use."""

from __future__ import annotations

import json
import sys

from benchmarks.measure import Figure, Row, in_new_process, peak_bytes
from pypoplar import FLOAT, Engine, Graph, IPUModel, Output, Vector, Vertex
from pypoplar.program import Execute


class Fill(Vertex):
    y: Output[Vector[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.y)):
            self.y[i] = 1.0


def fill(words: int) -> dict[str, int]:
    """Fill `words` floats on each of 1472 tiles; the simulated bytes in use and the most that the process has held."""
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())
    tiles = graph.getTarget().getNumTiles()
    y = graph.addVariable(FLOAT, [tiles, words], "y")
    compute_set = graph.addComputeSet("fill")
    for tile in range(tiles):
        graph.setTileMapping(y[tile], tile)
        graph.setTileMapping(graph.addVertex(compute_set, Fill, {"y": y[tile]}), tile)
    engine = Engine(graph, Execute(compute_set))
    engine.loadAndRun(device)
    return {"simulated": int(engine.executable.memory.total().sum()), "peak": peak_bytes()}


def measure(smoke: bool) -> list[Figure]:
    words = 1000 if smoke else 150_000
    held = in_new_process(f"from benchmarks import memory; memory.main({words})")
    over = (held["peak"] - held["simulated"]) / 1e9
    what = f"host memory beyond {held['simulated'] / 1e9:.2f} GB of simulated memory"
    return [Figure(what, over, "GB", 1.0, details=held)]


def main(words: int) -> None:
    json.dump(fill(words), sys.stdout)


ROW = Row("memory", measure)
