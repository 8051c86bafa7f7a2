"""Lists of moves, folded many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.flattening.move_tables import MoveLists
from pypoplar.compiler.flattening.places import Places
from pypoplar.executable.move_lists import Moves
from pypoplar.interface.header_slots import HOST

STEPS = st.sampled_from([4, 4, 4, 8, -4])


@st.composite
def columns(draw: Any) -> tuple[Places, Places, Int64s, Int64s]:
    """Pieces of one move: rows of equal steps, rows that are irregular on one side, and others."""
    source, target, sizes, tiles = [1000], [5000], [4], [0]
    for _ in range(draw(st.integers(0, 20))):
        source.append(source[-1] + draw(STEPS))
        target.append(target[-1] + draw(st.sampled_from([4, 4, 4, 12])))
        sizes.append(draw(st.sampled_from([4, 4, 4, 4, 8])))
        tiles.append(tiles[-1] + draw(st.sampled_from([0, 0, 0, 0, 0, 1])))
    order = draw(st.sampled_from(["rising", "falling", "in turn"]))
    tiles = tiles if order == "rising" else [tiles[-1] - tile if order == "falling" else n % 3 for n, tile in enumerate(tiles)]
    from_, to = (
        draw(st.lists(st.integers(0, draw(st.integers(0, 1))), min_size=len(source), max_size=len(source))) for _ in range(2)
    )
    return Places(np.array(from_), np.array(source)), Places(np.array(to), np.array(target)), np.array(sizes), np.array(tiles)


def described(moves: Moves, move: int) -> list[Any]:
    """All that the tables say of one move."""
    lists = []
    for entry in moves.lists_of(move):
        records = []
        for record in moves.records_of(entry):
            names = ("source", "target", "bytes", "count", "source_step", "target_step", "tile")
            row: list[Any] = [int(getattr(moves, name)[record]) for name in names]
            for side in ("source_list", "target_list"):
                first = int(getattr(moves, side)[record])
                row.append(moves.places[first : first + int(moves.count[record])].tolist() if first >= 0 else None)
            records.append(row)
        lists.append((int(moves.source_ipu[entry]), int(moves.target_ipu[entry]), records))
    return lists


@given(st.lists(columns(), min_size=1, max_size=5), st.sampled_from([1, 4, 1 << 16]))
def test_moves_that_are_folded_together_are_as_each_alone(every: list[tuple[Places, Places, Int64s, Int64s]], at_once: int) -> None:
    together = MoveLists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.compiler.flattening.move_tables.FOLDED_AT_ONCE", at_once)
        numbers = [together.add(*move) for move in every]
        moves = together.finish()
    for number, move in zip(numbers, every, strict=True):
        alone = MoveLists()
        only = alone.add(*move)
        assert described(moves, number) == described(alone.finish(), only)
        assert moved_bytes(moves, number) == bytes_of(*move)


def moved_bytes(moves: Moves, move: int) -> list[tuple[int, ...]]:
    """IPU, place and tile of each byte that a move moves."""
    found = []
    for entry in moves.lists_of(move):
        ipus = int(moves.source_ipu[entry]), int(moves.target_ipu[entry])
        for record in moves.records_of(entry):
            for piece in range(int(moves.count[record])):
                ends = moves.source_of(record, piece), moves.target_of(record, piece)
                found += [(*ipus, *(end + at for end in ends), int(moves.tile[record])) for at in range(int(moves.bytes[record]))]
    return sorted(found)


def bytes_of(source: Places, target: Places, sizes: Int64s, tiles: Int64s) -> list[tuple[int, ...]]:
    """The same of what is to be moved."""
    rows = zip(*(column.tolist() for column in (source.ipu, target.ipu, source.offset, target.offset, sizes, tiles)), strict=True)
    return sorted((here, there, begin + at, end + at, tile) for here, there, begin, end, size, tile in rows for at in range(size))


def test_a_move_of_nothing_has_no_lists() -> None:
    nothing = np.zeros(0, np.int64)
    lists = MoveLists()
    number = lists.add(Places(nothing, nothing), Places(nothing, nothing), nothing, nothing)
    assert described(lists.finish(), number) == []


@pytest.mark.parametrize("far", [(1 << 31) - 8, (1 << 31) - 4, 1 << 31, 1 << 40])
def test_places_of_any_size_come_back_as_they_were(far: int) -> None:
    """Chunks of a stream may be larger than 2 GiB; what waits for the end is kept narrow."""
    here, there = np.array([0, 4, 16, 40]), np.array([far, far + 40, far - 80, far + 4])
    one, size = np.zeros(4, np.int64), np.full(4, 4)
    lists = MoveLists()
    out, back = (
        lists.add(Places(one, here), Places(one, there), size, one),
        lists.add(Places(one, there), Places(one, here), size, one),
    )
    moves = lists.finish()
    assert moves.source.dtype == moves.tile.dtype == moves.count.dtype == np.int64
    for move, ends in ((out, (here, there)), (back, (there, here))):
        (entry,) = moves.lists_of(move)
        pieces = [(record, piece) for record in moves.records_of(entry) for piece in range(int(moves.count[record]))]
        assert [moves.source_of(*piece) for piece in pieces] == ends[0].tolist()
        assert [moves.target_of(*piece) for piece in pieces] == ends[1].tolist()


def pieces_of(moves: Moves, move: int) -> list[tuple[int, int, int]]:
    """Where each byte of a move comes from and goes to, with its tile, in the order of the sources."""
    found = []
    for entry in moves.lists_of(move):
        for record in moves.records_of(entry):
            for piece in range(int(moves.count[record])):
                source, target = moves.source_of(record, piece), moves.target_of(record, piece)
                found += [(source + n, target + n, int(moves.tile[record])) for n in range(int(moves.bytes[record]))]
    return sorted(found)


FALLING = Places(np.zeros(6, np.int64), 4 * np.arange(6)[::-1]), Places.on_host(4 * np.arange(6)), np.full(6, 4), np.arange(6) // 2


@given(columns(), st.booleans(), st.integers(1, 9), st.booleans())
@example(FALLING, True, 5, True)  # tiles whose memories lie the other way round
def test_what_comes_from_the_host_and_goes_back_is_every_piece_in_either_order(
    given_move: tuple[Places, Places, Int64s, Int64s], inward: bool, at_once: int, by_place: bool
) -> None:
    device, host, size, tile = given_move
    host = Places.on_host(host.offset)
    one_ipu = len(set(device.ipu.tolist())) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.compiler.flattening.move_tables.FOLDED_AT_ONCE", at_once)
        patch.setattr("pypoplar.compiler.flattening.move_tables._shorter_by_place", lambda *_: by_place)
        lists = MoveLists()
        lists.add(device, device, size, tile)
        there = lists.add_host(host, device, size, tile, inward=inward)
        back = lists.add_back(there)
        moves = lists.finish()
    ends = (host, device) if inward else (device, host)
    rows = zip(*(column.tolist() for column in (ends[0].offset, ends[1].offset, size, tile)), strict=True)
    wanted = sorted((source + n, target + n, tile) for source, target, bytes, tile in rows for n in range(bytes))
    assert pieces_of(moves, there) == wanted
    assert (back is None) == (len(size) <= at_once or not one_ipu)
    if back is not None:
        assert pieces_of(moves, back) == sorted((target, source, tile) for source, target, tile in wanted)
        ipu = int(device.ipu[0])
        for move in (there, back):
            (entry,) = moves.lists_of(move)
            tiles = moves.tile[moves.first[entry] : moves.first[entry + 1]]
            assert (np.diff(tiles) >= 0).all(), "each thread finds its own records"
        assert (int(moves.source_ipu[entry]), int(moves.target_ipu[entry])) == ((ipu, HOST) if inward else (HOST, ipu))


@pytest.mark.parametrize(("at_once", "records"), [(1 << 10, 3), (1 << 16, 2048)])
def test_a_long_move_with_the_host_is_in_the_order_that_takes_fewer_records(
    at_once: int, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights [2048, 3] on the host that lie as [3, 2048] on a tile are 3 records in the order of the tile."""
    monkeypatch.setattr("pypoplar.compiler.flattening.move_tables.FOLDED_AT_ONCE", at_once)
    position, offset = 4 * np.arange(6144), 4 * np.arange(6144).reshape(3, 2048).T.ravel()
    size, tile = np.full(6144, 4), np.zeros(6144, np.int64)
    lists = MoveLists()
    move = lists.add_host(Places.on_host(position), Places(tile, offset), size, tile, inward=True)
    moves = lists.finish()
    assert len(moves.source) == records
    wanted = [
        (source + n, target + n, 0) for source, target in zip(position.tolist(), offset.tolist(), strict=True) for n in range(4)
    ]
    assert pieces_of(moves, move) == wanted


@pytest.mark.parametrize("far", [(1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 40])
def test_single_places_and_steps_back_of_any_size_come_back_as_they_were(far: int) -> None:
    nothing, one = np.zeros(3, np.int64), np.zeros(1, np.int64)
    lists = MoveLists()
    single = lists.add(Places(one, np.array([far])), Places(one, one), np.array([4]), one)
    here, there = np.array([0, 4, 8]), far * np.array([2, 1, 0])
    falling = lists.add(Places(nothing, here), Places(nothing, there), np.full(3, 4), nothing)
    moves = lists.finish()
    for move, sources, targets in ((single, [far], [0]), (falling, here.tolist(), there.tolist())):
        (entry,) = moves.lists_of(move)
        pieces = [(record, piece) for record in moves.records_of(entry) for piece in range(int(moves.count[record]))]
        assert [moves.source_of(*piece) for piece in pieces] == sources
        assert [moves.target_of(*piece) for piece in pieces] == targets
