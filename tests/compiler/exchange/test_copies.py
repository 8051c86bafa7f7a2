"""Copy plans, done piece by piece in NumPy tile memories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from attrs import astuple
from hypothesis import given
from hypothesis import strategies as st
from passes_builder import Builder, all_used, frozen_runs
from passes_simulator import Tiles, element

from pypoplar import IPUModel, Target
from pypoplar.arrays.columns import as_one
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.exchange import copy_plan, message_account, stream_order
from pypoplar.compiler.exchange.copy_plan import plan_copies
from pypoplar.compiler.exchange.exchange_costs import pieces_within, price_exchanges, rearrange_cycles
from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange.message_account import Transfers, share_out
from pypoplar.compiler.exchange.pieces import columns
from pypoplar.compiler.exchange.stream_order import stream_exchange
from pypoplar.compiler.exchange_plan import CopyPlan
from pypoplar.compiler.memory.placement import place_variables
from pypoplar.errors import InvalidTileMapping, TensorShapeError
from pypoplar.graph.frozen import ElementRuns
from pypoplar.types import BOOL, FLOAT, HALF, LONGLONG


@st.composite
def copies(draw: Any) -> tuple[Builder, Any, Any]:
    """A random view copied into elements of another variable, or permuted elements onto themselves."""
    builder = Builder(tiles=4)
    type = draw(st.sampled_from([FLOAT, HALF, LONGLONG, BOOL]))
    variables = [
        builder.variable(size, draw(tiles_of(size)), type=type)
        for size in draw(st.lists(st.integers(1, 16), min_size=2, max_size=3))
    ]
    order = draw(st.sampled_from(["forward", "reversed", "shuffled"]))
    target = np.concatenate(variables[1:])[draw(st.integers(0, 3)) :: draw(st.integers(1, 3))]
    if order == "reversed":
        target = target[::-1]
    if order == "shuffled":
        target = target[draw(st.permutations(range(len(target))))]
    kind = draw(st.sampled_from(["slice", "any", "one"]))
    if kind == "slice":
        begin = draw(st.integers(0, len(variables[0])))
        source = variables[0][begin:]
    elif kind == "one":
        source = np.repeat(variables[0][:1], len(target))
    else:
        source = variables[0][draw(st.lists(st.integers(0, len(variables[0]) - 1), max_size=len(target)))]
    size = min(len(source), len(target))
    source, target = source[:size], target[:size]
    if size and draw(st.booleans()):
        source = np.concatenate((source, target[:1]))
        target = np.concatenate((target, target[:1]))[: len(source)]
        source, target = source[1:], target[1:]
    return builder, source, target


@st.composite
def tiles_of(draw: Any, size: int) -> list[int]:
    where: list[int] = []
    while len(where) < size:
        where += [draw(st.integers(0, 3))] * draw(st.integers(1, 8))
    return where[:size]


def views(ids: Sequence[Any]) -> ViewRuns:
    return ViewRuns.joined([frozen_runs(own) for own in ids])


def done(builder: Builder, source: Any, target: Any) -> tuple[Tiles, CopyPlan]:
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    plan = plan_copies(graph, homes, views([source]), views([target]))
    tiles = Tiles(homes, np.zeros(builder.tiles, int))
    tiles.move(plan.pieces)
    return tiles, plan


def bytes_on_tiles(builder: Builder, plan: CopyPlan) -> list[int]:
    """By tile what the exchange alone does not put into its place: what stays, and what arrives in a message of several pieces."""
    pieces, messages = plan.pieces, plan.account.messages
    begin, end = plan.offset, plan.offset + messages["bytes"]
    carriers = []  # of the pieces: the number of a message, None for a piece that stays on its tile
    for source, target, offset in zip(pieces.source_tile, pieces.target_tile, pieces.source_offset, strict=True):
        inside = (messages["source"] == source) & (messages["destination"] == target) & (begin <= offset) & (offset < end)
        carriers.append(int(inside.argmax()) if source != target else None)
    loads = Counter(carriers)
    bytes = [0] * builder.tiles
    for target, size, carrier in zip(pieces.target_tile, pieces.bytes, carriers, strict=True):
        if carrier is None or loads[carrier] > 1:
            bytes[target] += int(size)
    return bytes


@given(copies())
def test_every_target_element_gets_its_source_and_nothing_else_changes(made: tuple[Builder, Any, Any]) -> None:
    builder, source, target = made
    tiles, plan = done(builder, source, target)
    values = {int(to): int(start) for start, to in zip(source, target, strict=True)}
    for number in tiles.elements():
        assert tiles.at(number).tolist() == element(values.get(number, number) + 1, tiles.width(number)).tolist()
    assert not plan.pieces.source_in_buffer.any()
    assert not plan.pieces.target_in_buffer.any()


@given(copies())
def test_the_account_counts_each_element_once_for_each_receiver(made: tuple[Builder, Any, Any]) -> None:
    builder, source, target = made
    tiles, plan = done(builder, source, target)
    arrives, leaves = defaultdict(set), defaultdict(set)
    for start, to in zip(source.tolist(), target.tolist(), strict=True):
        if tiles.tile(start) != tiles.tile(to):
            arrives[tiles.tile(to)].add(start)
            leaves[tiles.tile(start)].add(start)
    width = builder.types[0].size
    assert plan.account.bytes_received.tolist() == [width * len(arrives[tile]) for tile in range(4)]
    assert plan.account.bytes_sent.tolist() == [width * len(leaves[tile]) for tile in range(4)]
    rows = plan.account.messages
    assert np.bincount(rows["destination"], rows["bytes"], 4).tolist() == plan.account.bytes_received.tolist()
    assert (rows["source"] != rows["destination"]).all()


@given(copies(), st.integers(1, 4))
def test_a_views_pieces_on_the_host_do_not_depend_on_where_it_is_cut(made: tuple[Builder, Any, Any], at_once: int) -> None:
    builder, _, view = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    runs = frozen_runs(view)
    whole = host_pieces(homes, runs)
    with patch.object(copy_plan, "CUT_AT_ONCE", at_once):
        parts = host_pieces(homes, runs)
    for name in ("position", "tile", "offset", "bytes"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()
    places, width = [], int(homes.width[0]) if len(homes.width) else 1
    for piece in zip(whole.position.tolist(), whole.tile.tolist(), whole.offset.tolist(), whole.bytes.tolist(), strict=True):
        places += [(piece[0] + at, piece[1], piece[2] + at) for at in range(0, piece[3], width)]
    home = np.searchsorted(homes.end, view, "right")
    lives = zip(
        homes.tile[home].tolist(), (homes.offset[home] + (view - homes.begin[home]) * homes.width[home]).tolist(), strict=True
    )
    assert places == [(width * number, *place) for number, place in enumerate(lives)]


def test_a_piece_on_the_host_that_is_cut_becomes_one_again() -> None:
    builder = Builder(tiles=2)
    view = np.concatenate((builder.variable(8, [0] * 8)[:7], builder.variable(8, [1] * 8)[4:7]))
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    with patch.object(copy_plan, "CUT_AT_ONCE", 1):  # at the fifth element
        pieces = host_pieces(homes, frozen_runs(view))
    assert pieces.position.tolist() == [0, 28]
    assert pieces.bytes.tolist() == [28, 12]
    assert pieces.tile.tolist() == [0, 1]


def test_runs_of_nothing_are_no_pieces_on_the_host() -> None:
    """They are none of the stretches by which a view is cut, so that each part of it has elements."""
    builder = Builder(tiles=1)
    builder.variable(2)
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    for last, offsets in ((2, [4, 0]), (0, [])):
        runs = ElementRuns(np.array([0, 0, 0, 1]), np.array([0, 0, 0, last]), np.array([1, 1, 1, -1]))
        with patch.object(copy_plan, "CUT_AT_ONCE", 1):
            pieces = host_pieces(homes, runs)
        assert pieces.offset.tolist() == (homes.offset[0] + np.array(offsets, int)).tolist()
        assert pieces.position.tolist() == [0, 4][:last]
        assert pieces.bytes.tolist() == [4] * last


@given(copies(), st.booleans(), st.integers(1, 4))
def test_what_a_stream_rearranges_does_not_depend_on_where_it_is_cut(
    made: tuple[Builder, Any, Any], inward: bool, at_once: int
) -> None:
    builder, source, target = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    tensors = [frozen_runs(view) for view in (target, np.unique(source)) if len(view)]
    whole = stream_exchange(graph.tiles, homes, tensors, inward=inward)
    with patch.object(copy_plan, "CUT_AT_ONCE", at_once), patch.object(stream_order, "CUT_AT_ONCE", at_once):
        parts = stream_exchange(graph.tiles, homes, tensors, inward=inward)
    assert (whole is None) == (parts is None)
    if whole is None or parts is None:
        return
    assert parts.tensors == whole.tensors
    for one, other in (
        (parts.account.exchange.messages, whole.account.exchange.messages),
        (parts.account.offset, whole.account.offset),
        (parts.account.stretches, whole.account.stretches),
        (parts.pieces, whole.pieces),
    ):
        assert one.tolist() == other.tolist()
    for one, other in zip(columns(parts.local), columns(whole.local), strict=True):
        assert one.tolist() == other.tolist()
    assert (parts.shares is None) == (whole.shares is None)


@given(copies(), st.booleans())
def test_a_stream_lands_in_its_order_and_every_element_goes_to_its_place(made: tuple[Builder, Any, Any], inward: bool) -> None:
    builder, source, target = made
    check_streams(builder, [view for view in (target, np.unique(source)) if len(view)], inward=inward)


@pytest.mark.parametrize("inward", [False, True])
def test_a_piece_that_streams_bring_in_two_shares_goes_to_one_place_and_streams_do_not_meet(inward: bool) -> None:
    builder = Builder()
    both = builder.variable(16, [0, 1, 1, 1, 1, 1, 1, 0] * 2)
    check_streams(builder, [both[:8], both[8:]], inward=inward)


def check_streams(builder: Builder, tensors: list[Any], *, inward: bool) -> None:
    """The exchange of streams of some views is that of their elements one by one."""
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    exchange = stream_exchange(graph.tiles, homes, [frozen_runs(view) for view in tensors], inward=inward)
    crossing, staying, pieces, before = Counter[tuple[int, int, int]](), [], Counter[int](), 0
    for view in tensors:
        home = np.searchsorted(homes.end, view, "right")
        width, tile = int(homes.width[home[0]]), homes.tile[home].tolist()
        lives = (homes.offset[home] + (view - homes.begin[home]) * width).tolist()
        holders = sorted(set(tile))
        goes_on = [
            here == there and to == at + width for (here, there), (at, to) in zip(pairwise(tile), pairwise(lives), strict=True)
        ]
        if len(holders) == 1 + goes_on.count(False):
            continue  # the tiles each have theirs in the order of the stream
        share = 8 * -(-len(view) * width // (8 * len(holders)))  # whole words of the data path
        lands = [(holders[place // share], place % share) for place in range(0, len(view) * width, width)]
        for number, ((landing, at), here, place) in enumerate(zip(lands, tile, lives, strict=True)):
            joined = number and goes_on[number - 1] and lands[number - 1][0] == landing
            if here == landing:
                staying += [(here, at + byte, place + byte) for byte in range(width)]
            else:
                ends = (landing, here) if inward else (here, landing)
                crossing[(*ends, int(homes.variable[home[0]]))] += width
                pieces[here] += not joined
        before += 1
    assert (exchange is None) == (before == 0)
    if exchange is None:
        return
    assert len(exchange.tensors) == before
    messages = Counter[tuple[int, int, int]]()
    for row in exchange.account.exchange.messages.tolist():
        messages[row[0], row[1], row[3]] += row[2]
    assert messages == crossing
    assert exchange.pieces.tolist() == [pieces[number] for number in range(builder.tiles)]
    local = exchange.local
    assert local.source_tile.tolist() == local.target_tile.tolist()
    rows = zip(
        *(column.tolist() for column in (local.source_tile, local.source_offset, local.target_offset, local.bytes)), strict=True
    )
    assert [(here, at + byte, place + byte) for here, at, place, size in rows for byte in range(size)] == staying


def test_pieces_are_as_long_as_both_sides_are_contiguous() -> None:
    builder = Builder()
    x, y = builder.variable(8, [0] * 4 + [1] * 4), builder.variable(8, [2] * 6 + [3] * 2)
    _, plan = done(builder, x, y)
    assert plan.pieces.bytes.tolist() == [16, 8, 8]
    assert plan.account.messages.tolist() == [(0, 2, 16, 0), (1, 2, 8, 0), (1, 3, 8, 0)]
    assert bytes_on_tiles(builder, plan) == [0, 0, 0, 0]


def test_an_element_that_is_its_own_target_does_not_move() -> None:
    builder = Builder()
    x = builder.variable(8, 0)
    _, plan = done(builder, x, x)
    assert len(plan.pieces.bytes) == 0
    assert bytes_on_tiles(builder, plan) == [0, 0, 0, 0]


def test_what_is_spread_out_after_it_arrived_counts_as_bytes_on_the_tile() -> None:
    builder = Builder()
    x, y = builder.variable(4, 0), builder.variable(4, 1)
    _, plan = done(builder, x[::-1], y)
    assert plan.account.messages.tolist() == [(0, 1, 16, 0)]
    assert bytes_on_tiles(builder, plan) == [0, 16, 0, 0]
    _, plan = done(builder, np.repeat(x[:1], 4), y)
    assert plan.account.messages.tolist() == [(0, 1, 4, 0)]
    assert bytes_on_tiles(builder, plan) == [0, 16, 0, 0]


def test_a_copy_on_the_tile_is_no_exchange() -> None:
    builder = Builder()
    x, y = builder.variable(4, 2), builder.variable(4, 2)
    _, plan = done(builder, x, y)
    assert len(plan.account.messages) == 0
    assert bytes_on_tiles(builder, plan) == [0, 0, 16, 0]


def test_unequal_counts_and_elements_without_a_home_are_refused() -> None:
    builder = Builder()
    x, y = builder.variable(4, 0), builder.variable(4, [1, 1, 1, -1])
    with pytest.raises(TensorShapeError, match="3 elements into 4"):
        done(builder, x[:3], y)
    with pytest.raises(InvalidTileMapping):
        done(builder, x, y)


@st.composite
def several_copies(draw: Any) -> tuple[Builder, list[tuple[Any, Any]]]:
    """Copies of views of the same variables, some of them empty."""
    builder = Builder(tiles=4)
    x, y = (builder.variable(12, draw(tiles_of(12))) for _ in range(2))
    made = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.integers(0, 12))
        made.append((x[draw(st.permutations(range(12)))][:size], y[draw(st.permutations(range(12)))][:size]))
    return builder, made


def described(target: Target, plan: CopyPlan, number: int, machines: int) -> list[Any]:
    """All that is told of one of the copies that a plan is of."""
    tiles = target.getNumTiles()
    pieces, messages = plan.pieces, plan.account.messages
    moved, told = pieces.target_tile // tiles == number, messages["destination"] // tiles == number
    first = number * tiles
    columns = (pieces.source_tile - first, pieces.source_offset, pieces.target_tile - first, pieces.target_offset, pieces.bytes)
    rows = [
        (source - first, destination - first, bytes, variable) for source, destination, bytes, variable in messages[told].tolist()
    ]
    arrives = pieces.source_tile != pieces.target_tile
    placed = np.bincount(pieces.target_tile[arrives], minlength=machines * tiles)
    within = pieces_within(target, messages, placed)
    cost = price_exchanges(target, plan.account, plan.offset, within, machines)[number]
    return [
        [column[moved].tolist() for column in columns],
        (rows, plan.offset[told].tolist()),
        [bytes[first : first + tiles].tolist() for bytes in (plan.account.bytes_sent, plan.account.bytes_received)],
        (cost.cycles.tolist(), cost.global_cycles, cost.crosses),
        rearrange_cycles(target, pieces, machines * tiles)[first : first + tiles].tolist(),
    ]


@pytest.mark.parametrize("ipus", [1, 2])
@given(made=several_copies())
def test_copies_are_planned_and_priced_together_as_each_alone(ipus: int, made: tuple[Builder, list[tuple[Any, Any]]]) -> None:
    builder, pairs = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    model = IPUModel()
    model.numIPUs, model.tilesPerIPU = ipus, 4 // ipus
    target = model.createDevice().getTarget()
    sources, targets = (views([pair[side] for pair in pairs]) for side in range(2))
    together = plan_copies(graph, homes, sources, targets)
    for number, (source, to) in enumerate(pairs):
        alone = plan_copies(graph, homes, views([source]), views([to]))
        assert described(target, together, number, len(pairs)) == described(target, alone, 0, 1)


@st.composite
def machines_of_copies(draw: Any) -> tuple[Builder, list[tuple[Any, Any]], Any]:
    """Copies that write different elements, each with the number of its machine."""
    builder = Builder(tiles=4)
    x, y = (builder.variable(16, draw(tiles_of(16))) for _ in range(2))
    order = y[draw(st.permutations(range(16)))] if draw(st.booleans()) else y
    cuts = sorted(draw(st.lists(st.integers(0, 16), max_size=5)))
    pairs = []
    for begin, end in pairwise([0, *cuts, 16]):
        source = x[draw(st.integers(0, 16 - (end - begin))) :] if draw(st.booleans()) else x[draw(st.permutations(range(16)))]
        pairs.append((source[: end - begin], order[begin:end]))
    machine = np.cumsum([0, *(draw(st.booleans()) for _ in pairs[1:])])
    return builder, pairs, machine


@given(machines_of_copies())
def test_copies_on_one_machine_are_one_exchange_in_which_each_has_its_share(made: Any) -> None:
    builder, pairs, machine = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    sources, targets = (views([pair[side] for pair in pairs]) for side in range(2))
    plan = plan_copies(graph, homes, sources, targets, machine)
    assert plan.shares is not None
    for number in range(machine[-1] + 1):
        own = np.flatnonzero(machine == number)
        source, target = (np.concatenate([pairs[copy][side] for copy in own]) for side in range(2))
        whole = plan_copies(graph, homes, views([source]), views([target]))
        told = plan.account.messages["destination"] // 4 == number
        rows = plan.account.messages[told]
        assert [(row[0] - 4 * number, row[1] - 4 * number, *row.tolist()[2:]) for row in rows] == whole.account.messages.tolist()
        assert plan.offset[told].tolist() == whole.offset.tolist()
        for bytes, expected in (
            (plan.account.bytes_sent, whole.account.bytes_sent),
            (plan.account.bytes_received, whole.account.bytes_received),
        ):
            assert bytes[4 * number : 4 * number + 4].tolist() == expected.tolist()
    for copy, (source, target) in enumerate(pairs):
        alone = plan_copies(graph, homes, views([source]), views([target]))
        assert plan.shares.messages[plan.shares.copy == copy].tolist() == alone.account.messages.tolist()
        assert plan.shares.bytes_sent[copy] == alone.account.bytes_sent.sum()
        arrives = alone.pieces.source_tile != alone.pieces.target_tile
        arriving = plan.shares.arriving_tile[plan.shares.arriving_copy == copy]
        assert arriving.tolist() == alone.pieces.target_tile[arrives].tolist()


@given(machines_of_copies(), st.integers(1, 4))
def test_copies_that_are_planned_part_by_part_have_the_same_plan(made: Any, size: int) -> None:
    builder, pairs, machine = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    ends = views([source for source, _ in pairs]), views([target for _, target in pairs])
    for machines in (None, machine):
        whole = plan_copies(graph, homes, *ends, machines)
        with patch.object(copy_plan, "CUT_AT_ONCE", size), patch.object(message_account, "AT_ONCE", size):
            parted = plan_copies(graph, homes, *ends, machines)
        tables = [
            (*columns(plan.pieces), *astuple(plan.account, recurse=False), plan.offset)
            + (() if plan.shares is None else astuple(plan.shares, recurse=False))
            for plan in (whole, parted)
        ]
        for one, other in zip(*tables, strict=True):
            assert one.tolist() == other.tolist()


@given(machines_of_copies())
def test_copies_on_one_machine_put_every_element_in_its_place(made: Any) -> None:
    builder, pairs, _ = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    sources, targets = (views([pair[side] for pair in pairs]) for side in range(2))
    plan = plan_copies(graph, homes, sources, targets, np.zeros(len(pairs), np.int64), shares=False)
    assert plan.shares is None
    tiles = Tiles(homes, np.zeros(builder.tiles, int))
    tiles.move(plan.pieces)
    values = {int(to): int(start) for pair in pairs for start, to in zip(*pair, strict=True)}
    for number in tiles.elements():
        assert tiles.at(number).tolist() == element(values.get(number, number) + 1, tiles.width(number)).tolist()


def test_messages_of_copies_are_listed_where_their_numbers_do_not_fit_64_bits() -> None:
    """Of many copies on many tiles with much memory."""
    far = 1 << 40
    transfers = Transfers(*(np.array(column) for column in ([0, 1 << 20, 0], [1 << 20, 0, 1 << 20], [0] * 3, [0, far, 8], [8] * 3)))
    messages, copy, sent = share_out(transfers, np.array([1, 0, 1]), 1 << 10)
    assert messages.tolist() == [(1 << 20, 0, 8, 0), (0, 1 << 20, 16, 0)]
    assert copy.tolist() == [0, 1]
    assert sent[:3].tolist() == [8, 16, 0]


def test_values_of_parts_stand_one_after_the_other():
    """Those that are equal have no memory of their own; a part that begins as the others do may go on otherwise."""
    threes, fours, mixed, nothing = np.broadcast_to(3, 2), np.broadcast_to(4, 1), np.array([3, 5]), np.zeros(0, np.int64)
    for values in ([threes, threes], [threes, fours], [threes, mixed], [mixed, threes], [nothing, threes], [nothing, nothing]):
        assert as_one(values).tolist() == np.concatenate(values).tolist()
    assert as_one([threes, nothing, threes]).strides == (0,)
