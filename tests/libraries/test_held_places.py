"""Places for values on the tiles that hold them: what is put at one is what comes back from it, and from no other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from library_programs import MODES

from pypoplar import BOOL, FLOAT, HALF, UNSIGNED_INT, Engine, Graph, IPUModel, popops
from pypoplar.popops.slicing.held_places import HeldPlaces
from pypoplar.program import Copy, Sequence


def on_tile_0(graph, tensor):
    graph.setTileMapping(tensor, 0)
    return tensor


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 9)), min_size=1, max_size=6, unique_by=lambda own: own[0]),
    st.integers(1, 4),
    st.sampled_from([FLOAT, HALF, BOOL, UNSIGNED_INT]),
    st.sampled_from(MODES),
    st.data(),
)
def test_a_place_gives_what_was_put_there_last(tiles, count, type, mode, data):
    model = IPUModel("tiny")
    model.tilesPerIPU = 8
    graph = Graph(model.createDevice())
    popops.addCodelets(graph)
    ends = np.cumsum([width for _, width in tiles])
    values, flat = (graph.addVariable(type, [places * int(ends[-1])], name) for places, name in ((1, "values"), (count, "places")))
    for (tile, width), end in zip(tiles, ends.tolist(), strict=True):
        graph.setTileMapping(values[end - width : end], tile)
        graph.setTileMapping(flat[count * (end - width) : count * end], tile)
    offset = on_tile_0(graph, graph.addVariable(UNSIGNED_INT, [], "offset"))
    held = HeldPlaces(values, flat, count, np.array([tile for tile, _ in tiles]), ends)
    put, take, clear = Sequence(), Sequence(), Sequence()
    held.update(graph, offset, put, "put")
    held.slice(graph, offset, take, "take")
    clear.add(Copy(on_tile_0(graph, graph.addConstant(type, [int(ends[-1])], 0)), values))
    for tensor, name in ((values, "values"), (offset, "offset"), (flat, "places")):
        graph.createHostWrite(name, tensor)
        graph.createHostRead(name, tensor)
    engine = Engine(graph, [put, take, clear], mode=mode)
    engine.load(model.createDevice())
    engine.writeTensor("places", np.zeros(count * int(ends[-1]), type.dtype))
    known = np.zeros((count, int(ends[-1])), type.dtype)
    for number in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, count - 1))
        known[place] = (np.arange(1, ends[-1] + 1) * (number + 2) % 7).astype(type.dtype)
        engine.writeTensor("values", known[place])
        engine.writeTensor("offset", place)
        engine.run(0)
        for other in range(count):
            engine.run(2)
            engine.writeTensor("offset", other)
            engine.run(1)
            assert engine.readTensor("values").tolist() == known[other].tolist()


def test_places_of_nothing_have_no_vertices():
    graph = Graph(IPUModel("tiny").createDevice())
    popops.addCodelets(graph)
    none = graph.addVariable(FLOAT, [0], "none")
    offset = on_tile_0(graph, graph.addVariable(UNSIGNED_INT, [], "offset"))
    prog = Sequence()
    HeldPlaces(none, none, 3, np.zeros(0, np.int64), np.zeros(0, np.int64)).update(graph, offset, prog, "put")
    assert graph.numVertices() == 0
    engine = Engine(graph, prog)
    engine.load(IPUModel("tiny").createDevice())
    engine.run()
