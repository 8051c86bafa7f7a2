"""The vertices of element operations: one on each tile that holds elements of the result, for just these."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, Graph, IPUModel, popops
from pypoplar.program import Sequence

TILES = 8
PIECES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, TILES - 1)), min_size=1, max_size=12)


@given(PIECES, st.booleans())
def test_each_tile_has_one_vertex_for_the_elements_that_it_holds(pieces, single):
    model = IPUModel("bow")
    model.tilesPerIPU = TILES
    graph = Graph(model.createDevice())
    popops.addCodelets(graph)
    size = sum(length for length, _ in pieces)
    a, b = graph.addVariable(FLOAT, [size], "a"), graph.addVariable(FLOAT, [1 if single else size], "b")
    graph.setTileMapping(b, 0)
    owner = np.repeat([tile for _, tile in pieces], [length for length, _ in pieces])
    begin = 0
    for length, tile in pieces:
        graph.setTileMapping(a[begin : begin + length], tile)
        begin += length
    popops.addInPlace(graph, a, b, Sequence())
    frozen = graph.freeze()
    assert sorted(frozen.vertices.tile.tolist()) == sorted(set(owner))
    edges = frozen.edges
    for vertex, tile in enumerate(frozen.vertices.tile.tolist()):
        own = np.flatnonzero(edges.vertex == vertex)
        assert edges.field[own].tolist() == [0, 1]
        elements = []
        for edge in own:
            runs = range(edges.first_run[edge], edges.first_run[edge + 1])
            elements.append(
                [int(edges.run_start[run] + k * edges.run_step[run]) for run in runs for k in range(edges.run_count[run])]
            )
        held = np.flatnonzero(owner == tile).tolist()
        assert elements == [held, [size] if size == 1 or single else [size + element for element in held]]


def test_tiles_that_hold_equal_pieces_get_their_vertices_at_once():
    graph = Graph(IPUModel("bow").createDevice())
    popops.addCodelets(graph)
    a, b = graph.addVariable(FLOAT, [1472, 4], "a"), graph.addVariable(FLOAT, [1472, 4], "b")
    for tensor in (a, b):
        for tile in range(1472):
            graph.setTileMapping(tensor[tile], tile)
    popops.addInPlace(graph, a, b, Sequence())
    vertices = graph.freeze().vertices
    assert vertices.tile.tolist() == list(range(1472))
    assert len(set(vertices.location.tolist())) == 1
