"""Edges that come behind others are put where they belong, as if all had been sorted together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.graph.edge_table import _ROW_SHIFT, _EdgeBlock


def drawn_block(drawn, edges):
    """Edges of few vertices, fields and rows, with one to three runs each."""
    length = drawn.integers(1, 4, edges)
    code = drawn.integers(0, 3, edges) + (drawn.integers(0, 3, edges) << _ROW_SHIFT)
    runs = (drawn.integers(0, 100, int(length.sum())) for _ in range(3))
    return _EdgeBlock(drawn.integers(0, 5, edges), code, length, *runs).in_order()


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(0, 6))
def test_edges_behind_others_come_where_they_belong(seed, edges, more):
    drawn = np.random.default_rng(seed)
    own, others = drawn_block(drawn, edges), drawn_block(drawn, more)
    wanted, got = _EdgeBlock.joined([own, others]).in_order(), own.with_more(others)
    for name in ("vertex", "code", "length", "start", "count", "step"):
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name))
