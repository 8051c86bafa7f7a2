"""Matrices of rows and parts of columns lie on their tiles in one stretch of memory, and views of them are right."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, Graph, IPUModel
from pypoplar.poputil.placement.kept_layouts import layout_of
from pypoplar.poputil.placement.row_layout import BlockRuns, RowLayout, map_shared_runs, shared_rows, shared_runs
from pypoplar.poputil.placement.tiles_of_elements import TileRegions, tiles_of_elements

TILES, STEP = 16, 5

widths = st.lists(st.integers(1, 4), min_size=1, max_size=3)
rows = st.lists(st.integers(0, STEP - 1), min_size=1, max_size=12)


def rows_of(tile, width):
    return RowLayout(np.array(tile), np.cumsum([0, *width]).tolist(), STEP)


def expected_tiles(layout):
    part = np.repeat(np.arange(len(layout.cuts) - 1), np.diff(layout.cuts))
    return layout.tile[:, None] + part * STEP


def kept_part(kept, *index):
    return tuple(int(np.searchsorted(cuts, at, "right")) - 1 for cuts, at in zip(kept.cuts, index, strict=True))


@given(rows, widths)
@examples(60)
def test_a_new_matrix_has_each_element_once_and_on_its_tile_in_one_stretch(tile, width):
    graph, layout = Graph(IPUModel("tiny").createDevice()), rows_of(tile, width)
    laid = layout.variable(graph, FLOAT, "laid")
    assert laid.matrix.shape() == [len(tile), sum(width)]
    assert sorted(laid.matrix._ids().ravel().tolist()) == laid.memory._ids().tolist()
    assert (tiles_of_elements(graph, laid.matrix) == expected_tiles(layout)).all()
    kept = layout_of(graph, laid.matrix, derived=False)
    assert [
        [kept.tile[kept_part(kept, row, column)] for column in range(sum(width))] for row in range(len(tile))
    ] == expected_tiles(layout).tolist()
    for row, column in np.ndindex(len(tile), sum(width)):
        assert kept.index_of(int(laid.matrix._ids()[row, column])) == (row, column)
    held = TileRegions.of(graph, laid.memory)
    assert len(held) == len(set(held.tile.tolist())) == len(set(tile)) * len(width)


@given(rows, widths, st.data())
@examples(60)
def test_rows_of_a_tile_are_those_of_the_matrix_in_its_order(tile, width, data):
    graph, layout = Graph(IPUModel("tiny").createDevice()), rows_of(tile, width)
    laid = layout.variable(graph, FLOAT, "laid")
    number = data.draw(st.integers(0, len(width) - 1))
    owner = data.draw(st.sampled_from(sorted(set(tile))))
    own = np.flatnonzero(layout.tile == owner)
    first = data.draw(st.integers(0, len(own)))
    count = data.draw(st.integers(0, len(own) - first))
    got = laid.rows_of_tiles(np.array([owner]), number, np.array([first]), count)
    wanted = laid.matrix._ids()[own[first : first + count], layout.cuts[number] : layout.cuts[number + 1]]
    assert got._ids().tolist() == [wanted.ravel().tolist()]


@given(rows, widths)
@examples(40)
def test_a_matrix_that_is_there_is_mapped_likewise_however_it_lies(tile, width):
    graph, layout = Graph(IPUModel("tiny").createDevice()), rows_of(tile, width)
    matrix = graph.addVariable(FLOAT, [sum(width), len(tile)], "columns").transpose()
    layout.map(graph, matrix)
    assert (tiles_of_elements(graph, matrix) == expected_tiles(layout)).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 4))
@examples(60)
def test_rows_of_a_block_are_shared_out_in_order_and_evenly(block, sharers):
    tile = shared_rows(np.array(block) * sharers, np.arange(sharers))
    for number in set(block):
        own = tile[np.array(block) == number] - number * sharers
        assert (np.diff(own) >= 0).all()
        counts = np.bincount(own, minlength=sharers)
        assert counts.tolist() == sorted(counts.tolist(), reverse=True)
        assert counts.max() - counts.min() <= 1


runs_of_blocks = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=12)
sharers_of_blocks = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True).map(sorted)


@given(runs_of_blocks, sharers_of_blocks)
def test_rows_are_shared_by_runs_as_they_are_one_by_one(runs, sharing):
    block, count = np.array(runs).T
    tile, rows = shared_runs(BlockRuns(block, count), np.array(sharing))
    assert np.repeat(tile, rows).tolist() == shared_rows(np.repeat(block, count), np.array(sharing)).tolist()
    assert rows.min() >= 1


@given(runs_of_blocks, sharers_of_blocks, widths)
def test_rows_that_are_shared_by_runs_are_mapped_as_by_a_layout(runs, sharing, width):
    graph = Graph(IPUModel("tiny").createDevice())
    block, count = np.array(runs).T
    cuts = np.cumsum([0, *width]).tolist()
    first, second = (graph.addVariable(FLOAT, [int(count.sum()), sum(width)]) for _ in range(2))
    map_shared_runs(graph, first, BlockRuns(block, count), np.array(sharing), cuts, STEP // 2)
    RowLayout(shared_rows(np.repeat(block, count), np.array(sharing)), cuts, STEP // 2).map(graph, second)
    assert graph.getTileMapping(first) == graph.getTileMapping(second)
