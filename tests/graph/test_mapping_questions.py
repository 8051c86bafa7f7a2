"""The tile of an element is the one that was noted last, whatever was asked between."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, Graph, InvalidTileMapping, IPUModel, PoplarIndexError, concat

SIZES = (5, 0, 12, 1, 7)
TILES = 16
WHOLE = sum(SIZES)

ranges = st.tuples(st.integers(0, WHOLE), st.integers(0, WHOLE)).map(sorted)
noted = st.tuples(st.just("note"), ranges, st.integers(1, 3), st.integers(0, TILES - 1))
asked = st.tuples(st.just("ask"), ranges, st.integers(1, 3), st.booleans())
cloned = st.tuples(st.just("clone"), ranges, st.just(1), st.none())


def variables():
    graph = Graph(IPUModel("tiny").createDevice())
    return graph, concat([graph.addVariable(FLOAT, [size], f"v{number}") for number, size in enumerate(SIZES)])


def tiles_told(graph, tensor):
    """What the graph says of each element: -1 for one without a tile."""
    told = np.full(tensor.numElements(), -1)
    for tile, intervals in enumerate(graph.getTileMapping(tensor, False)):
        for interval in intervals:
            assert (told[interval.begin() : interval.end()] == -1).all()
            told[interval.begin() : interval.end()] = tile
    return told


@given(st.lists(st.one_of(noted, asked, cloned), max_size=12))
@examples(50)
def test_the_mapping_noted_last_is_the_one_that_counts(steps):
    graph, whole = variables()
    right = np.full(WHOLE, -1)
    for kind, (begin, end), stride, value in steps:
        view, own = whole.slice(begin, end).subSample(stride, 0), right[begin:end:stride]
        if kind == "note":
            graph.setTileMapping(view, value)
            own[:] = value
        elif kind == "ask":
            view, own = (view.reverse(0), own[::-1]) if value else (view, own)
            assert tiles_told(graph, view).tolist() == own.tolist()
        else:
            assert tiles_told(graph, graph.clone(view)).tolist() == own.tolist()
    assert tiles_told(graph, whole).tolist() == right.tolist()


@given(st.lists(st.tuples(ranges, st.integers(0, TILES - 1)), max_size=6))
@examples(30)
def test_pieces_are_placed_as_lists_of_intervals_are(given):
    begin, end = (np.array([bounds[end] for bounds, _ in given], np.int64) for end in (0, 1))
    tile = np.array([tile for _, tile in given], np.int64)
    mapping = {number: [bounds for bounds, own in given if own == number] for number in range(TILES)}
    results = []
    for place in (lambda graph, t: graph.place_pieces(t, begin, end, tile), lambda graph, t: graph.setTileMapping(t, mapping)):
        graph, whole = variables()
        try:
            place(graph, whole.reverse(0))
        except InvalidTileMapping:
            results.append("refused")
        else:
            results.append(tiles_told(graph, whole).tolist())
    assert results[0] == results[1]


def test_pieces_beyond_the_tensor_or_the_tiles_are_refused():
    graph, whole = variables()
    with pytest.raises(
        PoplarIndexError, match=rf"interval \[3:{WHOLE + 1}\) for tile 0 is out of range for 'v0', 'v2', 'v3' FLOAT"
    ):
        graph.place_pieces(whole, np.array([3]), np.array([WHOLE + 1]), np.array([0]))
    with pytest.raises(InvalidTileMapping, match="tile 16 for number 0 of the pieces of"):
        graph.place_pieces(whole, np.array([3]), np.array([4]), np.array([16]))
    assert graph.elements_without_tile(whole) == WHOLE


def test_threads_that_ask_at_once_get_the_same_answer():
    for _ in range(20):
        graph, whole = variables()
        for element in range(WHOLE):
            graph.setTileMapping(whole[element], element % TILES)
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: tiles_told(graph, whole).tolist(), range(8)))
        assert told == [[element % TILES for element in range(WHOLE)]] * 8
