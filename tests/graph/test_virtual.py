"""Virtual graphs: fewer tiles under new numbers, everything else shared."""

import pytest

from pypoplar.arrays.intervals import Interval
from pypoplar.codelet.language.fields import InOut, Vector, Vertex
from pypoplar.device import IPUModel
from pypoplar.errors import InvalidTileMapping
from pypoplar.graph.graph import Graph, VariableMappingMethod
from pypoplar.types import FLOAT


class Touch(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = 1.0


def test_tiles_are_renumbered_from_0(graph):
    virtual = graph.createVirtualGraph([9, 4, 5])
    assert virtual.getTarget().getNumTiles() == 3
    x = virtual.addVariable(FLOAT, [6], VariableMappingMethod.LINEAR, "x")
    assert [len(one) for one in virtual.getTileMapping(x)] == [1, 1, 1]
    mapping = graph.getTileMapping(x)
    assert (mapping[9], mapping[4], mapping[5]) == ([Interval(0, 2)], [Interval(2, 4)], [Interval(4, 6)])
    compute = virtual.addComputeSet()
    vertex = virtual.addVertex(compute, Touch, {"x": x})
    virtual.setTileMapping(vertex, 1)
    many = virtual.add_vertices(compute, Touch, {"x": x.reshape([3, 2])}, [2, 0, 1])
    assert graph.freeze().vertices.tile.tolist() == [4, 5, 9, 4]
    virtual.setTileMapping(many, 2)
    virtual.setTileMapping(x, 0)
    virtual.setTileMapping(x, [[Interval(0, 1)]])
    frozen = virtual.freeze()
    assert frozen.tiles == 16
    assert frozen.vertices.tile.tolist() == [4, 5, 5, 5]
    assert frozen.mapping.tile.tolist() == [9]


def test_variables_and_vertices_belong_to_both(graph):
    virtual = graph.createVirtualGraph(4)
    x = virtual.addVariable(FLOAT, [2], "x")
    graph.setTileMapping(x, 15)
    assert x.graph is graph
    assert not virtual.getTileMapping(x, requireComplete=False).complete  # a tile that the virtual graph does not see
    compute = graph.addComputeSet()
    graph.setTileMapping(virtual.addVertex(compute, Touch, {"x": x}), 8)
    assert virtual.numVertices() == graph.numVertices() == 1
    assert graph.hasCodelet("Touch")
    assert virtual.getTopLevelGraph() is graph.getTopLevelGraph() is graph


def test_ranges_and_counts_choose_tiles(graph):
    upper = graph.createVirtualGraph(8, 16)
    x = upper.addVariable(FLOAT, [1])
    upper.setTileMapping(x, 7)
    assert graph.getTileMapping(x)[15] == [Interval(0, 1)]
    inner = upper.createVirtualGraph([6])
    inner.setTileMapping(x, 0)
    assert graph.getTileMapping(x)[14] == [Interval(0, 1)]
    assert inner.getTarget().getNumTiles() == 1


def test_a_count_means_that_many_tiles_of_each_ipu():
    model = IPUModel("tiny")
    model.numIPUs = 2
    graph = Graph(model.createDevice())
    virtual = graph.createVirtualGraph(3)
    assert virtual.getTarget().getNumIPUs() == 2
    x = virtual.addVariable(FLOAT, [6], VariableMappingMethod.LINEAR)
    assert [tile for tile, one in enumerate(graph.getTileMapping(x)) if one] == [0, 1, 2, 16, 17, 18]


@pytest.mark.parametrize("arguments", [([],), ([1, 1],), ([16],), (17,), (0,), (4, 4), (8, 17)])
def test_tiles_that_are_not_there_are_refused(graph, arguments):
    with pytest.raises(InvalidTileMapping):
        graph.createVirtualGraph(*arguments)
    virtual = graph.createVirtualGraph(2)
    with pytest.raises(InvalidTileMapping, match="2 tiles, 0 to 1"):
        virtual.setTileMapping(virtual.addVariable(FLOAT, [1]), 2)
