"""The compute graph as networkx sees it."""

import networkx
import numpy as np

from pypoplar import FLOAT, Graph, InOut, Input, IPUModel, Output, Vector, Vertex


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.y[i] = 2.0 * self.x[i]


class Bump(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x += 1.0


def test_variables_and_compute_sets_are_nodes_reads_and_writes_are_edges_with_their_counts():
    graph = Graph(IPUModel("tiny").createDevice())
    x = graph.addVariable(FLOAT, [4, 3], "x")
    y = graph.addVariable(FLOAT, [4, 3], "y")
    graph.addConstant(FLOAT, [1], 0, "zero")
    first, second = graph.addComputeSet("scale"), graph.addComputeSet("bump")
    graph.add_vertices(first, Scale, {"x": x, "y": y}, np.arange(4))
    graph.addVertex(second, Bump, {"x": y[1][2]})

    network = graph.to_networkx()

    assert isinstance(network, networkx.DiGraph)
    assert network.nodes["variable", "x"] == {"type": FLOAT, "shape": (4, 3), "constant": False}
    assert network.nodes["variable", "zero"]["constant"]
    assert network.nodes["compute set", "scale"] == {"vertices": 4, "codelets": {"Scale": 4}}
    assert {edge: tuple(data.values()) for *edge, data in network.edges(data=True) for edge in [tuple(edge)]} == {
        (("variable", "x"), ("compute set", "scale")): (4, 12),
        (("compute set", "scale"), ("variable", "y")): (4, 12),
        (("variable", "y"), ("compute set", "bump")): (1, 1),
        (("compute set", "bump"), ("variable", "y")): (1, 1),
    }
    assert networkx.has_path(network, ("variable", "x"), ("compute set", "bump"))
