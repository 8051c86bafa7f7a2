"""poputil: clones on other IPUs and in other graphs, dimensions over tiles, mapping by use, operands beside their users."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from library_programs import new_graph, run, variable

from pypoplar import FLOAT, HALF, Graph, InvalidTileMapping, IPUModel, PoplarIndexError, Target, TensorCloneMethod, concat, poputil
from pypoplar.program import Sequence

Tracker = poputil.TensorUseTracker
TARGET = Target.createIPUTarget(1, 8, "bow")
METHODS = tuple(Tracker.MappingMethod)


def tiles_of(graph, tensor):
    """The tile of each element, as an array of the tensor's shape."""
    tiles = np.full(tensor.numElements(), -1)
    for tile, intervals in enumerate(graph.getTileMapping(tensor, requireComplete=False)):
        for begin, end in intervals:
            tiles[begin:end] = tile
    return tiles.reshape(tensor.shape())


def two_ipus(tiles=4):
    model = IPUModel("tiny")
    model.numIPUs, model.tilesPerIPU = 2, tiles
    device = model.createDevice()
    return Graph(device.getTarget()), device


@pytest.mark.parametrize("method", list(TensorCloneMethod))
def test_a_clone_on_another_ipu_lies_on_the_same_tiles_of_it(method):
    graph, device = two_ipus()
    t = variable(graph, FLOAT, [6, 40], "t")
    view = concat(t.transpose(), t.transpose()[:1])
    clone = poputil.cloneToIpu(graph, view, 1, "clone", method)
    np.testing.assert_array_equal(tiles_of(graph, clone), 4 + tiles_of(graph, view) % 4)
    assert clone.containsAliases() == method.name.endswith("AND_ALIASES")
    prog = Sequence()
    copy = poputil.copyToIpu(graph, view, prog, 0, "copy", method)
    np.testing.assert_array_equal(tiles_of(graph, copy), tiles_of(graph, view) % 4)
    values = np.arange(240, dtype=np.float32).reshape(6, 40)
    read, _ = run(graph, device, prog, {"t": values}, {"copy": copy})
    np.testing.assert_array_equal(read["copy"], np.concatenate((values.T, values.T[:1])))


def test_what_is_to_be_copied_between_ipus_has_no_element_twice():
    graph, _ = two_ipus()
    t = variable(graph, FLOAT, [3], "t").broadcast(4, 0)
    clone, source, destination = poputil.createIpuCopy(graph, t, 1)
    assert clone.shape() == [12]
    assert source.shape() == destination.shape() == [3]
    assert destination.isParallelWriteable()
    empty = graph.addVariable(FLOAT, [0], "empty")
    assert poputil.createIpuCopy(graph, empty, 1)[0].shape() == [0]


def test_an_ipu_that_is_not_there_is_refused():
    graph, _ = two_ipus()
    t, prog = variable(graph, FLOAT, [3], "t"), Sequence()
    for call in (lambda: poputil.cloneToIpu(graph, t, 2), lambda: poputil.copyToIpu(graph, t, prog, 2)):
        with pytest.raises(poputil.PoplibsError, match="dstIPU is 2, and the target has 2 IPUs"):
            call()
    assert len(prog) == 0


def test_a_clone_in_another_virtual_graph_lies_on_tiles_of_the_same_numbers():
    graph, _ = new_graph(8)
    low, high, few = graph.createVirtualGraph(0, 4), graph.createVirtualGraph(4, 8), graph.createVirtualGraph(0, 1)
    t = variable(low, FLOAT, [6, 40], "t")
    clone = poputil.cloneToGraph(low, high, t, "clone")
    np.testing.assert_array_equal(tiles_of(high, clone), tiles_of(low, t))
    np.testing.assert_array_equal(tiles_of(graph, clone), tiles_of(graph, t) + 4)
    with pytest.raises(poputil.PoplibsError, match="has elements on tile 3, and the graph to clone it to has 1 tiles"):
        poputil.cloneToGraph(low, few, t)
    with pytest.raises(poputil.PoplibsError, match="no parts of one graph"):
        poputil.cloneToGraph(low, new_graph(8)[0], t)


def test_expanded_aliases_are_spread_from_an_offset_on():
    graph, _ = new_graph(8)
    t = variable(graph, FLOAT, [4, 1], "t", tile=2)
    clone, offset = poputil.cloneAndExpandAliasing(graph, t.broadcast(33, 1), 6, "clone")
    assert clone.shape() == [4, 33]
    assert not clone.containsAliases()
    assert offset == (6 + 4) % 8
    np.testing.assert_array_equal(np.bincount(tiles_of(graph, clone).reshape(-1), minlength=8), [32, 32, 4, 0, 0, 0, 32, 32])
    plain, offset = poputil.cloneAndExpandAliasing(graph, t, 6)
    assert offset == 6
    assert (tiles_of(graph, plain) == 2).all()


