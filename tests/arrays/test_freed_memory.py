"""Memory that a large compilation has freed is given back to the system; small ones do not ask for it."""

import pytest

from pypoplar import FLOAT, Engine, Graph, InOut, IPUModel, Vertex
from pypoplar.arrays import freed_memory
from pypoplar.compiler import compile as compiling
from pypoplar.program import Execute


class Double(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x * 2.0


def compiled():
    graph = Graph(IPUModel("tiny").createDevice())
    x, cs = graph.addVariable(FLOAT, [2], "x"), graph.addComputeSet("double")
    graph.setTileMapping(x, 0)
    for number in range(2):
        graph.setTileMapping(graph.addVertex(cs, Double, {"x": x[number]}), 0)
    return Engine(graph, Execute(cs))


@pytest.mark.parametrize(("large", "given_back"), [(2, True), (3, False)])
def test_a_large_compilation_gives_back_what_it_has_freed(large, given_back, monkeypatch):
    asked = []

    def noted(rows):
        asked.append(rows)
        return give_back(rows)

    give_back = freed_memory.give_back
    monkeypatch.setattr(freed_memory, "LARGE", large)
    monkeypatch.setattr(compiling, "give_back", noted)
    compiled()
    assert asked == [2, 2, 2], "runs of the edges: before and after the lowering, and at the end"
    assert give_back(2) is (given_back and freed_memory._malloc_trim() is not None)
