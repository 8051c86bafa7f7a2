"""Tile mappings against a brute-force array of one tile per element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import new_graph

from pypoplar.arrays.intervals import Interval
from pypoplar.errors import InvalidTileMapping, PoplarIndexError, PoplarTypeError
from pypoplar.graph.graph import VariableMappingMethod
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.types import FLOAT

TILES = 16


def frozen_tiles(graph):
    """The tile of every element of the graph, -1 for none."""
    frozen = graph.freeze()
    tiles = np.full(frozen.variables.first[-1], -1)
    mapping = frozen.mapping
    assert (mapping.begin[1:] >= mapping.end[:-1]).all()
    assert (mapping.begin < mapping.end).all()
    for begin, end, tile in zip(mapping.begin, mapping.end, mapping.tile, strict=True):
        tiles[begin:end] = tile
    return tiles


def mapping_tiles(mapping, elements):
    tiles = np.full(elements, -1)
    for tile, intervals in enumerate(mapping):
        for begin, end in intervals:
            assert (tiles[begin:end] == -1).all()
            tiles[begin:end] = tile
    return tiles


VIEWS = [
    lambda t, a: (t, a),
    lambda t, a: (t[1], a[1]),
    lambda t, a: (t.transpose(), a.T),
    lambda t, a: (t.slice(1, 4, 1), a[:, 1:4]),
    lambda t, a: (t.reverse(1), a[:, ::-1]),
    lambda t, a: (t[2][3], a[2, 3]),
    lambda t, a: (concat(t[3], t[0]), np.concatenate([a[3], a[0]])),
    lambda t, a: (t.subSample(2, 0).flatten(), a[::2].reshape(-1)),
    lambda t, a: (t[0:0], a[0:0]),
    lambda t, a: (t.flatten().reverse(), a.reshape(-1)[::-1]),
    lambda t, a: (t.reshape([4, 2, 3]).dimShuffle([2, 0, 1]).reshape([6, 4]), a.reshape(4, 2, 3).transpose(2, 0, 1).reshape(6, 4)),
]
REPEATED = [*VIEWS, lambda t, a: (t[:, :1].broadcast(3, 1), np.repeat(a[:, :1], 3, 1))]


@given(data=st.data())
def test_the_last_mapping_of_an_element_wins(data):
    graph = new_graph()
    variables = [graph.addVariable(FLOAT, [4, 6]) for _ in range(2)]
    tiles = np.full(48, -1)
    for _ in range(data.draw(st.integers(0, 12))):
        number = data.draw(st.integers(0, 1))
        tensor, ids = data.draw(st.sampled_from(VIEWS))(variables[number], np.arange(24).reshape(4, 6) + 24 * number)
        if data.draw(st.booleans()):
            tile = data.draw(st.integers(0, TILES - 1))
            graph.setTileMapping(tensor, tile)
            tiles[ids.reshape(-1)] = tile
        else:
            cuts = sorted(data.draw(st.lists(st.integers(0, ids.size), min_size=2, max_size=4)))
            chosen = data.draw(st.permutations(range(TILES)))
            mapping = [[] for _ in range(TILES)]
            for tile, begin, end in zip(chosen, cuts, cuts[1:], strict=False):
                mapping[tile].append(Interval(begin, end))
                tiles[ids.reshape(-1)[begin:end]] = tile
            graph.setTileMapping(tensor, mapping)
    assert frozen_tiles(graph).tolist() == tiles.tolist()
    for tensor, ids in (view(variables[1], np.arange(24, 48).reshape(4, 6)) for view in VIEWS):
        found = graph.getTileMapping(tensor, requireComplete=False)
        assert mapping_tiles(found, ids.size).tolist() == tiles[ids.reshape(-1)].tolist()
        assert found.complete == (tiles[ids.reshape(-1)] >= 0).all()


@given(st.sampled_from(REPEATED), st.integers(1, 3), st.lists(st.integers(0, TILES - 1), min_size=24, max_size=24))
def test_a_clone_is_mapped_as_its_original_and_lies_in_the_same_order(view, copies, tiles):
    graph = new_graph()
    variable = graph.addVariable(FLOAT, [4, 6])
    graph.setTileMapping(
        variable, [[Interval(place, place + 1) for place in range(24) if tiles[place] == tile] for tile in range(TILES)]
    )
    tensor, ids = view(variable, np.arange(24).reshape(4, 6))
    clone = graph.cloneN(tensor, copies)
    wanted = np.array(tiles)[ids.reshape(-1)]
    for copy in range(copies):
        assert mapping_tiles(graph.getTileMapping(clone[copy]), ids.size).tolist() == wanted.tolist()
    if ids.size and not tensor.containsAliases():
        runs = zip(*(getattr(clone.flatten().runs(), name) for name in ("start", "step", "count")), strict=True)
        order = np.concatenate([start + step * np.arange(count) for start, step, count in runs])
        ranks = np.argsort(np.argsort(ids.reshape(-1)))
        assert (order.reshape(copies, -1) - order.min() == ranks + ids.size * np.arange(copies)[:, None]).all()


def test_linear_mapping_spreads_elements_evenly_in_order(graph):
    many = graph.addVariable(FLOAT, [5, 8], VariableMappingMethod.LINEAR, "many")
    few = graph.addVariable(FLOAT, [3], VariableMappingMethod.LINEAR)
    tiles = frozen_tiles(graph)
    assert (np.diff(tiles[:40]) >= 0).all()
    counts = np.bincount(tiles[:40], minlength=TILES)
    assert set(counts.tolist()) <= {2, 3}
    assert (np.diff(tiles[40:]) > 0).all()
    assert tiles[0] == tiles[40] == 0
    assert graph.getTileMapping(many).complete
    assert graph.getTileMapping(few).complete
    assert graph.addVariable(FLOAT, [0], VariableMappingMethod.LINEAR).numElements() == 0


def test_the_mapping_comes_back_as_intervals_of_the_flattened_view(graph):
    x = graph.addVariable(FLOAT, [2, 4], "x")
    graph.setTileMapping(x[0], 3)
    graph.setTileMapping(x[1], 5)
    mapping = graph.getTileMapping(x)
    assert len(mapping) == TILES
    assert mapping[3] == [Interval(0, 4)]
    assert mapping[5] == [Interval(4, 8)]
    assert graph.getTileMapping(x.transpose())[3] == [Interval(one, one + 1) for one in (0, 2, 4, 6)]
    assert graph.getTileMapping(x[1])[5] == [Interval(0, 4)]


def test_a_mapping_may_be_a_dict_or_pairs(graph):
    x = graph.addVariable(FLOAT, [8], "x")
    graph.setTileMapping(x, {2: [(0, 3)], 7: Interval(3, 8)})
    assert frozen_tiles(graph).tolist() == [2] * 3 + [7] * 5
    graph.setTileMapping(x, graph.getTileMapping(x))
    assert frozen_tiles(graph).tolist() == [2] * 3 + [7] * 5


def test_mappings_are_joined_within_variables_and_not_across(graph):
    for _ in range(2):
        x = graph.addVariable(FLOAT, [4])
        for index in range(4):
            graph.setTileMapping(x[index], np.int64(1))
    mapping = graph.freeze().mapping
    assert mapping.begin.tolist() == [0, 4]
    assert mapping.end.tolist() == [4, 8]


def test_unmapped_elements_are_counted_in_the_message(graph):
    x = graph.addVariable(FLOAT, [8], "x")
    graph.setTileMapping(x[0:5], 0)
    with pytest.raises(InvalidTileMapping, match=r"3 of 8 elements of 'x' FLOAT \[8\]"):
        graph.getTileMapping(x)
    assert not graph.getTileMapping(x, False).complete


@pytest.mark.parametrize("tile", [-1, 16, 1 << 40])
def test_a_tile_that_the_target_does_not_have_is_refused_with_the_count(graph, tile):
    x = graph.addVariable(FLOAT, [8], "x")
    with pytest.raises(InvalidTileMapping, match=r"tile -?\d+ for 'x' .* 16 tiles, 0 to 15"):
        graph.setTileMapping(x, tile)
    assert (frozen_tiles(graph) == -1).all()


def test_ill_formed_mappings_are_refused(graph):
    x = graph.addVariable(FLOAT, [8], "x")
    with pytest.raises(PoplarIndexError, match=r"\[4:9\) for tile 0 .* 8 elements"):
        graph.setTileMapping(x, [[(4, 9)]])
    with pytest.raises(InvalidTileMapping, match="tile 16"):
        graph.setTileMapping(x, [[]] * 16 + [[(0, 1)]])
    with pytest.raises(PoplarTypeError):
        graph.setTileMapping(x, 1.5)
    with pytest.raises(PoplarTypeError):
        graph.setTileMapping("x", 1)
    with pytest.raises(PoplarTypeError, match="another graph"):
        new_graph().setTileMapping(x, 1)
    with pytest.raises(PoplarTypeError):
        graph.addVariable(FLOAT, [8], 5)
    graph.setTileMapping(Tensor(), 1)  # no elements, nothing to do


def test_sorted_contiguous_regions_join_what_follows_in_memory(graph):
    x = graph.addVariable(FLOAT, [4, 4], "x")
    columns = x.transpose()
    assert graph.getSortedContiguousRegions(x, [Interval(8, 12), Interval(0, 4), Interval(4, 6)]) == [
        [Interval(0, 6)],
        [Interval(8, 12)],
    ]
    assert graph.getSortedContiguousRegions(columns, [Interval(0, 2), Interval(4, 5)]) == [
        [Interval(0, 1), Interval(4, 5)],
        [Interval(1, 2)],
    ]
    twice = concat(x[0], x[0])
    assert graph.getSortedContiguousRegions(twice, [Interval(0, 8)], True) == [[Interval(0, 4)]]
    with pytest.raises(PoplarIndexError):
        graph.getSortedContiguousRegions(x, [(0, 17)])


def test_reorder_to_simplify_permutes_all_views_alike(graph):
    x, y = graph.addVariable(FLOAT, [3, 4], "x"), graph.addVariable(FLOAT, [3, 4], "y")
    simple, (other,) = graph.reorderToSimplify(x.transpose(), [y.transpose().reverse(0)])
    assert simple == x.flatten()
    assert other == y.reverse(1).flatten()
    same, _ = graph.reorderToSimplify(x)
    assert same == x.flatten()


def test_a_number_of_a_worker_is_told_from_one_of_a_tile(graph):
    """Workers are counted on from the last tile; a number beyond that is any mistake."""
    x = graph.addVariable(FLOAT, [8], "x")
    words = "0 to 15; map to tiles, not to their workers: the vertices of a tile are shared out among its 6 workers"
    with pytest.raises(InvalidTileMapping) as caught:
        graph.setTileMapping(x, 16)
    assert str(caught.value).endswith(words)
    for other in (-1, 17, 22, 16 * 6):
        with pytest.raises(InvalidTileMapping, match=r"0 to 15$"):
            graph.setTileMapping(x, other)


def test_a_broadcast_is_undone(graph):
    x = graph.addVariable(FLOAT, [1, 4], "x")
    assert graph.findUnbroadcastTensor(x.broadcast(5, 0)) == x
    assert graph.findUnbroadcastTensor(x.broadcast(3, 1)) == x
    assert graph.findUnbroadcastTensor(x) is None
    assert graph.findUnbroadcastTensor(concat(x, x.reverse(1))) is None


def test_intervals_of_two_tiles_that_share_elements_are_refused_with_both(graph):
    x = graph.addVariable(FLOAT, [20], "x")
    with pytest.raises(InvalidTileMapping, match=r"\[0:8\) for tile 0 and \[6:9\) for tile 3 overlap in the mapping of 'x'"):
        graph.setTileMapping(x, {0: [Interval(0, 8)], 3: [Interval(6, 9)], 5: [Interval(9, 12)]})
    with pytest.raises(InvalidTileMapping, match=r"\[2:4\) for tile 1 .*overlap"):
        graph.setTileMapping(x, [[Interval(0, 10), Interval(10, 20)], [Interval(2, 4)]])
    assert (frozen_tiles(graph) == -1).all()
    virtual = graph.createVirtualGraph([7, 9])
    with pytest.raises(InvalidTileMapping, match=r"for tile 0 and \[1:2\) for tile 1"):
        virtual.setTileMapping(x, [[Interval(0, 4)], [Interval(1, 2)]])


def test_intervals_of_one_tile_may_share_elements(graph):
    x = graph.addVariable(FLOAT, [10], "x")
    graph.setTileMapping(x, {4: [Interval(0, 6), Interval(2, 3), Interval(5, 8)], 2: [Interval(8, 10), Interval(8, 8)], 9: []})
    assert frozen_tiles(graph).tolist() == [4] * 8 + [2] * 2


def test_empty_intervals_overlap_nothing():
    graph = new_graph()
    x = graph.addVariable(FLOAT, [12], "x")
    graph.setTileMapping(x, [[Interval(0, 1), Interval(0, 1)], [Interval(0, 0), Interval(1, 12)]])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 12)), max_size=6))
def test_a_mapping_is_taken_if_and_only_if_no_element_is_on_two_tiles(rows):
    graph = new_graph()
    x = graph.addVariable(FLOAT, [12], "x")
    mapping = [[Interval(min(a, b), max(a, b)) for tile, a, b in rows if tile == one] for one in range(4)]
    held = [{element for one in intervals for element in range(one.begin(), one.end())} for intervals in mapping]
    if sum(map(len, held)) == len(set().union(*held)):
        graph.setTileMapping(x, mapping)
        assert [set(np.flatnonzero(frozen_tiles(graph) == tile).tolist()) for tile in range(4)] == held
    else:
        with pytest.raises(InvalidTileMapping, match="overlap"):
            graph.setTileMapping(x, mapping)
