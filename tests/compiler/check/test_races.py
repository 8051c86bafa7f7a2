"""Races: against a brute-force oracle over elements, and the words of the message."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_builder import Builder, FieldStandIn

from pypoplar.compiler.check.connected_regions import collect_regions
from pypoplar.compiler.check.races import find_races, first_race
from pypoplar.errors import GraphCycleError


@st.composite
def regions(draw: Any, ids: Any) -> Any:
    """Slices, strides, reversals, broadcasts, several runs."""
    pieces = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        begin = draw(st.integers(0, len(ids)))
        end = draw(st.integers(begin, min(len(ids), begin + 6)))
        piece = ids[begin:end][:: draw(st.sampled_from([1, 1, 2, 3, -1, -2]))]
        if len(piece) and draw(st.integers(0, 7)) == 0:
            piece = np.repeat(piece[-1:], 3)
        pieces.append(piece)
    return np.concatenate(pieces)


@st.composite
def graphs(draw: Any) -> Builder:
    builder = Builder(tiles=2)
    ids = np.concatenate([builder.variable(size) for size in draw(st.lists(st.integers(1, 16), min_size=1, max_size=2))])
    codelet = builder.codelet("Touch", FieldStandIn("x"), FieldStandIn("y", "output"), FieldStandIn("z", "inout"))
    sets = [builder.compute_set() for _ in range(draw(st.integers(1, 2)))]
    for _ in range(draw(st.integers(0, 5))):
        fields = draw(st.lists(st.sampled_from(["x", "y", "z"]), unique=True, max_size=3))
        builder.vertex(draw(st.sampled_from(sets)), codelet, 0, {name: draw(regions(ids)) for name in fields})
    return builder


def oracle(builder: Builder, compute_set: int) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """The vertices that touch and that write each element on which two vertices race."""
    touches, writes = defaultdict(set), defaultdict(set)
    for vertex, field, _, _, ids in builder.edges:
        if builder.vertices[vertex][1] == compute_set:
            for number in ids.tolist():
                touches[number].add(vertex)
                if field > 0:
                    writes[number].add(vertex)
    raced = {number for number in touches if writes[number] and len(touches[number]) > 1}
    return {number: touches[number] for number in raced}, {number: writes[number] for number in raced}


@given(graphs())
def test_races_are_found_exactly_where_two_vertices_touch_an_element_and_one_writes(builder: Builder) -> None:
    graph = builder.freeze()
    for compute_set in range(len(builder.compute_sets)):
        touches, writes = oracle(builder, compute_set)
        race = first_race(graph, [compute_set])
        assert (race is not None) == bool(touches)
        if race is None:
            continue
        first = min(touches)
        assert (race.group, race.begin) == (compute_set, first)
        assert race.elements == len(touches)
        assert race.parties == len(set().union(*touches.values()))
        assert race.writer == min(writes[first])
        assert race.both_write == (len(writes[first]) > 1)
        assert race.other == min((writes if race.both_write else touches)[first] - {race.writer})
        for number in range(race.begin, race.end):
            assert race.writer in writes[number]
            assert race.other in (writes if race.both_write else touches)[number]
        assert not {race.writer, race.other} <= touches.get(race.end, set()) or not whole(builder, race)


def whole(builder: Builder, race: Any) -> bool:
    """Whether the race could go on at its end: both parties do there what they did before."""
    vertices = [edge for edge in builder.edges if race.end in edge[4]]
    writers = {edge[0] for edge in vertices if edge[1] > 0}
    readers = {edge[0] for edge in vertices}
    return race.writer in writers and race.other in (writers if race.both_write else readers)


@given(graphs())
def test_the_quick_look_never_overlooks_a_race(builder: Builder) -> None:
    graph = builder.freeze()
    every = range(len(builder.compute_sets))
    if collect_regions(graph, every).disjoint:
        assert not any(oracle(builder, compute_set)[0] for compute_set in every)


@given(graphs())
def test_only_the_given_compute_sets_are_judged(builder: Builder) -> None:
    assert first_race(builder.freeze(), []) is None


def scaled(*connections: Any) -> Any:
    builder = Builder()
    x, y = builder.variable(8, name="x"), builder.variable(8, name="y")
    codelet = builder.codelet("Scale", FieldStandIn("x"), FieldStandIn("y", "output"))
    compute = builder.compute_set("scale")
    for tile, (source, target) in enumerate(connections):
        builder.vertex(compute, codelet, tile, {"x": source(x, y), "y": target(x, y)})
    return builder.freeze()


def test_two_writers_are_named_with_their_elements_and_lines() -> None:
    graph = scaled((lambda x, y: x[0:4], lambda x, y: y[0:4]), (lambda x, y: x[3:7], lambda x, y: y[3:7]))
    with pytest.raises(GraphCycleError) as raised:
        find_races(graph, [0])
    assert str(raised.value) == (
        "vertices.py:100: Field Scale.y writes to elements [3:4) of variable 'y' that are written to elsewhere in same "
        "compute set 'scale': vertex 0 (Scale) on tile 0 writes them, and field Scale.y of vertex 1 (Scale) on tile 1, "
        "added at vertices.py:101, writes them; the compute set was made at sets.py:10, variable 'y' was made at graph.py:2"
    )


def test_a_writer_and_a_reader_are_named_with_their_elements_and_lines() -> None:
    graph = scaled((lambda x, y: x[0:4], lambda x, y: y[0:4]), (lambda x, y: y[4:6], lambda x, y: x[2:4]))
    with pytest.raises(GraphCycleError) as raised:
        find_races(graph, [0])
    assert str(raised.value) == (
        "vertices.py:101: Field Scale.y writes to elements [2:4) of variable 'x' that are read elsewhere in same "
        "compute set 'scale': vertex 1 (Scale) on tile 1 writes them, and field Scale.x of vertex 0 (Scale) on tile 0, "
        'added at vertices.py:100, reads them; {"pypoplar.races": "elements"} judges as it runs by the elements that vertices '
        "touch, and not by what they connect; the compute set was made at sets.py:10, variable 'x' was made at graph.py:1"
    )


def test_many_races_make_one_message() -> None:
    graph = scaled(*[(lambda x, y: x[0:4], lambda x, y: y[0:4])] * 4)
    with pytest.raises(GraphCycleError, match=r"\[0:4\) of variable 'y'.*; 4 vertices of this compute set race in 4 elements; "):
        find_races(graph, [0])


def test_an_even_and_an_odd_stride_do_not_race() -> None:
    graph = scaled((lambda x, y: x[0:4], lambda x, y: y[0::2]), (lambda x, y: x[0:4], lambda x, y: y[1::2]))
    find_races(graph, [0])


def test_elements_of_a_two_dimensional_variable_are_numbered_flat() -> None:
    builder = Builder()
    builder.variable(5)
    grid = builder.variable((3, 4), name="grid")
    codelet = builder.codelet("Fill", FieldStandIn("y", "output"))
    compute = builder.compute_set()
    builder.vertex(compute, codelet, 0, {"y": grid[1]})
    builder.vertex(compute, codelet, 0, {"y": grid[:, 2]})
    with pytest.raises(GraphCycleError, match=r"\[6:7\) of variable 'grid'"):
        find_races(builder.freeze(), [0])


def test_many_writers_of_one_element_are_counted() -> None:
    builder = Builder()
    builder.variable(1, name="sum")
    codelet = builder.codelet("Add", FieldStandIn("y", "inout"))
    compute = builder.compute_set()
    for _ in range(3000):
        builder.vertex(compute, codelet, 0, {"y": [0]})
    with pytest.raises(GraphCycleError, match=r"3,000 vertices of this compute set race in 1 element; "):
        find_races(builder.freeze(), [0])
