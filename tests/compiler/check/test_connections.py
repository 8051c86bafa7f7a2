"""Checks of connections and mappings: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_builder import Builder, FieldStandIn, all_used

from pypoplar.compiler.check.connected_regions import used_vertices
from pypoplar.compiler.check.connections import check_connections
from pypoplar.compiler.check.mappings import check_mappings
from pypoplar.errors import GraphConnectionError, InvalidTileMapping, TensorWriteError
from pypoplar.types import FLOAT


def graph_with(*fields: FieldStandIn) -> tuple[Builder, Any, Any]:
    builder = Builder()
    x, y = builder.variable(8, name="x"), builder.variable(8, name="y")
    builder.codelet("Scale", *fields)
    builder.compute_set("scale")
    return builder, x, y


SCALE = (FieldStandIn("x"), FieldStandIn("y", "output"), FieldStandIn("factor", "state", "scalar"))


def message(builder: Builder, error: type[Exception]) -> str:
    with pytest.raises(error) as raised:
        check_connections(builder.freeze(), range(len(builder.compute_sets)))
    return str(raised.value)


def test_a_vertex_with_all_its_fields_connected_is_fine() -> None:
    builder, x, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": x[0:4], "y": y[4:8]})
    check_connections(builder.freeze(), [0])


def test_a_field_without_an_edge_is_named_with_its_vertex_and_line() -> None:
    builder, x, _ = graph_with(*SCALE)
    builder.vertex(0, 0, 2, {"x": x})
    assert message(builder, GraphConnectionError) == (
        "vertices.py:100: field Scale.y is not connected to a tensor: vertex 0 (Scale) on tile 2 of compute set 'scale'"
    )


def test_all_unconnected_fields_of_the_first_vertex_and_the_number_of_others_are_named() -> None:
    builder, x, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": x[0:4], "y": y[0:4]})
    for tile in (0, 1, 3):
        builder.vertex(0, 0, tile, {})
    assert message(builder, GraphConnectionError) == (
        "vertices.py:101: fields Scale.x, Scale.y are not connected to a tensor: vertex 1 (Scale) on tile 0 of "
        "compute set 'scale'; the same holds for 2 more vertices (3 in all, on tiles 0-1, 3)"
    )


def test_a_field_connected_twice_is_refused() -> None:
    builder, x, y = graph_with(*SCALE)
    vertex = builder.vertex(0, 0, 0, {"x": x, "y": y})
    builder.edge(vertex, 0, 0, x)
    builder.edge(vertex, 0, 0, x)
    assert "field Scale.x is connected 3 times, expected once" in message(builder, GraphConnectionError)


def test_rows_of_a_list_field_are_connected_once_each_from_0_on() -> None:
    rows = FieldStandIn("rows", "input", "list")
    builder, x, y = graph_with(rows)
    vertex = builder.vertex(0, 0, 0, {"rows": [x[0:3], y[0:2]]})
    check_connections(builder.freeze(), [0])
    builder.edge(vertex, 0, 1, x)
    assert "field Scale.rows[1] is connected 2 times" in message(builder, GraphConnectionError)
    builder, x, y = graph_with(rows)
    builder.edge(builder.vertex(0, 0, 0, {"rows": [x]}), 0, 2, y)
    assert "rows of field Scale.rows are connected up to 2, but not all rows before it" in message(builder, GraphConnectionError)


def test_vertices_of_other_compute_sets_are_not_judged() -> None:
    builder, _, _ = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {})
    builder.compute_set("used")
    check_connections(builder.freeze(), [1])


def test_a_list_connected_to_no_rows_is_connected_once() -> None:
    rows, others = FieldStandIn("rows", "input", "list"), FieldStandIn("others", "input", "list")
    builder, x, _ = graph_with(rows, others)
    vertex = builder.vertex(0, 0, 0, {"rows": [], "others": [x]})
    check_connections(builder.freeze(), [0])
    builder.vertex(0, 0, 0, {"rows": []})
    assert "field Scale.others is not connected to a tensor: vertex 1" in message(builder, GraphConnectionError)
    builder.edge(vertex, 0, 0, x)
    assert "field Scale.rows is connected 2 times, expected once: vertex 0" in message(builder, GraphConnectionError)
    builder, _, _ = graph_with(rows)
    vertex = builder.vertex(0, 0, 0, {"rows": []})
    builder.no_rows.append((vertex, 0))
    assert "field Scale.rows is connected 2 times" in message(builder, GraphConnectionError)


def test_a_scalar_field_takes_one_element() -> None:
    builder, x, _ = graph_with(FieldStandIn("out", "output", "scalar"))
    builder.vertex(0, 0, 0, {"out": x[0:2]})
    assert "field Scale.out is a scalar and takes 1 element, got 2" in message(builder, GraphConnectionError)


def test_a_constant_is_read_but_not_written() -> None:
    builder, x, y = graph_with(*SCALE)
    one = builder.variable(2, name="one", constant=True)
    builder.vertex(0, 0, 0, {"x": one, "y": y})
    check_connections(builder.freeze(), [0])
    builder.vertex(0, 0, 0, {"x": x, "y": one[1:]})
    found = message(builder, TensorWriteError)
    assert found.startswith("vertices.py:101: field Scale.y would write to constant 'one' (added at graph.py:3)")


@pytest.mark.parametrize("ids", [[0, 0, 0], [0, 1, 1, 2], [3, 2, 1, 2, 3], [0, 1, 2, 0, 1, 2]])
def test_a_view_that_holds_an_element_twice_is_read_but_not_written(ids: list[int]) -> None:
    builder, _, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": np.array(ids), "y": y})
    check_connections(builder.freeze(), [0])
    builder, _, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": y, "y": np.array(ids)})
    assert "field Scale.y would write to a view of variable 'x', a view that holds" in message(builder, TensorWriteError)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=8))
def test_a_view_is_written_just_if_it_holds_each_element_once(ids: list[int]) -> None:
    builder, _, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": y, "y": np.array(ids)})
    if len(set(ids)) == len(ids):
        check_connections(builder.freeze(), [0])
    else:
        message(builder, TensorWriteError)


def test_fields_of_one_vertex_that_share_an_element_must_be_one_inout() -> None:
    builder, x, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": x[0:4], "y": x[3:6]})
    assert message(builder, GraphConnectionError) == (
        "vertices.py:100: field Scale.y writes to elements [3:4) of variable 'x' that field Scale.x of the same vertex reads; "
        "use one InOut field for both: vertex 0 (Scale) on tile 0 of compute set 'scale'"
    )
    builder, x, y = graph_with(FieldStandIn("a"), FieldStandIn("b"), FieldStandIn("c", "inout"))
    builder.vertex(0, 0, 0, {"a": x[0:4], "b": x[2:6], "c": y})
    check_connections(builder.freeze(), [0])


def test_a_shared_element_of_two_vertices_is_not_a_matter_of_connections() -> None:
    builder, x, y = graph_with(*SCALE)
    builder.vertex(0, 0, 0, {"x": x, "y": y})
    builder.vertex(0, 0, 0, {"x": x, "y": y})
    check_connections(builder.freeze(), [0])


def test_elements_without_a_tile_are_counted_and_named() -> None:
    builder = Builder()
    builder.variable((2, 4), [0, -1, -1, 0, 1, 1, -1, 1], name="x")
    builder.variable(3, -1, name="y")
    builder.variable(3, -1, name="unused")
    graph = builder.freeze()
    check_mappings(graph, np.array([False, False, False]), used_vertices(graph, []))
    with pytest.raises(InvalidTileMapping) as raised:
        check_mappings(graph, np.array([True, True, False]), used_vertices(graph, []))
    assert str(raised.value) == (
        "graph.py:1: variable 'x' has no tile for 3 of its 8 elements: [1:3), [6:7)\n"
        "graph.py:2: variable 'y' has no tile for 3 of its 3 elements: [0:3)\n"
        "map them with setTileMapping"
    )


def test_vertices_without_a_tile_are_counted_and_the_first_is_named() -> None:
    builder, x, y = graph_with(*SCALE)
    for tile in (0, -1, -1, -1):
        builder.vertex(0, 0, tile, {"x": x, "y": y})
    graph = builder.freeze()
    check_mappings(graph, all_used(graph), used_vertices(graph, []))
    with pytest.raises(InvalidTileMapping) as raised:
        check_mappings(graph, all_used(graph), used_vertices(graph, [0]))
    assert str(raised.value) == (
        "vertices.py:101: vertex 1 (Scale) of compute set 'scale' has no tile (nor have 2 others); map them with setTileMapping"
    )


def test_neighbouring_variables_on_one_tile_are_fully_mapped() -> None:
    builder = Builder()
    for size in (3, 0, 4):
        builder.variable(size, 1, type=FLOAT)
    graph = builder.freeze()
    assert len(graph.mapping.begin) == 1
    check_mappings(graph, all_used(graph), used_vertices(graph, []))