def test_a_dimension_is_split_where_its_elements_lie_on_different_tiles():
    graph, _ = new_graph(8)
    t = graph.addVariable(FLOAT, [4, 6], "t")
    for row in range(4):
        graph.setTileMapping(t[row], row)
    assert poputil.dimIsSplitOverTiles(graph, t, 0)
    assert not poputil.dimIsSplitOverTiles(graph, t, 1)
    assert not poputil.dimIsSplitOverIPUs(graph, t, 0)
    assert not poputil.dimIsSplitOverTiles(graph, graph.addVariable(FLOAT, [0, 2], "empty"), 0)
    with pytest.raises(PoplarIndexError, match=r"dimIsSplitOverTiles: dimension is 2, and .*'t'.* has 2 dimensions"):
        poputil.dimIsSplitOverTiles(graph, t, 2)
    pair, _ = two_ipus()
    t = pair.addVariable(FLOAT, [2, 6], "t")
    pair.setTileMapping(t[0], 1)
    pair.setTileMapping(t[1], 5)
    assert poputil.dimIsSplitOverIPUs(pair, t, 0)
    assert not poputil.dimIsSplitOverIPUs(pair, t, 1)
    with pytest.raises(InvalidTileMapping):
        poputil.dimIsSplitOverTiles(pair, pair.addVariable(FLOAT, [2], "unmapped"), 0)


uses = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 39), st.integers(1, 20)), min_size=1, max_size=12)


def users_by_element(uses, size=40):
    users = [set() for _ in range(size)]
    for tile, begin, length in uses:
        for element in range(begin, min(begin + length, size)):
            users[element].add(tile)
    return users


def tracked(graph, t, uses):
    tracker = Tracker(8)
    assert tracker.empty()
    for tile, begin, length in uses:
        tracker.add(graph, tile, t.flatten().slice(begin, min(begin + length, t.numElements())))
    return tracker


@given(uses, st.sampled_from(METHODS), st.integers(1, 4), st.booleans())
def test_elements_that_are_used_get_a_tile_and_with_extension_all_do(uses, method, grain, extend):
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [5, 8], "t")
    tracked(graph, t, uses).mapTensorsByUse(graph, grain, 0, extend, method)
    tiles, users = tiles_of(graph, t).reshape(-1), users_by_element(uses)
    used = {tile for tile, _, _ in uses}
    assert set(tiles.tolist()) <= used | {-1}
    assert all(tile >= 0 for tile, wanted in zip(tiles, users, strict=True) if wanted or extend)


@given(uses, st.sampled_from((Tracker.MappingMethod.None_, Tracker.MappingMethod.ConstrainMappingToUsedTiles)), st.integers(1, 4))
def test_what_is_mapped_by_use_is_read_locally(uses, method, grain):
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [5, 8], "t")
    constrained = method is Tracker.MappingMethod.ConstrainMappingToUsedTiles
    tracked(graph, t, uses).mapTensorsByUse(graph, grain if constrained else 1, 0, False, method)
    for tile, users in zip(tiles_of(graph, t).reshape(-1).tolist(), users_by_element(uses), strict=True):
        assert tile in users if users else tile == -1


def test_shared_elements_are_spread_evenly_over_their_users_in_grains():
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [40], "t")
    tracker = Tracker(8, startTile=2)
    for tile in (1, 3, 4):
        tracker.add(graph, tile, t)
    other = Tracker(8)
    other.add(graph, 6, t)
    tracker.add(other)
    tracker.mapTensorsByUse(graph, 4, 0)
    assert np.bincount(tiles_of(graph, t), minlength=8).tolist() == [12, 0, 0, 8, 0, 12, 8, 0]
    tracker.mapTensorsByUse(graph, 4, 0, False, Tracker.MappingMethod.OptimizeHaloRegions)
    assert (tiles_of(graph, t) >= 0).all()
    with pytest.raises(poputil.PoplibsError, match="a tracker of 4 tiles for one of 8"):
        tracker.add(Tracker(4))
    with pytest.raises(poputil.PoplibsError, match="tile 8 of a tracker of 8 tiles"):
        tracker.add(graph, 8, t)


def test_a_halo_goes_where_the_region_before_it_goes():
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [30], "t")
    uses = [(1, 0, 12), (2, 8, 12)]
    tracked(graph, t, uses).mapTensorsByUse(graph, 1, 0, True, Tracker.MappingMethod.OptimizeHaloRegions)
    assert tiles_of(graph, t).tolist() == [1] * 12 + [2] * 18
    tracked(graph, t, uses).mapTensorsByUse(graph, 1, 0, True)
    assert tiles_of(graph, t).tolist() == [1] * 10 + [2] * 20


def test_uses_of_a_view_and_of_several_variables_are_those_of_their_elements():
    graph = Graph(TARGET)
    first, second = graph.addVariable(FLOAT, [4, 4], "first"), graph.addVariable(FLOAT, [4], "second")
    constant = graph.addConstant(FLOAT, [2], 1.0)
    tracker = Tracker(8)
    tracker.add(graph, 5, concat([first.transpose()[1].reverse(), second, second, constant]))
    tracker.add(graph, 6, first.subSample(2, 0).flatten())
    tracker.mapTensorsByUse(graph, 1, 0)
    assert (tiles_of(graph, second) == 5).all()
    wanted = np.full((4, 4), -1)
    wanted[::2] = 6
    wanted[1::2, 1] = 5
    wanted[0, 1] = 5
    np.testing.assert_array_equal(tiles_of(graph, first), wanted)


