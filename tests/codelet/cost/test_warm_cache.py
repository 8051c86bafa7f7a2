"""Codelets whose code is in the cache are not priced again."""

import numpy as np
import pytest

from pypoplar import FLOAT, Engine, Graph, InOut, IPUModel, Vector, Vertex
from pypoplar.codelet.backend import native_codelet
from pypoplar.codelet.cost import compiled_prices
from pypoplar.program import Execute


class Doubled(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= 2.0


def run(options):
    graph = Graph(IPUModel("bow").createDevice())
    x = graph.addVariable(FLOAT, [8], "x")
    compute_set = graph.addComputeSet("double")
    vertex = graph.addVertex(compute_set, Doubled, {"x": x})
    for mapped in (x, vertex):
        graph.setTileMapping(mapped, 0)
    graph.setInitialValue(x, np.ones(8, np.float32))
    graph.createHostRead("x", x)
    engine = Engine(graph, Execute(compute_set), options)
    engine.load()
    engine.run(0)
    return engine.readTensor("x").tolist(), engine.getReport().execution.totalCycles.total


@pytest.fixture
def priced_codelets(monkeypatch, tmp_path):
    """How often a codelet was priced as compiled code, in a process without machine code."""
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    times, compiled = [], compiled_prices.compiled
    monkeypatch.setattr(compiled_prices, "compiled", lambda *given: times.append(given) or compiled(*given))
    monkeypatch.setattr(native_codelet, "_compiled", {})
    return times


def test_a_warm_cache_prices_nothing(priced_codelets, monkeypatch):
    first = run({})
    assert len(priced_codelets) == 1
    monkeypatch.setattr(native_codelet, "_compiled", {})
    assert run({}) == first
    assert len(priced_codelets) == 1


def test_other_prices_are_other_code(priced_codelets):
    compiled, scalar = run({}), run({"pypoplar.codelet_cost": "scalar"})
    assert compiled[0] == scalar[0] == [2.0] * 8
    assert compiled[1] != scalar[1]
