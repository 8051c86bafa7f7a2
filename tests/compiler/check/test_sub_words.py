"""Stores narrower than a word by vertices that run beside each other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_builder import Builder, FieldStandIn, all_used

from pypoplar.compiler.check.sub_words import find_sub_word_stores
from pypoplar.compiler.exchange.compute_set_plan import plan_compute_set
from pypoplar.compiler.memory.placement import place_variables
from pypoplar.errors import AtomicStoreError, GraphCycleError
from pypoplar.types import BOOL, FLOAT, HALF


def check(builder: Builder) -> None:
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    find_sub_word_stores(graph, [plan_compute_set(graph, homes, number) for number in range(len(graph.compute_sets))], homes)


def writers(type: Any, pieces: list[tuple[int, int]], *, kind: str = "vertex", tile: int = 0, home: int = 0) -> Builder:
    builder = Builder()
    x = builder.variable(16, home, type=type, name="x")
    codelet = builder.codelet("Fill", FieldStandIn("y", "output", "vector", type), kind=kind)
    compute = builder.compute_set("fill")
    for begin, end in pieces:
        builder.vertex(compute, codelet, tile, {"y": x[begin:end]})
    return builder


def test_two_vertices_that_share_a_word_are_named_with_their_elements_and_lines() -> None:
    with pytest.raises(AtomicStoreError) as raised:
        check(writers(HALF, [(0, 3), (3, 6)]))
    assert isinstance(raised.value, GraphCycleError)
    assert str(raised.value) == (
        "vertices.py:100: Field Fill.y writes to elements [2:3) of variable 'x' into the same 32-bit word of tile 0 as "
        "field Fill.y to elements [3:4) of variable 'x' in same compute set 'fill': vertex 0 (Fill) on tile 0 and "
        "vertex 1 (Fill) on tile 0, added at vertices.py:101, run on different workers, and one of the stores would be lost; "
        "the compute set was made at sets.py:10; let each vertex write whole words, an even number of HALFs or four CHARs from a "
        "multiple of it on, have elements of 32 bits, such as INT for BOOL, or give all of a word to one vertex"
    )


def test_what_lands_from_elsewhere_is_judged_where_the_vertices_run() -> None:
    with pytest.raises(AtomicStoreError):
        check(writers(HALF, [(0, 3), (3, 6)], tile=1))
    check(writers(HALF, [(0, 2), (3, 5)], tile=1))  # apart in element order: each piece lands in words of its own


@pytest.mark.parametrize("kind", ["multi", "supervisor"])
def test_vertices_that_have_the_tile_for_themselves_may_share_words(kind: str) -> None:
    check(writers(HALF, [(0, 3), (3, 6)], kind=kind))


def test_words_of_different_tiles_are_different_words() -> None:
    builder = Builder()
    x = builder.variable(2, [0, 1], type=HALF)
    codelet = builder.codelet("Fill", FieldStandIn("y", "output", "vector", HALF))
    compute = builder.compute_set()
    for tile in range(2):
        builder.vertex(compute, codelet, tile, {"y": x[tile : tile + 1]})
    check(builder)


def test_one_vertex_may_write_parts_of_a_word_through_two_fields() -> None:
    builder = Builder()
    x = builder.variable(2, type=HALF)
    codelet = builder.codelet("Both", FieldStandIn("a", "output", "vector", HALF), FieldStandIn("b", "output", "vector", HALF))
    builder.vertex(builder.compute_set(), codelet, 0, {"a": x[:1], "b": x[1:]})
    check(builder)


def writes_near_and_far(pieces: list[tuple[int, int]], far: list[tuple[int, int]]) -> Builder:
    """Vertices that write pieces of a tile's memory, and others of what comes back to another tile through the buffer."""
    builder = Builder()
    near, distant = (builder.variable(16, home, type=HALF, name=name) for home, name in ((0, "near"), (1, "far")))
    codelet = builder.codelet("Both", *(FieldStandIn(name, "output", "vector", HALF) for name in ("a", "b")))
    compute = builder.compute_set("both")
    for (begin, end), (far_begin, far_end) in zip(pieces, far, strict=True):
        builder.vertex(compute, codelet, 0, {"a": near[begin:end], "b": distant[far_begin:far_end]})
    return builder


@pytest.mark.parametrize("far", [[(0, 2), (2, 4)], [(0, 2), (2, 2)], [(2, 2), (0, 2)]])
def test_a_vertex_that_also_writes_into_the_buffer_is_judged_in_its_tiles_memory(far: list[tuple[int, int]]) -> None:
    with pytest.raises(AtomicStoreError, match=r"field Both.a to elements \[3:4\) of variable 'near'.*vertex 0.*and vertex 1"):
        check(writes_near_and_far([(0, 3), (3, 6)], far))


def test_the_same_word_of_a_tiles_memory_and_of_its_buffer_are_two_words() -> None:
    builder = writes_near_and_far([(0, 0), (8, 12)], [(0, 12), (12, 16)])
    codelet = builder.codelet("Halves", *(FieldStandIn(name, "output", "vector", HALF) for name in ("a", "b")))
    builder.vertex(0, codelet, 0, {"a": np.arange(4, 5), "b": np.arange(5, 6)})  # it writes one word through two fields
    check(builder)


def test_words_of_floats_and_reads_of_halves_are_fine() -> None:
    check(writers(FLOAT, [(0, 1), (1, 2)]))
    builder = writers(HALF, [])
    codelet = builder.codelet("Read", FieldStandIn("x", "input", "vector", HALF))
    for begin in range(4):
        builder.vertex(0, codelet, 0, {"x": np.arange(begin, begin + 1)})
    check(builder)


@given(st.lists(st.integers(0, 16), min_size=2, max_size=5, unique=True).map(sorted), st.sampled_from([HALF, BOOL]), st.booleans())
def test_neighbours_conflict_just_if_a_cut_lies_within_a_word(cuts: list[int], type: Any, reverse: bool) -> None:
    pieces = list(pairwise(cuts))
    builder = writers(type, pieces[::-1] if reverse else pieces)
    if any(cut * type.size % 4 for cut in cuts[1:-1]):
        with pytest.raises(AtomicStoreError):
            check(builder)
    else:
        check(builder)