full_shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3)


@given(full_shapes, st.integers(0, 2), st.integers(1, 3), st.booleans())
def test_a_broadcast_operand_lies_beside_elements_of_its_index(shape, dimension, each, dithered):
    graph = Graph(TARGET)
    dimension %= len(shape)
    full = graph.addVariable(FLOAT, shape, "full")
    poputil.mapTensorLinearly(graph, full, 0, each)
    operand = poputil.createBroadcastOperand(graph, full, HALF, dimension, dithered, "operand")
    assert operand.shape() == [shape[dimension]]
    assert operand.elementType() is HALF
    tiles = tiles_of(graph, operand)
    if not dithered:
        users = np.moveaxis(tiles_of(graph, full), dimension, 0)
        assert all(tile in np.atleast_1d(users[place]) for place, tile in enumerate(tiles))
    assert (tiles >= 0).all()


def test_a_broadcast_operand_of_nothing_is_mapped():
    graph = Graph(TARGET)
    empty = graph.addVariable(FLOAT, [0, 70], "empty")
    assert (tiles_of(graph, poputil.createBroadcastOperand(graph, empty, FLOAT, 1)) >= 0).all()
    with pytest.raises(PoplarIndexError, match="dim is 2, and"):
        poputil.createBroadcastOperand(graph, empty, FLOAT, 2)


def test_the_whole_machine_is_mapped_by_use():
    graph, _ = new_graph(1472)
    full = graph.addVariable(FLOAT, [128, 1000], "full")
    poputil.mapTensorLinearly(graph, full)
    operand = poputil.createBroadcastOperand(graph, full, FLOAT, 1)
    users = tiles_of(graph, full)
    assert all(tile in users[:, place] for place, tile in enumerate(tiles_of(graph, operand)))
    t = graph.addVariable(FLOAT, [100_000, 2], "t")
    tracker = Tracker(1472)
    for tile in range(1472):
        tracker.add(graph, tile, t.slice(tile, 100_000).subSample(1472))
        tracker.add(graph, (tile + 1) % 1472, t.slice(tile, 100_000).subSample(1472)[:, :1])
    tracker.mapTensorsByUse(graph, 1, 0)
    rows = np.arange(100_000) % 1472
    tiles = tiles_of(graph, t)
    assert (tiles[:, 1] == rows).all()
    assert ((tiles[:, 0] == rows) | (tiles[:, 0] == (rows + 1) % 1472)).all()


def test_the_offset_behind_a_mapping_goes_round_the_tiles():
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [128], "t")
    for offset, behind in ((2, 6), (6, 2)):
        mapping, new = poputil.calcLinearTileMappingAndNewOffset(graph, t, offset)
        assert new == behind
        assert [tile for tile, held in enumerate(mapping) if held] == sorted((offset + i) % 8 for i in range(4))


@given(st.integers(1, 2000), st.lists(st.integers(0, 100), max_size=4), st.integers(0, 2**40))
def test_an_offset_chosen_for_a_shape_is_a_tile_and_always_the_same(tiles, shape, seed):
    offset = poputil.chooseMappingOffset(tiles, shape, seed)
    assert 0 <= offset < tiles
    assert offset == poputil.chooseMappingOffset(tiles, shape, seed)


@given(st.integers(1, 20), st.integers(0, 40), st.booleans())
def test_places_of_tiles_in_a_mapping_and_back(tiles, offset, ascending):
    target = Target.createIPUTarget(1, tiles, "bow")
    mapping = poputil.calcLinearTileMapping(target, [tiles], 1, 1, offset, ascending)
    for place in range(tiles):
        tile = poputil.invTransformTileIndex(place, tiles, offset, ascending)
        assert list(mapping[tile][0]) == [place, place + 1]
        assert poputil.transformTileIndex(tile, tiles, offset, ascending) == place


def test_arguments_of_mappings_that_fit_no_form_are_refused():
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [128], "t")
    with pytest.raises(
        TypeError, match=r"mapTensorLinearlyWithOffset: .*it takes \(graph, t, minElementsPerTile, grainSize, offset"
    ):
        poputil.mapTensorLinearlyWithOffset(graph, t, 1, 2, 3, 4, 5)
    with pytest.raises(TypeError, match=r"calcLinearTileMapping: .*got 3"):
        poputil.calcLinearTileMapping(3, t)
    with pytest.raises(poputil.PoplibsError, match="offset is 0 at least, got -1"):
        poputil.mapTensorLinearlyWithOffset(graph, t, -1)
    with pytest.raises(TypeError, match=r"is a whole number, got 1\.5"):
        poputil.mapTensorLinearlyWithOffset(graph, t, 1.5)
    poputil.mapTensorLinearlyWithOffset(graph, t)
    assert poputil.getTileImbalance(graph.getTileMapping(t)) == 16 == poputil.getTileImbalance(graph, t)
    assert poputil.calcLinearTileMapping(TARGET, [128], FLOAT, 2) == poputil.calcLinearTileMapping(graph, t, 2)
