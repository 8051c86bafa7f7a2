"""poputil: linear mappings, splitting work, broadcasting, copies, names of templates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from library_programs import new_graph, run, variable

from pypoplar import BOOL, FLOAT, HALF, UNSIGNED_INT, Graph, Interval, IPUModel, Target, poputil
from pypoplar.program import Sequence

TYPES = (FLOAT, HALF, UNSIGNED_INT, BOOL)


def plain(mapping):
    """(tile, begin, end) of every interval, in order of the elements."""
    return sorted(((tile, *one) for tile, held in enumerate(mapping) for one in held), key=lambda entry: entry[1])


@given(st.lists(st.integers(0, 40), min_size=1, max_size=3), st.sampled_from(TYPES), st.integers(1, 100))
def test_a_linear_mapping_holds_every_element_once_in_order_of_tiles(shape, type, tiles):
    target = Target.createIPUTarget(1, tiles, "bow")
    pieces = plain(poputil.calcLinearTileMapping(target, shape, type))
    assert [begin for _, begin, _ in pieces] + [int(np.prod(shape))] == [0] + [end for _, _, end in pieces]
    used = [tile for tile, _, _ in pieces]
    assert used == list(range(len(used)))


@given(st.integers(1, 5000), st.integers(1, 50), st.integers(0, 100), st.integers(1, 16))
def test_tiles_get_whole_grains_and_no_less_than_asked_for(elements, tiles, least, grain):
    target = Target.createIPUTarget(1, tiles, "bow")
    pieces = plain(poputil.calcLinearTileMapping(target, [elements], least, grain))
    sizes = [end - begin for _, begin, end in pieces]
    assert all(size % grain == 0 for size in sizes[:-1])
    assert len(sizes) == 1 or min(sizes[:-1]) >= least // grain * grain
    grains = [-(-size // grain) for size in sizes]
    assert max(grains) - min(grains) <= 1


@pytest.mark.parametrize(
    ("elements", "type", "tiles", "used", "largest"),
    [
        (7840, FLOAT, 1472, 245, 32),
        (7840, FLOAT, 4, 4, 1960),
        (10, FLOAT, 1472, 1, 10),
        (784, HALF, 1472, 12, 68),
        (65, FLOAT, 1472, 2, 33),
    ],
)
def test_known_variables_spread_over_as_many_tiles_as_on_the_machine(elements, type, tiles, used, largest):
    pieces = plain(poputil.calcLinearTileMapping(Target.createIPUTarget(1, tiles, "bow"), [elements], type))
    assert len(pieces) == used
    assert max(end - begin for _, begin, end in pieces) == largest


def test_an_offset_moves_the_mapping_up_and_descending_order_mirrors_it():
    graph, _ = new_graph(8)
    tensor = graph.addVariable(FLOAT, [96], "t")

    def tiles_after(*arguments):
        poputil.mapTensorLinearlyWithOffset(graph, tensor, *arguments)
        return [tile for tile, _, _ in plain(graph.getTileMapping(tensor))]

    assert tiles_after(0) == [0, 1, 2]
    assert tiles_after(6) == [6, 7, 0]
    assert tiles_after(0, False) == [7, 6, 5]
    assert tiles_after(6, False) == [1, 0, 7]
    assert tiles_after(24, 2, 3) == [3, 4, 5, 6]
    assert tiles_after(24, 2, 3, False) == [4, 3, 2, 1]


def test_a_view_is_mapped_in_the_order_of_its_elements():
    graph, _ = new_graph(4)
    tensor = graph.addVariable(FLOAT, [2, 64], "t")
    poputil.mapTensorLinearly(graph, tensor.transpose(), 32, 2)
    for column in range(64):
        held = [tile for tile, one in enumerate(graph.getTileMapping(tensor.transpose()[column])) if one]
        assert held == [column // 16]


def test_minimum_and_grain_are_given_together_or_not_at_all():
    graph, _ = new_graph()
    with pytest.raises(TypeError, match="grainSize"):
        poputil.mapTensorLinearly(graph, graph.addVariable(FLOAT, [8], "t"), 4)


def test_imbalance_is_what_the_fullest_tile_has_beyond_an_even_share():
    graph, _ = new_graph(4)
    tensor = graph.addVariable(FLOAT, [16], "t")
    graph.setTileMapping(tensor, [[Interval(0, 10)], [Interval(10, 16)], [], []])
    assert poputil.getTileImbalance(graph, tensor) == 6
    assert poputil.getTileImbalance(graph, tensor, 10) == 0
    poputil.mapTensorLinearly(graph, tensor, 0, 1)
    assert poputil.getTileImbalance(graph, tensor) == 0


intervals = st.lists(st.integers(1, 30), min_size=1, max_size=8).map(
    lambda sizes: [Interval(100 * place, 100 * place + size) for place, size in enumerate(sizes)]
)


@given(intervals, st.integers(1, 8), st.integers(1, 10), st.integers(0, 40), st.sampled_from([None, 3, 12]))
def test_split_regions_are_the_regions_again_in_even_parts_of_whole_grains(regions, grain, parts, least, longest):
    split = poputil.splitRegions(regions, grain, parts, least, None, longest)
    elements = [element for part in split for one in part for element in range(one.begin(), one.end())]
    assert elements == [element for one in regions for element in range(one.begin(), one.end())]
    sizes = [sum(one.size() for one in part) for part in split]
    assert len(split) <= parts
    assert all(size % grain == 0 for size in sizes[:-1])
    assert len(sizes) == 1 or min(sizes[:-1]) >= least // grain * grain
    if longest is not None:
        assert max(one.size() for part in split for one in part) <= max(longest, grain)


def test_workers_share_regions_in_six_parts():
    target = Target.createIPUTarget(1, "bow")
    split = poputil.splitRegionsBetweenWorkers(target, [Interval(0, 24)], 2)
    assert list(split) == [[Interval(4 * worker, 4 * worker + 4)] for worker in range(6)]
    assert poputil.splitRegions([], 2, 6) == []
    with pytest.raises(poputil.PoplibsError, match="grainSize is 1 at least, got 0"):
        poputil.splitRegions([Interval(0, 4)], 0, 6)


shapes = st.lists(st.sampled_from([1, 1, 2, 3]), max_size=3)


@given(shapes, shapes)
def test_broadcasting_two_tensors_is_numpys(first, second):
    graph = Graph(IPUModel("tiny").createDevice())
    a, b = graph.addVariable(FLOAT, first, "a"), graph.addVariable(FLOAT, second, "b")
    try:
        expected = list(np.broadcast_shapes(tuple(first), tuple(second)))
    except ValueError:
        assert not poputil.canBroadcastToMatch(a, b)
        with pytest.raises(poputil.PoplibsError, match="cannot broadcast"):
            poputil.broadcastToMatch(a, b)
        return
    assert poputil.canBroadcastToMatch(a, b)
    assert [one.shape() for one in poputil.broadcastToMatch(a, b)] == [expected, expected]
    assert poputil.broadcastToMatch(a, expected).shape() == expected
    ranks = [one.rank() for one in poputil.expandToMatchRanks(a, b)]
    assert ranks == [max(len(first), len(second))] * 2


def test_a_tensor_is_not_broadcast_to_a_shape_smaller_than_its_own():
    graph = Graph(IPUModel("tiny").createDevice())
    with pytest.raises(poputil.PoplibsError, match=r"\[2\]"):
        poputil.broadcastToMatch(graph.addVariable(FLOAT, [3, 2], "a"), [2])


def test_names_of_vertex_templates_are_written_as_in_cpp():
    assert poputil.templateVertex("popops::Fill", FLOAT) == "popops::Fill<float>"
    assert poputil.templateVertex("X", UNSIGNED_INT, True, 3, "popops::Y") == "X<unsigned int,true,3,popops::Y>"
    assert poputil.templateVertex("X") == "X"


def test_a_duplicate_has_values_and_mapping_of_the_original_and_is_its_own():
    graph, device = new_graph()
    original = variable(graph, FLOAT, [6, 20], "original")
    program = Sequence()
    copy = poputil.duplicate(graph, original.transpose(), program, "copy")
    assert graph.getTileMapping(copy) == graph.getTileMapping(original.transpose())
    values = np.arange(120, dtype=np.float32).reshape(6, 20)
    read, _ = run(graph, device, program, {"original": values}, {"copy": copy})
    assert (read["copy"] == values.T).all()


def test_clones_stand_in_a_new_first_dimension():
    graph, _ = new_graph()
    original = variable(graph, FLOAT, [6, 20], "original")
    clones = poputil.cloneN(graph, original, 3)
    assert clones.shape() == [3, 6, 20]
    assert graph.getTileMapping(clones[2]) == graph.getTileMapping(original)
    with pytest.raises(poputil.PoplibsError, match="N = 0"):
        poputil.cloneN(graph, original, 0)
