"""Edges that come behind others are put where they belong, as if all had been sorted together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import machine_code

from pypoplar import FLOAT, Graph, IPUModel
from pypoplar.arrays.run_sweeps import place_runs
from pypoplar.graph.edge_table import _ROW_SHIFT, EdgeTable, _EdgeBlock


def drawn_block(drawn, edges):
    """Edges of few vertices, fields and rows, with one to three runs each."""
    length = drawn.integers(1, 4, edges)
    code = drawn.integers(0, 3, edges) + (drawn.integers(0, 3, edges) << _ROW_SHIFT)
    runs = (drawn.integers(0, most, int(length.sum())) for most in (100, 4, 100))
    return _EdgeBlock(drawn.integers(0, 5, edges), code, length, *runs).in_order()


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(0, 6))
def test_edges_behind_others_come_where_they_belong(seed, edges, more):
    drawn = np.random.default_rng(seed)
    own, others = drawn_block(drawn, edges), drawn_block(drawn, more)
    wanted, (got, at) = _EdgeBlock.joined([own, others]).in_order(), own.with_more(others)
    for name in ("vertex", "code", "length", "start", "count", "step"):
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name))
        np.testing.assert_array_equal(getattr(got.without(at), name), getattr(own, name))


@examples(100)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 8), min_size=2, max_size=4), st.booleans())
def test_edges_of_several_blocks_are_put_in_order_at_once_as_step_by_step(seed, edges, empty):
    drawn = np.random.default_rng(seed)
    blocks = [drawn_block(drawn, number) for number in edges]
    if not empty:
        for block in blocks:
            np.maximum(block.count, 1, out=block.count)
    before, behind = (part.in_order().without_empty_runs() for part in (_EdgeBlock.joined(blocks[:-1]), blocks[-1]))
    wanted, there = before.with_more(behind)
    whole, last = _EdgeBlock.swept_in_order(blocks, machine_code(place_runs))
    np.testing.assert_array_equal(last, there)
    for name in ("vertex", "code", "length", "start", "count", "step"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(wanted, name))


def test_edges_without_elements_have_no_runs_and_runs_of_one_element_the_step_1():
    number = np.arange(3)
    block = _EdgeBlock(number, number, np.array([1, 3, 1]), *np.array([[9, 4, 8, 2, 6], [0, 1, 2, 3, 1], [5, 7, 3, 1, 2]]))
    full = block.without_empty_runs()
    assert full.length.tolist() == [0, 3, 1]
    assert [full.start.tolist(), full.count.tolist(), full.step.tolist()] == [[4, 8, 2, 6], [1, 2, 3, 1], [1, 3, 1, 1]]


def test_edges_without_runs_are_sorted_as_others():
    """Here there are as many runs as edges, though not one an edge."""
    block = _EdgeBlock(np.array([2, 1, 0]), np.zeros(3, np.int64), np.array([2, 0, 1]), *np.array([[7, 8, 9]] * 3))
    ordered = block.in_order()
    assert [ordered.vertex.tolist(), ordered.length.tolist(), ordered.start.tolist()] == [[0, 1, 2], [1, 0, 2], [9, 7, 8]]


FROZEN = ("vertex", "field", "row", "type", "first_run", "run_start", "run_count", "run_step", "no_rows")


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_a_table_that_is_frozen_again_and_again_has_what_one_has_that_is_frozen_once(seed):
    """The edges that a freezing brings are not those of the table; nor are edges without elements lost, or what is taken back."""
    drawn = np.random.default_rng(seed)
    x = Graph(IPUModel("tiny").createDevice()).addVariable(FLOAT, [1800], "x")
    table, whole = EdgeTable(), []
    for _ in range(5):
        for vertex, field, elements, strided in drawn.integers(0, (5, 3, 4, 2), (drawn.integers(0, 4), 4)).tolist():
            whole.append((vertex, field, (0, 1, 3, 600)[elements], bool(strided)))
            connect(table, x, *whole[-1])
        constants = [[vertex, 7, 10_000 + number, 1, 1] for number, vertex in enumerate(drawn.integers(0, 5, drawn.integers(0, 3)))]
        more = np.array(constants, np.int64).reshape(-1, 5) if constants else None
        fresh = EdgeTable()
        for edge in whole:
            connect(fresh, x, *edge)
        frozen, wanted = table.freeze(more), fresh.freeze(more)
        for name in FROZEN:
            np.testing.assert_array_equal(getattr(frozen, name), getattr(wanted, name))
        assert np.shares_memory(frozen.run_start, table._blocks[0].start) or not len(frozen.run_start), "it is not there twice"
        assert (frozen.run_step[frozen.run_count == 1] == 1).all()
        assert table.size().rows == len(frozen.run_start)
        if drawn.integers(0, 3) == 0:
            first = int(drawn.integers(1, 6))
            table.remove(first)
            whole = [edge for edge in whole if edge[0] < first]


def connect(table, x, vertex, field, elements, strided):
    """An edge to so many elements, in one run or in one each."""
    view = x[: 3 * elements].reshape([elements, 3])[:, 1] if strided and elements else x[:elements]
    table.connect(vertex, field, view)
