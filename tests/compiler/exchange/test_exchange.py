"""Exchange plans, simulated: what each vertex sees, what comes home, and what the account says about it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_builder import Builder, FieldStandIn, all_used
from passes_simulator import Tiles, element

from pypoplar.compiler.exchange import gathers
from pypoplar.compiler.exchange.compute_set_plan import plan_compute_set
from pypoplar.compiler.exchange_plan import ComputePlan, Homes
from pypoplar.compiler.memory.aligned_edges import aligned_edges
from pypoplar.compiler.memory.placement import place_variables
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.types import BOOL, FLOAT, HALF, LONGLONG

TYPES = [FLOAT, HALF, LONGLONG, BOOL]


@st.composite
def views(draw: Any, ids: Any) -> Any:
    """A rank-1 view of a variable: slice, stride, reversal, broadcast, or a concatenation of such."""
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(ids)))
        end = draw(st.integers(begin, len(ids)))
        step = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2]))
        piece = ids[begin:end][::step]
        if len(piece) and draw(st.integers(0, 5)) == 0:
            piece = np.repeat(piece[:1], draw(st.integers(1, 4)))
        pieces.append(piece)
    return np.concatenate(pieces)


@st.composite
def graphs(draw: Any, exclusive: bool = True) -> tuple[Builder, FrozenGraph]:
    """One compute set of random vertices over variables mapped at random; with `exclusive`, no element is written by two."""
    builder = Builder(tiles=4)
    tile = st.integers(0, 3)
    variables = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 14))
        where: list[int] = []
        while len(where) < size:
            where += [draw(tile)] * draw(st.integers(1, 8))
        variables.append(builder.variable(size, where[:size], type=draw(st.sampled_from(TYPES))))
    demanding = draw(st.booleans())
    demands = st.sampled_from([0, 8, 16, 32] if demanding else [0])
    codelets = {
        type: builder.codelet(
            type.__name__,
            FieldStandIn("one", "input", "vector", type, draw(demands)),
            FieldStandIn("rows", "input", "list", type, draw(demands)),
            FieldStandIn("out", "output", "vector", type, draw(demands)),
            FieldStandIn("both", "inout", "vector", type, draw(demands)),
            FieldStandIn("other", "input", "vector", type, draw(demands)),
            distinct=draw(st.sampled_from([(), ((0, 1),), ((0, 4), (1, 4)), ((0, 1), (0, 2), (0, 4), (1, 4), (2, 3))])),
        )
        for type in TYPES
    }
    compute_set = builder.compute_set()
    free = [list(ids) for ids in variables]
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(variables) - 1))
        type = builder.types[at]
        alike = np.concatenate([ids for ids, other in zip(variables, builder.types, strict=True) if other is type])
        edges = {
            "one": draw(views(alike)),
            "rows": [draw(views(alike)) for _ in range(draw(st.integers(0, 2)))],
            "out": draw(written(free[at] if exclusive else list(variables[at]))),
            "both": draw(written(free[at] if exclusive else list(variables[at]))),
        }
        edges["other"] = draw(st.sampled_from([edges["one"], *edges["rows"], edges["one"][1:]]) | views(alike))
        vertex = builder.vertex(compute_set, codelets[type], draw(tile), {})
        fields = ["one", "rows", "out", "both", "other"]
        for name, view in edges.items():
            for row, ids in enumerate(view if name == "rows" else [view]):
                builder.edge(vertex, fields.index(name), row, (ids, type))
    return builder, builder.freeze()


@st.composite
def written(draw: Any, free: list[int]) -> Any:
    """Some elements that no other edge writes: mostly neighbours, in order or not."""
    begin = draw(st.integers(0, len(free)))
    end = draw(st.integers(begin, len(free)))
    step = draw(st.sampled_from([1, 1, 1, 2, -1]))
    taken = free[begin:end][::step]
    for number in taken:
        free.remove(number)
    return np.array(taken, int)


def planned(graph: FrozenGraph) -> tuple[Homes, ComputePlan]:
    homes = place_variables(graph, all_used(graph), aligned=aligned_edges(graph, np.ones(len(graph.vertices.codelet), bool)))
    return homes, plan_compute_set(graph, homes, 0)


def edges_of(builder: Builder, plan: ComputePlan) -> list[tuple[int, int, str, int, Any]]:
    """(index in the plan, tile, access, width, ids) of each edge, found by vertex, field and row."""
    by_name = {one[:3]: one for one in builder.edges}
    found = []
    for k, position in enumerate(plan.edge_position):
        vertex = int(plan.vertex[position])
        one = by_name[(vertex, int(plan.edge_field[k]), int(plan.edge_row[k]))]
        declared = builder.codelets[builder.vertices[vertex][0]].fields[one[1]]
        found.append((k, int(plan.tile[position]), declared.access, declared.type.size, one[4]))
    return found


def edge_memory(tiles: Tiles, plan: ComputePlan, k: int, tile: int, width: int) -> Any:
    size = int(plan.edge_length[k]) * width
    assert plan.edge_offset[k] % width == 0
    return tiles.place(tile, int(plan.edge_offset[k]), size, bool(plan.edge_in_buffer[k]))


def bytes_of(ids: Any, width: int) -> list[int]:
    return [int(byte) for number in ids for byte in element(int(number), width)]


@given(graphs())
def test_every_edge_sees_its_elements_and_every_written_element_comes_home(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    homes, plan = planned(graph)
    tiles = Tiles(homes, plan.buffer_bytes)
    edges = edges_of(builder, plan)
    assert len(edges) == len(builder.edges)
    for pieces in (plan.exchange_before, plan.gather, plan.parted, plan.preload):
        tiles.move(pieces)
    for k, tile, _, width, ids in edges:
        assert plan.edge_length[k] == len(ids)
        assert edge_memory(tiles, plan, k, tile, width).tolist() == bytes_of(ids + 1, width)

    changed = {}
    for k, tile, access, width, ids in edges:
        if access != "input":
            edge_memory(tiles, plan, k, tile, width)[:] = bytes_of(ids + 101, width)
            changed.update({int(number): int(number) + 101 for number in ids})
    for pieces in (plan.scatter, plan.exchange_after):
        tiles.move(pieces)
    for number in tiles.elements():
        assert tiles.at(number).tolist() == element(changed.get(number, number + 1), tiles.width(number)).tolist()


@given(graphs(exclusive=False))
def test_every_edge_sees_its_elements_even_where_several_vertices_write_them(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    homes, plan = planned(graph)
    tiles = Tiles(homes, plan.buffer_bytes)
    for pieces in (plan.exchange_before, plan.gather, plan.parted, plan.preload):
        tiles.move(pieces)
    for k, tile, _, width, ids in edges_of(builder, plan):
        assert edge_memory(tiles, plan, k, tile, width).tolist() == bytes_of(ids + 1, width)


@given(graphs())
def test_pieces_stay_on_their_side_of_the_plan(made: tuple[Builder, FrozenGraph]) -> None:
    _, plan = planned(made[1])
    for pieces in (plan.exchange_before, plan.exchange_after):
        assert (pieces.source_tile != pieces.target_tile).all()
    for pieces in (plan.gather, plan.parted, plan.scatter):
        assert (pieces.source_tile == pieces.target_tile).all()
    assert not plan.exchange_before.source_in_buffer.any()
    assert plan.exchange_before.target_in_buffer.all()
    assert plan.exchange_after.source_in_buffer.all()
    assert not plan.exchange_after.target_in_buffer.any()
    assert plan.preload.target_in_buffer.all()
    assert plan.gather.target_in_buffer.all()
    assert plan.parted.target_in_buffer.all()
    assert plan.scatter.source_in_buffer.all()
    assert (plan.buffer_bytes % 8 == 0).all()
    assert (np.diff(plan.tile) >= 0).all()


@given(graphs())
def test_edges_begin_where_their_vertices_demand(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    _, plan = planned(graph)
    for k, position in enumerate(plan.edge_position):
        vertex = int(plan.vertex[position])
        demanded = max(builder.codelets[builder.vertices[vertex][0]].fields[plan.edge_field[k]].aligned, 1)
        if plan.edge_length[k]:
            assert plan.edge_offset[k] % demanded == 0
            assert not plan.edge_in_buffer[k] or plan.buffer_alignment[plan.tile[position]] % demanded == 0


@given(graphs())
def test_fields_are_apart_where_their_vertices_demand(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    assert places_shared(builder, planned(graph)[1]) == 0


def places_shared(builder: Builder, plan: ComputePlan) -> int:
    """Bytes in which fields overlap that their codelet demands to be apart."""
    places = defaultdict(set)
    for k, _, _, width, _ in edges_of(builder, plan):
        begin = int(plan.edge_offset[k])
        bytes = range(begin, begin + int(plan.edge_length[k]) * width)
        places[int(plan.edge_position[k]), int(plan.edge_field[k])] |= {(bool(plan.edge_in_buffer[k]), byte) for byte in bytes}
    return sum(
        len(places[position, one] & places[position, other])
        for position, vertex in enumerate(plan.vertex.tolist())
        for one, other in builder.codelets[builder.vertices[vertex][0]].distinct
    )


@given(graphs())
def test_what_is_parted_is_copied_and_nothing_is_that_lies_apart_anyway(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    homes, plan = planned(graph)
    of_parted, of_copied = (
        (pieces.target_tile, pieces.target_offset, pieces.bytes) for pieces in (plan.parted, plan.copied_before)
    )
    assert {*zip(*of_parted, strict=True)} <= {*zip(*of_copied, strict=True)}
    free = attrs.evolve(graph, codelets=tuple(attrs.evolve(codelet, distinct=()) for codelet in builder.codelets))
    other = plan_compute_set(free, homes, 0)
    assert len(other.parted.bytes) == 0
    if places_shared(builder, other) == 0:
        assert len(plan.parted.bytes) == 0
        for name in ("edge_offset", "edge_in_buffer", "buffer_bytes"):
            assert (getattr(plan, name) == getattr(other, name)).all()


def stretches(offsets: set[int], width: int) -> list[int]:
    """Lengths in bytes of the contiguous pieces that elements at these offsets make up."""
    lengths: list[int] = []
    last = None
    for offset in sorted(offsets):
        if last == offset:
            lengths[-1] += width
        else:
            lengths.append(width)
        last = offset + width
    return sorted(lengths)


@given(graphs())
def test_the_account_of_arrivals_is_the_union_of_what_each_tile_reads_elsewhere(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    homes, plan = planned(graph)
    tiles = Tiles(homes, plan.buffer_bytes)
    wanted: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for _, tile, access, _, ids in edges_of(builder, plan):
        for number in ids.tolist() if access != "output" else []:
            if tiles.tile(number) != tile:
                wanted[tile, tiles.tile(number), int(homes.variable[tiles.home(number)])].add(number)
    found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for row in plan.before.messages:
        found[int(row["destination"]), int(row["source"]), int(row["variable"])].append(int(row["bytes"]))
    expected = {}
    for key, ids in wanted.items():
        expected[key] = stretches({tiles.offset(number) for number in ids}, tiles.width(next(iter(ids))))
    assert {key: sorted(value) for key, value in found.items()} == expected

    received, sent = np.zeros(4, int), np.zeros(4, int)
    for (tile, _, _), ids in wanted.items():
        received[tile] += sum(tiles.width(number) for number in ids)
    for number in set().union(*wanted.values()):
        sent[tiles.tile(number)] += tiles.width(number)
    assert plan.before.bytes_received.tolist() == received.tolist()
    assert plan.before.bytes_sent.tolist() == sent.tolist()
    assert np.bincount(plan.exchange_before.target_tile, plan.exchange_before.bytes, 4).tolist() == received.tolist()


@given(graphs())
def test_the_account_of_departures_is_what_each_tile_writes_elsewhere(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    homes, plan = planned(graph)
    tiles = Tiles(homes, plan.buffer_bytes)
    expected: dict[tuple[int, int, int], int] = defaultdict(int)
    for _, tile, access, width, ids in edges_of(builder, plan):
        for number in ids.tolist() if access != "input" else []:
            if tiles.tile(number) != tile:
                expected[tile, tiles.tile(number), int(homes.variable[tiles.home(number)])] += width
    found: dict[tuple[int, int, int], int] = defaultdict(int)
    for row in plan.after.messages:
        found[int(row["source"]), int(row["destination"]), int(row["variable"])] += int(row["bytes"])
    assert found == expected
    assert plan.after.bytes_sent.sum() == plan.after.bytes_received.sum() == sum(expected.values())


@given(graphs())
def test_without_multicast_as_much_is_sent_as_received(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    homes, plan = planned(graph)
    tiles = Tiles(homes, plan.buffer_bytes)
    readers = {
        (tile, number) for _, tile, access, _, ids in edges_of(builder, plan) for number in ids.tolist() if access != "output"
    }
    remote = [number for tile, number in readers if tiles.tile(number) != tile]
    sent, received = plan.before.bytes_sent.sum(), plan.before.bytes_received.sum()
    assert sent <= received
    assert (sent == received) == (len(set(remote)) == len(remote))


def renumbered(builder: Builder, numbers: list[int]) -> FrozenGraph:
    builder.tile_of = [numbers[tile] for tile in builder.tile_of]
    builder.vertices = [(codelet, compute, numbers[tile], at) for codelet, compute, tile, at in builder.vertices]
    return builder.freeze()


@given(graphs(), st.permutations(range(4)))
def test_renumbering_the_tiles_permutes_the_account(made: tuple[Builder, FrozenGraph], numbers: list[int]) -> None:
    builder, graph = made
    _, plan = planned(graph)
    _, other = planned(renumbered(builder, numbers))
    for one, two in ((plan.before, other.before), (plan.after, other.after)):
        rows = sorted(
            (numbers[row["source"]], numbers[row["destination"]], int(row["bytes"]), int(row["variable"])) for row in one.messages
        )
        assert rows == sorted(tuple(int(value) for value in row) for row in two.messages)
        assert one.bytes_sent.tolist() == two.bytes_sent[numbers].tolist()
        assert one.bytes_received.tolist() == two.bytes_received[numbers].tolist()
    assert plan.buffer_bytes.tolist() == other.buffer_bytes[numbers].tolist()


def doubled(builder: Builder) -> FrozenGraph:
    builder.tile_of = [tile for tile in builder.tile_of for _ in range(2)]
    builder.shapes = [(2 * shape[0],) for shape in builder.shapes]
    builder.edges = [
        (*one[:4], np.stack((2 * one[4], 2 * one[4] + 1), axis=1).ravel() if len(one[4]) else one[4]) for one in builder.edges
    ]
    return builder.freeze()


@given(graphs())
def test_doubling_the_data_doubles_the_bytes(made: tuple[Builder, FrozenGraph]) -> None:
    builder, graph = made
    _, plan = planned(graph)
    _, other = planned(doubled(builder))
    for one, two in ((plan.before, other.before), (plan.after, other.after)):
        assert (2 * one.bytes_sent).tolist() == two.bytes_sent.tolist()
        assert (2 * one.bytes_received).tolist() == two.bytes_received.tolist()


def reader(builder: Builder) -> int:
    return builder.codelet("Read", FieldStandIn("x"), FieldStandIn("y", "output"))


@given(graphs(), st.integers(1, 4))
def test_edges_that_are_gathered_part_by_part_have_the_same_plan(made: tuple[Builder, FrozenGraph], size: int) -> None:
    _, graph = made
    homes = place_variables(graph, all_used(graph))
    whole = plan_compute_set(graph, homes, 0)
    with patch.object(gathers, "AT_ONCE", size):
        parted = plan_compute_set(graph, homes, 0)
    for one, other in zip(*(attrs.astuple(plan, recurse=True) for plan in (whole, parted)), strict=True):
        np.testing.assert_equal(one, other)


def test_what_is_local_and_in_one_piece_is_used_in_place() -> None:
    builder = Builder()
    x, y = builder.variable(8, 1), builder.variable(8, 1)
    builder.vertex(builder.compute_set(), reader(builder), 1, {"x": x[2:6], "y": y[0:4]})
    _, plan = planned(builder.freeze())
    assert not plan.edge_in_buffer.any()
    assert plan.edge_offset.tolist() == [8, 32]
    assert len(plan.before.messages) == len(plan.after.messages) == 0
    assert plan.buffer_bytes.tolist() == [0, 0, 0, 0]


def test_a_region_that_many_vertices_of_a_tile_read_arrives_once() -> None:
    builder = Builder()
    x, y = builder.variable(8, 0), builder.variable(3, 1)
    compute, codelet = builder.compute_set(), reader(builder)
    for at in range(3):
        builder.vertex(compute, codelet, 1, {"x": x[at : at + 4], "y": y[at : at + 1]})
    _, plan = planned(builder.freeze())
    assert plan.before.messages.tolist() == [(0, 1, 24, 0)]
    assert plan.edge_offset[plan.edge_field == 0].tolist() == [0, 4, 8]
    assert plan.buffer_bytes.tolist() == [0, 24, 0, 0]


def test_a_multicast_is_sent_once_and_received_by_each() -> None:
    builder = Builder()
    x, y = builder.variable(4, 0), builder.variable(3, [1, 2, 3])
    compute, codelet = builder.compute_set(), reader(builder)
    for at in range(3):
        builder.vertex(compute, codelet, at + 1, {"x": x, "y": y[at : at + 1]})
    _, plan = planned(builder.freeze())
    assert plan.before.bytes_sent.tolist() == [16, 0, 0, 0]
    assert plan.before.bytes_received.tolist() == [0, 16, 16, 16]
    assert plan.before.messages.tolist() == [(0, 1, 16, 0), (0, 2, 16, 0), (0, 3, 16, 0)]


def test_equal_gathered_inputs_of_a_tile_share_one_buffer() -> None:
    builder = Builder()
    x, y = builder.variable(8, 0), builder.variable(3, 0)
    compute, codelet = builder.compute_set(), reader(builder)
    for at, view in enumerate([x[::2], x[::2], x[1::2]]):
        builder.vertex(compute, codelet, 0, {"x": view, "y": y[at : at + 1]})
    _, plan = planned(builder.freeze())
    assert plan.edge_offset[plan.edge_field == 0].tolist() == [0, 0, 16]
    assert plan.buffer_bytes[0] == 32
    assert len(plan.gather.bytes) == 8
    assert len(plan.before.messages) == 0


def test_an_output_elsewhere_brings_its_old_values_without_exchange() -> None:
    builder = Builder()
    x, y = builder.variable(4, 1), builder.variable(4, 0)
    builder.vertex(builder.compute_set(), reader(builder), 1, {"x": x, "y": y})
    _, plan = planned(builder.freeze())
    assert len(plan.before.messages) == 0
    assert (plan.preload.source_tile.tolist(), plan.preload.bytes.tolist()) == ([0], [16])
    assert plan.after.messages.tolist() == [(1, 0, 16, 1)]


@pytest.mark.parametrize("tiles", [1, 3])
def test_a_compute_set_without_vertices_has_an_empty_plan(tiles: int) -> None:
    builder = Builder(tiles=tiles)
    builder.variable(4)
    builder.compute_set()
    _, plan = planned(builder.freeze())
    assert len(plan.vertex) == len(plan.edge_offset) == 0
    assert plan.before.bytes_sent.tolist() == [0] * tiles
